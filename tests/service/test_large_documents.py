"""What takes long of a document is done beside the event loop, which serves everybody else meanwhile."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest
from console.api.memory import MemoryJobs, a_document
from pydantic import ValidationError

from oarsman.backends.base import Amounts, Fit, JobRecord
from oarsman.console.pages.create.draft import Draft
from oarsman.errors import OarsmanError, UsageError
from oarsman.manifest import to_yaml
from oarsman.service import JobService
from oarsman.service.models import Clone, Convert, Create, Identity, Role, SweepSpec

ADMIN = Identity(name="root", role=Role.ADMIN)
_VARIABLES = 5_000


def a_large_document(name: str = "pi") -> dict[str, Any]:
    """A valid one: whoever wants to hold up a server sends no mistakes."""
    made = a_document(name)
    launcher = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["env"] = [{"name": f"VARIABLE_{n}", "value": f"value {n}"} for n in range(_VARIABLES)]
    return made


LARGE, OTHER = a_large_document("large"), a_large_document("other")
MANIFEST = "kind: MPIJob\n" + "".join(f"k{n}: 1\n" for n in range(25_000))


class Jobs(MemoryJobs):
    """What they do with a document, the real ones do in threads."""

    async def submit(self, *_: Any, **__: Any) -> JobRecord:
        return self.record("default/large")

    async def fit(self, *_: Any, **__: Any) -> Fit:
        return Fit(now=True, ever=True, wanted=Amounts(), free=Amounts(), total=Amounts())


Work = Callable[[JobService], Awaitable[object]]
WORK: dict[str, Work] = {
    "preview": lambda service: service.preview(Create(document=LARGE)),
    "preview of a text": lambda service: service.preview(Create(manifest=MANIFEST)),
    "plan": lambda service: service.plan(Create(document=LARGE)),
    "create": lambda service: service.create(Create(document=LARGE)),
    "clone": lambda service: service.clone("default/old", Clone(patch=OTHER)),
    "job": lambda service: service.job("default/large"),
    "convert": lambda service: service.convert(LARGE, "v1"),
    "create_sweep": lambda service: service.create_sweep(
        SweepSpec(name="s", manifest=MANIFEST[:100_000], grid={"n": [1]})
    ),
}


@pytest.mark.parametrize("what", WORK)
def test_the_event_loop_goes_on_while_a_large_document_is_read(what: str) -> None:
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    async def run() -> None:
        jobs = Jobs()
        jobs.add("old")
        jobs.add("large", document=LARGE)
        service = JobService(jobs, ADMIN)
        with suppress(OarsmanError):
            sys.setprofile(count)  # of this thread, which is that of the event loop
            try:
                await WORK[what](service)
            finally:
                sys.setprofile(None)

    asyncio.run(run())
    assert calls < 20 * _VARIABLES  # to copy it takes thirty for each; some ten thousand import what is used first


def test_a_sweep_is_not_read_again_and_again_without_end() -> None:
    service = JobService(MemoryJobs(), ADMIN)
    wanted = SweepSpec(name="s", manifest="a: " + "a" * 90_000, grid={"n": list(range(5_000))})
    with pytest.raises(UsageError, match="5000 points of a manifest of that length are too many"):
        asyncio.run(service.create_sweep(wanted))


@pytest.mark.parametrize("letters", [1 << 18, (1 << 18) + 1])
def test_a_manifest_has_a_size_beyond_which_nobody_reads_it(letters: int) -> None:
    text = "#" * letters
    if letters > 1 << 18:
        with pytest.raises(ValidationError):
            Create(manifest=text)
    else:
        assert Create(manifest=text).manifest == text


@pytest.mark.parametrize("sent", [Create, Clone, Convert])
def test_a_document_has_a_number_of_values_beyond_which_nobody_reads_it(sent: type[Any]) -> None:
    """A viewer's previews of a hundred thousand words each kept everybody else from their jobs."""
    made = a_document()
    words = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]
    name = "patch" if sent is Clone else "document"
    more = {"api_version": "v1"} if sent is Convert else {}
    assert sent(**{name: made}, **more)
    words += ["x"] * 20_000
    with pytest.raises(ValidationError, match="more than 20000 values"):
        sent(**{name: made}, **more)


def test_so_has_a_manifest() -> None:
    made = a_document()
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["args"] = ["x"] * 20_000
    view = asyncio.run(JobService(MemoryJobs(), ADMIN).preview(Create(manifest=json.dumps(made))))
    assert [problem.message for problem in view.problems] == ["the manifest has more than 20000 values"]


def test_what_is_typed_into_a_page_is_read_after_every_key_only_while_that_is_quick() -> None:
    draft = Draft(to_yaml([a_document()]))
    assert (draft.readable, draft.change("name", "other")) == (True, None)
    long = f"{draft.text}# {'x' * (1 << 16)}\n"
    draft.take(long)
    assert (draft.readable, draft.text) == (False, long)
    assert draft.change("name", "third") is not None
