"""All ranks at a glance: how each is, and which are behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import events
from nicegui.element import Element

from oarsman.console.words import Words
from oarsman.sdk.models import RankProgress


class RankGrid(Element, component="rank_grid.js"):
    """`on_pick` is called with the rank whose cell was chosen."""

    def __init__(self, say: Words, on_pick: Callable[[int], Any]) -> None:
        super().__init__()
        self._say = say
        self._props["groups"] = []
        self._props["words"] = {
            "label": say("Every rank"), "rank": say("Rank"), "behind": say("behind"), "nowhere": say("Host unknown"),
            "running": say("running"), "done": say("exited with 0"), "failed": say("failed"), "unknown": say("unknown"),
            "exited": say("exited"),
        }  # fmt: skip

        def picked(event: events.GenericEventArguments) -> Any:
            return on_pick(int(event.args))

        self.on("pick", picked)

    def show(self, ranks: Sequence[RankProgress], placed: Callable[[str], str]) -> None:
        """`placed` says what a host is called here."""
        groups: dict[str, list[dict[str, Any]]] = {}
        for one in ranks:
            groups.setdefault(one.host, []).append(self._cell(one))
        found = [{"host": placed(host), "cells": cells} for host, cells in groups.items()]
        if found != self._props["groups"]:
            self._props["groups"] = found
            self.update()

    def _cell(self, one: RankProgress) -> dict[str, Any]:
        say = self._say
        note = [say("step {step}", step=f"{one.step:g}")] if one.step is not None else []
        if one.exit_code:
            note.append(say("exit code {code}", code=one.exit_code))
        return {"rank": one.rank, "state": condition(one), "note": " · ".join(note), "behind": one.behind}


def condition(one: RankProgress) -> str:
    """One word for how a rank is; also the class of its colour."""
    if one.exit_code:
        return "failed"
    if one.exit_code == 0:
        return "done"
    return one.state if one.state in ("running", "exited") else "unknown"
