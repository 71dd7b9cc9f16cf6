"""Write what is made of the chart, the models and the version. `make manifests` runs this; tests tell what is stale.

src/oarsman/manifest   ->  the CRD, in deploy/crd and in the chart
values.yaml's comments ->  the descriptions in values.schema.json and the table in the chart's README.md
oarsman.__version__    ->  Chart.yaml, the Dockerfiles
all of these           ->  deploy/oarsman.yaml, rendered by Helm
src/oarsman/console    ->  deploy/openapi.json, what the REST API says of itself
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from oarsman import __version__
from oarsman.manifest import crd

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart" / "oarsman"
CRD_NAME = "mpijobs.kubeflow.org.yaml"

HEAD = """\
# Oarsman for Kubernetes: the definition of MPIJobs, the namespace mpi-operator, and the operator in it.
#
#   kubectl apply -f oarsman.yaml
#
# Made by `make manifests`, which lets Helm render the chart in deploy/chart/oarsman with its default values. Do not
# edit it: for anything but the defaults, use the chart. Kubernetes before 1.30 does not know all words of the
# definition: there, add --validate=false, or let Helm install the chart.
"""


def helm() -> str:
    """The machine's Helm, or the one the set-up fetched."""
    fetched = ROOT / ".tools" / "helm"
    found = shutil.which("helm") or (str(fetched) if fetched.exists() else None)
    if found is None:
        raise FileNotFoundError("no Helm: neither on PATH nor in .tools/helm, where `scripts/setup helm` puts it")
    return found


def plain(rendered: str) -> str:
    """What Helm rendered, without the marks that would call it Helm's own, and with places named by the tree."""
    ours = re.sub(r"^ *(app\.kubernetes\.io/managed-by: Helm|helm\.sh/chart: .*)\n", "", rendered, flags=re.M)
    ours = re.sub(r"^ *annotations:\n *# .*\n *helm\.sh/resource-policy: keep\n", "", ours, flags=re.M)
    ours = re.sub(r"^# Source: crds/", "# From deploy/crd/", ours, flags=re.M)
    return re.sub(r"^# Source: oarsman/", "# From deploy/chart/oarsman/", ours, flags=re.M)


def manifest() -> str:
    # The release is rendered for the namespace `default`, so that the chart adds its own.
    command = [helm(), "template", "oarsman", str(CHART), "--namespace", "default", "--include-crds"]
    versions = ["--kube-version", "v1.20.0"]  # whatever the client's own default is
    return HEAD + plain(subprocess.run([*command, *versions], check=True, capture_output=True, text=True).stdout)


# -- the chart's own files ----------------------------------------------------------------------


def comments(text: str) -> dict[str, str]:
    """The comment above each key of values.yaml, by the key's path."""
    found: dict[str, str] = {}
    path: list[str] = []
    pending: list[str] = []
    for line in text.splitlines():
        note = re.match(r" *# (.*)", line)
        key = re.match(r"( *)([\w.]+|\w[\w./-]*):", line)
        if note:
            pending.append(note[1])
            continue
        if key:
            del path[len(key[1]) // 2 :]
            path.append(key[2])
            if pending:
                found[".".join(path)] = " ".join(pending)
        pending = []
    return found


def leaves(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every value a user can set: what the schema does not divide further."""
    for name, part in schema["properties"].items():
        if "properties" in part:
            yield from leaves(part, (*path, name))
        elif (*path, name) != ("global",):
            yield (*path, name), part


def schema_text(values: str, schema: str) -> str:
    """The schema, its descriptions as values.yaml has them."""
    said, document = comments(values), json.loads(schema)
    for path, part in leaves(document):
        part["description"] = said[".".join(path)]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def values_table(values: str, schema: str) -> str:
    said, defaults = comments(values), yaml.safe_load(values)
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for path, _ in leaves(json.loads(schema)):
        value = defaults
        for part in path:
            value = value[part]
        default = "see values.yaml" if isinstance(value, dict) and value else f"`{json.dumps(value)}`"
        rows.append(f"| `{'.'.join(path)}` | {default} | {said['.'.join(path)]} |")
    return "\n".join(rows)


def readme_text(readme: str, table: str) -> str:
    marks = r"(<!-- made by scripts/manifests.py: values -->\n).*?(\n?<!-- end -->)"
    return re.sub(marks, lambda found: f"{found[1]}{table}\n<!-- end -->", readme, flags=re.S)


def with_version(text: str) -> str:
    """A Chart.yaml, a Dockerfile or a page of the guide with the version the program has."""
    text = re.sub(r"^(version: ).*$", rf"\g<1>{__version__}", text, flags=re.M)
    text = re.sub(r"^(appVersion: ).*$", rf'\g<1>"{__version__}"', text, flags=re.M)
    text = re.sub(r"^(ARG VERSION=).*$", rf"\g<1>{__version__}", text, flags=re.M)
    return re.sub(r"(/(?:operator|kubectl-delivery):)\d[\w.]*", rf"\g<1>{__version__}", text)


def description() -> str:
    from oarsman.console.server import bare_app  # late: the framework is slow to import

    return json.dumps(bare_app().openapi(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def fresh() -> Iterator[tuple[Path, str]]:
    """Every generated file and what it should hold. Later ones are made from earlier ones."""
    yield DEPLOY / "crd" / CRD_NAME, crd.text()
    yield CHART / "crds" / CRD_NAME, crd.text()
    guide = sorted((ROOT / "docs" / "guide").glob("kubernetes-install*.md"))
    for file in [CHART / "Chart.yaml", *sorted((DEPLOY / "images").glob("*/Dockerfile")), *guide]:
        yield file, with_version(file.read_text(encoding="utf-8"))
    values = (CHART / "values.yaml").read_text(encoding="utf-8")
    schema = CHART / "values.schema.json"
    yield schema, schema_text(values, schema.read_text(encoding="utf-8"))
    readme = CHART / "README.md"
    table = values_table(values, schema.read_text(encoding="utf-8"))
    yield readme, readme_text(readme.read_text(encoding="utf-8"), table)
    yield DEPLOY / "oarsman.yaml", manifest()
    yield DEPLOY / "openapi.json", description()


if __name__ == "__main__":
    for path, text in fresh():
        path.write_text(text, encoding="utf-8")
