"""A benchmark in small, as a program that is asked to end before it is made to: what it started ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
_TO_CLEAR_AWAY = 60  # seconds


def quick(name: str, *words: str, timeout: float) -> str:
    """What it printed."""
    command = [sys.executable, str(BENCHMARKS / name), "--quick", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            printed, _ = process.communicate(timeout=timeout)
        except BaseException:
            process.send_signal(signal.SIGINT)
            try:
                printed, _ = process.communicate(timeout=_TO_CLEAR_AWAY)
            except subprocess.TimeoutExpired:
                process.kill()
                printed, _ = process.communicate()
            print(printed)
            raise
    assert process.returncode == 0, printed
    return printed
