"""Parameters as people write them: `--grid lr=0.1,0.01`, a file with a point in each row, a manifest with blanks."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from oarsman.cli import files
from oarsman.cli.messages import t
from oarsman.errors import ManifestError, UsageError
from oarsman.manifest import builder

if TYPE_CHECKING:
    from oarsman.cli.inputs import JobInput
    from oarsman.cli.session import Session
    from oarsman.job.sweep import Parameter


def typed(text: str) -> Parameter:
    """A number where the text is exactly how that number is written: 0.10 and 007 stay as they are."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text:
            return value
    return {"true": True, "false": False}.get(text, text)


def grid_of(options: tuple[str, ...]) -> dict[str, list[Parameter]]:
    found: dict[str, list[Parameter]] = {}
    for option in options:
        name, equals, values = option.partition("=")
        if not (name and equals and values):
            raise UsageError(t("--grid {option}: write NAME=VALUE,VALUE,...", option=option), hint="--grid lr=0.1,0.01")
        if name in found:
            raise UsageError(t("--grid {option}: this parameter was given before", option=option))
        found[name] = [typed(value) for value in values.split(",")]
    return found


def points_of(path: str) -> list[dict[str, Parameter]]:
    """CSV by the name of the file; anything else is read as YAML, which JSON is too."""
    raw, source = files.read(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(t("{source} is not text in UTF-8", source=source)) from error
    found = _from_csv(text) if source.endswith(".csv") else _from_yaml(raw, source)
    if not found or any(not point for point in found):
        raise UsageError(
            t("{source} has no points", source=source),
            hint=t("a CSV file with names in its first row, or a list of mappings"),
        )
    return found


def _from_csv(text: str) -> list[dict[str, Parameter]]:
    rows = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    return [{str(name): typed((value or "").strip()) for name, value in row.items() if name} for row in rows]


def _from_yaml(raw: bytes, source: str) -> list[dict[str, Parameter]]:
    from oarsman.manifest.source import read

    documents, problems = read(raw, source)
    if problems:
        raise ManifestError(problems)
    values: list[Any] = [document.value for document in documents]
    found = values[0] if len(values) == 1 and isinstance(values[0], list) else []
    scalars = str | int | float | bool
    if not all(isinstance(one, dict) and all(isinstance(value, scalars) for value in one.values()) for one in found):
        return []
    return [{str(name): value for name, value in one.items()} for one in found]


def manifest_of(asked: JobInput, session: Session) -> str:
    """The text of the manifest. It is not checked here: a placeholder may stand where a number belongs."""
    from oarsman.manifest import to_yaml

    settings = builder.JobSettings(
        **{name: getattr(asked.settings, name) for name in builder.JobSettings.__slots__ if name != "name"}
    )
    if asked.shape is not None:
        return to_yaml([asked.document(session, "sweep run")])
    if len(asked.words) > 1:
        raise UsageError(
            t("`{purpose}` takes one manifest, or -n and a command", purpose="sweep run"),
            hint="oarsman sweep run --name rates --grid lr=1,2 -n 4 -- COMMAND",
        )
    raw, source = files.read(asked.words[0])
    if settings == builder.JobSettings():
        return raw.decode("utf-8-sig", "replace")
    from oarsman.manifest.source import read

    documents, problems = read(raw, source)
    if problems:
        raise ManifestError(problems)
    return to_yaml([builder.apply(document.value, settings) for document in documents])
