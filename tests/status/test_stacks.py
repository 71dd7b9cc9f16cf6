"""Of the stack of a process that crashed, the beginning is kept, and the first frame of the program is named."""

from __future__ import annotations

from for_every import for_every_row

from oarsman.engines.hosts.core.log_lines import Recorder
from oarsman.job.observed import Observed
from oarsman.status import causes, launcher_causes
from oarsman.status.stacks import first_frame, shortened
from tests.builders import a_job, a_launcher, a_rank

OPEN_MPI = [
    "hello",
    "[w-1:00007] *** Process received signal ***",
    "[w-1:00007] Signal: Segmentation fault (11)",
    "[w-1:00007] Signal code: Address not mapped (1)",
    "[w-1:00007] Failing at address: (nil)",
    "[w-1:00007] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7fadd145a050]",
    "[w-1:00007] [ 1] ./solver(step_three+0xe)[0x55767d10a1a7]",
    "[w-1:00007] [ 2] ./solver(step_two+0x15)[0x55767d10a1c5]",
    *(f"[w-1:00007] [{number}] ./solver(deeper+0x15)[0x55767d10a1df]" for number in range(10, 30)),
    "[w-1:00007] *** End of error message ***",
]
UCX = [
    "[w-1:7    :0:7] Caught signal 11 (Segmentation fault: address not mapped to object at address (nil))",
    "==== backtrace (tid:      7) ====",
    " 0  /mpi/lib/openmpi/libucs.so.0(ucs_handle_error+0x294) [0x7f97a8fc1a14]",
    " 1  /mpi/lib/openmpi/libucs.so.0(+0x33bcc) [0x7f97a8fc1bcc]",
    " 3  /lib/x86_64-linux-gnu/libc.so.6(+0x3c050) [0x7f97a945a050]",
    " 4  ./solver(step_three+0xe) [0x5646165b81a7]",
    "10  ./solver(_start+0x21) [0x5646165b80d1]",
    "=================================",
]
EXTENSION = [
    "[w-1:00007] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f1cc8ab0050]",
    "[w-1:00007] [ 1] /lib/x86_64-linux-gnu/libc.so.6(+0x167ad8)[0x7f1cc8bdbad8]",
    "[w-1:00007] [ 2] /usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so(+0xe197)[0x7f1cc87a1197]",
    "[w-1:00007] [ 8] python3(_PyObject_MakeTpCall+0x223)[0x517fc3]",
    "[w-1:00007] [11] python3[0x5c2845]",
]
FAULTHANDLER = [
    "Fatal Python error: Segmentation fault",
    "Current thread 0x00007f5c70f02100 (most recent call first):",
    '  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at',
    '  File "/home/ada/train.py", line 4 in step',
    '  File "/home/ada/train.py", line 9 in <module>',
]
FORTRAN = [
    "Backtrace for this error:",
    "#0  0x7f1cc8ab0050 in ???",
    "#1  0x55767d10a1a7 in step_three_",
    "\tat solver.f90:5",
]
SIGNALLED = [
    "mpirun noticed that process rank 1 with PID 6 on node pi-worker-1 exited on signal 11 (Segmentation fault)."
]


@for_every_row(
    [
        (OPEN_MPI, "./solver(step_three+0xe)"),
        (UCX, "./solver(step_three+0xe)"),
        (EXTENSION, "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so(+0xe197)"),
        (FAULTHANDLER, 'File "/home/ada/train.py", line 4 in step'),
        (FORTRAN, "step_three_"),
        (["12 steps in 0x10 pages", "loss 0.3"], None),
        (["hello"], None),
    ]
)
def test_the_first_frame_of_the_program_is_found(lines: list[str], frame: str | None) -> None:
    assert first_frame(lines) == frame


def test_the_cause_of_a_crash_names_that_frame() -> None:
    alone = a_rank(1, code=139, last_lines=tuple(OPEN_MPI))
    by_launcher = tuple(OPEN_MPI + SIGNALLED)
    for seen in (Observed(ranks=(alone,)), Observed(launcher_lines=by_launcher)):
        cause = causes.of_failed_launcher(a_job(), seen, a_launcher(code=139))
        assert cause.summary.endswith("was killed by signal 11 (Segmentation fault): in ./solver(step_three+0xe)")
        assert len(cause.last_lines) <= launcher_causes.LINES


def test_a_long_stack_keeps_its_beginning() -> None:
    kept = shortened(OPEN_MPI, 20)
    assert len(kept) == 20
    assert kept[:8] == tuple(OPEN_MPI[:8])
    assert kept[-1] == OPEN_MPI[-1]
    assert "  ..." in kept


def test_lines_without_a_stack_are_cut_at_their_beginning() -> None:
    assert shortened(list("abcdef"), 2) == ("e", "f")
    assert shortened(["a"], 2) == ("a",)
    assert shortened(OPEN_MPI[1:3] + ["x"] * 30, 20) == ("x",) * 20


def test_the_last_lines_of_a_rank_that_crashed_begin_with_its_stack(tmp_path: object) -> None:
    recorder = Recorder(str(tmp_path), rank="1", host="w-1", stream="err", merge=False)
    recorder.feed(("x\n" * 50 + "\n".join(OPEN_MPI) + "\n").encode())
    lines = recorder.last_lines()
    recorder.finish()
    assert "[w-1:00007] [ 1] ./solver(step_three+0xe)[0x55767d10a1a7]" in lines
    assert len(lines) == 20
