"""What the documents tell a reader to type is typed here.

Every fenced block of an English document marked `sh` is run with `sh -e` at the top of the repository, the blocks of
one document one after another with one state folder. A block marked `python` is a program of its own. The Chinese ones
have the same blocks. These notes are understood:

    ```sh not-run          the block is only shown (so for python); its first line must be a comment that says why
    ```sh on-hosts         run on the hosts of the tests, on a terminal; its first line says what it needs
    ```sh on-kube          likewise, by tests/cluster or tests/installed on their clusters
    command  # exits with 3    the command is expected to end with that code

`make` lines are not run (they would start this suite again) but must name a target of the Makefile. The pages about
racks have real hosts, node1 to node4, and a home from which ssh reaches them.
"""

from __future__ import annotations

import os
import pty
import re
import runpy
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from for_every import for_every
from ssh_hosts.rack import Rack

from docs.blocks import FENCE, ROOT, Block, blocks

DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)
SECONDS_PER_BLOCK = 200
ON_HOSTS = ("docs/guide/hosts.md", "docs/guide/hosts.zh-CN.md")
OF_MANIFESTS = ("docs/guide/manifests.md", "docs/guide/manifests.zh-CN.md")


ALL = [block for document in DOCUMENTS for block in blocks(document)]
TRANSLATIONS = [document for document in DOCUMENTS if document.endswith(".zh-CN.md")]  # they have the same blocks
RUNNABLE = sorted({block.document for block in ALL if block.runs} - set(TRANSLATIONS))


@pytest.fixture
def environment(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    found = dict(os.environ)
    if request.getfixturevalue("document") in ON_HOSTS:
        found = request.getfixturevalue("rack").environment
    result = reader(found, tmp_path)
    yield result
    stop = ["oarsman", "supervisor", "stop"]
    subprocess.run(stop, cwd=ROOT, env=result, check=True, timeout=120, capture_output=True)


@pytest.mark.mpi
@pytest.mark.timeout(600)
@pytest.mark.parametrize("document", RUNNABLE)
def test_the_commands_of_a_document_work(document: str, environment: dict[str, str], tmp_path: Path) -> None:
    for block in blocks(document):
        if not block.runs or not block.script.strip():
            continue
        done = subprocess.run(
            _command(block, tmp_path),
            cwd=ROOT,
            env=environment,
            timeout=SECONDS_PER_BLOCK,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        assert done.returncode == 0, (
            f"{document}:{block.line}: ended with {done.returncode}\n{block.body}\n--- printed\n{done.stdout}"
        )


def test_what_the_readme_says_about_hosts_works_on_hosts(rack: Rack, tmp_path: Path) -> None:
    """With a program of ours in place of the reader's, on a terminal where every question is answered with yes."""
    (block,) = [block for block in blocks("README.md") if block.info == "sh on-hosts"]
    solver = tmp_path / "folder" / "solver"
    solver.parent.mkdir()
    solver.write_text("#!/bin/sh\nhostname\n")
    solver.chmod(0o755)
    said = answering_yes(block.script, solver.parent, reader(rack.environment, tmp_path / "state"))
    for host in ("node1", "node2"):
        assert len(re.findall(rf"^\[rank \d+ \S+ {host}\] {host}$", said, re.M)) == 8


def test_setting_up_logins_asks_and_then_works(rack: Rack, tmp_path: Path) -> None:
    (block,) = [block for block in blocks("docs/guide/hosts.md") if block.info == "sh on-hosts"]
    environment = reader(rack.environment, tmp_path / "state") | {"OARSMAN_HOSTS": str(tmp_path / "hostfile")}
    (tmp_path / "hostfile").write_text("node1\nnode2\n")
    assert "every login works: 4 of 4" in answering_yes(block.script, tmp_path, environment)


def reader(found: Mapping[str, str], state: Path) -> dict[str, str]:
    """What a reader's commands run with: no settings of this machine's user, English, a state folder of their own."""
    kept = {name: value for name, value in found.items() if name != "XDG_CONFIG_HOME"}
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), kept["PATH"]])
    return {**kept, "OARSMAN_STATE": str(state), "PATH": path, "LANG": "C.UTF-8", "NO_COLOR": "1"}


def answering_yes(script: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What a shell on a terminal wrote; afterwards its supervisor is gone."""
    ours, theirs = pty.openpty()
    os.write(ours, b"y\n" * 4)
    shell = ["sh", "-e", "-c", script]
    try:
        done = subprocess.run(
            shell,
            cwd=folder,
            env=dict(environment),
            timeout=SECONDS_PER_BLOCK,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
        stop = ["oarsman", "supervisor", "stop"]
        subprocess.run(stop, cwd=ROOT, env=dict(environment), check=True, timeout=120, capture_output=True)
    assert done.returncode == 0, f"ended with {done.returncode}\n{script}\n--- printed\n{done.stdout}"
    return done.stdout


def _command(block: Block, folder: Path) -> list[str]:
    if block.info == "sh":
        return ["sh", "-e", "-c", block.script]
    program = folder / f"block-{block.line}.py"  # a file: Python shows the source of a function only from one
    program.write_text(block.script)
    return ["python", "-W", "error", str(program)]


def test_a_block_that_is_not_run_says_why() -> None:
    elsewhere = (" not-run", " on-hosts", " on-kube")
    silent = [f"{b.document}:{b.line}" for b in ALL if b.info.endswith(elsewhere) and not b.body.startswith("# ")]
    assert silent == []


def test_shell_blocks_are_marked_in_a_known_way() -> None:
    shells = ("sh", "shell", "bash", "console", "python", "py", "python3")
    known = ("sh", "sh not-run", "sh on-hosts", "sh on-kube", "python", "python not-run")
    unknown = [f"{b.document}:{b.line}: {b.info}" for b in ALL if b.info.split(" ")[0] in shells]
    assert [mark for mark in unknown if mark.partition(": ")[2] not in known] == []


def test_a_sweep_that_is_shown_uses_all_its_parameters() -> None:
    """Else the reader's first sweep begins with a warning."""
    lines = [line for block in ALL for line in block.body.replace("\\\n", " ").splitlines() if "sweep run" in line]
    typed = [line for line in lines if " -- " in line]
    assert len(typed) >= 4
    for line in typed:
        for name in re.findall(r"--grid (\w+)=", line):
            assert f"{{{{{name}}}}}" in line or f"SWEEP_{name.upper()}" in line, (name, line)


def test_make_lines_name_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {word for b in ALL for word in re.findall(r"^make (\w+)", b.body, re.M)}
    assert {"run", "test"} <= named <= targets


@for_every(DOCUMENTS)
def test_links_within_the_repository_lead_somewhere(document: str) -> None:
    text = FENCE.sub("", (ROOT / document).read_text())
    targets = [link for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text) if "://" not in link and "@" not in link]
    missing = [target for target in targets if not ((ROOT / document).parent / target).exists()]
    assert missing == []


@for_every(DOCUMENTS)
def test_links_to_a_heading_find_it(document: str) -> None:
    text = FENCE.sub("", (ROOT / document).read_text())
    for target, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", text):
        there = ((ROOT / document).parent / target) if target else ROOT / document
        headings = re.findall(r"^#+ (.*)$", FENCE.sub("", there.read_text()), re.M)
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("chinese", TRANSLATIONS)
def test_a_translation_has_the_blocks_of_its_original(chinese: str) -> None:
    """Word by word, but for comments, and for output, which is shown as a Chinese reader has it."""

    def code(document: str) -> list[tuple[str, str]]:
        return [
            (b.info, "" if b.info == "text" else re.sub(r"(^|\s+)#(?! exits with).*", "", b.body, flags=re.M).strip())
            for b in blocks(document)
        ]

    assert code(chinese) == code(chinese.replace(".zh-CN", ""))


@pytest.mark.parametrize("chinese", TRANSLATIONS)
def test_a_translation_has_the_headings_and_tables_of_its_original(chinese: str) -> None:
    """How deep each heading is, and what lies under it: rows of tables, items of lists."""

    def outline(document: str) -> list[str]:
        text = FENCE.sub("", (ROOT / document).read_text())
        return re.findall(r"^(#+(?= )|\|(?=.*\|$)|-(?= ))", text, re.M)

    assert outline(chinese) == outline(chinese.replace(".zh-CN", ""))


@pytest.mark.parametrize("chinese", TRANSLATIONS)
def test_a_translation_and_its_original_lead_to_each_other(chinese: str) -> None:
    original = ROOT / chinese.replace(".zh-CN", "")
    assert f"[中文]({Path(chinese).name})" in original.read_text()
    assert f"[English]({original.name})" in (ROOT / chinese).read_text()


@pytest.mark.parametrize("document", OF_MANIFESTS)
def test_the_annotations_of_the_guide_are_those_of_the_program(document: str) -> None:
    from oarsman import names
    from oarsman.plan.reconcile import ANNOTATIONS

    ours = {value for name, value in vars(names).items() if name.startswith("ANNOTATION_")} | set(ANNOTATIONS)
    guide = (ROOT / document).read_text()
    assert set(re.findall(r"^\| `(oarsman\.dev/[\w-]+)`", guide, re.M)) == ours


@pytest.mark.parametrize("document", ON_HOSTS)
def test_the_fields_of_an_inventory_are_those_of_the_program(document: str) -> None:
    from oarsman.engines.hosts.ssh.inventory_file import FIELDS

    table = re.split(r"^## ", (ROOT / document).read_text(), flags=re.M)[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(FIELDS)


@pytest.mark.parametrize("document", ON_HOSTS)
def test_the_inventory_that_is_shown_is_one(document: str) -> None:
    from oarsman.engines.hosts.ssh.inventory_file import read

    (shown,) = [block.body for block in blocks(document) if block.info == "yaml"]
    assert [host.slots for host in read(shown, ROOT / "hosts.yaml").hosts] == [8, 8, 4]


def test_variables_that_are_passed_on_are_named_as_the_program_has_them() -> None:
    from oarsman.engines.hosts.ssh.host_spec import _PASSED

    guide = (ROOT / ON_HOSTS[0]).read_text()
    named = re.search(r"your own\s+variables (.*?),? and the host's", guide, re.S)
    assert named
    variables = re.findall(r"`(\w+)\*?`", named[1])
    assert len(variables) > 10
    assert [name for name in variables if not _PASSED.match(name)] == []


def test_the_tables_made_from_the_program_are_fresh() -> None:
    tables = runpy.run_path(str(ROOT / "scripts" / "tables.py"))
    assert tables["known_errors"]() in tables["FAILURES"].read_text(), "stale: run `make fmt`"
    chinese = tables["FAILURES_IN_CHINESE"].read_text()
    assert tables["known_errors_in_chinese"]() in chinese, "stale: run `make fmt`"


@pytest.mark.parametrize("document", OF_MANIFESTS)
def test_the_guide_mentions_every_field_of_both_versions(document: str) -> None:
    from oarsman.manifest.document import RunPolicyV1, RunPolicyV2beta1, SpecV1, SpecV2beta1

    guide = (ROOT / document).read_text()
    models = (SpecV1, SpecV2beta1, RunPolicyV1, RunPolicyV2beta1)
    fields = {field.alias or name for model in models for name, field in model.model_fields.items()}
    assert {field for field in fields if not re.search(rf"`(\w+\.)?{field}[.`]", guide)} == set()


def test_the_operators_log_is_asked_of_all_its_pods() -> None:
    """Of a deployment kubectl shows one pod, which may be the one that does nothing."""
    notes = (ROOT / "deploy" / "chart" / "oarsman" / "templates" / "NOTES.txt").read_text()
    asked = [
        line
        for text in (notes, *(b.body for b in ALL))
        for line in text.splitlines()
        if re.search(r"\blogs .*oarsman", line)
    ]
    of_the_operator = [line.strip() for line in asked if "kubectl" in line]
    assert of_the_operator
    assert [
        line for line in of_the_operator if "-l app.kubernetes.io/name=" not in line or "--tail=-1" not in line
    ] == []
