"""The synchronous face of an asynchronous object: the same methods with the same arguments, and each waits.

The work is done in the event loop of the portal; what a caller hands in to be called, and what is shown, stays
in the caller's own thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from oarsman.portal import shared

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Face[Any]")


class Face(Generic[A]):
    def __init__(self, of: A) -> None:
        self._of = of


def waits(method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Face[A], P], T]:
    """The method, which returns when there is a result."""
    return becomes(method, lambda result: result)


def itself(method: Callable[Concatenate[A, P], Coroutine[Any, Any, A]]) -> Callable[Concatenate[S, P], S]:
    """The same for a method whose result is the object itself."""

    def face(self: S, /, *args: P.args, **kwargs: P.kwargs) -> S:
        shared().run(method(self._of, *args, **kwargs))
        return self

    return _faced(face, method, "Self")


def becomes(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, B]], into: Callable[[B], T], name: str = ""
) -> Callable[Concatenate[Face[A], P], T]:
    """The same for a method whose result has a face as well, which is called `name`."""

    def face(self: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return into(shared().run(method(self._of, *args, **kwargs)))

    return _faced(face, method, name)


def like(method: Callable[Concatenate[Any, P], Any]) -> Callable[[Callable[..., T]], Callable[Concatenate[Any, P], T]]:
    """For what is written out all the same: it takes what the method takes, and says its words if it has none."""

    def declared(face: Callable[..., T]) -> Callable[Concatenate[Any, P], T]:
        face.__doc__ = face.__doc__ or method.__doc__
        result = face.__annotations__["return"]
        face.__signature__ = inspect.signature(method).replace(return_annotation=result)  # type: ignore[attr-defined]
        return face

    return declared


F = TypeVar("F", bound=Callable[..., Any])


def _faced(face: F, method: Callable[..., Any], kind: str = "") -> F:
    """With the name, the signature and the words of the method; `kind`: the result, where that is another."""
    update_wrapper(face, method)
    if kind:
        face.__annotations__ = {**face.__annotations__, "return": kind}
        face.__signature__ = inspect.signature(method).replace(return_annotation=kind)  # type: ignore[attr-defined]
    return face
