"""Documents as YAML again, so that reading them back gives the same values.

A word that any reader, old or new, could take for a number, a truth or a date is quoted. Nothing is
folded, sorted or replaced by an alias: a manifest is for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from oarsman.manifest.scalars import ScalarError, resolve


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    if "\n" in value and not value[:1].isspace() and _plain_lines(value):
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if _is_text(value) else '"')


def _plain_lines(value: str) -> bool:
    lines = value.split("\n")
    return all(line.isprintable() and line == line.rstrip() for line in lines)


def _is_text(value: str) -> bool:
    try:
        return isinstance(resolve(value), str)
    except ScalarError:
        return False


_Dumper.add_representer(str, _text)


def to_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """The documents as one YAML text, `---` between them."""
    return yaml.dump_all(
        [dict(document) for document in documents],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=1_000_000,
        default_flow_style=False,
    )
