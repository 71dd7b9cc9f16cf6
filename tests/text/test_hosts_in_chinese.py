"""What a check of hosts says, in Chinese: read from the sources, and as it is really said."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from for_every import for_every

from oarsman.control import host_state
from oarsman.engines.hosts.ssh.client import Answer
from oarsman.engines.hosts.ssh.diagnose.diagnosis import judged, why_not
from oarsman.engines.hosts.ssh.diagnose.judge import CONNECTED, Finding, HostSeen, WaySeen, way
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.inventory_file import read
from oarsman.engines.hosts.ssh.probe import parse
from oarsman.engines.hosts.ssh.trouble import TIMED_OUT, Trouble, trouble
from oarsman.engines.hosts.ssh.trust.folders import Edit, File, SshFolder
from oarsman.errors import ManifestError, RetryableError
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text
from tests.engines.hosts.ssh.test_inventory import WRONG_FIELDS, WRONG_LINES
from tests.text.chinese import english_words, in_chinese, spoken

NODE = SshHost(name="node2", address="10.0.0.2", jump="gate")
SSH = {
    "unknown name": (255, "ssh: Could not resolve hostname node2: Name or service not known"),
    "nobody listens": (255, "ssh: connect to host node2 port 22: Connection refused"),
    "no answer": (255, "ssh: connect to host node2 port 22: Connection timed out"),
    "no route": (255, "ssh: connect to host node2 port 22: No route to host"),
    "unknown key": (255, "Host key verification failed."),
    "other key": (
        255,
        "REMOTE HOST IDENTIFICATION HAS CHANGED!\nOffending ED25519 key in /home/ada/.ssh/known_hosts:3",
    ),
    "denied": (255, "ada@node2: Permission denied (publickey)."),
    "lost": (255, "Connection to node2 closed by remote host."),
    "silence": (TIMED_OUT, ""),
}


@pytest.mark.parametrize("name", SSH)
def test_what_is_in_the_way_to_a_host_is_said_in_chinese(name: str) -> None:
    found = trouble(NODE, *SSH[name])
    assert in_chinese(found.message).startswith("node2 (10.0.0.2)：")
    for text in (found.message, found.hint):
        assert english_words(in_chinese(text), ("ada",)) == [], in_chinese(text)


@pytest.mark.parametrize("name", [name for name in SSH if name != "silence"])
def test_what_is_in_the_way_between_hosts_is_said_in_chinese(name: str) -> None:
    code, said = SSH[name]
    for finding in way(WaySeen(host="node1", other=NODE, address="10.0.0.2", code=code, said=said, call="x: nothing")):
        text = in_chinese(finding.message)
        assert text != finding.message
        assert english_words(text, ("ada", "nothing")) == [], text


def test_each_finding_between_hosts_has_its_words() -> None:
    def told(**seen: Any) -> list[str]:
        return [
            spoken(finding.message) for finding in way(WaySeen(host="node1", other=NODE, address="10.0.0.2", **seen))
        ]

    assert told(call="bash: connect: Connection timed out") == [
        "node1 无法连到 node2（10.0.0.2）：没有应答，像是被防火墙丢弃",
    ]
    assert told(untried=Text("no mpirun listens on {host}", host="node2")) == [
        "没有测试 node1 能否连到 node2：node2 上没有 mpirun 在监听",
    ]
    denied = told(code=255, said="Host key verification failed.", call=CONNECTED)
    assert denied[-2] == "node1 无法登录 node2：本机还不认识它的主机密钥"


def test_a_plain_mpirun_that_was_not_tried_or_failed_says_why() -> None:
    assert spoken(Text("mpirun was not tried: {why}", why=why_not([], []))) == "没有运行 mpirun：没有主机通过检查"
    assert why_not([NODE, SshHost(name="node3")], []) == "node2 cannot log in to node3"
    failed = judged(1, "", "ORTE", {"a": "a", "b": "b"}).message
    assert in_chinese(failed) == "在所有主机上运行 mpirun 失败（a, b 没有输出）：ORTE"


def test_what_keeps_code_from_a_host_is_said_in_chinese() -> None:
    place = SshHost(name="node2")
    copying = "code was not copied: {why}"
    theirs = trouble(place, 1, "/tmp/code belongs to somebody else").message
    assert spoken(Text(copying, why=theirs)) == "代码没有复制过去：node2：/tmp/code 属于别人"
    late = Text("no process started there within {seconds} seconds", seconds="60")
    assert spoken(trouble(NODE, -9, late).message) == "node2 (10.0.0.2)：60 秒内那里没有进程启动"
    with pytest.raises(RetryableError) as caught:
        parse("Welcome")
    assert in_chinese(caught.value.message) == "主机没有说明自己的情况：它输出了 'Welcome'"


def test_what_keeps_hosts_from_trusting_each_other_is_said_in_chinese() -> None:
    def asked(*said: str) -> SshFolder:
        async def run(_script: str, _timeout: float) -> Answer:
            return Answer(0, "\n".join(["oarsman-trust", *said, "end", ""]), "")

        return SshFolder("node1", run)

    def told(answer: Coroutine[Any, Any, object]) -> str:
        found = asyncio.run(answer)
        assert isinstance(found, Trouble)
        return in_chinese(found.message)

    edits = [Edit(label, File(None, ""), b"") for label in ("authorized_keys", "config")]
    assert told(asked().change(edits)) == "node1：无法写入 authorized_keys, config"
    assert told(asked("unreadable\tknown_hosts").look()) == "node1：无法读取 known_hosts"
    assert told(asked().make_key("x")) == "node1：无法生成密钥：ssh-keygen 失败"
    assert told(asked("visit\tnode2\tx\t00").visit(["node2"])) == "node1：它的 shell 没有按要求执行"


def test_what_is_remembered_of_hosts_is_said_in_chinese_later(tmp_path: Path) -> None:
    rack, paths = read("node2", tmp_path / "hosts"), Paths(tmp_path)
    [host] = rack.hosts
    found = trouble(host, *SSH["nobody listens"])
    host_state.remember(rack, [HostSeen(host=host, trouble=found)], paths=paths)
    finding = Finding(host="node2", step="port", level="fail", message=found.message, hint=found.hint)
    host_state.checked(rack, [finding], fit=[], unfit={"node2": found.message}, paths=paths)
    known, check = host_state.known(rack, paths)["node2"], host_state.last_check(rack, paths)
    assert known.trouble == found
    assert check is not None
    remembered = [known.trouble.message, known.left_out, check[1][0].message]
    assert [in_chinese(said) for said in remembered] == ["node2：端口 22 没有程序在监听"] * 3
    assert in_chinese(check[1][0].hint) == "请在那里启动 sshd，或更正端口"


INVENTORIES = [
    *(line for line, *_ in WRONG_LINES),
    *(f"hosts:\n- {line}\n  name: n1" for line, *_ in WRONG_FIELDS if not line.startswith("name:")),
    *(f"hosts:\n- {line}" for line, *_ in WRONG_FIELDS if line.startswith("name:")),
    "a@n1\nb@n1",
    "- n1\n---\n- n2",
    "hosts: 7",
    "hosts:",
    "hosts: []",
    "[]",
    "- 7",
    "- n1\n- {name: n1}",
    "host: [n1]",
    "hosts: [n1]\nkind: MPIJob",
    "hosts: [n1]\ndefaults: {name: n}",
    "- {name: n1, labels: {-a: 1}}",
    "- {name: n1, environment: {1a: x}}",
    '- {name: n1, environment: {A: "\\0"}}',
    "- {name: n1, labels: {a: []}}",
]


@for_every(INVENTORIES)
def test_what_is_wrong_with_an_inventory_is_said_in_chinese(text: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read(text, Path("/racks/hosts"))
    for problem in caught.value.problems:
        for said in filter(None, (problem.message, problem.hint)):
            assert in_chinese(said) != said
            assert english_words(in_chinese(said), ("defaults", "hosts")) == [], in_chinese(said)


def test_words_of_an_inventory_are_said_in_chinese() -> None:
    def told(text: str) -> set[str]:
        with pytest.raises(ManifestError) as caught:
            read(text, Path("/racks/hosts"))
        problems = caught.value.problems
        return {in_chinese(said) for problem in problems for said in (problem.message, problem.hint) if said}

    assert "“n1;reboot”不是主机名：其中有“;”" in told("n1;reboot")
    assert "“many”不是槽位数：应为 0 到 100000 的整数" in told("n1 slots=many")
    assert "主机清单的字段有：defaults、hosts 和 sshConfig" in told("hosts: [n1]\nkind: MPIJob")
