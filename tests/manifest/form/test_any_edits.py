"""Whatever is edited, in whatever manner the text is written: it stays YAML and says what was asked for."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from manifest.form.samples import GOOD, commented, differences, text_of

from oarsman.errors import UsageError
from oarsman.manifest import form, to_yaml
from oarsman.manifest.source import read

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Letters that mean something to YAML, and some that need care.
ODD = st.text(st.sampled_from("ab0-:#,[]{}&*!|>'\"%@` ~?\\=<.\n\t描é🚣\x7f\u2028"), max_size=12)
WORD = st.one_of(
    st.sampled_from(
        ["true", "null", "on", "1e3", "0x1f", "007", "2020-01-01", "12:30", "- a", "a: b", "~", "---", "..."]
    ),
    ODD,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
NAME = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,8}", fullmatch=True)
PATHS = st.sampled_from(["/data", "/Data", "/a b", "/x/y", "/"])
VOLUME = st.fixed_dictionaries(
    {"path": PATHS, "source": st.sampled_from(["claim", "/mnt", "/mnt/描", "null"]), "read_only": st.booleans()}
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": WORD,
    "words": st.lists(WORD, max_size=6),
    "number": st.none() | st.integers(1, 10**9 - 1),  # in a launch line, a number has nine digits at most
    "pairs": st.dictionaries(NAME, WORD, max_size=4),
    "amount": st.sampled_from(["", "1", "2", "0.5", "500m", "4Gi", "1e3", "1k"]),
    "bool": st.sampled_from([None, True, False]),
    "volumes": st.lists(VOLUME, max_size=3, unique_by=lambda volume: volume["path"]),
}


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, Any]:
    field = form.FIELDS[draw(st.sampled_from(sorted(form.FIELDS)))]
    if field.kind == "choice":
        return field.name, draw(st.sampled_from(["", *field.choices]))
    return field.name, draw(VALUES[field.kind])


def _styles(document: dict[str, Any]) -> dict[str, str]:
    """The same document in many hands."""
    plain: dict[str, Any] = {"sort_keys": False, "allow_unicode": True}
    return {
        "ours": to_yaml([document]),
        "wide": yaml.safe_dump(document, indent=6, **plain),
        "mixed": yaml.safe_dump(document, default_flow_style=None, **plain),
        "braces": yaml.safe_dump(document, default_flow_style=True, width=60, **plain),
        "quoted": yaml.safe_dump(document, default_style="'", **plain) if _only_text(document) else to_yaml([document]),
        "json": json.dumps(document),
        "pretty json": json.dumps(document, indent=4, ensure_ascii=False),
        "crlf": to_yaml([document]).replace("\n", "\r\n"),
        "no end": to_yaml([document]).rstrip("\n"),
    }


def _only_text(value: Any) -> bool:
    """Whether quotes around everything would change nothing."""
    if isinstance(value, dict | list):
        return all(map(_only_text, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str)


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """A manifest there is, or one in another hand, or one with parts missing, or shared, or followed by another."""
    name = draw(st.sampled_from(GOOD))
    text = draw(st.sampled_from([text_of(name), commented(name)]))
    document = form.document(text)
    if draw(st.booleans()):
        for key in draw(st.lists(st.sampled_from(["metadata", "spec", "apiVersion"]), max_size=2)):
            document.pop(key, None)
    if draw(st.booleans()):
        styles = _styles(document)
        text = styles[draw(st.sampled_from(sorted(styles)))]
    if draw(st.booleans()) and "mpiReplicaSpecs" in document.get("spec", {}):
        launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]
        document["spec"]["mpiReplicaSpecs"]["Worker"] = launcher  # which PyYAML writes as an anchor and an alias
        text = yaml.safe_dump(document, sort_keys=False)
    after = draw(st.sampled_from(["", "\n---\n# next\nkind: ConfigMap\ndata: {a: b}\n", "\n# the end\n"]))
    return text + after


@QUICK
@given(text=manifests(), changes=st.lists(edits(), min_size=1, max_size=8))
def test_after_any_edits_the_text_is_yaml_and_says_what_was_set(text: str, changes: list[tuple[str, Any]]) -> None:
    others = [document.value for document in read(text, "x")[0]][1:]
    for field, value in changes:
        try:
            changed = form.with_value(text, field, value)
        except UsageError:
            continue
        found, problems = read(changed, "x")
        assert not problems
        assert [document.value for document in found][1:] == others
        assert _by_name(field, form.values(form.document(changed))[field]) == _by_name(field, _shown(field, value))
        assert form.with_value(changed, field, value) == changed
        text = changed


def _shown(field: str, value: Any) -> Any:
    return form.EMPTY[form.FIELDS[field].kind] if value in (None, "", [], {}) else value


def _by_name(field: str, shown: Any) -> Any:
    """The order of volumes says nothing, as that of variables and labels does not."""
    return {volume["path"]: volume for volume in shown} if field == "volumes" else shown


@QUICK
@given(text=manifests(), change=edits())
def test_setting_a_field_and_setting_it_back_gives_the_same_document(text: str, change: tuple[str, Any]) -> None:
    field, value = change
    before = form.document(text)
    shown = form.values(before)[field]
    if shown in (None, "", [], {}) or field in ("api_version", "env", "volumes", "image", "working_dir"):
        return  # what has to be made first, or differs between the roles, has tests of its own
    try:
        back = form.with_value(form.with_value(text, field, value), field, shown)
    except UsageError:
        return
    changed = {place.split(".")[-1] for place in differences(before, form.document(back))}
    assert not changed or _reads_the_same(before, form.document(back), field)


def _reads_the_same(before: dict[str, Any], after: dict[str, Any], field: str) -> bool:
    """A number may have got quotes on the way, and a request may have become a limit. A launch line for more ranks than
    there were slots may have filled them on the way, and goes on to do so; its options may have changed places."""
    one, other = form.values(before), form.values(after)
    launch_line = ("command", "args") if field in ("workers", "slots", "elastic_min", "elastic_max") else ()
    return all(one[name] == other[name] for name in form.FIELDS if name not in launch_line)
