"""What a machine cannot do, and shall not be asked to, is named; nothing is left out quietly."""

from __future__ import annotations

import os

import pytest

from cluster.cluster import why_no_pods

WITHOUT = "OARSMAN_WITHOUT"  # by name: pods


def insist_on_pods() -> None:
    """A machine that cannot run pods is said so by a failure, never by a test that quietly did not run."""
    if "pods" in os.environ.get(WITHOUT, "").replace(",", " ").split():
        pytest.skip(f"{WITHOUT} names pods: tests that need a node were not run")
    if reason := why_no_pods():
        pytest.fail(f"{reason}\n({WITHOUT}=pods leaves out the tests that need them)", pytrace=False)
