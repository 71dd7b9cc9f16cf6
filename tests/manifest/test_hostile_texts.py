"""Texts that are made to hold up whoever reads them: the work grows with their length, and never faster."""

from __future__ import annotations

import time

import pytest
from for_every import for_every_row

from oarsman.errors import ManifestError
from oarsman.job import launch
from oarsman.job.references import References
from oarsman.manifest import documents, job_from_document
from oarsman.manifest.source import MAX_PROBLEMS

LETTERS = 700_000
LONG = 60.0  # seconds of a processor: each takes a few, and work that multiplies does not end
HEAD = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: x}\n"


def a_job(container: str = "", command: str = 'mpirun, "true"') -> str:
    roles = f"{{Launcher: {{template: {{spec: {{containers: [{{name: l, {container} command: [{command}]}}]}}}}}}}}"
    return f"{HEAD}spec: {{mpiReplicaSpecs: {roles}}}\n"


def doubling(levels: int) -> str:
    each = (f"{{name: a{n}, value: $(a{n - 1})$(a{n - 1})}}" for n in range(1, levels))
    return f"env: [{{name: a0, value: xxxxxxxx}}, {', '.join(each)}],"


HOSTILE = {
    "a field again and again": "a: 1\n" * (LETTERS // 5),
    "the same on one line": "{" + "a: 1, " * (LETTERS // 6) + "}",
    "fields that nobody knows": HEAD + "".join(f"k{n}: 1\n" for n in range(LETTERS // 10)),
    "annotations that nobody knows": HEAD
    + "spec: {}\nmetadata: {annotations: {"
    + ", ".join(f"oarsman.dev/a{n}: b" for n in range(LETTERS // 22))
    + "}}",
    "documents": "---\na: 1\n" * (LETTERS // 9),
    "items of a list": "kind: List\nitems:\n" + "- {}\n" * (LETTERS // 5),
    "containers of one name": a_job("command: [x]}, " + "{name: l}, " * (LETTERS // 11) + "{name: z,"),
    "mounts of no volume": a_job("volumeMounts: [" + "{name: a, mountPath: /b}, " * (LETTERS // 26) + "],"),
    "brackets": "[" * LETTERS,
    "dashes": "- " * (LETTERS // 2),
    "aliases of aliases": "a0: &a0 [1]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 100)),
    "merges": "a: &a {" + ", ".join(f"k{n}: 1" for n in range(40_000)) + "}\nb:\n" + "  <<: *a\n" * 20_000,
    "a long number": "a: " + "9" * LETTERS,
    "a great quantity": a_job("resources: {limits: {memory: 1e99}},"),
    "variables that name each other twice": a_job(doubling(60)),
    "references that are not closed": a_job(command=f'sh, -c, "{"$(" * (LETTERS // 2)}"'),
    "substitutions within each other": a_job(command=f'sh, -c, "{"$( " * (LETTERS // 3)}"'),
    "comments of a script": a_job(command=f'sh, -c, "{"#" * (LETTERS // 2)}"'),
    "a script of many commands": a_job(command=f'sh, -c, "{"( " * (LETTERS // 2)}"'),
    "slots": a_job().replace("spec: {mpi", "spec: {slotsPerWorker: 2000000000, mpi"),
}


@for_every_row(HOSTILE.items())
def test_a_hostile_text_is_answered_soon_and_shortly(what: str, text: str) -> None:
    began, problems = time.process_time(), ()
    try:
        documents(text)
    except ManifestError as error:
        problems = error.problems
    assert time.process_time() - began < LONG, what
    assert len(problems) <= MAX_PROBLEMS + 1
    assert sum(len(problem.message) + len(problem.snippet) for problem in problems) < 1_000_000


def test_that_not_all_is_said_is_said() -> None:
    with pytest.raises(ManifestError) as caught:
        documents("a: 1\n" * 500)
    *said, last = caught.value.problems
    assert (len(said), last.message) == (MAX_PROBLEMS, "there may be more: these are the first 100")
    with pytest.raises(ManifestError) as caught:
        job_from_document({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", **{f"k{n}": 1 for n in range(500)}})
    assert caught.value.problems[-1].message == "there may be more: these are the first 100"


def test_values_that_grow_without_end_stay_as_they_are_written() -> None:
    references, values = References(), {"a0": "x" * 1000}
    for n in range(1, 60):
        values[f"a{n}"] = references.replaced(f"$(a{n - 1})$(a{n - 1})", values)
    assert len(values["a5"]) == 32_000
    assert sum(map(len, values.values())) < 4_000_000
    assert "$(a" in values["a59"]


def test_a_placement_that_is_uneven_takes_as_long_as_it_has_ranks() -> None:
    hosts = [f"w{n}" for n in range(40_000)]
    line = launch.parse(["mpirun", "--map-by", "node", "--host", ",".join(["w0:50000", *hosts[1:]]), "x"])
    assert line is not None
    began = time.process_time()
    placed = launch.expected_placement(line, hosts, 50_000)
    assert placed is not None
    assert (len(placed), placed[:2], placed[-1]) == (89_999, ("w0", "w1"), "w0")
    assert time.process_time() - began < LONG / 4  # as many times as there are hosts it would be a minute


def test_words_of_variables_do_not_multiply_without_end() -> None:
    script = f'a="{"x " * 15_000}"; {"$a " * 10_000}; mpirun -n 2 x'
    began = time.process_time()
    found = launch.parse(["sh", "-c", script])
    assert found is not None
    assert found.processes == 2
    assert time.process_time() - began < LONG
