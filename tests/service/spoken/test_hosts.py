"""What a check of hosts says, in Chinese: read from the sources, and as it is really said."""

from __future__ import annotations

from pathlib import Path

import pytest
from for_every import for_every

from oarsman.engines.hosts.ssh.diagnose.judge import WaySeen, way
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.inventory_file import read
from oarsman.engines.hosts.ssh.trouble import TIMED_OUT, trouble
from oarsman.errors import ManifestError
from oarsman.service.spoken import in_chinese
from service.spoken.latin import english_words
from service.spoken.test_every_sentence import sentences
from tests.engines.hosts.ssh.test_inventory import WRONG_FIELDS, WRONG_LINES

DIAGNOSE = "engines/hosts/ssh/diagnose"
# Parts of sentences, and words for programs.
FRAGMENTS = {
    f"{DIAGNOSE}/judge.py": {
        " (",
        "host key",
        "7 has neither ssh nor bash to try it with",
        "no answer, as if a firewall dropped it",
        "no tool",
        "refused, although an mpirun listens there, as if a firewall did it",
        "connection timed out",
        "operation timed out",
        "connection refused",
        "7 cannot connect to 7 (7): 7",
        "whether 7 can connect to 7 was not tried: 7",
    },
    f"{DIAGNOSE}/network.py": {"trip", "send"},
    f"{DIAGNOSE}/real_run.py": {
        "real run",
        "a host without an MPI has not passed",
        "ssh -o BatchMode=yes -o ConnectTimeout=10",
        "it ended with code 7",
        " (nothing came from 7)",
        "mpirun over all hosts failed7: 7",
        "mpirun was not tried: 7",
        "no host passed",
        "7 cannot log in to 7",
        "plain mpirun does not know the port and user of 7",
        "77exec 7 </dev/null\n",
        "export PATH=7:$PATH\n",
    },
    "engines/hosts/ssh/inventory_file.py": set[str](),
}


@pytest.mark.parametrize("file", FRAGMENTS)
def test_every_sentence_of_a_check_has_its_chinese(file: str) -> None:
    spoken = {text: in_chinese(text) for text in set(sentences(file)) - FRAGMENTS[file] if "\n" not in text}
    assert [text for text, said in spoken.items() if said == text] == []
    assert {said: english_words(said) for said in spoken.values() if english_words(said)} == {}


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


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (
            "node1 cannot log in to node2, node3: its host key is not known yet",
            "node1 无法登录 node2, node3：它的主机公钥尚不认识",
        ),
        (
            "node3 cannot connect to node1 (10.88.1.11): no answer, as if a firewall dropped it",
            "node3 无法连到 node1（10.88.1.11）：没有应答，像是被防火墙丢弃",
        ),
        (
            "whether node2 can connect to node1 was not tried: no mpirun listens on node1",
            "没有测试 node2 能否连到 node1：node1 上没有 mpirun 在监听",
        ),
        ("mpirun was not tried: no host passed", "没有运行 mpirun：没有主机通过检查"),
        ("mpirun was not tried: node1 cannot log in to node2", "没有运行 mpirun：node1 无法登录 node2"),
        (
            "mpirun over all hosts failed (nothing came from a, b): ORTE",
            "在所有主机上运行 mpirun 失败（a, b 没有输出）：ORTE",
        ),
    ],
)
def test_sentences_that_are_put_together(english: str, chinese: str) -> None:
    assert in_chinese(english) == chinese


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


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("'n1;reboot' is not a host name: it has ';'", "“n1;reboot”不是主机名：其中有“;”"),
        (
            "'many' is not a number of slots: a whole number from 0 to 100000",
            "“many”不是槽位数：应为 0 到 100000 的整数",
        ),
        ("an inventory has defaults, hosts and sshConfig", "主机清单的字段有：defaults、hosts 和 sshConfig"),
        (
            "node2: the host did not describe itself: it said 'Welcome'",
            "node2：主机没有说明自己的情况：它输出了 'Welcome'",
        ),
        (
            "code was not copied: node2: /tmp/code belongs to somebody else",
            "代码没有复制过去：node2：/tmp/code 属于别人",
        ),
        ("code was not copied: node2: what it says makes no sense", "代码没有复制过去：node2：无法理解它的回答"),
        ("node2 (10.0.0.2): nothing began there within 60 seconds", "node2 (10.0.0.2)：60 秒内那里没有任何东西启动"),
    ],
)
def test_sentences_about_inventories_and_hosts(english: str, chinese: str) -> None:
    assert in_chinese(english) == chinese
