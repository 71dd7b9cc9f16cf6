"""The schema of what the controller writes back. Names follow `status/codec.py` and, before it, upstream."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _words(description: str) -> Schema:
    """A text that may be empty: an API server compiled with a newer Go than its own takes an empty text for null."""
    return _text(description, nullable=True)


def _time(description: str) -> Schema:
    return _text(description, format="date-time")


def _whole(description: str) -> Schema:
    return {"type": "integer", "format": "int32", "description": description}


def _mapping(description: str, **properties: Schema) -> Schema:
    return {"type": "object", "description": description, "properties": properties}


def _list(description: str, items: Schema, **more: Any) -> Schema:
    return {"type": "array", "description": description, "items": items, **more}


def _condition() -> Schema:
    condition = _mapping(
        "One thing that is, was or is not true of the job.",
        type=_text("Created, Queued, Running, Restarting, Suspended, Succeeded or Failed."),
        status=_text("Whether it is true.", enum=["True", "False", "Unknown"]),
        reason=_words("Why, in one word for programs."),
        message=_words("Why, in a sentence for people."),
        lastUpdateTime=_time("When this condition was last written."),
        lastTransitionTime=_time("When its status last changed."),
    )
    return {**condition, "required": ["type", "status"]}


def _cause() -> Schema:
    return _mapping(
        "Why the job failed.",
        summary=_words("The cause in one line."),
        rank=_whole("The rank that failed first."),
        host=_words("The host it ran on."),
        exitCode=_whole("The code it ended with, as a shell counts."),
        signal=_whole("The signal that ended it."),
        memoryLimitHit={"type": "boolean", "description": "True when it was ended for using too much memory."},
        lastLines=_list("The last lines it wrote.", {"type": "string", "nullable": True}),
        hint=_words("What may help."),
    )


def _count(role: str) -> Schema:
    return _mapping(
        f"How many of the {role} are in which state.",
        active=_whole("Pods that exist and have not ended."),
        ready=_whole("Pods that are ready."),
        succeeded=_whole("Pods that ended well."),
        failed=_whole("Pods that ended badly."),
        selector=_text("Selector that finds the pods, for whatever scales them."),
        labelSelector={
            "type": "object",
            "description": "The older form of selector; accepted and not used.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
    )


def _attempt() -> Schema:
    return _mapping(
        "One run of the whole job.",
        number=_whole("Counted from 1."),
        startedAt=_time("When it started."),
        finishedAt=_time("When it ended."),
        outcome=_words("Succeeded, Failed, Suspended, NotStarted, or nothing while it runs."),
        cause=_cause(),
        workers=_whole("Workers it ran with."),
        launcher=_text("The pod that served it."),
    )


def status_schema() -> Schema:
    texts: Schema = {"type": "string"}
    status = _mapping(
        "What became of the job; written by the controller.",
        phase=_text("The strongest condition that is true, in one word."),
        conditions=_list(
            "What is true of the job.",
            _condition(),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
        replicaStatuses=_mapping(
            "Counts per role.", Launcher=_count("launcher's pods"), Worker=_count("workers' pods")
        ),
        startTime=_time("When the job was first taken up, or resumed."),
        completionTime=_time("When it ended."),
        lastReconcileTime=_time("Written by some other operators; accepted and not used."),
        observedGeneration={
            "type": "integer",
            "format": "int64",
            "description": "The generation this status is about.",
        },
        attempts=_list("Every run of the job, oldest first.", _attempt()),
        cause=_cause(),
        queue=_mapping(
            "The place in the queue, while the job waits for room.",
            position=_whole("1 is next."),
            reason=_words("What the job waits for."),
        ),
        timeline={
            "type": "object",
            "description": "When each step was first seen.",
            "additionalProperties": {"type": "string", "format": "date-time"},
        },
        placement={
            "type": "object",
            "description": "Which ranks ran on which host, as ranges.",
            "additionalProperties": texts,
        },
        machines={
            "type": "object",
            "description": "Which machine each host is on, where it is not one of its own.",
            "additionalProperties": texts,
        },
        retryAt=_time("When a failed launcher is tried again."),
        writtenAs=_text("The API version the job was written in, whichever it is read in."),
    )
    # Another operator's status may hold more; it is not ours to drop.
    return {**status, "x-kubernetes-preserve-unknown-fields": True}
