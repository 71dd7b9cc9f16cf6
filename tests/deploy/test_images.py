"""The images. They cannot be built where there is no registry, so their recipes are read, and their scripts are run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from deploy.helm import CHART, ROOT
from oarsman import __version__

sys.path.append(str(ROOT / "scripts"))
import hashes
import registry

IMAGES = ROOT / "deploy" / "images"
BUILT_HERE = ("operator", "kubectl-delivery", "base", "openmpi", "mpich", "intel")
RUNS_AS = {"operator": "65532:65532", "kubectl-delivery": "65532:65532"}  # the others are for manifests to decide
ENTRYPOINTS = {
    "operator": '["oarsman"]',
    "kubectl-delivery": '["/bin/deliver-kubectl"]',
    "base": None,
    "openmpi": '["mpi-entrypoint"]',
    "mpich": '["mpi-entrypoint"]',
    "intel": '["mpi-entrypoint"]',
}
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "ENV", "RUN", "USER", "ENTRYPOINT", "CMD"}


@dataclass(frozen=True)
class Line:
    word: str
    rest: str


def recipe(image: str) -> list[Line]:
    text = (IMAGES / image / "Dockerfile").read_text()
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [Line(*line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def context(image: str) -> Path:
    return ROOT if image == "operator" else IMAGES


def sources(copy: str) -> list[str]:
    words = [word for word in shlex.split(copy) if not word.startswith("--chmod=")]
    return words[:-1]


every_image = pytest.mark.parametrize("image", BUILT_HERE)


def test_every_image_has_a_recipe_and_every_recipe_is_known() -> None:
    assert {path.parent.name for path in IMAGES.glob("*/Dockerfile")} == set(BUILT_HERE)


@every_image
def test_a_recipe_uses_plain_instructions_only(image: str) -> None:
    assert {line.word for line in recipe(image)} <= KNOWN  # so there is no ADD, which fetches from anywhere


@every_image
def test_what_an_image_is_built_on_has_a_tag(image: str) -> None:
    lines = recipe(image)
    arguments = dict(line.rest.split("=", 1) for line in lines if line.word == "ARG")
    for line in (line for line in lines if line.word == "FROM"):
        base = re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], line.rest.split()[0])
        name, _, tag = base.partition(":")
        assert tag not in ("", "latest")
        if name.startswith("oarsman/"):
            assert (name, tag) == ("oarsman/base", __version__)


@every_image
def test_what_is_copied_exists(image: str) -> None:
    stages = {line.rest.split(" AS ")[1] for line in recipe(image) if line.word == "FROM" and " AS " in line.rest}
    for line in (line for line in recipe(image) if line.word == "COPY"):
        if found := re.match(r"--from=(\S+)", line.rest):
            assert found[1] in stages
            continue
        assert [source for source in sources(line.rest) if not (context(image) / source).exists()] == []


@every_image
def test_the_user_is_the_one_meant(image: str) -> None:
    last_stage = recipe(image)[max(n for n, line in enumerate(recipe(image)) if line.word == "FROM") :]
    users = [line.rest for line in last_stage if line.word == "USER"]
    assert (users[-1] if users else None) == RUNS_AS.get(image)


@every_image
def test_the_entrypoint_is_the_one_meant(image: str) -> None:
    entrypoints = [line.rest for line in recipe(image) if line.word == "ENTRYPOINT"]
    assert (entrypoints[-1] if entrypoints else None) == ENTRYPOINTS[image]


@every_image
def test_lists_of_packages_are_not_kept(image: str) -> None:
    for line in (line for line in recipe(image) if "apt-get install" in line.rest):
        assert "apt-get update" in line.rest
        assert "--no-install-recommends" in line.rest
        assert "rm -rf /var/lib/apt/lists/*" in line.rest


def test_the_operators_user_is_that_of_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())["podSecurityContext"]
    assert RUNS_AS["operator"] == f"{values['runAsUser']}:{values['runAsGroup']}"


def copied_for_the_operator() -> dict[str, str]:
    """Where each thing that is copied from the tree comes to lie, below the folder where the image is built."""
    lines = [line.rest for line in recipe("operator") if line.word == "COPY" and not line.rest.startswith("--from")]
    return {
        source: target if not target.endswith("/") else f"{target}{Path(source).name}"
        for rest in lines
        for source in sources(rest)
        for target in shlex.split(rest)[-1:]
    }


def test_the_operators_context_has_what_is_copied_and_little_else() -> None:
    ignore = (IMAGES / "operator" / "Dockerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignore if line.startswith("!")} == copied_for_the_operator().keys()


def test_the_operator_can_be_packaged_from_what_is_copied(tmp_path: Path) -> None:
    for source, target in copied_for_the_operator().items():
        place = tmp_path / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, place)
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in tmp_path.glob("dist/*")] == [f"oarsman-{__version__}-py3-none-any.whl"]


# -- what is installed is known by its hash --------------------------------------------------------
REQUIREMENTS = sorted(path.relative_to(IMAGES) for path in IMAGES.glob("*/requirements*.txt"))


def test_what_pip_installs_is_one_of_the_files_with_these_hashes() -> None:
    for image in BUILT_HERE:
        for words in (line.rest for line in recipe(image) if line.word == "RUN" and "pip install" in line.rest):
            for call in re.findall(r"pip install (.*?)(?:&&|$)", words):
                assert "--require-hashes --only-binary :all: -r " in call or "--no-deps --no-index dist/" in call


@pytest.mark.parametrize("file", REQUIREMENTS, ids=str)
def test_every_package_has_the_version_that_the_tests_ran_with_and_hashes_and_no_address(file: Path) -> None:
    text = (IMAGES / file).read_text()
    assert "://" not in text
    entries = re.findall(r"^([\w.-]+)==(\S+)((?: \\\n {4}--hash=sha256:[0-9a-f]{64})+)\n", text, re.M)
    assert sum(1 for line in text.splitlines() if "==" in line) == len(entries)
    known = registry.pinned()
    assert {name: version for name, version, _ in entries} == {name: known[name] for name, _, _ in entries}


@pytest.mark.parametrize("file", hashes.FILES)
def test_nothing_that_is_needed_is_missing(file: str) -> None:
    names = re.findall(r"^([\w.-]+)==", (IMAGES / file).read_text(), re.M)
    assert names == hashes.closure(hashes.FILES[file])


def test_the_python_of_the_hashes_is_that_of_the_image() -> None:
    (tag,) = [line.rest for line in recipe("operator") if line.rest.startswith("PYTHON_TAG=")]
    assert tag.startswith(f"PYTHON_TAG={hashes.PYTHON}-")


def test_wheels_for_other_machines_and_pythons_and_versions_are_not_taken() -> None:
    assert hashes.fits("aiohttp-3.14.5-cp312-cp312-manylinux2014_aarch64.manylinux_2_17_aarch64.whl", "3.14.5")
    assert hashes.fits("cryptography-50.0.2-cp311-abi3-manylinux_2_34_x86_64.whl", "50.0.2")
    assert hashes.fits("click-8.5.1-py3-none-any.whl", "8.5.1")
    for other in ("cp312-cp312-win_amd64", "cp311-cp311-manylinux2014_x86_64", "cp312-cp312-musllinux_1_2_x86_64"):
        assert not hashes.fits(f"aiohttp-3.14.5-{other}.whl", "3.14.5")
    assert not hashes.fits("click-8.5.0-py3-none-any.whl", "8.5.1")
    assert not hashes.fits("click-8.5.1.tar.gz", "8.5.1")


def test_base_images_are_pinned_to_the_digests_that_the_builder_has(tmp_path: Path) -> None:
    shutil.copytree(IMAGES, tmp_path / "deploy" / "images")
    (tmp_path / "src" / "oarsman").mkdir(parents=True)
    shutil.copy(ROOT / "src" / "oarsman" / "version.py", tmp_path / "src" / "oarsman")
    (builder := tmp_path / "builder").write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        '[ "$1" = pull ] || echo "${last%:*}@sha256:$(echo "$last" | sha256sum | cut -c-64)"\n'
    )
    builder.chmod(0o755)
    for _ in range(2):  # the second time nothing changes
        done = run(str(tmp_path / "deploy/images/build"), "--pin", BUILDER=str(builder))
        assert (done.returncode, done.stdout.count("==> ")) == (0, 4), done.stderr
        tags = {
            line
            for path in (tmp_path / "deploy" / "images").glob("*/Dockerfile")
            for line in path.read_text().splitlines()
            if re.match(r"ARG [A-Z]+_TAG=", line)
        }
        assert len(tags) == 4
        assert [tag for tag in tags if not re.fullmatch(r"ARG [A-Z]+_TAG=[\w.-]+@sha256:[0-9a-f]{64}", tag)] == []
    builder.write_text("#!/bin/sh\necho\n")
    assert run(str(tmp_path / "deploy/images/build"), "--pin", BUILDER=str(builder)).returncode == 1


# -- what manifests for Kubeflow's base image rely on --------------------------------------------


def settings(file: str) -> list[tuple[str, str]]:
    lines = (line.split("#")[0].split() for line in (IMAGES / "base" / file).read_text().splitlines())
    return [(words[0], words[1]) for words in lines if words]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("ssh_config", {("Port", "2222"), ("StrictHostKeyChecking", "no"), ("UserKnownHostsFile", "/dev/null")}),
        ("sshd_config", {("Port", "2222"), ("StrictModes", "no"), ("HostKey", "/root/.ssh/id_rsa")}),
        (
            "mpiuser.sshd_config",
            {
                ("Port", "2222"),
                ("StrictModes", "no"),
                ("PidFile", "/home/mpiuser/sshd.pid"),
                ("HostKey", "/home/mpiuser/.ssh/id_rsa"),
            },
        ),
    ],
)
def test_ssh_is_set_up_as_manifests_expect(file: str, expected: set[tuple[str, str]]) -> None:
    assert expected <= set(settings(file))


def test_mpiuser_is_there_and_no_host_key_is_shared() -> None:
    text = " ".join(line.rest for line in recipe("base"))
    assert re.search(r"useradd --uid 1000 .*mpiuser", text)
    assert "base/mpiuser.sshd_config /home/mpiuser/.sshd_config" in text
    assert "/etc/ssh/ssh_host_*" in text


# -- the scripts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["build", "base/mpi-entrypoint", "kubectl-delivery/deliver-kubectl"])
def test_a_script_can_be_run(script: str) -> None:
    assert os.access(IMAGES / script, os.X_OK)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True, check=False
    )


def test_kubectl_is_delivered_whole(tmp_path: Path) -> None:
    (kubectl := tmp_path / "kubectl").write_text("#!/bin/sh\necho it runs\n")
    (target := tmp_path / "target").mkdir()
    for _ in range(2):  # a restarted pod does it again
        done = run(str(IMAGES / "kubectl-delivery/deliver-kubectl"), KUBECTL=str(kubectl), TARGET_DIR=str(target))
        assert done.returncode == 0, done.stderr
    assert [path.name for path in target.iterdir()] == ["kubectl"]
    assert run(str(target / "kubectl")).stdout == "it runs\n"


def test_delivery_to_nowhere_fails(tmp_path: Path) -> None:
    done = run(
        str(IMAGES / "kubectl-delivery/deliver-kubectl"), KUBECTL="/bin/sh", TARGET_DIR=str(tmp_path / "missing")
    )
    assert done.returncode != 0


@pytest.fixture
def names_asked_for(tmp_path: Path) -> Path:
    """A `getent` that knows every name but those of *.nowhere, and notes what it was asked."""
    notes = tmp_path / "asked"
    (tmp_path / "bin").mkdir()
    (stub := tmp_path / "bin" / "getent").write_text(
        f'#!/bin/sh\necho "$2" >>{notes}\ncase $2 in *.nowhere) exit 2 ;; esac\n'
    )
    stub.chmod(0o755)
    return notes


@pytest.mark.parametrize(
    ("hostfile", "role", "asked", "complaint"),
    [
        ("a.svc slots=2\nb.svc slots=2\n", "launcher", ["a.svc", "b.svc"], ""),
        ("a.svc:2\nb.svc:2\n", "launcher", ["a.svc", "b.svc"], ""),
        ("# note\n\na\n", "launcher", ["a"], ""),
        ("a.nowhere:1\nb.svc:1\n", "launcher", ["a.nowhere", "b.svc"], "a.nowhere does not resolve"),
        ("a.svc:2\n", "worker", [], ""),
        (None, "launcher", [], ""),
    ],
    ids=["Open MPI", "Hydra", "comments", "a missing name", "worker", "no host file"],
)
def test_a_launcher_waits_for_the_names_of_its_hosts(
    hostfile: str | None, role: str, asked: list[str], complaint: str, tmp_path: Path, names_asked_for: Path
) -> None:
    if hostfile is not None:
        (tmp_path / "hostfile").write_text(hostfile)
    done = run(
        str(IMAGES / "base/mpi-entrypoint"),
        "sh",
        "-c",
        'echo "ran $1"',
        "sh",
        "a b",
        PATH=f"{tmp_path}/bin:{os.environ['PATH']}",
        K_MPI_JOB_ROLE=role,
        MPI_HOSTFILE=str(tmp_path / "hostfile"),
        MPI_WAIT_SECONDS="0",
    )
    assert (done.returncode, done.stdout) == (0, "ran a b\n")
    assert complaint in done.stderr
    assert (names_asked_for.read_text().split() if names_asked_for.exists() else []) == asked


def test_the_entrypoint_ends_with_the_commands_code() -> None:
    assert run(str(IMAGES / "base/mpi-entrypoint"), "sh", "-c", "exit 7").returncode == 7


def test_the_build_names_every_image_and_builds_base_before_what_stands_on_it() -> None:
    done = run(str(IMAGES / "build"), BUILDER="echo", PREFIX="registry.example/team")
    assert done.returncode == 0, done.stderr
    tags = re.findall(r"--tag (\S+) (\S+)$", done.stdout, re.M)
    assert tags == [
        (f"registry.example/team/{image}:{__version__}", "." if image == "operator" else "deploy/images")
        for image in BUILT_HERE
    ]
    assert BUILT_HERE.index("base") < min(BUILT_HERE.index(image) for image in ("openmpi", "mpich", "intel"))


def test_an_unknown_image_is_refused() -> None:
    done = run(str(IMAGES / "build"), "nothing", BUILDER="echo")
    assert (done.returncode, done.stderr) == (2, "build: there is no image 'nothing'\n")
