"""A Python function as a program that every rank runs: its source text, and the arguments it is called with.

Nothing is pickled, so the program can be read in the manifest and runs on any Python. The price is that the function
has to stand alone; what does not is refused here, by name, and not on some rank later.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from oarsman.errors import UsageError

_LONGEST = 100_000  # characters; the kernel takes no longer word in a command


def program(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The text of a program that calls the function once. Raises UsageError for one that does not stand alone."""
    if not isinstance(function, FunctionType):
        raise _refused(function, "it is not a function defined with `def`")
    if function.__name__ == "<lambda>":
        raise _refused(function, "it is a lambda", "give it a name with `def`")
    if around := function.__code__.co_freevars:
        raise _refused(
            function, f"it uses variables of the function around it: {_several(around)}", "pass them in args or kwargs"
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise _refused(function, "it is a coroutine or a generator, and calling it would do nothing")
    text = _source(function)
    _check_names(function, text)
    call = ", ".join(
        [*(_literal(function, a) for a in args), *(f"{k}={_literal(function, v)}" for k, v in kwargs.items())]
    )
    _check_arguments(function, args, kwargs)
    made = f"from __future__ import annotations\n\n{text.rstrip()}\n\n\n{function.__name__}({call})\n"
    if len(made) > _LONGEST:
        raise _refused(function, f"with its arguments it is longer than {_LONGEST} characters", "put it into a file")
    return made


def _source(function: FunctionType) -> str:
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise _refused(function, "its source text is not known", "write it in a file or a notebook cell") from error
    found = ast.parse(text).body
    if len(found) != 1 or not isinstance(found[0], ast.FunctionDef):
        raise _refused(function, "its source is not one plain `def`")
    if found[0].decorator_list:
        raise _refused(function, "it has decorators, which the ranks do not know", "call the plain function")
    if function.__qualname__ != function.__name__ and "<locals>" not in function.__qualname__:
        raise _refused(function, "it is a method", "define it at the top of a module")
    return text


def _check_names(function: FunctionType, text: str) -> None:
    definition = ast.parse(text).body[0]
    assert isinstance(definition, ast.FunctionDef)
    defaults = [d for d in (*definition.args.defaults, *definition.args.kw_defaults) if d is not None]
    used = {node.id for default in defaults for node in ast.walk(default) if isinstance(node, ast.Name)}
    used |= set(_globals_of(function.__code__))
    foreign = sorted(name for name in used if not hasattr(builtins, name) and name != function.__name__)
    if foreign:
        raise _refused(
            function,
            f"it uses names from outside: {_several(foreign)}",
            "import modules inside the function; pass values in args or kwargs",
        )


def _globals_of(code: CodeType) -> Iterator[str]:
    stored = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL"}
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval not in stored:
            yield instruction.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            defined = set(inner.co_varnames)
            yield from (name for name in _globals_of(inner) if name not in defined and not name.startswith("__"))


def _literal(function: FunctionType, value: Any) -> str:
    text = repr(value)
    try:
        same = ast.literal_eval(text) == value
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        same = False
    if not same:
        raise _refused(
            function,
            f"an argument of type {type(value).__name__} cannot be written as text",
            "numbers, text, None, and lists, tuples, sets and dicts of them can",
        )
    return text


def _check_arguments(function: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise _refused(function, str(error)) from error


def _several(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _refused(function: object, why: str, hint: str | None = None) -> UsageError:
    name = getattr(function, "__qualname__", type(function).__name__)
    return UsageError(f"{name} cannot be sent to the ranks: {why}", field="function", hint=hint)
