"""A small synchronous face of what is asynchronous, for tests that wait."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from oarsman.portal import Portal, shared


def waiting(backend: Any, portal: Portal | None = None) -> Any:
    """The same object, whose coroutines are calls that return their result, and whose async generators are iterators
    that any thread may close. Logs come line by line. `here` is the object itself."""
    return Waiting(backend, portal)


class Waiting:
    def __init__(self, backend: Any, portal: Portal | None) -> None:
        self.__dict__.update(here=backend, _portal=portal)

    @property
    def portal(self) -> Portal:
        return self._portal or shared()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.here, name)
        if name == "environments" and not callable(found):
            return Waiting(found, self._portal)
        return self._called(found) if callable(found) else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.here, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.here, name)

    def _called(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = method(*args, **kwargs)
            if inspect.isasyncgen(answer):
                return self.portal.iterate(answer)
            return self.portal.run(answer) if inspect.iscoroutine(answer) else answer

        return call

    def logs(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        for lines in self.portal.iterate(self.here.logs(*args, **kwargs)):
            yield from lines

    def ask(self, work: Callable[[Any], Any]) -> Any:
        """Of a cluster's server directly."""

        async def asked() -> Any:
            return await work(await self.here.kube())

        return self.portal.run(asked())

    def stream(self, source: Callable[[Any], Any]) -> Iterator[Any]:
        """The same for what comes piece by piece."""
        return self.portal.iterate(source(self.portal.run(self.here.kube())))
