from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from for_every import for_every

import oarsman.manifest.crd
from oarsman.manifest.crd import crd, text
from oarsman.manifest.document import MPIJobV1, MPIJobV2beta1, Strict

FILE = Path(__file__).parents[2] / "deploy" / "crd" / "mpijobs.kubeflow.org.yaml"
VERSIONS = {version["name"]: version for version in crd()["spec"]["versions"]}


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from schemas(part, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from schemas(schema[key], f"{path}.<{key}>")


ALL = {
    f"{name}{path}": schema
    for name, version in VERSIONS.items()
    for path, schema in schemas(version["schema"]["openAPIV3Schema"])
}


def test_the_file_in_the_tree_is_fresh() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run `make manifests`"


def test_the_module_writes_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(oarsman.manifest.crd.__file__), run_name="__main__")
    assert capsys.readouterr().out == text()


def test_the_file_is_the_definition() -> None:
    assert yaml.safe_load(FILE.read_text(encoding="utf-8")) == crd()


def test_both_versions_are_served_and_one_is_stored() -> None:
    assert {name: (v["served"], v["storage"]) for name, v in VERSIONS.items()} == {
        "v2beta1": (True, True),
        "v1": (True, False),
    }


@for_every(ALL)
def test_a_schema_is_structural(path: str) -> None:
    schema = ALL[path]
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    assert "type" in schema or free
    assert not {
        "$ref",
        "$defs",
        "title",
        "oneOf",
        "allOf",
        "const",
        "exclusiveMinimum",
        "uniqueItems",
    } & set(schema)
    assert "default" not in schema or path.endswith(".spec.writtenAs")  # which tells a copy how it was written
    assert schema.get("additionalProperties") is not False
    assert not ("properties" in schema and "additionalProperties" in schema)
    if "anyOf" in schema:
        assert schema["x-kubernetes-int-or-string"] is True


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_has_a_description(version: str) -> None:
    bare = [
        path
        for path, schema in schemas(VERSIONS[version]["schema"]["openAPIV3Schema"])
        if "description" not in schema
        and not path.endswith(("<items>", "<additionalProperties>"))
        and ".template." not in path  # Kubernetes' own fields
    ]
    assert bare == [".metadata"]


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_is_left_to_the_api_server(version: str) -> None:
    """Anything more, even a description, and the server refuses the whole definition."""
    assert VERSIONS[version]["schema"]["openAPIV3Schema"]["properties"]["metadata"] == {"type": "object"}


@pytest.mark.parametrize("version", VERSIONS)
def test_scaling_and_status_have_their_subresources(version: str) -> None:
    found = VERSIONS[version]
    fields = dict(schemas(found["schema"]["openAPIV3Schema"]))
    scale = found["subresources"]["scale"]
    assert found["subresources"]["status"] == {}
    assert fields[scale["specReplicasPath"]]["type"] == "integer"
    assert fields[scale["statusReplicasPath"]]["type"] == "integer"
    assert fields[scale["labelSelectorPath"]]["type"] == "string"


@pytest.mark.parametrize("version", VERSIONS)
def test_templates_are_kept_whole(version: str) -> None:
    fields = dict(schemas(VERSIONS[version]["schema"]["openAPIV3Schema"]))
    for role in ("Launcher", "Worker"):
        template = f".spec.mpiReplicaSpecs.{role}.template"
        closed = [
            path
            for path, schema in fields.items()
            if path.startswith(template) and "properties" in schema
            if schema.get("x-kubernetes-preserve-unknown-fields") is not True
        ]
        assert closed == []


@pytest.mark.parametrize("model", [MPIJobV1, MPIJobV2beta1])
def test_the_schema_has_every_field_of_the_spec(model: type[Strict]) -> None:
    version = "v1" if model is MPIJobV1 else "v2beta1"
    spec = model.model_fields["spec"].annotation
    assert spec is not None
    wanted = {field.alias for field in spec.model_fields.values()} | {"writtenAs"}
    assert set(VERSIONS[version]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]) == wanted


def test_tables_show_state_workers_and_age() -> None:
    for version in VERSIONS.values():
        assert [column["name"] for column in version["additionalPrinterColumns"]] == [
            "State",
            "Workers",
            "Ready",
            "Slots",
            "Cause",
            "Age",
        ]
    assert crd()["spec"]["names"]["shortNames"] == ["mj", "mpij"]


@pytest.mark.parametrize("version", VERSIONS)
def test_texts_of_the_status_may_be_empty_even_where_empty_counts_as_null(version: str) -> None:
    """Seen on a Kubernetes 1.20 compiled with Go 1.19: a failed job with an empty last line could never say so."""
    fields = dict(schemas(VERSIONS[version]["schema"]["openAPIV3Schema"]["properties"]["status"]))
    texts = (
        ".cause.summary",
        ".cause.hint",
        ".cause.lastLines.<items>",
        ".conditions.<items>.message",
        ".queue.reason",
    )
    assert [path for path in texts if fields[path].get("nullable") is not True] == []
