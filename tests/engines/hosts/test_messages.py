"""Supervisors, job agents and shims of different versions meet: what they say to each other keeps its form."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from oarsman.engines.hosts.core import journal, messages
from oarsman.engines.hosts.core.job_spec import (
    LocalHostSpec,
    Separation,
    SshHostSpec,
    find_spec,
    read_spec,
    write_spec,
)
from oarsman.engines.hosts.core.messages import Codec, Unknown
from oarsman.text.catalogue import Translator
from oarsman.text.sentence import Text
from tests.for_every import for_every, for_every_row

STARTED = {
    "rank": 3,
    "size": 4,
    "local": 1,
    "host": "x",
    "attempt": 2,
    "world": "w",
    "survives": False,
    "pid": 0,
}
ENDED = {"exit": 3, "signal": None, "lines": ["bye"], "reason": "", "at": 1.5}

FORMS: list[tuple[Codec[Any], Any, dict[str, Any]]] = [
    (messages.CALLS, messages.StartHost("x"), {"do": "start-host", "host": "x"}),
    (messages.CALLS, messages.StopHost("x"), {"do": "stop-host", "host": "x"}),
    (messages.CALLS, messages.StartLauncher(2), {"do": "start-launcher", "attempt": 2}),
    (messages.CALLS, messages.StopLauncher(), {"do": "stop-launcher"}),
    (messages.CALLS, messages.Publish(["x"], {"f": ""}), {"do": "publish", "hosts": ["x"], "files": {"f": ""}}),
    (messages.CALLS, messages.EndJob(), {"do": "end"}),
    (messages.CALLS, messages.Listen(), {"do": "listen"}),
    (messages.ANSWERS, messages.Done("end"), {"answer": "end"}),
    (messages.ANSWERS, messages.Failed("end", "no"), {"answer": "end", "error": "no"}),
    (messages.ANSWERS, messages.Changed(), {"changed": True}),
    (messages.CALLS, messages.RankStarted(3, 4, 1, "x", 2, "w"), STARTED),
    (messages.CALLS, messages.WorldStarted(["mpirun"], 2, "w"), {"words": ["mpirun"], "attempt": 2, "world": "w"}),
    (messages.CALLS, messages.FirstOutput(True, 2), {"output": True, "attempt": 2}),
    (messages.CALLS, messages.RankRaised("ValueError: no"), {"raised": "ValueError: no"}),
    (messages.CALLS, messages.RankSilent(0), {"cpu": 0}),
    (messages.RANK_CALLS, messages.RankSilent(35), {"cpu": 35}),
    (messages.RANK_CALLS, messages.RankSilent(None), {"cpu": None}),
    (messages.CALLS, messages.RankEnded(3, None, ["bye"], at=1.5), ENDED),
    (messages.COMMANDS, messages.RunCommand(["ls"], {"A": "1"}), {"argv": ["ls"], "env": {"A": "1"}}),
    (messages.COMMANDS, messages.SignalCommand(15), {"signal": 15}),
    (messages.RESULTS, messages.Exited(143, 15), {"exit": 143, "signal": 15}),
]


@for_every_row(FORMS)
def test_each_message_has_one_form_in_both_directions(codec: Codec[Any], message: Any, form: dict[str, Any]) -> None:
    assert codec.to_json(message) == form
    back = codec.from_json(form)
    assert type(back) is type(message)
    assert back == message


EARLIER: list[tuple[Codec[Any], dict[str, Any], Any]] = [
    (messages.CALLS, {key: STARTED[key] for key in STARTED if key not in ("survives", "pid")}, messages.RankStarted),
    (messages.CALLS, {"exit": 1, "signal": 9, "lines": [], "reason": ""}, messages.RankEnded),
    (messages.COMMANDS, {"argv": ["ls"], "folder": "/"}, messages.RunCommand),
    (messages.RESULTS, {"started": 7}, Unknown),
    (messages.CALLS, {"do": "fly"}, Unknown),
    (messages.CALLS, {"do": "start-host"}, Unknown),
    (messages.CALLS, {}, Unknown),
]


@for_every_row(EARLIER)
def test_what_another_version_leaves_out_or_adds_does_no_harm(
    codec: Codec[Any], form: dict[str, Any], kind: type[Any]
) -> None:
    assert type(codec.from_json(form)) is kind


def test_a_connection_that_ends_in_the_middle_of_a_message_has_ended() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.send(messages.CALLS.encode(messages.EndJob())[:-1])
        assert messages.CALLS.receive(ours) == (None, [])


NOT_MEANT = {
    "a rank that is a path": {"rank": "/../../x", "size": 1, "local": 0, "host": "h", "attempt": 1, "world": "1"},
    "an attempt that is one": {"output": True, "attempt": "../x"},
    "a reason that would be filled in": {"exit": 1, "reason": {"template": "{x:>999999999}", "arguments": {"x": "y"}}},
    "a signal that would be filled in": {"exit": 1, "signal": {"template": "{x}", "arguments": {"x": "y"}}},
    "a signal that is a word": {"exit": 1, "signal": "9"},
    "a time that is none": {"exit": 1, "at": [1]},
    "a time without end": {"exit": 1, "at": float("inf")},
    "a time that no calendar has": {"exit": 1, "at": 1e300},
    "a rank below all": {"rank": -5, "size": 1, "local": 0, "host": "h", "attempt": 1, "world": "1"},
    "a rank above all": {"rank": 10**400, "size": 1, "local": 0, "host": "h", "attempt": 1, "world": "1"},
    "a rank that is true": {"rank": True, "size": 1, "local": 0, "host": "h", "attempt": 1, "world": "1"},
    "a word that is a list": {"output": ["yes"], "attempt": 1},
    "half a letter": {"exit": 1, "reason": "\ud83d"},
    "half a letter in a line": {"exit": 1, "lines": ["\ud83d"]},
    "CPU below none": {"cpu": -1},
    "CPU that is a word": {"cpu": "0"},
    "CPU that would be filled in": {"cpu": {"template": "{x}", "arguments": {"x": "y"}}},
    "lines that are none": {"exit": 1, "lines": {"a": 1}},
    "an order": {"do": "publish", "hosts": [], "files": {"../x": "y"}},
    "a name that is none": {"do": ["end"]},
}


def test_a_sentence_stays_one_within_another_also_without_gaps() -> None:
    lost = journal.HostDown("x", Text("it could not be started"), True)
    noted = journal._FACTS.from_json(json.loads(json.dumps(journal._FACTS.to_json(lost))))
    assert isinstance(noted, journal.HostDown)
    whole = Text("{what}: {why}", what=Text("it ran out of memory"), why=noted.reason)
    assert Translator("zh").of(whole) == "它内存不足：无法启动"


@for_every(NOT_MEANT.values())
def test_of_a_job_that_is_confined_only_what_a_rank_says_is_understood(facts: dict[str, Any]) -> None:
    assert type(messages.RANK_CALLS.from_json(facts)) is messages.Unknown


def test_nobody_waits_for_the_rest_of_a_message_and_one_without_end_is_none() -> None:
    whole = messages.RANK_CALLS.encode(messages.TakeInput("1"))
    size = len(whole) - messages.LENGTH.size
    for sent, found in ((b"", 0), (whole[:2], None), (whole[:-1], None), (whole, size), (whole * 2, size)):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.send(sent)
            if sent:
                assert messages.RANK_CALLS.whole(ours) == found
            theirs.close()
            assert messages.RANK_CALLS.whole(ours) == found
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(messages.LENGTH.pack(1 << 31))
        assert messages.RANK_CALLS.whole(ours) == 1 << 31
        assert messages.RANK_CALLS.receive(ours) == (None, [])


def test_descriptors_that_come_with_a_message_are_not_handed_on() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        messages.CALLS.send(theirs, messages.GiveInput("1"), [0])
        [fd] = messages.CALLS.receive(ours)[1]
        assert not os.get_inheritable(fd)
        os.close(fd)


HOST = {"role": "worker", "index": 1, "folder": "/home", "memory": 1 << 30, "cpus": None, "temp": "/run/t/1"}
MOUNT = {"source": "/a", "target": "/b", "read_only": True, "memory": False, "options": "mode=1777", "make": False}
JOB = {
    "uid": "u",
    "job": "j",
    "run_folder": "/run",
    "separation": {
        "user": False,
        "names": True,
        "processes": True,
        "mounts": True,
        "etc": True,
        "network": False,
        "trouble": "",
        "confines": False,
    },
    "network": "host",
    "ip": None,
    "cgroups": {"version": 2, "memory": "/m", "cpu": "/c"},
    "grace": 10,
    "silence": 10,
    "implementation": "OpenMPI",
    "mpi": "Open MPI 5",
    "gpus": {"j-worker-1": ["0"]},
    "launcher_host": "j-launcher",
    "launcher_argv": ["mpirun", "a.out"],
    "launcher_is_mpirun": True,
}
LOCAL = JOB | {
    "master_port": 29500,
    "hosts": {"j-worker-1": HOST | {"environment": {"A": "1"}, "own": {"B": "2"}, "umask": 18, "mounts": [MOUNT]}},
}
LAUNCH = {
    "family": "Open MPI 5",
    "rewrite": True,
    "machines": ["10.0.0.1"],
    "slots": [2],
    "members": {"10.0.0.1": [["j-worker-1", 2]]},
    "rank": ["/bin/sh"],
    "etc": "/e",
    "names": {"node1": "10.0.0.1"},
    "output": "",
}
SSH_HOST = HOST | {
    "machine": "node1",
    "way": {"name": "node1", "address": "", "user": "", "port": 22, "jump": ""},
    "ssh": {"control": "c", "follows": True, "host_agent": ["ssh"], "command": ["ssh"], "typed": "", "config": ""},
    "host_agent": "script",
    "run": "/tmp/x",
    "usage_every": 5,
    "hands_on": True,
    "members": [["j-worker-1", 2]],
    "launch": LAUNCH,
    "aliases": {"node1": "j-worker-1"},
}
SSH = JOB | {
    "transport": "ssh",
    "placement": {"j-worker-1": "node1"},
    "addresses": {"node1": "10.0.0.1"},
    "cleanup": {"node1": ["ssh"]},
    "hosts": {"j-worker-1": SSH_HOST, "j-worker-2": SSH_HOST | {"launch": {}}},
}


@pytest.mark.parametrize("earlier", [LOCAL, SSH], ids=["local", "ssh"])
def test_a_specification_keeps_its_form(tmp_path: Path, earlier: dict[str, Any]) -> None:
    """A job agent of an earlier version reads what we write, and we read what it was given."""
    (tmp_path / "spec.json").write_text(json.dumps(earlier | {"of a later version": 1}))
    spec = read_spec(str(tmp_path))
    assert spec.separation == Separation(names=True, processes=True, mounts=True, etc=True)
    assert spec.cgroups.memory == "/m"
    host = spec.hosts["j-worker-1"]
    if isinstance(host, SshHostSpec):
        assert spec.elsewhere
        assert (host.way.port, host.launch and host.launch.slots, host.hands_on) == (22, [2], True)
        launch = spec.hosts["j-worker-2"]
        assert isinstance(launch, SshHostSpec)
        assert launch.launch is None
    else:
        assert isinstance(host, LocalHostSpec)
        assert (spec.elsewhere, host.mounts[0].read_only, host.hands_on) == (False, True, False)
    write_spec(tmp_path, spec)
    written = json.loads((tmp_path / "spec.json").read_text())
    assert {key: written[key] for key in earlier if key != "hosts"} == {
        k: v for k, v in earlier.items() if k != "hosts"
    }
    for name, facts in earlier["hosts"].items():
        assert {key: written["hosts"][name][key] or {} for key in facts} == {key: facts[key] or {} for key in facts}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"uid": "u"}', json.dumps(JOB)])
def test_a_specification_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    assert find_spec(tmp_path) is None
    (tmp_path / "spec.json").write_text(text)
    assert find_spec(tmp_path) is None
