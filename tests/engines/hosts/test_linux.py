"""What can be had on this machine is tried in a child process, which always comes to an end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from oarsman.engines.hosts.core import linux
from oarsman.engines.hosts.core.job_spec import Separation


def hang() -> Separation:
    time.sleep(3600)
    raise AssertionError


def test_a_trial_that_hangs_is_ended_and_made_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a child of a process with threads may, at a lock that one of them held."""
    once = tmp_path / "once"

    def hangs_once() -> Separation:
        if not once.exists():
            once.touch()
            hang()
        return Separation(names=True, network=True)

    monkeypatch.setattr(linux, "_TRIAL_SECONDS", 1)
    monkeypatch.setattr(linux, "_try_everything", hangs_once)
    assert linux.probe() == Separation(names=True, network=True)
    assert once.exists()


def test_what_cannot_be_tried_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "_TRIAL_SECONDS", 1)
    monkeypatch.setattr(linux, "_try_everything", hang)
    assert linux.probe() == Separation(trouble="the trial itself failed")


def test_a_trial_does_not_outlive_who_wants_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    forks = multiprocessing.get_context("fork")
    hears, tells = forks.Pipe(duplex=False)

    def begin() -> Separation:
        tells.send("begun")
        return hang()

    monkeypatch.setattr(linux, "_try_everything", begin)
    asker = forks.Process(target=linux.probe)
    asker.start()
    tells.close()
    assert hears.recv() == "begun"
    asker.kill()
    asker.join()
    with pytest.raises(EOFError):  # nobody is left who could tell anything
        hears.recv()


def test_a_trial_that_hangs_before_it_has_set_its_alarm_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that another thread of the server held at the fork: the thread that asked waited for ever."""
    monkeypatch.setattr(linux, "_TRIAL_SECONDS", 1)
    monkeypatch.setattr(linux, "_TRIALS", 1)
    us, real = os.getpid(), signal.signal

    def hangs(number: int, handler: Any) -> Any:
        if os.getpid() != us:
            time.sleep(60)
        return real(number, handler)

    monkeypatch.setattr(linux.signal, "signal", hangs)
    begun = time.monotonic()
    assert linux.probe().trouble == "the trial itself failed"
    assert time.monotonic() - begun < 30
