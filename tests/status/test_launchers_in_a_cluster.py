"""What launchers wrote in a real cluster when two ranks on two workers failed, and the cause that is read from it.

The texts are those the kubelet kept. Lines of ranks that have tags say whose they are; others may be anybody's.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from for_every import for_every_row

from oarsman.job.job import Implementation, Job
from oarsman.job.observed import Exit, Observed, Phase
from oarsman.job.state import Attempt, Cause
from oarsman.status import causes
from oarsman.status.tags import Tags
from tests.builders import MPIRUN, a_job, a_launcher, a_rank, a_status, at

JOB = a_job(launch=MPIRUN)
MPICH_JOB = replace(JOB, implementation=Implementation.MPICH, implementation_stated=True)

OPENMPI4 = """\
oh no
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
oh no
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[5498,1],1]
  Exit code:    3
--------------------------------------------------------------------------"""
# The whole log of one run in seven, with both ranks failing at once: mpirun itself never says which was first.
OPENMPI4_NAMES_NOBODY = """\
oh no
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
oh no"""
# The whole log of one run in ten, with one rank failing as soon as it is started and the others at work.
OPENMPI4_NAMES_NOBODY_SILENT = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------"""
OPENMPI4_SILENT = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[43144,1],0]
  Exit code:    3
--------------------------------------------------------------------------"""
# Under load mpirun now and then adds a warning that concerns nobody, before anything else.
WARNING = "[pi-launcher:00034] plm:rsh: Warning: setpgid(39,39) failed in parent with errno=Permission denied(13)\n"
OPENMPI5 = """\
part missing
--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-sh-m9bm5-launcher-7@1,1]
   Exit code:    3
--------------------------------------------------------------------------"""
OPENMPI5_SILENT = """\
--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-sh-rzhxl-launcher-7@1,0]
   Exit code:    3
--------------------------------------------------------------------------"""
# Rank 3 of 4 failed; the others went on until mpirun ended them. Without tags, and with them.
OPENMPI4_OTHERS_GO_ON = """\
rank 0: reading part 0
rank 1: reading part 1
rank 2: reading part 2
rank 3: reading part 3
part missing
epoch 1 loss 0.5
epoch 1 loss 0.5
epoch 1 loss 0.5
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
epoch 2
epoch 2
epoch 2
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[9651,1],3]
  Exit code:    5
--------------------------------------------------------------------------"""
OPENMPI4_TAGGED = """\
[1,1]<stdout>:rank 1: reading part 1
[1,2]<stdout>:rank 2: reading part 2
[1,0]<stdout>:rank 0: reading part 0
[1,3]<stdout>:rank 3: reading part 3
[1,3]<stderr>:part missing
[1,0]<stdout>:epoch 1 loss 0.5
[1,1]<stdout>:epoch 1 loss 0.5
[1,2]<stdout>:epoch 1 loss 0.5
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
[1,0]<stdout>:epoch 2
[1,1]<stdout>:epoch 2
[1,2]<stdout>:epoch 2
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[9979,1],3]
  Exit code:    5
--------------------------------------------------------------------------"""
OPENMPI5_OTHERS_GO_ON = """\
rank 3: reading part 3
part missing
epoch 1 loss 0.5
epoch 1 loss 0.5
epoch 1 loss 0.5
--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-19205@1,3]
   Exit code:    5
--------------------------------------------------------------------------"""
OPENMPI5_TAGGED = """\
[1,3]<stdout>: rank 3: reading part 3
[1,3]<stderr>: part missing
[1,0]<stdout>: epoch 1 loss 0.5
[1,1]<stdout>: epoch 1 loss 0.5
[1,2]<stdout>: epoch 1 loss 0.5
--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-19323@1,3]
   Exit code:    5
--------------------------------------------------------------------------"""
MPICH_OTHERS_GO_ON = """\
rank 3: reading part 3
part missing
epoch 1 loss 0.5
epoch 2"""
MPICH_OTHERS_GO_ON_TAGGED = """\
[3] rank 3: reading part 3
[3] part missing
[0] epoch 1 loss 0.5
[2] epoch 2"""
MPICH = "part missing\npart missing"
MPICH_TAGGED_FOR_OPENMPI = """\
[mpiexec@sh-w26v6-launcher] match_arg (lib/utils/args.c:166): unrecognized argument tag-output
[mpiexec@sh-w26v6-launcher] HYDU_parse_array (lib/utils/args.c:181): argument matching returned error
[mpiexec@sh-w26v6-launcher] parse_args (mpiexec/get_parameters.c:313): error parsing input array
[mpiexec@sh-w26v6-launcher] HYD_uii_mpx_get_parameters (mpiexec/get_parameters.c:48): unable to parse user arguments
[mpiexec@sh-w26v6-launcher] main (mpiexec/mpiexec.c:54): error parsing parameters"""
MPICH_HOSTFILE_OF_OPENMPI = """\
[mpiexec@plain-mpich-launcher] HYDU_process_mfile_token (lib/utils/args.c:301): token slots not supported at this time
[mpiexec@plain-mpich-launcher] HYDU_parse_hostfile (lib/utils/args.c:346): unable to process token
[mpiexec@plain-mpich-launcher] check_environment (mpiexec/get_parameters.c:240): error parsing hostfile
[mpiexec@plain-mpich-launcher] HYD_uii_mpx_get_parameters (mpiexec/get_parameters.c:141): checking environment variables
[mpiexec@plain-mpich-launcher] main (mpiexec/mpiexec.c:54): error parsing parameters"""
OPENMPI4_FOR_MPICH = """\
mpirun: Error: unknown option "-prepend-rank"
Type 'mpirun --help' for usage."""
OPENMPI5_FOR_MPICH = """\
--------------------------------------------------------------------------
An unrecognized option was included on the mpirun command line:

  Option: --prepend-rank

Please use the "mpirun --help" command to obtain a list of all
supported options.
--------------------------------------------------------------------------"""

# What mpirun writes about a program that is not there, may not be executed, or is none.
FRAME = "-" * 74
OPENMPI4_NO_PATH = f"""\
{FRAME}
mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: ./solver
Node: pi-worker-0

while attempting to start process rank 0.
{FRAME}
2 total processes failed to start"""
OPENMPI4_NO_NAME = f"""\
{FRAME}
mpirun was unable to find the specified executable file, and therefore
did not launch the job.  This error was first reported for process
rank 0; it may have occurred for other processes as well.

NOTE: A common cause for this error is misspelling a mpirun command
      line parameter option (remember that mpirun interprets the first
      unrecognized command line token as the executable).

Node:       pi-worker-0
Executable: solverr
{FRAME}
2 total processes failed to start"""
OPENMPI4_NO_PROGRAM = f"""\
{FRAME}
Open MPI tried to fork a new process via the "execve" system call but
failed.  Open MPI checks many things before attempting to launch a
child process, but nothing is perfect. This error may be indicative
of another problem on the target host, or even something as silly as
having specified a directory for your application. Your job will now
abort.

  Local host:        pi-worker-1
  Working dir:       /work
  Application name:  ./solver
  Error:             Exec format error
{FRAME}
{FRAME}
mpirun was unable to start the specified application as it encountered an
error:

Error code: -125
Error name: The specified application failed to start
Node: pi-worker-1

when attempting to start process rank 0.
{FRAME}
2 total processes failed to start"""
OPENMPI5_NO_PATH = f"""\
{FRAME}
prterun was unable to launch the specified application as it could not
access an executable:

   Executable: ./solver
   Node: pi-worker-0

while attempting to start process rank 0.
{FRAME}"""
# Of a program that is not there, on two nodes.
OPENMPI5_LACKS_PERMISSIONS = f"""\
{FRAME}
prterun was unable to launch the specified application as it lacked
permissions to execute an executable:

   Executable: ./solver
   Node: pi-worker-1

while attempting to start process rank 1.
{FRAME}"""
OPENMPI5_NO_NAME = f"""\
{FRAME}
prterun was unable to find the specified executable file, and therefore did
not launch the job.  This error was first reported for process rank
0; it may have occurred for other processes as well.

NOTE: A common cause for this error is misspelling a prterun command
   line parameter option (remember that prterun interprets the first
   unrecognized command line token as the executable).

   Node:       pi-worker-0
   Executable: solverr
{FRAME}"""
OPENMPI5_NO_INTERPRETER = f"""\
{FRAME}
PRTE tried to fork a new process via the "execve" system call but
failed.  PRTE checks many things before attempting to launch a
child process, but nothing is perfect. This error may be indicative
of another problem on the target host, or even something as silly as
having specified a directory for your application. Your job will now
abort.

  Local host:        pi-worker-0
  Working dir:       /work
  Application name:  ./solver
  Error:             ./solver has a bad interpreter on the first line.
{FRAME}"""
HYDRA_NO_PATH = "\n".join(
    f"[proxy:{n}@pi-worker-{n}] HYDU_create_process (/mpich-5.0.2/src/pm/hydra/lib/utils/launch.c:73): "
    "execvp error on file ./solver (No such file or directory)"
    for n in (0, 1)
)
INTEL_NOT_EXECUTABLE = (
    "[proxy:0:0@pi-worker-0] HYD_spawn (../../../../../src/pm/i_hydra/libhydra/spawn/intel/hydra_spawn.c:177): "
    "execvp error on file ./solver (Permission denied)"
)


def read(job: Job, text: str, code: int, **given: object) -> Cause:
    tags = Tags(hydra=job.implementation is Implementation.MPICH)
    said = [spoken for line in text.splitlines() if (spoken := tags.read(line)) is not None]
    ranks = tuple(each.rank for each in said) if tags.seen else ()
    lines = tuple(each.text for each in said)
    seen = Observed(launcher_lines=lines, launcher_ranks=ranks, launcher_relays=True, ranks_report=False)
    ended = a_launcher(Phase.FAILED, exit=Exit(code=code))  # kubelets tell of no signal
    return causes.of_failed_launcher(job, replace(seen, **given), ended)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "text", "summary"),
    [
        pytest.param(JOB, OPENMPI4, "rank 1 on pi-worker-1 exited with code 3", id="Open MPI 4"),
        pytest.param(JOB, OPENMPI4_NAMES_NOBODY, "a rank exited with code 3", id="Open MPI 4 names nobody"),
        pytest.param(JOB, OPENMPI4_NAMES_NOBODY_SILENT, "a rank exited with code 3", id="names nobody, silent"),
        pytest.param(JOB, OPENMPI4_SILENT, "rank 0 on pi-worker-0 exited with code 3", id="Open MPI 4, silent"),
        pytest.param(JOB, WARNING + OPENMPI4_SILENT, "rank 0 on pi-worker-0 exited with code 3", id="with a warning"),
        pytest.param(JOB, OPENMPI5, "rank 1 on pi-worker-1 exited with code 3", id="Open MPI 5"),
        pytest.param(JOB, OPENMPI5_SILENT, "rank 0 on pi-worker-0 exited with code 3", id="Open MPI 5, silent"),
        pytest.param(MPICH_JOB, MPICH, "the launcher exited with code 3", id="MPICH"),
        pytest.param(MPICH_JOB, "", "the launcher exited with code 3: it wrote nothing", id="MPICH, silent"),
    ],
)
def test_a_rank_that_failed_is_named_with_its_host_and_without_words_that_may_be_anothers(
    job: Job, text: str, summary: str
) -> None:
    assert read(job, text, 3).summary == summary


NOT_STARTED = [
    (JOB, OPENMPI4_NO_PATH, 132, "rank 0 on pi-worker-0: there is no program ./solver, or it may not be executed"),
    (JOB, OPENMPI4_NO_NAME, 134, "rank 0 on pi-worker-0: there is no program solverr"),
    (JOB, OPENMPI4_NO_PROGRAM, 131, "rank 1 on pi-worker-1: ./solver cannot be executed (Exec format error)"),
    (JOB, OPENMPI5_NO_PATH, 183, "rank 0 on pi-worker-0: there is no program ./solver, or it may not be executed"),
    (
        JOB,
        OPENMPI5_LACKS_PERMISSIONS,
        183,
        "rank 1 on pi-worker-1: there is no program ./solver, or it may not be executed",
    ),
    (JOB, OPENMPI5_NO_NAME, 66, "rank 0 on pi-worker-0: there is no program solverr"),
    (
        JOB,
        OPENMPI5_NO_INTERPRETER,
        213,
        "rank 0 on pi-worker-0: ./solver cannot be executed (./solver has a bad interpreter on the first line)",
    ),
    (MPICH_JOB, HYDRA_NO_PATH, 255, "rank 0 on pi-worker-0: ./solver cannot be executed (No such file or directory)"),
    (MPICH_JOB, INTEL_NOT_EXECUTABLE, 255, "rank 0 on pi-worker-0: ./solver cannot be executed (Permission denied)"),
]


@for_every_row(NOT_STARTED)
def test_a_program_that_could_not_be_started_is_named_with_the_rank_and_nobody_was_killed(
    job: Job, text: str, code: int, summary: str
) -> None:
    launcher = a_launcher(Phase.FAILED, exit=Exit(code=code))  # as the kubelet tells it: without a signal
    seen = Observed(launcher_lines=tuple(text.splitlines()), launcher_relays=True, ranks_report=False)
    cause = causes.of_failed_launcher(job, seen, launcher)
    assert (cause.summary, cause.exit_code, cause.signal) == (summary, code, None)
    assert cause.hint is not None


def test_a_code_of_mpiruns_own_is_no_signal_if_it_says_what_it_could_not_do() -> None:
    text = f"""\
{FRAME}
mpirun was unable to launch the specified application as it could not
change to the specified working directory:

Working directory: /no/such
Node: pi-worker-0

while attempting to start process rank 0.
{FRAME}"""
    cause = ended_with(134, text)
    assert cause.signal is None
    assert cause.summary == (
        "the launcher exited with code 134: mpirun was unable to launch the specified application "
        "as it could not change to the specified working directory"
    )


@for_every_row([(137, "signal 9 (Killed); who sent it is not known"), (139, "signal 11 (Segmentation fault)")])
def test_a_signal_that_mpirun_passes_on_without_a_word_may_be_a_ranks(code: int, signal: str) -> None:
    """Open MPI 5, once in five, of a rank that dies at once."""
    who = "a rank or the launcher itself"
    assert ended_with(code, "").summary == f"{who} was killed by {signal}: it wrote nothing"
    who = "the launcher or a program that it started"
    assert ended_with(code, "", job=a_job(launch=None)).summary == f"{who} was killed by {signal}: it wrote nothing"


def test_a_launcher_whose_own_signal_is_known_is_said_to_be_killed() -> None:
    killed = Exit(code=139, signal=11)
    assert ended_with(0, "", exit=killed).summary == (
        "the launcher was killed by signal 11 (Segmentation fault): it wrote nothing"
    )
    killed = Exit(code=137, memory_limit_hit=True)
    assert ended_with(0, "", exit=killed).summary.startswith("the launcher was killed by signal 9 (Killed): its memory")


def ended_with(code: int, text: str, *, job: Job = JOB, exit: Exit | None = None) -> Cause:
    seen = Observed(launcher_lines=tuple(text.splitlines()), launcher_relays=True, ranks_report=False)
    return causes.of_failed_launcher(job, seen, a_launcher(Phase.FAILED, exit=exit or Exit(code=code)))


FOUR = replace(MPIRUN, processes=4)
OTHERS_GO_ON = [
    pytest.param(OPENMPI4_OTHERS_GO_ON, OPENMPI4_TAGGED, id="Open MPI 4"),
    pytest.param(OPENMPI5_OTHERS_GO_ON, OPENMPI5_TAGGED, id="Open MPI 5"),
]


@pytest.mark.parametrize(("untagged", "tagged"), OTHERS_GO_ON)
def test_what_another_rank_wrote_last_is_not_why_a_rank_failed(untagged: str, tagged: str) -> None:
    job = a_job(workers=4, launch=FOUR)
    cause = read(job, tagged, 5)
    assert cause.summary == "rank 3 on pi-worker-3 exited with code 5: part missing"
    assert cause.last_lines == ("rank 3: reading part 3", "part missing")
    cause = read(job, untagged, 5)
    assert cause.summary == "rank 3 on pi-worker-3 exited with code 5"
    assert "part missing" in cause.last_lines, "all that the launcher passed on is there to be read"


@pytest.mark.parametrize("text", [MPICH_OTHERS_GO_ON, MPICH_OTHERS_GO_ON_TAGGED], ids=["untagged", "tagged"])
def test_where_nobody_says_which_rank_failed_no_line_of_a_rank_is_the_reason(text: str) -> None:
    cause = read(replace(MPICH_JOB, launch=FOUR), text, 5)
    assert cause.summary == "the launcher exited with code 5"
    assert cause.last_lines[-1] == "epoch 2"


TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 7, in <module>
ValueError: shapes do not match
epoch 2"""
TRACEBACK_TAGGED = """\
[0] epoch 1
[1] Traceback (most recent call last):
[0] epoch 2
[1]   File "train.py", line 7, in <module>
[0] Error: 0.5
[1] ValueError: shapes do not match
[0] epoch 3"""


@pytest.mark.parametrize("text", [TRACEBACK, TRACEBACK_TAGGED], ids=["untagged", "tagged"])
def test_a_traceback_is_the_reason_whoever_wrote_it(text: str) -> None:
    job = replace(MPICH_JOB, launch=FOUR)
    assert read(job, text, 1).summary == "the launcher exited with code 1: ValueError: shapes do not match"


def test_a_traceback_is_not_why_a_rank_ended_with_a_code_of_its_own() -> None:
    """It goes on after one that it has caught; one that ends with an exception ends with code 1."""
    text = TRACEBACK + "\n" + OPENMPI5_SILENT
    assert read(JOB, text, 3).summary == "rank 0 on pi-worker-0 exited with code 3"
    assert read(JOB, text.replace("code:    3", "code:    1"), 1).summary.endswith(
        "code 1: ValueError: shapes do not match"
    )


def test_what_a_rank_that_is_well_complains_about_is_no_hint_for_another() -> None:
    warned = "[1,0]<stderr>:cache.db: No such file or directory\n" + OPENMPI4_TAGGED
    job = a_job(workers=4, launch=FOUR)
    assert read(job, warned, 5).hint is None
    own = warned.replace("[1,0]<stderr>", "[1,3]<stderr>")
    assert read(job, own, 5).summary.endswith("exited with code 5: cache.db: No such file or directory")
    assert read(job, "cache.db: No such file or directory\n" + OPENMPI4_OTHERS_GO_ON, 5).hint is None


def test_a_rank_that_reported_gets_no_hint_from_another_ranks_line() -> None:
    lines, ranks = ("cache.db: No such file or directory", "mpirun: done"), (0, None)
    seen = Observed(ranks=(a_rank(3, code=5),), launcher_lines=lines, launcher_ranks=ranks, launcher_relays=True)
    assert causes.of_failed_launcher(JOB, seen, a_launcher(Phase.FAILED, code=5)).hint is None


def test_the_words_of_a_script_around_mpirun_are_its_own_where_ranks_have_tags() -> None:
    job = a_job(launch=replace(MPIRUN, in_shell=True))
    assert read(job, "[1,0]<stdout>:done\nno results", 4).summary == "the launcher exited with code 4: no results"


def test_a_script_of_which_nobody_knows_that_it_starts_ranks_is_told_with_its_last_line() -> None:
    assert read(a_job(launch=None), "no such data", 4).summary == "the launcher exited with code 4: no such data"


HYDRA_BLAMES_ITS_OWN_KILL = """\
= BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
= PID 28 RUNNING AT pi-worker-1.pi.default.svc
= EXIT CODE: 9
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"""
SCRIPT = replace(JOB, launch=replace(MPIRUN, in_shell=True))
WROTE = (a_rank(0, code=143, finished_at=at(8)), a_rank(1, code=3, finished_at=at(7)))


@pytest.mark.parametrize(
    ("job", "text", "code", "summary"),
    [
        pytest.param(JOB, OPENMPI4_NAMES_NOBODY, 3, "rank 1 on pi-worker-1 exited with code 3", id="named by nobody"),
        pytest.param(JOB, OPENMPI4_SILENT, 3, "rank 0 on pi-worker-0 exited with code 3", id="named by mpirun"),
        pytest.param(MPICH_JOB, "", 3, "rank 1 on pi-worker-1 exited with code 3", id="Hydra, silent"),
        pytest.param(
            MPICH_JOB, HYDRA_BLAMES_ITS_OWN_KILL, 9, "rank 1 on pi-worker-1 exited with code 3", id="Hydra's own kill"
        ),
        pytest.param(
            MPICH_JOB,
            "oarsman: the sessions on all hosts have ended, mpiexec has not; it is ended",
            137,
            "rank 1 on pi-worker-1 exited with code 3",
            id="Hydra, ended by us",
        ),
        pytest.param(SCRIPT, "oh no", 3, "rank 1 on pi-worker-1 exited with code 3", id="a script with its code"),
        pytest.param(SCRIPT, "oh no", 5, "the launcher exited with code 5", id="a script that failed later"),
        pytest.param(
            SCRIPT,
            "oh no",
            137,
            "a rank or the launcher itself was killed by signal 9 (Killed); who sent it is not known",
            id="a script that was killed",
        ),
    ],
)
def test_what_ranks_wrote_down_adds_to_what_mpirun_says(job: Job, text: str, code: int, summary: str) -> None:
    assert read(job, text, code, ranks=WROTE).summary == summary


def test_ranks_that_end_with_a_launcher_that_was_killed_are_not_to_blame() -> None:
    ended = (a_rank(0, code=143, finished_at=at(8)), a_rank(1, code=137, finished_at=at(9)))
    cause = read(JOB, "", 137, ranks=ended)
    assert (cause.rank, "killed by signal 9" in cause.summary) == (None, True)


def test_a_rank_that_was_killed_for_its_memory_comes_before_those_that_hydra_killed() -> None:
    killed = replace(a_rank(1, code=137, finished_at=at(8)), exit=Exit(code=137, memory_limit_hit=True))
    ranks = (a_rank(0, code=137, finished_at=at(8)), killed)
    cause = read(MPICH_JOB, HYDRA_BLAMES_ITS_OWN_KILL, 9, ranks=ranks, out_of_memory=("pi-worker-1",))
    assert (cause.rank, cause.host, cause.memory_limit_hit) == (1, "pi-worker-1", True)


def test_the_host_of_a_rank_is_a_part_of_the_cause() -> None:
    cause = read(JOB, OPENMPI4, 3)
    assert (cause.rank, cause.host, cause.exit_code) == (1, "pi-worker-1", 3)


def test_where_mpirun_names_nobody_no_host_is_made_up() -> None:
    cause = read(JOB, OPENMPI4_NAMES_NOBODY, 3)
    assert (cause.rank, cause.host, cause.exit_code) == (None, None, 3)


def test_the_only_rank_there_is_needs_no_naming() -> None:
    alone = a_job(workers=1, launch=replace(MPIRUN, processes=1))
    assert read(alone, OPENMPI4_NAMES_NOBODY, 3).summary == "rank 0 on pi-worker-0 exited with code 3: oh no"


def test_a_code_that_a_shell_around_mpirun_may_have_changed_is_not_taken_for_the_ranks() -> None:
    job = a_job(launch=replace(MPIRUN, in_shell=True))
    assert read(job, OPENMPI4_NAMES_NOBODY, 5).summary == "the launcher exited with code 5"


def test_no_host_is_named_where_the_launch_line_does_not_settle_it() -> None:
    job = a_job(launch=replace(MPIRUN, unclear=("--map-by",)))
    assert read(job, OPENMPI4, 3).summary == "rank 1 exited with code 3"


def test_ranks_are_where_the_attempt_put_them_and_not_where_a_later_scaling_would() -> None:
    scaled = a_job(workers=1, launch=MPIRUN)
    status = a_status(attempts=(Attempt(number=1, workers=2),))
    assert read(scaled, OPENMPI4, 3, status=status).host == "pi-worker-1"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(MPICH_TAGGED_FOR_OPENMPI, 255, id="an option"),
        pytest.param(MPICH_HOSTFILE_OF_OPENMPI, 255, id="the hostfile"),
    ],
)
def test_an_image_with_mpich_for_a_job_that_says_open_mpi_is_told_as_that(text: str, code: int) -> None:
    cause = read(JOB, text, code)
    assert cause.summary == "the image's mpirun is MPICH's (Hydra), while the job says Open MPI, which is the default"
    assert cause.hint is not None
    assert "--mpi mpich" in cause.hint
    assert "spec.mpiImplementation: MPICH" in cause.hint


@pytest.mark.parametrize(
    ("text", "code"),
    [pytest.param(OPENMPI4_FOR_MPICH, 1, id="4"), pytest.param(OPENMPI5_FOR_MPICH, 213, id="5")],
)
def test_an_image_with_open_mpi_for_a_job_that_says_mpich_is_told_as_that(text: str, code: int) -> None:
    cause = read(MPICH_JOB, text, code)
    assert cause.summary == "the image's mpirun is Open MPI's, while the job says MPICH or Intel MPI"
    assert cause.hint is not None
    assert "--mpi openmpi" in cause.hint


def test_an_engine_that_looks_which_mpirun_there_is_is_not_told_it_has_the_wrong_one() -> None:
    cause = read(JOB, MPICH_TAGGED_FOR_OPENMPI, 255, ranks_report=True)
    assert cause.summary.startswith("the launcher exited with code 255: [mpiexec@sh-w26v6-launcher] match_arg")
