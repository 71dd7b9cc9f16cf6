"""Jobs to start from, each whole in its manifest. Those of the seeds are the ones that the examples hold."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from oarsman.sdk.models import Template

_SEEDS = "seeds"  # in the examples of the tree; an installed package has them beside the starters
# name -> file, title, what it is good for. The order is that of the list shown.
_KNOWN = {
    "command": ("command.yaml", "An own command", "Two workers that run whatever you write in its place."),
    "hello": ("hello.yaml", "Hello", "Four ranks on two workers, each says where it runs."),
    "pi": ("pi.yaml", "Pi", "Two ranks throw darts and add up their hits: the usual first MPI job."),
    "tensorflow-benchmarks": (
        f"{_SEEDS}/tensorflow-benchmarks-v2beta1.yaml", "TensorFlow benchmarks",
        "ResNet-101 with Horovod on two workers of two GPUs each; on Kubernetes, where its image is.",
    ),
    "tensorflow-benchmarks-v1": (
        f"{_SEEDS}/tensorflow-benchmarks-v1.yaml", "TensorFlow benchmarks, v1", "The same in the older API version.",
    ),
    "tensorflow-mnist-elastic": (
        f"{_SEEDS}/tensorflow-mnist-elastic.yaml", "Elastic training",
        "Horovod Elastic with one to three workers; on Kubernetes, where its image is.",
    ),
    "failure": ("failure.yaml", "A failure", "One rank of four gives up: see how that is explained."),
}  # fmt: skip


@cache
def all_templates() -> tuple[Template, ...]:
    return tuple(
        Template(name=name, title=title, description=description, manifest=_text(file))
        for name, (file, title, description) in _KNOWN.items()
    )


def _text(file: str) -> str:
    packaged = resources.files("oarsman.sdk").joinpath("starters", *file.split("/"))
    if packaged.is_file():
        return packaged.read_text("utf-8")
    return (Path(__file__).parents[3] / "examples" / file).read_text("utf-8")
