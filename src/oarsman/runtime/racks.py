"""Racks of SSH hosts in the supervisor: the engine that runs jobs there, and the room they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oarsman.engines.bare.engine import BareEngine
from oarsman.engines.bare.over_ssh.survey import Surveys
from oarsman.engines.bare.over_ssh.transport import OverSsh
from oarsman.engines.bare.specification import read_spec
from oarsman.runtime.loop import Ground
from oarsman.runtime.rack_ledger import RackLedger
from oarsman.store.places import Places


def ground_of_racks(places: Places, concerned: Callable[[str], None]) -> Ground:
    surveys = surveys_of(places)

    def placed(uid: str) -> Mapping[str, str]:
        try:
            spec: Mapping[str, Any] = read_spec(str(places.job(uid)))
        except (OSError, ValueError):
            return {}
        return dict(spec.get("placement", {}))

    engine = BareEngine(job_folder=places.job, run_folder=places.job_run, transport=OverSsh(surveys))
    return Ground(engine, RackLedger(surveys, concerned, placed))


def surveys_of(places: Places) -> Surveys:
    return Surveys(left_out=lambda _: {}, keep=lambda *_: None)
