"""Documents and messages keep to the style of CONTRIBUTING.md, and no longer promise what was found to be untrue."""

from __future__ import annotations

import re

from docs.blocks import ROOT
from oarsman.text.catalogue import catalogue

# CONTRIBUTING.md quotes bad examples; decisions and the table of conformance are records.
PAGES = [
    page
    for pattern in (
        "README.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "docs/*.md",
        "docs/guide/*.md",
        "*/README.md",
        "deploy/**/*.md",
    )
    for page in sorted(ROOT.glob(pattern))
    if not page.name.endswith(".zh-CN.md") and page.name != "conformance.md"
]
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`|<!-- made by .*?<!-- end -->", re.M | re.S)

ODD = {
    r"[Ww]hoever may (?:only|not)": "viewers; people who may not",
    r"by accident, not against malice": "prevents accidents; is not a security boundary",
    r"\bmended\b": "fixed",
    r"handed (?:out|in|over|on)\b": "assigned, submitted, passed",
    r"\blooks? after\b|\blooked after\b": "manages",
    r"takes? back ours|gives? back ours": "overrides",
    r"\bgoes on\b|\bgo on (?:with|where)\b": "continues",
    r"in the manner of|and their like\b": "such as",
    r"[Bb]eside (?:others|it|the)\b": "next to",
    r"made anew|looked at anew|drawn anew": "again",
    r"\bfalls? silent\b|\bfell silent\b": "stops responding",
    r"hard way\b|\ball the same\b": "plain words",
    r"\bdoors?\b": "ways to log in, faces",
    r"is let go\b": "is disconnected",
    r"said (?:what|so) it\b|says and does": "does the same",
}
UNTRUE = {
    r"works at your prompt": "some variables and the folder are passed",
    r"launch line (?:is )?used as is": "options are rewritten for Open MPI 5",
    r"installs into this folder": "make run may install Debian packages",
    r"nothing of (?:a|the) job (?:stays|is left)": "copies of code stay on SSH hosts",
    r"each (?:measures|benchmark runs) its rival": "without --rival kube_operator.py measures none",
    r"quietly (?:ran )?elsewhere": "ranks of torchrun are not verified",
    r"the same answers": "REST stays English",
    r"[Ee]very verb works": "sweeps were not tried with pods; hosts and users are of a machine",
    r"all (?:commands in the )?(?:documents|docs) are executed": "some are only shown",
}


def found(table: dict[str, str]) -> list[str]:
    pages = {str(page.relative_to(ROOT)): CODE.sub("`", page.read_text("utf-8")) for page in PAGES}
    messages = {message: message for message in catalogue("zh")}
    return [
        f"{name}: {hit[0]!r} in {text[max(0, hit.start() - 30) : hit.end() + 20]!r}: {instead}"
        for name, text in {**pages, **messages}.items()
        for odd, instead in table.items()
        for hit in re.finditer(odd, text)
    ]


def test_pages_are_found() -> None:
    assert {"README.md", "SECURITY.md", "known-limits.md", "hosts.md", "CHANGELOG.md"} <= {page.name for page in PAGES}


def test_sentences_are_those_of_people_of_the_field() -> None:
    assert found(ODD) == []


def test_what_was_found_to_be_untrue_is_not_said_again() -> None:
    assert found(UNTRUE) == []
