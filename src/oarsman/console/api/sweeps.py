"""Sweeps: one manifest, many sets of parameters, each a job of its own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from oarsman.console.api import PREFIX
from oarsman.console.api.jobs import Namespace, Text
from oarsman.console.api.problems import responses
from oarsman.console.api.request_context import Context
from oarsman.service import sweep_results
from oarsman.service.models import SweepSpec, SweepView

router = APIRouter(prefix=f"{PREFIX}/sweeps", tags=["sweeps"])

SweepName = Annotated[
    str, Path(min_length=1, max_length=40, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", examples=["rates"])
]


@router.get("", operation_id="listSweeps", responses=responses())
def list_sweeps(context: Context, namespace: Text = None) -> list[SweepView]:
    """Those you may see, the newest first, without their points."""
    return list(context.service.sweeps(namespace))


@router.post("", operation_id="createSweep", status_code=201, responses=responses(404, 409, 413))
def create_sweep(context: Context, wanted: SweepSpec, response: Response) -> SweepView:
    """Begin a sweep; the same one again goes on with it. Nothing is submitted if any of its points is wrong."""
    made = context.service.create_sweep(wanted)
    context.note("begin sweep", made.key)
    response.headers["Location"] = f"{PREFIX}/sweeps/{made.key}"
    return made


@router.get("/{namespace}/{name}", operation_id="getSweep", responses=responses(404))
def get_sweep(context: Context, namespace: Namespace, name: SweepName) -> SweepView:
    """Every point with its parameters, its state, why it failed, and the number found in its log."""
    return context.service.sweep(f"{namespace}/{name}")


@router.delete("/{namespace}/{name}", operation_id="deleteSweep", status_code=204, responses=responses(404, 409))
def delete_sweep(context: Context, namespace: Namespace, name: SweepName) -> None:
    """Delete all its jobs with their logs; those that run are ended first."""
    key = f"{namespace}/{name}"
    context.service.delete_sweep(key)
    context.note("delete sweep", key)


@router.post("/{namespace}/{name}/stop", operation_id="stopSweep", responses=responses(404, 409))
def stop_sweep(context: Context, namespace: Namespace, name: SweepName) -> SweepView:
    """End what runs and hand in nothing more; results stay."""
    key = f"{namespace}/{name}"
    found = context.service.stop_sweep(key)
    context.note("stop sweep", key)
    return found


@router.post("/{namespace}/{name}/resume", operation_id="resumeSweep", responses=responses(404, 409))
def resume_sweep(context: Context, namespace: Namespace, name: SweepName) -> SweepView:
    """Go on: points that have no job, or were stopped, are run; those that ended are not repeated."""
    key = f"{namespace}/{name}"
    found = context.service.resume_sweep(key)
    context.note("resume sweep", key)
    return found


@router.get(
    "/{namespace}/{name}/results.csv",
    operation_id="getSweepResults",
    response_class=Response,
    responses={**responses(404), 200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
def get_results(context: Context, namespace: Namespace, name: SweepName) -> Response:
    """A row per point, for a spreadsheet."""
    view = context.service.sweep(f"{namespace}/{name}")
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(sweep_results.csv_text(view), media_type="text/csv", headers=headers)
