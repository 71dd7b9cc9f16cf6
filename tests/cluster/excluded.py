"""What a machine cannot do, and shall not be asked to, is named; nothing is left out quietly."""

from __future__ import annotations

import os

import pytest

from cluster import build
from cluster.cluster import why_no_pods

WITHOUT = "OARSMAN_WITHOUT"  # by name: pods, kwok


def insist_on_pods() -> None:
    """A machine that cannot run pods is said so by a failure, never by a test that quietly did not run."""
    _insist("pods", why_no_pods())


def insist_on_kwok() -> None:
    """A machine that cannot play them neither; launchers' pods are made by the controller manager."""
    there = build.kwok() and build.programs().find("kube-controller-manager")
    _insist("kwok", "" if there else "kwok or a kube-controller-manager is missing: say scripts/setup bench")


def _insist(what: str, why_not: str) -> None:
    if what in os.environ.get(WITHOUT, "").replace(",", " ").split():
        pytest.skip(f"{WITHOUT} names {what}: tests that need it were not run")
    if why_not:
        pytest.fail(f"{why_not}\n({WITHOUT}={what} leaves out the tests that need it)", pytrace=False)
