"""Environments as a cluster keeps them: what their objects are called, and how far one is.

An environment is a ConfigMap (what is wanted), a Job (the build) and a folder in a claim. Whoever makes them and
whoever attaches them to a job meet here.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

from oarsman import names
from oarsman.engines.kube import views
from oarsman.text.sentence import Text, load

LABEL: Final = names.ANNOTATION_ENVIRONMENT  # on all of them; its value is the name
CLAIM: Final = "oarsman-environments"
PLACE: Final = "/opt/oarsman/environments"  # where every pod has the claim: an environment knows its own path
SPEC, DIGEST, RESULT = "spec", "digest", "result"  # in the ConfigMap
READY, FAILED = "Ready", "Failed"
_CONTENTS: Final = re.compile(r"[0-9a-z]{1,64}")  # it becomes part of paths and of lines for shells
_ENDS: Final = {"Complete": READY, "Failed": FAILED}


def object_name(name: str) -> str:
    """Of the ConfigMap."""
    return f"oarsman-env-{name}"


def build_name(name: str, digest: str) -> str:
    """Of the Job. Its pods carry it as a label, which has 63 letters at most."""
    short = name if len(name) <= 40 else f"{name[:31].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"{object_name(short)}-{digest[:10]}"


def folder(digest: str) -> str:
    return f"{PLACE}/{digest}"


def is_digest(text: str) -> bool:
    """Anybody who may write a ConfigMap can put anything in its place."""
    return _CONTENTS.fullmatch(text) is not None


def result_of(data: dict[str, str]) -> dict[str, Any]:
    """What became of the build of these contents, where that is written down."""
    try:
        found = json.loads(data.get(RESULT) or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict) or found.get(DIGEST) != data.get(DIGEST):
        return {}
    return {**found, "message": load(found["message"])} if "message" in found else found


def end_of(build: views.BatchJob | None) -> str:
    """Ready or Failed; empty while it goes on."""
    conditions = build.status.conditions if build is not None else ()
    return next((_ENDS[c.type] for c in conditions if c.type in _ENDS and c.status == "True"), "")


def missing(name: str, found: views.ConfigMap | None, build: views.BatchJob | None) -> str:
    """Why no job can run in it yet; empty if one can."""
    if found is None:
        return Text("there is no environment {name} in this namespace", name=name)
    if not is_digest(found.data.get(DIGEST, "")):
        return Text("ConfigMap {map} does not say what environment {name} contains", map=found.metadata.name, name=name)
    result = result_of(found.data)
    state = result.get("state") or end_of(build)
    if state == READY:
        return ""
    if state == FAILED:
        what = Text("environment {name} could not be built", name=name)
        return Text("{what}: {why}", what=what, why=result["message"]) if result.get("message") else what
    return Text("environment {name} is not built yet", name=name)
