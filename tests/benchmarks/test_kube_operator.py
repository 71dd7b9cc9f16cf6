"""The operator's benchmark in small, on a real API server with pods that kwok plays. Its times are nobody's claim."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cluster.excluded import insist_on_kwok

from benchmarks.quick import quick

CRD = Path(__file__).parents[2] / "deploy" / "crd" / "mpijobs.kubeflow.org.yaml"
# Ours again, which understands what the MPI Operator is called with.
RIVAL = """\
#!/bin/sh
exec oarsman operator --health-port=0 --no-monitoring-auth "$@"
"""


def tables(printed: str) -> dict[str, dict[str, list[str]]]:
    """By title and first cell, the other cells of the line."""
    found: dict[str, dict[str, list[str]]] = {}
    rows: dict[str, list[str]] = {}
    for line in printed.splitlines():
        first, *others = (cell.strip() for cell in line.strip("|").split("|"))
        if others[-1:] == ["ratio"]:
            rows = found.setdefault(first, {})
        elif line.startswith("| "):
            rows[first] = others
    return found


@pytest.mark.timeout(600)
def test_a_given_rival_is_measured_beside_ours(tmp_path: Path) -> None:
    insist_on_kwok()
    rival, plot = tmp_path / "mpi-operator", tmp_path / "growth.svg"
    rival.write_text(RIVAL)
    rival.chmod(0o755)
    words = (f"--rival={rival}", f"--rival-crd={CRD}", f"--plot={plot}")
    printed = quick("kube_operator.py", "objects", "many", "beside", *words, timeout=500)
    found = tables(printed)
    assert len(found) == 4, printed
    for rows in found.values():
        assert all(re.fullmatch(r"-?[\d.e+-]+", figure) for row in rows.values() for figure in row[:2]), printed
        assert all(float(figure) > 0 for figure in rows["memory, max, MiB"]), printed
    assert "no rival was measured" not in printed
    # What was asked is counted by the API server: of both the same, as both are the same.
    assert len(re.findall(r"(?:ours|rival) asked for: .*\b6 create pods\b", printed)) == 4, printed
    drawn = ElementTree.fromstring(plot.read_text())
    assert len(drawn.findall("{*}polyline")) == 6  # of memory, CPU time and requests


@pytest.mark.timeout(300)
def test_without_a_rival_it_says_so(tmp_path: Path) -> None:
    insist_on_kwok()
    printed = quick("kube_operator.py", "objects", timeout=200)
    (rows,) = tables(printed).values()
    assert all(float(ours) >= 0 and not ratio for ours, ratio in rows.values()), printed
    assert printed.splitlines()[-1].startswith("no rival was measured")
