"""Flags as Go programs read them, for a verb that takes the place of one.

One dash or two, `--flag=value` or `--flag value`, and booleans that take `=true`. What is found is rewritten to the
form click reads, so that help, errors and suggestions stay as everywhere else. Flags of klog, Go's logging, are taken
out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from oarsman.cli.text import t
from oarsman.cli.verbs import Verb
from oarsman.errors import UsageError

KLOG = "oarsman.klog"  # in the context's `meta`: the flags of klog that were given, with their values

_FLAG = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}
_KLOG_SWITCHES = {
    "add_dir_header",
    "alsologtostderr",
    "legacy_stderr_threshold_behavior",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
}
_KLOG_VALUES = {"log_backtrace_at", "log_dir", "log_file", "log_file_max_size", "stderrthreshold", "v", "vmodule"}


class GoVerb(Verb):
    def __init__(self, *args: Any, aliases: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._aliases = aliases or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        klog = ctx.meta.setdefault(KLOG, {})
        options = {name: o for o in self.get_params(ctx) if isinstance(o, click.Option) for name in o.opts}
        return super().parse_args(ctx, list(_translated(iter(args), options, self._aliases, klog)))


def _translated(
    words: Iterator[str], options: Mapping[str, click.Option], aliases: Mapping[str, str], klog: dict[str, str]
) -> Iterator[str]:
    for word in words:
        flag = _FLAG.fullmatch(word)
        if word == "--" or flag is None:
            yield word
            yield from words  # Go stops at the first word that is no flag; what follows is refused by click
            return
        name, value = aliases.get(flag[1], flag[1]), flag[2]
        option = options.get(f"--{name}")
        if word in options and value is None and option is None:
            yield word  # a short option of our own
        elif option is not None:
            yield from _known(f"--{name}", option, value, words)
        elif name in _KLOG_SWITCHES:
            klog[name] = "true" if value is None else value
        elif name in _KLOG_VALUES:
            klog[name] = next(words, "") if value is None else value
        else:
            yield f"--{name}" if value is None else f"--{name}={value}"


def _known(name: str, option: click.Option, value: str | None, words: Iterator[str]) -> Iterator[str]:
    if option.is_flag:
        if value is None or value in _TRUE:
            yield name
        elif value in _FALSE:
            yield from option.secondary_opts[:1]
        else:
            raise UsageError(t("{what} takes true or false", what=name))
        return
    if value is None:
        value = next(words, None)
    yield name if value is None else f"{name}={value}"
