"""An inventory becomes hosts, or an error that names every mistake with its place and what to write."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from for_every import for_every_row
from hypothesis import given, settings
from hypothesis import strategies as st

from oarsman.engines.hosts.ssh import inventory
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.inventory_file import FIELDS, load, read
from oarsman.errors import ManifestError, Problem, UserError
from oarsman.manifest.problems import render

FILE = Path("/racks/lab/hosts")


def hosts_of(text: str) -> tuple[SshHost, ...]:
    return read(text, FILE).hosts


def only(text: str) -> SshHost:
    (host,) = hosts_of(text)
    return host


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ManifestError) as caught:
        read(text, FILE)
    return caught.value.problems


def said(problem: Problem) -> tuple[int, int, str, str, str | None]:
    return problem.line, problem.column, problem.field, problem.message, problem.hint


HOSTFILES: list[tuple[str, list[tuple[str, int | None, str, int]]]] = [
    ("n1\n", [("n1", None, "", 1)]),
    ("n1 slots=8\nn2 slots=4\n", [("n1", 8, "", 1), ("n2", 4, "", 2)]),
    ("# the lab\n\n  n1 slots=8 max_slots=8 # fast\r\n\tn2", [("n1", 8, "", 3), ("n2", None, "", 4)]),
    ("n1:8\nn2:0", [("n1", 8, "", 1), ("n2", 0, "", 2)]),
    ("alice@n1\nalice@n2:2", [("n1", None, "alice", 1), ("n2", 2, "alice", 2)]),
    ("n1 username=alice", [("n1", None, "alice", 1)]),
    ("n1 cpu=4\nn2 count=2\nn3 SLOTS = 3", [("n1", 4, "", 1), ("n2", 2, "", 2), ("n3", 3, "", 3)]),
    ("n1 max_slots=4", [("n1", 4, "", 1)]),
    ("n1 slots=2\nn2\nn1 slots=3", [("n1", 5, "", 1), ("n2", None, "", 2)]),
    ("n1\nn1\nn2\nn1", [("n1", 3, "", 1), ("n2", None, "", 3)]),
    ("n1 slots=4\nalice@n1", [("n1", 5, "alice", 1)]),
    ("10.0.0.1 slots=2\n10.0.0.2:3", [("10.0.0.1", 2, "", 1), ("10.0.0.2", 3, "", 2)]),
    ("fd00::1 slots=2\n[FD00::2]:3", [("fd00::1", 2, "", 1), ("fd00::2", 3, "", 2)]),
    ("[fd00::1]\nfd00:0::1", [("fd00::1", 2, "", 1)]),
    ("\ufeffnode-1.example_a", [("node-1.example_a", None, "", 1)]),
]


@pytest.mark.parametrize(("text", "expected"), HOSTFILES)
def test_a_hostfile_is_an_inventory(text: str, expected: list[tuple[str, int | None, str, int]]) -> None:
    assert [(host.name, host.slots, host.user, host.line) for host in hosts_of(text)] == expected


ELSE = "a hostfile has slots, max_slots and username; port, key, jump and more are fields of the YAML form"
WRONG_LINES: list[tuple[str, int, str, str, str | None]] = [
    ("n1 port=2222", 4, "port", "'port' is not understood in a hostfile", ELSE),
    ("n1 slotz=4", 4, "slotz", "'slotz' is not understood in a hostfile", "did you mean 'slots'?"),
    ("n1 slots=many", 4, "slots", "'many' is not a number of slots: a whole number from 0 to 100000", None),
    ("n1 slots=-1", 4, "slots", "'-1' is not a number of slots: a whole number from 0 to 100000", None),
    ("n1 slots=", 4, "slots", "a number of slots is missing", None),
    ("n1:", 1, "", "a number of slots is missing", None),
    ("n1:4 slots=4", 6, "slots", "is given twice", None),
    ("n1 slots=5 max_slots=2", 1, "", "slots=5 is more than max_slots=2", None),
    ("  n1 n2", 6, "", "'n2' is not understood after the name of a host", "write one host per line"),
    ("slots=8", 1, "", "a line starts with the name of a host", "write name slots=8"),
    ("=", 1, "", "a line starts with the name of a host", "write name slots=8"),
    ("^n1", 1, "", "leaving a host out with ^ is not understood here", "leave out its line"),
    ("+n0", 1, "", "hosts counted with + are not understood here", "write the name of the host"),
    ("-oProxyCommand", 1, "", "'-oProxyCommand' is not a host name: ssh would take it as an option", None),
    ("-l@n1", 1, "", "'-l' is not a user name: ssh would take it as an option", None),
    ("@n1", 1, "", "a user name is missing", None),
    ("n1;reboot", 1, "", "'n1;reboot' is not a host name: it has ';'", None),
    ("n%h", 1, "", "'n%h' is not a host name: it has '%'", None),
    ("..", 1, "", "'..' is not a host name: it starts with a dot", None),
    ("n[1-4]", 1, "", "'n[1-4]' is not a host name: it has '['", "write each host by itself"),
    ("a:b:c", 1, "", "'a:b:c' is neither a host name nor an IPv6 address", None),
    ("fe80::1%eth0", 1, "", "'fe80::1%eth0' is neither a host name nor an IPv6 address", None),
]


@pytest.mark.parametrize(("line", "column", "field", "message", "hint"), WRONG_LINES)
def test_a_wrong_line_is_named(line: str, column: int, field: str, message: str, hint: str | None) -> None:
    (problem,) = problems_of(f"good slots=1\n{line} # comment\n")
    assert said(problem) == (2, column, field, message, hint)
    assert (problem.source, problem.snippet) == (str(FILE), f"{line} # comment")


def test_two_users_of_one_host_are_an_error_that_names_both_lines() -> None:
    (problem,) = problems_of("a@n1\n b@n1")
    assert said(problem) == (2, 2, "", "'n1' has the user 'a' on line 1", None)


def test_every_wrong_line_is_told_at_once() -> None:
    assert [problem.line for problem in problems_of("^a\nn1\nn2 x=1 y=2\n+b")] == [1, 3, 3, 4]


RICH = """\
sshConfig: ssh/config
defaults:
  user: lab
  port: 2222
  shared: [/data/, /home]
  environment: {OMP_NUM_THREADS: 4, NCCL_DEBUG: WARN}
  labels: {room: 1.10}
hosts:
- name: n1
  slots: 8
  address: 10.0.0.1
  user: alice
  jump: ops@gate:2200,[fd00::9]
  key: keys/n1
  interface: 10.0.0.7/24
  memory: 64Gi
  gpus: 2
  labels: {disk: fast, spare: true}
  shared: /scratch
  folder: ~/jobs
  environment: {NCCL_DEBUG: "INFO", VERSION: 0x10}
  mpi: /opt/openmpi-5
- lab2@n2 slots=3
- n3
"""


def test_the_yaml_form_says_everything_and_defaults_fill_in() -> None:
    shared = {"OMP_NUM_THREADS": "4", "NCCL_DEBUG": "WARN"}
    usual: dict[str, Any] = {"port": 2222, "labels": {"room": "1.10"}, "shared": ("/data", "/home")}
    assert read(RICH, FILE) == Inventory(
        file=FILE,
        ssh_config="/racks/lab/ssh/config",
        hosts=(
            SshHost(
                name="n1",
                slots=8,
                address="10.0.0.1",
                user="alice",
                port=2222,
                jump="ops@gate:2200,[fd00::9]",
                key="/racks/lab/keys/n1",
                interface="10.0.0.0/24",
                memory=64 * 2**30,
                gpus=2,
                labels={"room": "1.10", "disk": "fast", "spare": "true"},
                shared=("/scratch",),
                folder="~/jobs",
                environment={"OMP_NUM_THREADS": "4", "NCCL_DEBUG": "INFO", "VERSION": "0x10"},
                mpi="/opt/openmpi-5",
                line=9,
            ),
            SshHost(name="n2", slots=3, user="lab2", environment=shared, line=23, **usual),
            SshHost(name="n3", user="lab", environment=shared, line=24, **usual),
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        "- n1\n- n2:2\n",
        "[n1, n2 slots=2]",
        "# lab\n---\n- n1\n- {name: n2, slots: 2}",
        "hosts: [n1, n2:2]",
        '{"hosts": ["n1", {"name": "n2", "slots": 2}]}',
        '"hosts":\n- n1\n- name: n2\n  slots: 2\n  user:\n',
        "\ufeffdefaults: {slots: 2}\nhosts: [{name: n2}, {name: n1}]",
    ],
)
def test_yaml_is_known_by_its_first_words(text: str) -> None:
    slots = {host.name: host.slots for host in hosts_of(text)}
    assert set(slots) == {"n1", "n2"}
    assert slots["n2"] == 2


def test_every_field_of_a_host_is_read_and_described() -> None:
    assert {*FIELDS, "line"} == {field.name for field in fields(SshHost)}
    assert set(FIELDS) <= set(re.findall(r"\w+", inventory.__doc__ or ""))


def test_a_home_is_that_of_this_machine_for_files_of_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    found = read("sshConfig: ~/c\nhosts:\n- {name: n1, key: ~/k, folder: ~/f, mpi: ~/m}", FILE)
    (host,) = found.hosts
    assert (found.ssh_config, host.key, host.folder, host.mpi) == ("/home/me/c", "/home/me/k", "~/f", "~/m")


def test_a_relative_file_is_absolute_even_where_the_inventory_was_named_relatively() -> None:
    (host,) = read("- {name: n1, key: k}", Path("lab/hosts")).hosts
    assert host.key == f"{os.getcwd()}/lab/k"


WRONG_FIELDS: list[tuple[str, str, str | None]] = [
    ("name: [n1]", "must be a string, not a list", None),
    ("name: 12", "must be a string, not 12", 'quote it: "12"'),
    ("name: -oProxyCommand=x", "'-oProxyCommand=x' is not a host name: it has '='", None),
    ("name: -v", "'-v' is not a host name: ssh would take it as an option", None),
    ("name: n1 n2", "'n1 n2' is not a host name: it has ' '", None),
    ("name: n1:8", "'n1:8' is neither a host name nor an IPv6 address", "slots and port have fields of their own"),
    ('name: ""', "a host name is missing", None),
    ('name: "a\\nb"', "'a\\x0ab' is not a host name: it has '\\x0a'", None),
    ("slots: '8'", "must be a whole number, not '8'", "leave the quotes out"),
    ("slots: -1", "must be from 0 to 100000, not -1", None),
    ("slots: true", "must be a whole number, not true", None),
    ("slots: 1.5", "must be a whole number, not 1.5", None),
    ("port: 0", "must be from 1 to 65535, not 0", None),
    ("port: 65536", "must be from 1 to 65535, not 65536", None),
    ("gpus: -1", "must be from 0 to 1000, not -1", None),
    ("address: $(reboot)", "'$(reboot)' is not a host name: it has '$'", None),
    ("user: 7", "must be a string, not 7", 'quote it: "7"'),
    ("user: -l", "'-l' is not a user name: ssh would take it as an option", None),
    ("jump: a,-b", "'-b' is not a host name: ssh would take it as an option", None),
    ("jump: a:b", "'b' is not a port: a whole number from 1 to 65535", None),
    ("jump: a,", "a host name is missing", None),
    ("interface: eth0,eth1", "'eth0,eth1' is not the name of a network interface: it has ','", None),
    ("interface: 10.0.0.0/40", "'10.0.0.0/40' is not a range of addresses such as 10.0.0.0/24", None),
    ("memory: 3 Gi", "'3 Gi' is not a quantity such as 2, 500m or 4Gi", "leave the space out"),
    ("memory: 0", "must be more than nothing, not 0", "leave it out to have the host asked"),
    ("memory: {}", "must be a quantity such as 2, 500m or 4Gi", None),
    ('key: ""', "'' is not the path of a file", None),
    ("key: 1", "must be a string, not 1", 'quote it: "1"'),
    ("shared: data", "must start with /, not 'data': it is the same path on every machine", None),
    ("shared: ~/data", "must start with /, not '~/data': it is the same path on every machine", None),
    ("folder: jobs", "must start with / or ~/, not 'jobs'", None),
    ("folder: /a/$USER", "'/a/$USER' has '$', which a shell on the host could take as its own", None),
    ("mpi: /opt/my mpi", "'/opt/my mpi' has ' ', which a shell on the host could take as its own", None),
    ("labels: [a]", "must be a mapping, not a list", None),
    ("environment: A=1", "must be a mapping, not 'A=1'", None),
]


@for_every_row(WRONG_FIELDS)
def test_a_wrong_field_is_named(line: str, message: str, hint: str | None) -> None:
    name = line.partition(":")[0]
    first = "" if name == "name" else "\n  name: n1"
    (problem,) = problems_of(f"hosts:\n- {line}{first}\n")
    assert said(problem) == (2, len(name) + 5, f"hosts[0].{name}", message, hint)
    assert problem.snippet == f"- {line}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hosts:\n- n1\n- name: n1\n", (3, 9, "hosts[1].name", "another host is called 'n1', on line 2", None)),
        ("- n1\n- slots: 2\n  name: n1\n", (3, 9, "[1].name", "another host is called 'n1', on line 1", None)),
        ("- n1\n- n1:3\n", (2, 3, "[1]", "another host is called 'n1', on line 1", None)),
        ("- name: n1\n  prot: 22\n", (2, 3, "[0].prot", "unknown field 'prot'", "did you mean 'port'?")),
        ("- nam: n1\n", (1, 3, "[0].nam", "unknown field 'nam'", "did you mean 'name'?")),
        ("- slots: 1\n", (1, 3, "[0].name", "is required", None)),
        ("host: [n1]\n", (1, 1, "host", "unknown field 'host'", "did you mean 'hosts'?")),
        (
            "hosts: [n1]\nkind: MPIJob\n",
            (2, 1, "kind", "unknown field 'kind'", "an inventory has defaults, hosts and sshConfig"),
        ),
        (
            "hosts: [n1]\ndefaults: {name: n}\n",
            (2, 12, "defaults.name", "is each host's own", "write it with the host"),
        ),
        ("hosts: [n1]\ndefaults: [a]\n", (2, 11, "defaults", "must be a mapping, not a list", None)),
        ("hosts: [n1]\nsshConfig: 1\n", (2, 12, "sshConfig", "must be a string, not 1", 'quote it: "1"')),
        ("sshConfig: c\n", (1, 1, "hosts", "is required", None)),
        ("hosts: n1\n", (1, 8, "hosts", "must be a list, not 'n1'", "start each host with '- '")),
        (
            "hosts: [n1]\nhosts: [n2]\n",
            (2, 1, "hosts", "the field 'hosts' is given twice; the first is on line 1", None),
        ),
        ("- 10\n", (1, 3, "[0]", "must be a name or a mapping, not 10", 'quote it: "10"')),
        ("- n1 port=22\n", (1, 3, "[0]", "'port' is not understood in a hostfile", ELSE)),
        ("- ' '\n", (1, 3, "[0]", "a host name is missing", None)),
        (
            "- name: n1\n  shared: [/a, b]",
            (
                2,
                16,
                "[0].shared[1]",
                "must start with /, not 'b': it is the same path on every machine",
                None,
            ),
        ),
        (
            "- name: n1\n  environment: {a-b: 1}",
            (
                2,
                17,
                "[0].environment.a-b",
                "'a-b' is not the name of an environment variable",
                None,
            ),
        ),
        ("- name: n1\n  environment: {A: [1]}", (2, 20, "[0].environment.A", "must be a string, not a list", None)),
        ('- name: n1\n  environment: {A: "\\0"}', (2, 20, "[0].environment.A", "must not have a NUL character", None)),
        ("- n1\n---\n- n2\n", (3, 1, "", "an inventory is one document", "leave out what starts with ---")),
        ("--- n1\n", (1, 5, "", "an inventory is a mapping with hosts, or a list of hosts, not 'n1'", None)),
        ("hosts:\n\t- n1\n", (2, 1, "", "a tab cannot indent YAML", "use spaces")),
        (
            "- name: n1\n  port: 022\n",
            (
                2,
                9,
                "[0].port",
                ("022 starts with a zero, which some readers take as octal; leave it out, or quote it if it is text"),
                None,
            ),
        ),
    ],
)
def test_a_mistake_of_the_yaml_form_is_named(text: str, expected: tuple[int, int, str, str, str | None]) -> None:
    (problem,) = problems_of(text)
    assert said(problem) == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", (1, 1)),
        ("# nothing\n\n", (1, 1)),
        ("hosts: []\n", (1, 8)),
        ("defaults: {}\nhosts:\n", (2, 1)),
        ("[]", (1, 1)),
        ("---\n", (1, 1)),
        ("- \n- \n", (1, 1)),
    ],
)
def test_an_inventory_without_hosts_is_an_error(text: str, place: tuple[int, int]) -> None:
    (problem,) = problems_of(text)
    assert (problem.message, problem.line, problem.column) == ("there is no host here", *place)


def test_every_mistake_of_the_yaml_form_is_told_at_once_in_the_order_of_the_text() -> None:
    text = "hosts:\n- name: n1\n  port: 0\n  prot: 1\n- slots: 1\n- nam: n2\n- name: -x\ndefaults: {gpus: many}\n"
    assert [(p.line, p.field) for p in problems_of(text)] == [
        (3, "hosts[0].port"),
        (4, "hosts[0].prot"),
        (5, "hosts[1].name"),
        (6, "hosts[2].nam"),
        (7, "hosts[3].name"),
        (8, "defaults.gpus"),
    ]


def test_a_file_is_loaded_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rack"
    file.write_bytes("\ufeffn1 slots=8\r\n".encode())
    assert load(file) == Inventory(file=file, hosts=(SshHost(name="n1", slots=8, line=1),))
    monkeypatch.setenv("HOME", str(tmp_path))
    file.write_text("sshConfig: c\nhosts: [n1]\n")
    (tmp_path / "c").touch()
    assert load(Path("~/rack")) == Inventory(file=file, hosts=(SshHost(name="n1", line=2),), ssh_config=f"{tmp_path}/c")


def test_an_ssh_config_that_is_not_there_is_a_mistake_and_a_key_is_not(tmp_path: Path) -> None:
    """ssh connects to nothing without the one, and passes over the other."""
    file = tmp_path / "hosts.yaml"
    file.write_text("sshConfig: ssh/config\nhosts: [{name: n1, key: no-such-key}]\n")
    with pytest.raises(UserError) as caught:
        load(file)
    assert caught.value.message == f"inventory {file}: sshConfig {tmp_path}/ssh/config does not exist"
    assert "starts in the inventory's folder" in (caught.value.hint or "")
    (tmp_path / "ssh").mkdir()
    (tmp_path / "ssh" / "config").touch()
    assert load(file).hosts[0].key == f"{tmp_path}/no-such-key"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file {path}"),
        (b"n1 \xff\n", "{path} is not text in UTF-8"),
        (b"#" * (3 * 2**20 + 1), "{path} is larger than 3 MiB"),
    ],
)
def test_a_file_that_cannot_be_taken_is_the_users_to_mend(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "rack"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load(path)
    assert caught.value.message == message.format(path=path)
    assert caught.value.hint == "a hostfile with lines such as 'node1 slots=8' will do"


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_what_is_no_file_is_the_users_to_mend(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be read: "):
        load(tmp_path / name)


def outcome(text: str) -> tuple[tuple[SshHost, ...], tuple[Problem, ...]]:
    try:
        return hosts_of(text), ()
    except ManifestError as error:
        return (), error.problems


def check(text: str) -> None:
    hosts, problems = outcome(text)
    assert bool(hosts) != bool(problems)
    assert all(map(render, problems))
    assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in problems)
    assert len({host.name for host in hosts}) == len(hosts)
    assert not any(word.startswith("-") for host in hosts for word in (host.name, host.user, host.target))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text("{}[]:,-&*!|>'\"#%@`~<?^+= \n\tab01", max_size=80)))
def test_arbitrary_text_never_surprises(text: str) -> None:
    check(text)


VALUES: Any = st.sampled_from(
    [
        "",
        "n1",
        "-x",
        "8",
        "-1",
        "1.5",
        "1e400",
        "true",
        "null",
        "''",
        '"\\0"',
        "'%h'",
        "a@b:1,[::1]:2",
        "10.0.0.0/8",
        "[]",
        "{}",
        "[/a, 1]",
        "{A: 1, b: [x]}",
        "~/k",
        "~nobody/k",
        "64Gi",
        "&a x",
        "*a",
        "!!int 1",
        "名",
        "9" * 30,
        "n1 slots=2",
        "::1/64",
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([*FIELDS, "hosts", "<<"]), VALUES), min_size=1, max_size=4), max_size=4
    ),
    st.lists(st.tuples(st.sampled_from([*FIELDS, "hosts", "<<"]), VALUES), max_size=4),
)
def test_any_values_in_any_fields_never_surprise(
    hosts: list[list[tuple[str, str]]], defaults: list[tuple[str, str]]
) -> None:
    lines = ["hosts:"]
    for host in hosts:
        lines += [f"{'  ' if number else '- '}{name}: {value}" for number, (name, value) in enumerate(host)]
    lines += ["defaults:", *(f"  {name}: {value}" for name, value in defaults)]
    check("\n".join(lines))


NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,12}", fullmatch=True) | st.ip_addresses().map(str)
COUNTS = st.none() | st.integers(0, 64)
USERS = st.just("") | st.from_regex(r"[a-z][a-z0-9._-]{0,8}", fullmatch=True)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, st.tuples(COUNTS, USERS), min_size=1, max_size=6))
def test_what_is_written_as_a_hostfile_is_read_as_it_was(hosts: Mapping[str, tuple[int | None, str]]) -> None:
    lines = []
    for name, (slots, user) in hosts.items():
        lines.append(f"{user and user + '@'}{name}{'' if slots is None else f' slots={slots}'}")
    found = hosts_of("\n".join(lines))
    assert {host.name: (host.slots, host.user) for host in found} == hosts
    assert [host.line for host in found] == list(range(1, len(hosts) + 1))
