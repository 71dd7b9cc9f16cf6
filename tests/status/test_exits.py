"""What exit codes and signals are called."""

from __future__ import annotations

import pytest

from oarsman.job.observed import Exit
from oarsman.status.exits import signal_of, tell


@pytest.mark.parametrize(
    ("code", "given", "signal"),
    [
        (0, None, None),
        (1, None, None),
        (9, None, None),
        (128, None, None),
        (129, None, 1),
        (137, None, 9),
        (159, None, 31),
        (183, None, None),  # prterun could not access an executable
        (192, None, None),
        (193, None, None),
        (255, None, None),
        (0, 9, 9),
        (1, 15, 15),
        (137, 6, 6),
        (137, 0, 9),
    ],
)
def test_a_signal_is_known_by_itself_or_by_the_number_of_the_shell(
    code: int, given: int | None, signal: int | None
) -> None:
    assert signal_of(code, given) == signal
    assert tell(Exit(code=code, signal=given)).signal == signal


def test_every_signal_has_its_name() -> None:
    for signal, name in {
        1: "Hangup",
        2: "Interrupt",
        3: "Quit",
        4: "Illegal instruction",
        5: "Trace trap",
        6: "Aborted",
        8: "Floating point exception",
        10: "User signal 1",
        11: "Segmentation fault",
        12: "User signal 2",
        13: "Broken pipe",
        14: "Alarm clock",
        15: "Terminated",
        24: "CPU time limit exceeded",
        25: "File size limit exceeded",
        31: "Bad system call",
    }.items():
        assert tell(Exit(code=128 + signal)).words == f"was killed by signal {signal} ({name})"
    assert tell(Exit(code=168, signal=40)).words == "was killed by signal 40 (unknown)"
    assert tell(Exit(code=168)).words == "exited with code 168"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (3, "exited with code 3"),
        (126, "exited with code 126"),
        (127, "exited with code 127"),
        (132, "was killed by signal 4 (Illegal instruction)"),
        (135, "was killed by signal 7 (Bus error)"),
        (137, "was killed by signal 9 (Killed); who sent it is not known"),
        (139, "was killed by signal 11 (Segmentation fault)"),
    ],
)
def test_a_code_or_a_signal_alone_is_no_evidence(code: int, words: str) -> None:
    ending = tell(Exit(code=code))
    assert (ending.code, ending.words, ending.memory_limit_hit) == (code, words, False)
    assert ending.hint is None


def test_a_memory_limit_explains_a_kill_and_no_plain_exit() -> None:
    killed = tell(Exit(code=137, signal=9, memory_limit_hit=True))
    assert killed.words == "was killed by signal 9 (Killed): its memory limit was reached"
    assert (killed.code, killed.signal, killed.memory_limit_hit) == (137, 9, True)
    assert killed.hint is not None
    assert "less memory per rank" in killed.hint
    assert not tell(Exit(code=1, memory_limit_hit=True)).memory_limit_hit
