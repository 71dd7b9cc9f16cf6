"""What `make cluster` says to type next, and `scripts/setup helm`."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from cluster.__main__ import DEFAULT, next_steps
from cluster.images import NAMES

ROOT = Path(__file__).resolve().parents[2]
IMAGES = [*NAMES.values(), "oarsman.test/operator:0123456789ab"]


def steps(name: str = DEFAULT) -> list[str]:
    said = next_steps(name, Path("/a place/kubeconfig"), Path("/bin/kubectl"), IMAGES)
    return [line.strip() for line in said.splitlines()]


def test_the_operator_is_installed_with_the_images_of_the_cluster() -> None:
    delivery = NAMES["busy"]
    assert f"oarsman install --image {IMAGES[-1]} --kubectl-delivery-image {delivery}" in steps()
    assert "export KUBECONFIG='/a place/kubeconfig'" in steps()
    assert "alias kubectl=/bin/kubectl" in steps()


def test_the_files_that_are_named_exist_and_name_what_is_replaced() -> None:
    (line,) = [line for line in steps() if line.startswith("sed ")]
    _, script, file, *_ = shlex.split(line)
    changed = subprocess.run(["sed", script, str(ROOT / file)], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^ +image: (\S+)$", changed, re.M)) == {NAMES["openmpi5"]}


def test_a_cluster_of_another_name_is_removed_by_its_name() -> None:
    assert "make cluster-down removes it." in steps()
    assert "PYTHONPATH=tests python -m cluster down mine removes it." in steps("mine")


def test_the_options_are_ones_that_the_command_knows() -> None:
    typed = [shlex.split(line.partition(" -- ")[0]) for line in steps() if line.startswith("oarsman ")]
    assert [words[:2] for words in typed] == [["oarsman", "install"], ["oarsman", "--on"]]
    for words in typed:
        verb = "install" if "install" in words else "run"
        page = subprocess.run(["oarsman", verb, "--help"], capture_output=True, text=True, check=True).stdout
        assert [word for word in words if word.startswith("-") and word not in page] == []


def test_the_set_up_says_where_helm_is(tmp_path: Path) -> None:
    """The function alone: the whole set-up may install what is missing."""
    found = re.search(r"^where_helm_is\(\) \{.*?^\}$", (ROOT / "scripts" / "setup").read_text(), re.M | re.S)
    assert found
    said = 'say() { echo "$*"; }; fail() { echo "$*"; exit 1; }; here=$PWD; ' + found[0] + "; where_helm_is"

    def ask() -> str:
        shell = ["/bin/sh", "-c", said]
        return subprocess.run(
            shell, cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
        ).stdout

    assert ask().startswith("there is no helm")
    for place in (tmp_path / ".tools" / "helm", tmp_path / "helm"):  # ours, and then the machine's own
        place.parent.mkdir(exist_ok=True)
        place.touch(0o755)
        assert ask() == f"helm: {place}\n"
