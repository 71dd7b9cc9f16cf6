from __future__ import annotations

import pytest
from for_every import for_every_row
from hypothesis import given
from hypothesis import strategies as st

from oarsman.job.launch import HostSlots, LaunchLine, parse, rewrite, with_tags, with_wrapper
from oarsman.job.launch_words import cut

SEED = (
    "mpirun --allow-run-as-root -np 2 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH"
    " -mca pml ob1 -mca btl ^openib python scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py --model=resnet101"
    " --batch_size=64 --variable_update=horovod"
)


def line(text: str) -> LaunchLine:
    found = parse(text.split())
    assert found is not None
    return found


def test_the_seed_line_is_understood() -> None:
    found = line(SEED)
    assert (found.launcher, found.processes, found.map_by) == ("mpirun", 2, "slot")
    assert found.exports == ("NCCL_DEBUG=INFO", "LD_LIBRARY_PATH", "PATH")
    assert found.program[:2] == ("python", "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py")
    assert found.program[-1] == "--variable_update=horovod"
    assert not found.elastic


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("mpirun ./a -np 4", "./a -np 4"),
        ("mpirun -n 2 ./a", "./a"),
        ("mpirun --np=2 ./a", "./a"),
        ("mpirun -c 2 ./a", "./a"),
        ("mpirun -N 2 ./a", "./a"),
        ("mpirun -mca btl self,tcp --gmca a b --prtemca c d --pmixmca e f ./a", "./a"),
        ("mpirun --report-bindings --display-map --oversubscribe ./a", "./a"),
        ("mpirun --output-filename out --wdir /tmp -path /x --prefix /y ./a", "./a"),
        ("mpirun --output tag,timestamp --display map --runtime-options x ./a", "./a"),
        ("mpirun --with-ft ulfm --timeout 9 --personality ompi ./a", "./a"),
        ("mpirun -s --tag-output -timestamp-output -merge-stderr-to-stdout ./a", "./a"),
        ("mpirun --cpu-set 0,1 --bind-to core --rank-by slot -rf ranks ./a", "./a"),
        ("mpirun --unknown-option ./a", "./a"),
        ("mpirun --unknown=value ./a", "./a"),
        ("mpirun -np 2 -- ./a -x", "./a -x"),
        ("mpiexec -f hosts -ppn 2 -n 4 ./a", "./a"),
        ("mpiexec.hydra -genv A b -genv C=d -env E f -genvall -l ./a", "./a"),
        ("mpiexec.hydra -launcher ssh -launcher-exec /x -iface eth0 -bind-to core -prepend-rank ./a", "./a"),
        ("mpiexec -ckpointlib blcr -ckpoint-prefix /c/app.ckpoint -f hosts -n 4 ./app", "./app"),
        ("horovodrun -np 2 -H a:1,b:1 --gloo --start-timeout 30 --log-level INFO ./a", "./a"),
        ("horovodrun -np 2 --blacklist-cooldown-range 1 2 -p 22 -i key --network-interfaces eth0 ./a", "./a"),
        ("horovodrun --mpi-args=--oversubscribe --fusion-threshold-mb 32 --autotune ./a", "./a"),
        ("mpirun --version", ""),
        ("mpirun", ""),
        ("mpirun -np", ""),
    ],
)
def test_the_program_begins_where_the_options_end(text: str, program: str) -> None:
    found = line(text)
    assert " ".join(found.program) == program
    assert found.options + found.program == tuple(word for word in text.split()[1:])


@for_every_row(
    [
        ("-np 4", {"processes": 4}),
        ("--n 4", {"processes": 4}),
        ("-npernode 2", {"per_node": 2}),
        ("--npernode 2", {"per_node": 2}),
        ("-pernode", {"per_node": 1}),
        ("-N 3", {"per_node": 3}),
        ("-ppn 3", {"per_node": 3}),
        ("-perhost 3", {"per_node": 3}),
        ("-npersocket 2", {"per_socket": 2}),
        ("--map-by ppr:2:node", {"per_node": 2, "map_by": "ppr:2:node"}),
        ("--map-by ppr:2:socket", {"per_socket": 2}),
        ("--map-by ppr:2:package:PE=2", {"per_socket": 2, "map_by": "ppr:2:package:pe=2"}),
        ("--map-by node:OVERSUBSCRIBE", {"map_by": "node:oversubscribe", "oversubscribe": True}),
        ("--map-by :OVERSUBSCRIBE", {"oversubscribe": True}),
        ("--map-by ppr:2:node:oversubscribe,pe=1", {"oversubscribe": True, "per_node": 2}),
        ("--bynode", {"map_by": "node"}),
        ("--rank-by Node", {"rank_by": "node"}),
        ("-oversubscribe", {"oversubscribe": True}),
        ("--nooversubscribe", {"oversubscribe": False}),
        ("-mca rmaps seq", {"oversubscribe": False, "unclear": ("-mca",)}),
        ("-mca btl oversubscribe", {"oversubscribe": False, "unclear": ()}),
        ("--map-by ppr:2", {"per_node": None, "per_socket": None}),
        ("--map-by ppr:x:node", {"per_node": None, "unclear": ("--map-by",)}),
        ("--byslot", {"map_by": "slot"}),
        ("--min-np 1 --max-np 3", {"min_processes": None, "max_processes": None, "elastic": False, "unclear": ()}),
        ("-np 1234567890", {"processes": None, "unclear": ("-np",)}),
        ("-np 123456789", {"processes": 123456789, "unclear": ()}),
        ("-np x -np x", {"unclear": ("-np",)}),
        ("--host a:2,,b:$N", {"hosts": (HostSlots("a", 2), HostSlots("b")), "unclear": ("--host",)}),
        ("--host a,$b", {"unclear": ("--host",)}),
        ("-mca rmaps_base_oversubscribe 1", {"oversubscribe": True}),
        ("-mca rmaps_base_oversubscribe 0", {"oversubscribe": False}),
        ("--prtemca rmaps_default_mapping_policy :oversubscribe", {"oversubscribe": True}),
        ("-host a:2,b", {"hosts": (HostSlots("a", 2), HostSlots("b"))}),
        ("-H a -H b:3", {"hosts": (HostSlots("a"), HostSlots("b", 3))}),
        ("--host a:*", {"unclear": ("--host",)}),
        ("-hosts a,b", {"hosts": (HostSlots("a"), HostSlots("b"))}),
        ("--hostfile f", {"hostfile": "f"}),
        ("-machinefile f", {"hostfile": "f"}),
        ("-f f", {"hostfile": "f"}),
        ("--rankfile r", {"unclear": ("--rankfile",)}),
        ("-np $(NP)", {"processes": None, "unclear": ("-np",)}),
        ("-np -3", {"processes": -3}),
        ("-np 2 ./a : -np 3", {"processes": 5, "contexts": 2}),
        ("-np 2 ./a :", {"processes": None, "contexts": 2}),
    ]
)
def test_options_say_what_is_asked_for(options: str, facts: dict[str, object]) -> None:
    found = line(f"mpirun {options} ./b")
    assert {name: getattr(found, name) for name in facts} == facts


@pytest.mark.parametrize("spelling", ["-np 2 --min-np 1 --max-np 3", "--num-proc 2 --min-num-proc 1 --max-num-proc=3"])
def test_horovod_says_how_far_it_may_shrink_and_grow(spelling: str) -> None:
    found = line(f"horovodrun {spelling} --host-discovery-script /etc/mpi/discover_hosts.sh -H a:2 python t.py")
    assert (found.min_processes, found.processes, found.max_processes) == (1, 2, 3)
    assert found.host_discovery_script == "/etc/mpi/discover_hosts.sh"
    assert found.hosts == (HostSlots("a", 2),)
    assert found.elastic
    assert found.program == ("python", "t.py")


def test_horovodrun_has_no_number_of_processes_per_node() -> None:
    found = line("horovodrun -N -np 2 ./a")
    assert (found.per_node, found.processes, found.unclear) == (None, 2, ())


@pytest.mark.parametrize(
    "argv",
    [
        ["env", "A=b", "B=", "mpirun", "-np", "2", "./a"],
        ["env", "-u", "C", "A=b", "mpirun", "-np", "2", "./a"],
        ["exec", "mpirun", "-np", "2", "./a"],
        ["nohup", "time", "mpirun", "-np", "2", "./a"],
        ["timeout", "10", "mpirun", "-np", "2", "./a"],
        ["timeout", "-k", "5", "-s", "INT", "1h", "mpirun", "-np", "2", "./a"],
        ["numactl", "--interleave=all", "-N", "0", "mpirun", "-np", "2", "./a"],
        ["taskset", "-c", "0-3", "mpirun", "-np", "2", "./a"],
        ["ionice", "-c", "2", "-n", "7", "mpirun", "-np", "2", "./a"],
        ["nice", "-n", "10", "stdbuf", "-oL", "mpirun", "-np", "2", "./a"],
        ["tini", "--", "mpirun", "-np", "2", "./a"],
        ["gosu", "mpi", "mpirun", "-np", "2", "./a"],
        ["su-exec", "mpi", "mpirun", "-np", "2", "./a"],
        ["chrt", "-f", "9", "mpirun", "-np", "2", "./a"],
        ["sudo", "-u", "mpi", "-E", "mpirun", "-np", "2", "./a"],
        ["env", "--", "A=b", "mpirun", "-np", "2", "./a"],
        ["busybox", "sh", "-c", "mpirun -np 2 ./a"],
        ["bash", "--rcfile", "rc", "-o", "pipefail", "+e", "-c", "mpirun -np 2 ./a"],
        ["sh", "-c", "--", "mpirun -np 2 ./a"],
        ["/entrypoint.sh", "mpirun", "-np", "2", "./a"],
        ["sh", "-c", "mpirun -np 2 ./a"],
        ["/bin/bash", "-lc", "mpirun -np 2 ./a"],
        ["bash", "-euo", "pipefail", "-c", "mpirun -np 2 ./a"],
        ["bash", "--login", "-c", "mpirun -np 2 ./a"],
        ["sh", "-c", "cd /data && A=1 B='c d' mpirun -np 2 ./a"],
        ["sh", "-c", "set -e; sleep 1 | cat; exec mpirun -np 2 ./a"],
        ["sh", "-c", "ulimit -l unlimited\nmpirun \\\n  -np 2 \\\n  ./a"],
        ["sh", "-c", "if true; then mpirun -np 2 ./a; fi"],
        ["sh", "-c", "# mpirun -np 9 ./b\nmpirun -np 2 ./a # as said"],
        ["sh", "-c", "(mpirun -np 2 ./a) > log 2>&1"],
        ["sh", "-c", "mpirun -np 2 ./a 2>&1 | tee log"],
        ["sh", "-c", "mpirun -np 2 ./a &> log"],
        ["sh", "-c", 'X="$(date; hostname)" mpirun -np \'2\' "./a"'],
        ["sh", "-c", "NP=2; mpirun -np $NP ./a"],
        ["sh", "-c", 'run="mpirun -np 2"\n$run ./a'],
        ["sh", "-c", "bash -c 'mpirun -np 2 ./a'"],
        ["sh", "-c", "bash -c \"sh -c 'mpirun -np 2 ./a'\""],
        ["sh", "-c", "export PATH=/x; readonly A; mpirun -np 2 ./a"],
        ["sh", "-c", "bash -c 'NP=3'; NP=2 bash -c 'mpirun -np $NP ./a'"],
        ["sh", "-c", "cat < in >> out; env; ;mpirun -np 2 > log ./a"],
        ["sh", "-c", "log='open'; x='a\"'; $x; mpirun -np 2 ./a"],
        ["sh", "-c", "timeout 9 mpirun -np 2 ./a && mpirun -np 3 ./b"],
    ],
    ids=" ".join,
)
def test_a_launcher_is_found_behind_prefixes_and_inside_shells(argv: list[str]) -> None:
    found = parse(argv)
    assert found is not None
    assert (found.launcher, found.processes, found.program) == ("mpirun", 2, ("./a",))
    assert found.in_shell == (argv[-1] != "./a")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        [""],
        ["python", "train.py"],
        ["echo", "mpirun"],
        ["sh", "run.sh"],
        ["sh"],
        ["sh", "-c"],
        ["sh", "-c", ""],
        ["sh", "-c", "echo mpirun -np 2"],
        ["sh", "-c", "mpirun -np 2 'open"],
        ["sh", "-c", 'mpirun "$(x'],
        ["env"],
        ["timeout", "10"],
        ["python", "mpirun"],
        ["sh", "-x", "mpirun"],
        ["sh", "+c", "mpirun"],
        ["run.sh", "sh"],
        ["run.sh"],
        ["sh", "-c", "A=1 timeout 9"],
        ["sh", "-c", "export mpirun"],
        ["sh", "--norc", "mpirun"],
        ["sh", "-c", "sh -c 'sh -c \"sh -c mpirun\"'"],  # more shells in each other than anybody reads
    ],
    ids=" ".join,
)
def test_what_does_not_visibly_start_mpi_is_left_alone(argv: list[str]) -> None:
    assert parse(argv) is None
    assert rewrite(argv).argv == tuple(argv)


def test_words_of_shell_text_are_those_a_shell_hands_on() -> None:
    for text, words in (
        ("a'b c'd", ["ab cd"]),
        ('a"b c"d', ["ab cd"]),
        (r"a\ b c\d", ["a b", "cd"]),
        ("a\\\nb \\\n c", ["ab", "c"]),
        ("'a' '' b", ["a", "", "b"]),
        (r'"a\"b\\c\$d\e"', [r'a"b\c$d\e']),
        ('"a\\\nb"', ["ab"]),
        ("$(a (b) c)d e", ["$(a (b) c)d", "e"]),
        ("${a b}c `d e`f g", ["${a b}c", "`d e`f", "g"]),
        ('"$(a "b")c" d', ['$(a "b")c', "d"]),
        ('"`a "b"`c" d', ['`a "b"`c', "d"]),
        ("a#b #c d\ne # f", ["a#b", "\n", "e"]),
        ("a;b&&c||d|e&f(g)", ["a", ";", "b", "&&", "c", "||", "d", "|", "e", "&", "f", "(", "g", ")"]),
        ("a>b 2>>c <d", ["a", ">", "b", "2>>", "c", "<", "d"]),
        ("\ta \r b", ["a", "b"]),
    ):
        found = list(cut(text))
        assert [word.text for word in found] == words
        assert [word.start for word in found] == sorted({word.start for word in found})
        assert all(text[word.start : word.end] == word.text for word in found if word.operator)


@pytest.mark.parametrize("text", ["'a", '"a', '"a\\"', "$(a", "${a", "`a", '"$(a"', "$((a)"])
def test_shell_text_that_is_not_closed_is_not_cut(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whichever words
        list(cut(text))


def test_an_unknown_shell_variable_makes_a_line_unclear_but_not_unread() -> None:
    found = parse(["sh", "-c", "mpirun $OPTIONS -np 4 $PYTHON train.py -n 3"])
    assert found is not None
    assert found.unclear == ("$OPTIONS", "$PYTHON")
    assert (found.processes, found.program) == (4, ("$PYTHON", "train.py", "-n", "3"))


def test_a_shell_sees_the_variables_it_is_given() -> None:
    found = parse(["sh", "-c", "mpirun -np ${NP} ./a"], {"NP": "6"})
    assert found is not None
    assert found.processes == 6


def test_the_word_that_decides_is_known() -> None:
    for argv, word in (
        (["env", "A=b", "mpirun", "--npernode", "2", "-np", "4", "./a"], "4"),
        (["mpirun", "-np", "4", "--npernode", "2", "./a"], "4"),
        (["mpirun", "--npernode", "2", "--npersocket", "1", "./a"], "2"),
        (["mpirun", "--npersocket", "1", "./a"], "1"),
        (["mpirun", "--np=4", "./a"], "--np=4"),
        (["mpirun", "--map-by", "ppr:2:node", "./a"], "ppr:2:node"),
        (["sh", "-c", "mpirun -np 4 ./a"], "mpirun -np 4 ./a"),
        (["horovodrun", "--min-np", "1", "-np", "2", "./a"], "2"),
    ):
        found = parse(argv)
        assert found is not None
        assert found.decisive_word is not None
        assert argv[found.decisive_word] == word
    for argv in (["mpirun", "./a"], ["mpirun", "-np", "x", "./a"], ["horovodrun", "--min-np", "1", "./a"]):
        found = parse(argv)
        assert found is not None
        assert found.decisive_word is None


# -- rewriting ------------------------------------------------------------------------------------------


def test_the_seed_line_is_made_fit_for_both_generations() -> None:
    done = rewrite(SEED.split())
    assert " ".join(done.argv) == SEED.replace("-bind-to", "--bind-to").replace("-map-by", "--map-by")
    assert done.changes == ("-bind-to became --bind-to", "-map-by became --map-by")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mpirun -bind-to none ./a -bind-to x", "mpirun --bind-to none ./a -bind-to x"),
        ("orterun -rank-by slot ./a", "orterun --rank-by slot ./a"),
        ("mpiexec -map-by=node ./a", "mpiexec --map-by=node ./a"),
        ("mpirun -np 1 -map-by slot ./a : -map-by node ./b", "mpirun -np 1 --map-by slot ./a : --map-by node ./b"),
        ("mpirun --bind-to none ./a", "mpirun --bind-to none ./a"),
        ("mpirun -tag-output -oversubscribe -np 2 ./a", "mpirun -tag-output -oversubscribe -np 2 ./a"),
        ("mpiexec.hydra -bind-to core ./a", "mpiexec.hydra -bind-to core ./a"),
        ("horovodrun -map-by slot ./a", "horovodrun -map-by slot ./a"),
        ("python -bind-to", "python -bind-to"),
    ],
)
def test_only_the_options_that_need_it_are_rewritten(before: str, after: str) -> None:
    assert rewrite(before.split()).argv == tuple(after.split())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("cd  '/a b' &&\tmpirun  -bind-to   none ./a  'x  y'", "cd  '/a b' &&\tmpirun  --bind-to   none ./a  'x  y'"),
        (
            "mpirun -map-by slot \\\n -bind-to none ./a # -map-by",
            "mpirun --map-by slot \\\n --bind-to none ./a # -map-by",
        ),
        ("echo -bind-to; mpirun -bind-to none ./a -bind-to", "echo -bind-to; mpirun --bind-to none ./a -bind-to"),
        ("mpirun '-bind-to' none ./a", "mpirun '-bind-to' none ./a"),
        ("o='-bind-to none'; mpirun $o ./a", "o='-bind-to none'; mpirun $o ./a"),
        ("bash -c 'mpirun -bind-to none ./a'", "bash -c 'mpirun -bind-to none ./a'"),
        ("mpirun $PROGRAM -bind-to x", "mpirun $PROGRAM -bind-to x"),
    ],
)
def test_in_shell_text_every_other_byte_stays(before: str, after: str) -> None:
    assert rewrite(["sh", "-c", before, "more"]).argv == ("sh", "-c", after, "more")


# -- tagging --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "tagged"),
    [
        (["env", "A=b", "mpirun", "-np", "2", "./a"], ["env", "A=b", "mpirun", "TAG", "-np", "2", "./a"]),
        (["/opt/mpi/bin/mpiexec", "./a"], ["/opt/mpi/bin/mpiexec", "TAG", "./a"]),
        (["sh", "-c", "cd x; exec orterun  -np 2 ./a"], ["sh", "-c", "cd x; exec orterun TAG  -np 2 ./a"]),
        (["sh", "-c", "'mpirun' -np 2 ./a"], ["sh", "-c", "'mpirun' -np 2 ./a"]),  # not there letter by letter
        (["sh", "-c", "m=mpirun; $m -np 2 ./a"], ["sh", "-c", "m=mpirun; $m -np 2 ./a"]),
        (["sh", "-c", "sh -c 'mpirun ./a'"], ["sh", "-c", "sh -c 'mpirun ./a'"]),
        (["horovodrun", "-np", "2", "./a"], ["horovodrun", "-np", "2", "./a"]),
        (["python", "a.py"], ["python", "a.py"]),
    ],
)
def test_output_is_tagged_where_the_launcher_is_mpirun(argv: list[str], tagged: list[str]) -> None:
    for hydra, option in ((False, "--tag-output"), (True, "-prepend-rank")):
        assert with_tags(argv, hydra=hydra) == tuple(word.replace("TAG", option) for word in tagged)


# -- wrapping -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "wrapped"),
    [
        ("-np 2 ./a b", "-np 2 W -- ./a b"),
        ("-np 1 ./a : -np 3 ./b c", "-np 1 W -- ./a : -np 3 W -- ./b c"),
        ("./a", "W -- ./a"),
        ("-mca pml ob1 -x A=b -- ./a", "-mca pml ob1 -x A=b -- W -- ./a"),
        ("--version", "--version"),
        ("", ""),
        ("-np 2 --app file", "-np 2 --app file"),
        ("-n 2 -genv A b -l ./a", "-n 2 -genv A b -l W -- ./a"),
        ("-np 2 ./a :", "-np 2 W -- ./a :"),
        ("-np : ./a", "-np : W -- ./a"),
    ],
)
def test_a_wrapper_stands_before_every_program(words: str, wrapped: str) -> None:
    assert " ".join(with_wrapper(words.split(), ["W", "--"])) == wrapped


# -- any words ------------------------------------------------------------------------------------------

odd_words = st.one_of(
    st.sampled_from(SEED.split()),
    st.sampled_from(
        ["sh", "-c", "bash", "env", "A=b", ":", "--", "-", "--=", "-np", "=", "timeout", "$X", "horovodrun", ""]
    ),
    st.text(max_size=12),
    st.text("'\"\\$(){}`;&|<> \n#mpirun-bytoexA=1", max_size=40),
)


@given(st.lists(odd_words, max_size=12))
def test_any_words_can_be_read_rewritten_and_wrapped(argv: list[str]) -> None:
    parse(argv)
    assert len(rewrite(argv).argv) == len(argv)
    kept = [word for word in with_wrapper(argv, ["\0"]) if word != "\0"]
    assert kept == [word for word in argv if word != "\0"]


@given(st.lists(odd_words, max_size=12))
def test_rewriting_twice_changes_nothing_more(argv: list[str]) -> None:
    once = rewrite(argv).argv
    assert rewrite(once) == type(rewrite(once))(once)
