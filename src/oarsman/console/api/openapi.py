"""The description of the API, as it is served and as it lies in deploy/openapi.json."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from oarsman.service.models import ProblemDetails
from oarsman.version import __version__

_ABOUT = """\
Create, watch and understand MPI jobs on every engine.

Programs send an API token as `Authorization: Bearer TOKEN`; browsers have a session cookie, and send `X-Oarsman: 1`
with everything that changes something. Names are camelCase, times RFC 3339 in UTC. Every error is a ProblemDetails.
"""
_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "An API token, or on Kubernetes your own token."},
    "session": {"type": "apiKey", "in": "cookie", "name": "oarsman", "description": "Its name ends with the port."},
}
_REFERENCE = "#/components/schemas/{model}"
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


def describe(app: FastAPI) -> dict[str, Any]:
    routes = [route for route in app.routes if not isinstance(route, APIRoute) or route.include_in_schema]
    found = get_openapi(title="Oarsman", version=__version__, description=_ABOUT, routes=routes)
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    problem = ProblemDetails.model_json_schema(ref_template=_REFERENCE, mode="serialization")
    schemas.update(problem.pop("$defs", {}))
    schemas["ProblemDetails"] = problem
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = _SECURITY
    found["security"] = [{name: []} for name in _SECURITY]
    return found


def install(app: FastAPI) -> None:
    def once() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = describe(app)
        return app.openapi_schema

    app.openapi = once  # type: ignore[method-assign]
