"""The files of this folder that are made from the code, and how each is made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from deploy.helm import ROOT, template

HERE = Path(__file__).resolve().parent

# Rendered twice: some values exclude each other, and some objects are of another version on an old cluster.
RENDERINGS = {
    "values.everything.yaml": {"kubernetes": "v1.34.1", "release": "oarsman", "namespace": "default"},
    "values.namespaces.yaml": {"kubernetes": "v1.16.0", "release": "lab", "namespace": "hpc"},
}


def help_pages(language: str) -> str:
    """Made by another process: texts are translated when their module is imported.

    Of this one's environment it has nothing, neither HOME nor the size or the colours of a terminal.
    """
    environment = {
        "OARSMAN_LANG": language,
        "COLUMNS": "80",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUTF8": "1",
    }
    command = [sys.executable, str(HERE / "pages.py")]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def values_of(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((HERE / name).read_text(encoding="utf-8")))


def chart() -> str:
    parts = []
    for name, where in RENDERINGS.items():
        version = ["--kube-version", where["kubernetes"]]
        done = template(values_of(name), *version, release=where["release"], namespace=where["namespace"])
        assert done.returncode == 0, done.stderr
        parts.append(f"# ==== {name}, Kubernetes {where['kubernetes']}\n{done.stdout}")
    return "\n".join(parts)


PINNED: dict[str, Callable[[], str]] = {
    "help.en.txt": partial(help_pages, "en"),
    "help.zh_CN.txt": partial(help_pages, "zh_CN"),
    "chart.yaml": chart,
}
