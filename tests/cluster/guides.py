"""The commands of the guides, typed on a cluster with our images in place of the reader's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from docs.blocks import Block, blocks

from cluster.kubectl import Kubectl
from cluster.places import ROOT
from cluster.releases import Release
from cluster.world import PATIENCE


def on_kube(document: str, section: str = "") -> list[Block]:
    found = [block for block in blocks(document) if block.info == "sh on-kube" and section in ("", block.section)]
    assert found, f"{document} has no block for a cluster under {section!r}"
    return found


class Reader:
    """Somebody with kubectl, helm and oarsman on PATH, a kubeconfig, and the examples and the chart at hand."""

    def __init__(self, cluster: Kubectl, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        content = json.loads(cluster.kubeconfig.read_text())
        content["contexts"][0]["context"]["namespace"] = namespace
        (folder / "kubeconfig").write_text(json.dumps(content))
        for name in ("examples", "deploy"):
            (folder / name).symlink_to(ROOT / name)
        tools = folder / "bin"
        tools.mkdir()
        (tools / "kubectl").symlink_to(cluster._kubectl_program)
        if (ROOT / ".tools" / "helm").exists() and not shutil.which("helm"):
            (tools / "helm").symlink_to(ROOT / ".tools" / "helm")

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OARSMAN_", "KUBE", "HELM_"))}
        path = os.pathsep.join([str(self.folder / "bin"), str(ROOT / ".venv" / "bin"), kept["PATH"]])
        ours = {"PATH": path, "HOME": str(self.folder), "KUBECONFIG": str(self.folder / "kubeconfig")}
        return {**kept, **ours, "LANG": "C.UTF-8", "EDITOR": "true"}  # `kubectl edit` changes nothing then

    def types(self, found: Iterable[Block], ours: Mapping[str, str]) -> str:
        """What the blocks print, each run by a shell that stops at the first error."""
        apply = " ".join(["kubectl apply", *self.cluster.lenient])
        return "".join(self._types(block, block.with_ours({**ours, "kubectl apply": apply})) for block in found)

    def _types(self, block: Block, script: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=4 * PATIENCE,
            check=False,
        )
        place = f"{block.document}:{block.line}"
        assert done.returncode == 0, f"{place}: ended with {done.returncode}\n{script}\n--- printed\n{done.stdout}"
        return done.stdout


def images_of(release: Release) -> dict[str, str]:
    """What stands for the reader's images in the commands that install the operator."""
    images = release.cluster.images
    repository, tag = images["operator"].rsplit(":", 1)
    return {
        "operator=registry.example/team/operator:0.1.0": f"operator={images['operator']}",
        "image.repository=registry.example/team/operator": f"image.repository={repository} --set image.tag={tag}",
        "registry.example/team/kubectl-delivery:0.1.0": images["busy"],
    }
