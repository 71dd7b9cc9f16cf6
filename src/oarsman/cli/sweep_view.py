"""Sweeps as the verbs ask for them, and their results as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from oarsman.cli import documents, render
from oarsman.cli.messages import t
from oarsman.cli.session import Session
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.backends.base import Backend, JobRecord
    from oarsman.service import JobService
    from oarsman.service.models import SweepPoint, SweepView


class _Within:
    """A backend that lists one namespace: not everybody on a cluster may look at all of them."""

    def __init__(self, jobs: Backend, namespace: str | None) -> None:
        self._jobs, self._namespace = jobs, namespace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        return self._jobs.list(namespace or self._namespace)


def service_of(session: Session, key: str | None = None) -> JobService:
    """For one sweep, or (without a key) for those of the namespaces that were asked for."""
    import getpass

    from oarsman.service import JobService
    from oarsman.service.models import Identity, Role

    within = key.partition("/")[0] if key is not None else session.scope
    jobs = cast("Backend", _Within(session.jobs, within))
    return JobService(jobs, Identity(name=getpass.getuser(), role=Role.ADMIN), engine=session.engine)


# -- results ------------------------------------------------------------------------------------------
def show_results(view: SweepView, output: str | None) -> None:
    from oarsman.service import sweep_results

    if output == "json":
        documents.emit(view.model_dump(mode="json", by_alias=True), "json")
    elif output == "csv":
        click.echo(sweep_results.csv_text(view), nl=False)
    else:
        metric = [t("METRIC")] if view.metric else []
        headers = [t("POINT"), *view.parameters, t("STATE"), t("TOOK"), *metric, t("CAUSE")]
        render.table(headers, [_point_row(view, point) for point in view.points])


def _point_row(view: SweepView, point: SweepPoint) -> list[str]:
    from oarsman.job.sweep import text_of
    from oarsman.service.sweep_results import seconds

    took = seconds(point)
    metric = ["" if point.metric is None else f"{point.metric:g}"] if view.metric else []
    values = [text_of(point.parameters.get(name, "")) for name in view.parameters]
    return [
        str(point.index),
        *values,
        point.state,
        "" if took is None else units.duration(took),
        *metric,
        point.cause,
    ]
