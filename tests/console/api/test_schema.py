"""Schemathesis sends what the description allows and what it does not, and looks for answers that are not in it.

It takes long to import: only whoever runs these tests does so, not everybody who collects them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .asking import Asking, asking
from .memory import FAILED, SUCCEEDED, MemoryJobs

if TYPE_CHECKING:
    import schemathesis

ENDLESS = ("streamJobs", "watchJob")  # a request that lasts as long as its job cannot be sent by the thousand


def refused(ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case) -> bool | None:
    """As Schemathesis sees it; and a text that is too long may also be more than can be sent at all."""
    from schemathesis import checks

    return None if response.status_code == 413 else checks.negative_data_rejection(ctx, response, case)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    jobs = MemoryJobs()
    for name, status in (("a", FAILED), ("pi", SUCCEEDED)):
        jobs.add(name, status)
        jobs.say(f"default/{name}", "one", "two", rank=1)
    with asking(tmp_path_factory.mktemp("schema"), jobs) as found:
        yield found


def in_its_loop(ask: Asking) -> ASGIApp:
    """The application, answering in the loop of the server, whichever loop asks."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()

        async def receive_there() -> Message:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(receive(), loop))  # type: ignore[arg-type]

        async def send_there(message: Message) -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(send(message), loop))  # type: ignore[arg-type]

        await asyncio.to_thread(lambda: ask.portal.run(ask.app(scope, receive_there, send_there)))

    return app


@pytest.fixture(scope="module")
def described(asked: Asking) -> Any:
    import schemathesis

    found = schemathesis.openapi.from_asgi("/api/v1/openapi.json", in_its_loop(asked), timeout=120)
    found.config.generation.update(with_security_parameters=False)  # each request has a token that is good
    return found


# From the file, which is checked for freshness: to describe the API anew takes each collection of tests two seconds.
DESCRIPTION = json.loads((Path(__file__).parents[3] / "deploy" / "openapi.json").read_text("utf-8"))
OPERATIONS = [
    pytest.param(path, method, id=operation["operationId"])
    for path, methods in DESCRIPTION["paths"].items()
    for method, operation in methods.items()
    if operation["operationId"] not in ENDLESS
]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_answer_is_one_that_the_description_has(path: str, method: str, described: Any, asked: Asking) -> None:
    from schemathesis import GenerationMode, checks

    operation = described[path][method]
    looked_for = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
    ]
    if not path.endswith("/stream"):  # described as one text, and Schemathesis compares each event with that
        looked_for.append(checks.response_schema_conformance)
    # What is wrong in a body is always refused. In an address, one of several values may be the one that is read.
    if method in ("post", "patch") and "{" not in path:
        looked_for.append(refused)

    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of([operation.as_strategy(generation_mode=mode) for mode in GenerationMode]))
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate(headers=dict(asked.headers("root")), checks=looked_for)

    check()
