"""Texts of every manner: what is edited, letter by letter, and that the rest stays."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from for_every import for_every
from manifest.form.samples import GOOD, new_value, text_of

from oarsman.errors import ManifestError, UsageError
from oarsman.manifest import form

BLOCK = """\
# a job of mine
metadata: # who it is
  name: pi  # short

  # and what it is for
  annotations:
    example.org/a: 'b'
spec:
  mpiReplicaSpecs:
    Worker:
      replicas: 2 # two
"""
EDITS: dict[str, tuple[str, str, Any, str]] = {
    "a scalar between its neighbours": (BLOCK, "name", "e", BLOCK.replace("name: pi ", "name: e ")),
    "a text that looks like a number": (BLOCK, "name", "12", BLOCK.replace("name: pi ", 'name: "12" ')),
    "a text that looks like a date, for old readers": (
        BLOCK,
        "name",
        "2020-01-01",
        BLOCK.replace("name: pi ", "name: '2020-01-01' "),
    ),
    "a key behind the others": (
        BLOCK,
        "description",
        "for: fun",
        BLOCK.replace("'b'\n", "'b'\n    oarsman.dev/description: 'for: fun'\n"),
    ),
    "lines of text": (
        BLOCK,
        "install",
        "a\n  b\n",
        BLOCK.replace("'b'\n", "'b'\n    oarsman.dev/install: |\n      a\n        b\n"),
    ),
    "the last key goes with its parents": (
        "metadata:\n  name: pi\n  labels:\n    a: b # gone\n  # stays\n",
        "labels",
        {},
        "metadata:\n  name: pi\n  # stays\n",
    ),
    "the last line of a text without an end of line": (
        "metadata:\n  name: pi",
        "namespace",
        "x",
        "metadata:\n  name: pi\n  namespace: x",
    ),
    "the last line goes, and there was no end of line": (
        "metadata:\n  name: pi\n  namespace: x",
        "namespace",
        "",
        "metadata:\n  name: pi",
    ),
    "nothing behind the key": (
        "metadata: # empty\nspec: {}\n",
        "name",
        "pi",
        "metadata: # empty\n  name: pi\nspec: {}\n",
    ),
    "null behind the key": (
        "metadata: null # empty\nspec: {}\n",
        "name",
        "pi",
        "metadata: # empty\n  name: pi\nspec: {}\n",
    ),
    "empty braces become a block": ("metadata: {} # x\n", "name", "pi", "metadata: # x\n  name: pi\n"),
    "braces with something in them stay": (
        "metadata: {name: a, labels: {b: c}}\n",
        "labels",
        {"b": "c", "d": "1, 2"},
        'metadata: {name: a, labels: {b: c, d: "1, 2"}}\n',
    ),
    "a text that has its quotes anywhere has the same between braces": (
        "metadata: {name: a, labels: {b: c}}\n",
        "labels",
        {"b": "c", "d": "e: f"},
        "metadata: {name: a, labels: {b: c, d: 'e: f'}}\n",
    ),
    "one of several in braces goes": (
        "metadata: {labels: {b: c, d: e}, name: a}\n",
        "labels",
        {"d": "e"},
        "metadata: {labels: {d: e}, name: a}\n",
    ),
    "the last in braces goes": (
        "metadata: {labels: {b: c, d: e,}, name: a}\n",
        "labels",
        {"b": "c"},
        "metadata: {labels: {b: c,}, name: a}\n",
    ),
    "a wider indentation is kept": (
        "metadata:\n    name: a\n",
        "priority",
        3,
        'metadata:\n    name: a\n    annotations:\n        oarsman.dev/priority: "3"\n',
    ),
    "the quotes are kept": ('metadata:\n  name: "a"\n', "name", 'b"c', 'metadata:\n  name: "b\\"c"\n'),
    "single quotes are kept": ("metadata:\n  name: 'a'\n", "name", "it's", "metadata:\n  name: 'it''s'\n"),
    "a letter that nobody sees needs double quotes": (
        "metadata:\n  name: 'a'\n",
        "name",
        "b\tc",
        'metadata:\n  name: "b\\tc"\n',
    ),
    "CRLF": (
        "metadata:\r\n  name: a\r\n",
        "queue",
        "q",
        "metadata:\r\n  name: a\r\nspec:\r\n  runPolicy:\r\n    schedulingPolicy:\r\n      queue: q\r\n",
    ),
    "CRLF, a line goes": (
        "metadata:\r\n  name: a\r\n  namespace: b\r\n",
        "namespace",
        None,
        "metadata:\r\n  name: a\r\n",
    ),
    "Chinese": (
        "metadata: # 谁\n  name: a # 名字\n",
        "description",
        "描述，一句话",
        "metadata: # 谁\n  name: a # 名字\n  annotations:\n    oarsman.dev/description: 描述，一句话\n",
    ),
    "a mark at the beginning of a file": ("\ufeffmetadata:\n  name: a\n", "name", "b", "\ufeffmetadata:\n  name: b\n"),
    "a text of lines becomes another": (
        "metadata:\n  annotations:\n    oarsman.dev/install: | # how\n      a+\n      b\n\n  name: x\n",
        "install",
        "c\nd\n",
        "metadata:\n  annotations:\n    oarsman.dev/install: | # how\n      c\n      d\n\n  name: x\n",
    ),
    "a text of lines becomes one": (
        "metadata:\n  annotations:\n    oarsman.dev/install: | # how\n      a\n      b\n  name: x\n",
        "install",
        "c",
        "metadata:\n  annotations:\n    oarsman.dev/install: c # how\n  name: x\n",
    ),
    "one line becomes several": (
        "metadata:\n  annotations:\n    oarsman.dev/install: a # how\n  name: x\n",
        "install",
        "c\n\nd",
        "metadata:\n  annotations:\n    oarsman.dev/install: |- # how\n      c\n\n      d\n  name: x\n",
    ),
    "only the first job": (
        "# one\nkind: MPIJob\nmetadata: {name: a}\n---\n# two\nmetadata: {name: b}\n",
        "name",
        "c",
        "# one\nkind: MPIJob\nmetadata: {name: c}\n---\n# two\nmetadata: {name: b}\n",
    ),
    "what is no job is passed by": (
        "kind: ConfigMap\n---\nkind: MPIJob\nmetadata:\n  name: a\n",
        "name",
        "c",
        "kind: ConfigMap\n---\nkind: MPIJob\nmetadata:\n  name: c\n",
    ),
    "empty documents are passed by": (
        "---\n# nothing\n---\nkind: MPIJob\n---\n",
        "name",
        "c",
        "---\n# nothing\n---\nkind: MPIJob\nmetadata:\n  name: c\n---\n",
    ),
    "braces behind the document's marker": ("--- {}\n", "name", "a", "--- \nmetadata:\n  name: a\n"),
    "the first item of a List": (
        "kind: List\nitems:\n- metadata:\n    name: a\n- metadata:\n    name: b\n",
        "name",
        "c",
        "kind: List\nitems:\n- metadata:\n    name: c\n- metadata:\n    name: b\n",
    ),
}


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_changes_these_letters_and_no_others(case: str) -> None:
    text, field, value, wanted = EDITS[case]
    assert form.with_value(text, field, value) == wanted


# -- lists ------------------------------------------------------------------------------------------------
def _launcher(command: str) -> str:
    return f"""\
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: a
{command}            image: b # last
"""


WORDS = (
    "            command: # how\n            - mpirun # it\n            # ranks\n            - -np\n            - '2'\n"
)


@pytest.mark.parametrize(
    ("old", "words", "new"),
    [
        (WORDS, ["mpirun", "-np", "3"], WORDS.replace("'2'", "'3'")),
        (WORDS, ["mpirun", "-np", "2", "x"], f"{WORDS}            - x\n"),
        (WORDS, ["mpirun", "-q", "-np", "2"], WORDS.replace("# it\n", "# it\n            - -q\n")),
        (WORDS, ["env", "mpirun", "-np", "2"], WORDS.replace("- mpirun", "- env\n            - mpirun")),
        (WORDS, ["mpirun"], "            command: # how\n            - mpirun # it\n            # ranks\n"),
        (WORDS, [], ""),
        ("            command: [mpirun, '2']\n", ["mpirun", "a, b"], "            command: [mpirun, 'a, b']\n"),
        ("            command: [mpirun]\n", ["env", "mpirun"], "            command: [env, mpirun]\n"),
        ('            command: ["a", "b"]\n', ["a", "b", "c"], '            command: ["a", "b", "c"]\n'),
        ("            command: [a, b, c, d]\n", ["a"], "            command: [a]\n"),
        ("            command: []\n", ["a"], "            command:\n            - a\n"),
        ("            command: {a: b} # no\n", ["a"], "            command: # no\n            - a\n"),
        (
            "            command: &words\n              a: b # c\n",
            ["a"],
            "            command: &words # c\n            - a\n",
        ),
        (
            "            command:\n            - # it-self\n              mpirun\n",
            ["env", "mpirun"],
            "            command:\n            - env\n            - # it-self\n              mpirun\n",
        ),
        *(
            (
                f"            command: {mark} # how-to\n            - # it-self\n              mpirun\n",
                ["env", "mpirun"],
                f"            command: {mark} # how-to\n            - env\n"
                "            - # it-self\n              mpirun\n",
            )
            for mark in ("&words", "!!seq", "!!seq &words")
        ),
        ("            command: mpirun\n", ["a", "-1"], '            command:\n            - a\n            - "-1"\n'),
    ],
)
def test_words_come_and_go_and_the_others_keep_their_lines(old: str, words: list[str], new: str) -> None:
    assert form.with_value(_launcher(old), "command", words) == _launcher(new)


def test_the_first_key_behind_a_dash_goes_and_the_next_takes_its_place() -> None:
    text = _launcher("").replace("- name: a\n            image", "- image")
    text = text.replace("- image: b # last", "- image: b\n            name: a # stays")
    text = text.replace("Launcher:", "Launcher: # stays, too")
    assert form.with_value(text, "image", "") == text.replace("- image: b\n            name", "- name")


# -- JSON ---------------------------------------------------------------------------------------------------
def test_json_stays_json_on_its_lines() -> None:
    text = '{\n  "metadata": {\n    "name": "a"\n  },\n  "spec": null\n}\n'
    named = form.with_value(text, "namespace", "b")
    assert named == text.replace('"name": "a"', '"name": "a",\n    "namespace": "b"')
    described = form.with_value(named, "suspend", True)
    assert described == named.replace("null", '{"runPolicy": {"suspend": true}}')
    assert form.with_value(form.with_value(described, "suspend", None), "namespace", "") == text.replace(
        ',\n  "spec": null', ""
    )


@for_every([field for field in form.FIELDS if not field.startswith("elastic")], [None, 2])
def test_every_field_leaves_json_readable_as_json(field: str, indent: int | None) -> None:
    for name in GOOD:
        text = as_json(name, indent)
        value = new_value(field, text)
        changed = form.with_value(text, field, value)
        assert json.loads(changed) == form.document(changed)
        assert form.FIELDS[field].read(json.loads(changed)) == value


@cache
def as_json(name: str, indent: int | None) -> str:
    return json.dumps(form.document(text_of(name)), indent=indent)


def test_comments_between_members_of_braces_stay() -> None:
    text = "metadata: {\n  labels: {a: b}, # about labels\n  # about the name\n  name: c\n}\n"
    changed = form.with_value(text, "labels", {})
    assert form.document(changed) == {"metadata": {"name": "c"}}
    assert "# about labels" in changed
    assert "# about the name" in changed


# -- anchors ----------------------------------------------------------------------------------------------
SHARED = """\
spec:
  mpiReplicaSpecs:
    Launcher:
      template: &pod # both
        spec:
          containers:
          - name: a
            image: &image b # one
            workingDir: /w
            resources: &size
              limits: {cpu: 1} # small
    Worker:
      template:
        spec:
          containers:
          - name: a
            image: *image # the same
            resources: *size # as well
"""


def test_what_is_shared_and_stays_the_same_stays_shared() -> None:
    assert form.with_value(SHARED, "image", "c") == SHARED.replace("&image b", "&image c")


def test_what_is_shared_and_becomes_different_is_written_out_where_it_was_an_alias() -> None:
    changed = form.with_value(SHARED, "worker_cpu", "3")
    assert changed == SHARED.replace(
        "*size # as well", "# as well\n              limits:\n                cpu: 3"
    ).replace("resources: # as", "resources: # as")
    changed = form.with_value(SHARED, "launcher_cpu", "3")
    shown = form.values(form.document(changed))
    assert (shown["launcher_cpu"], shown["worker_cpu"]) == ("3", "1")
    assert "{cpu: 3} # small" in changed
    assert "# as well" in changed


def test_an_anchor_that_goes_leaves_its_value_with_those_who_referred_to_it() -> None:
    changed = form.with_value(SHARED, "launcher_cpu", None)
    shown = form.values(form.document(changed))
    assert (shown["launcher_cpu"], shown["worker_cpu"]) == ("", "1")
    assert all(comment in changed for comment in ("# both", "# one", "# the same", "# as well"))


def test_where_a_key_is_an_alias_of_what_changes_the_document_is_written_anew() -> None:
    text = "# mine\nmetadata:\n  name: &name pi\n  labels: {*name : x}\n---\n# another\nkind: ConfigMap\n"
    anew = "# mine\nmetadata:\n  name: other\n  labels:\n    pi: x\n---\n# another\nkind: ConfigMap\n"
    assert form.with_value(text, "name", "other") == anew


MERGED = """\
base: &base # common
  image: b
  workingDir: /w
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: a # main
            <<: *base # more
"""


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("image", "c", MERGED + "            image: c\n"),
        ("working_dir", None, MERGED.replace("<<: *base # more", "image: b")),
    ],
)
def test_what_is_merged_in_is_overruled_in_place(field: str, value: Any, wanted: str) -> None:
    changed = form.with_value(MERGED, field, value)
    assert changed == wanted
    assert form.document(changed)["base"] == {"image": "b", "workingDir": "/w"}


# -- texts that are empty or wrong ------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["", "\n", "# to be written\n", "---\n", "# no end of line"])
def test_an_empty_text_becomes_a_job(text: str) -> None:
    changed = form.with_value(text, "worker_cpu", "2")
    assert changed.startswith(text)
    assert form.document(changed) == {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "spec": {
            "mpiReplicaSpecs": {
                "Worker": {
                    "template": {
                        "spec": {"containers": [{"name": "worker", "resources": {"limits": {"cpu": "2"}}}]},
                    },
                }
            }
        },
    }


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("metadata:\n\tname: a\n", (2, 1), "a tab cannot indent YAML"),
        ("metadata: {name: a\n", (2, 1), "not readable as YAML"),
        ("metadata:\n  name: a\n  name: b\n", (3, 3), "given twice"),
        ("- a\n- b\n", (1, 1), "a mapping"),
        ("just words\n", (1, 1), "a mapping"),
    ],
)
def test_a_text_that_cannot_be_read_says_where_and_why(text: str, place: tuple[int, int], says: str) -> None:
    for attempt in (lambda: form.with_value(text, "name", "c"), lambda: form.document(text)):
        with pytest.raises(ManifestError) as raised:
            attempt()
        (problem,) = raised.value.problems
        assert says in problem.message
        assert (problem.line, problem.column) == place


@pytest.mark.parametrize(
    ("text", "field", "place"),
    [
        ("spec: []\n", "slots", "spec"),
        ("metadata: words\n", "name", "metadata"),
        ("metadata:\n  labels: [a]\n", "labels", "metadata.labels"),
        (
            _launcher("            env: {A: b}\n"),
            "env",
            "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].env",
        ),
    ],
)
def test_what_the_form_would_have_to_throw_away_is_left_to_the_text(text: str, field: str, place: str) -> None:
    value = {"slots": 2, "name": "a"}.get(field, {"B": "c"})
    with pytest.raises(UsageError, match="is not what it should be") as raised:
        form.with_value(text, field, value)
    assert raised.value.field == place
