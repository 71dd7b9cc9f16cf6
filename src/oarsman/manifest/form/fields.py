"""Every field of the form, in the order of its steps."""

from __future__ import annotations

from collections.abc import Mapping

from oarsman import names
from oarsman.manifest.form import kinds, simple
from oarsman.manifest.form.kinds import bound, count
from oarsman.manifest.form.simple import Field, amount, annotation, at, look, of_both, of_launcher

_RUN = ("spec", "runPolicy")
_SCHEDULING = (*_RUN, "schedulingPolicy")
_LAUNCHER = ("spec", "mpiReplicaSpecs", "Launcher")
_VERSIONS = (f"{names.GROUP}/v2beta1", f"{names.GROUP}/v1")

_ALL = (
    # basics
    Field(
        "api_version",
        "choice",
        lambda document: simple.said(look(document, "apiVersion")),
        simple.write_api_version,
        _VERSIONS,
    ),
    at("name", "text", "metadata", "name"),
    annotation("description", "text", names.ANNOTATION_DESCRIPTION),
    at("namespace", "text", "metadata", "namespace"),
    annotation("priority", "number", names.ANNOTATION_PRIORITY),
    at("queue", "text", *_SCHEDULING, "queue"),
    # run
    of_both("image", "text", "image"),
    annotation("environment", "text", names.ANNOTATION_ENVIRONMENT),
    annotation("install", "text", names.ANNOTATION_INSTALL),
    of_launcher("command", "words", "command"),
    of_launcher("args", "words", "args"),
    of_both("working_dir", "text", "workingDir"),
    Field("mpi", "choice", simple.read_mpi, simple.write_mpi, simple.IMPLEMENTATIONS),
    # resources
    amount("launcher_cpu", "Launcher", "cpu"),
    amount("launcher_memory", "Launcher", "memory"),
    amount("launcher_gpu", "Launcher", "nvidia.com/gpu"),
    count("workers", "spec", "mpiReplicaSpecs", "Worker", "replicas"),
    count("slots", "spec", "slotsPerWorker"),
    amount("worker_cpu", "Worker", "cpu"),
    amount("worker_memory", "Worker", "memory"),
    amount("worker_gpu", "Worker", "nvidia.com/gpu"),
    amount("worker_vgpu", "Worker", "nvidia.com/vgpu"),
    amount("worker_gpu_memory", "Worker", "nvidia.com/gpumem"),
    # advanced
    Field("clean_policy", "choice", simple.read_clean_policy, simple.write_clean_policy, ("None", "Running", "All")),
    at("retries", "number", *_RUN, "backoffLimit", minimum=0),
    at("deadline", "number", *_RUN, "activeDeadlineSeconds", minimum=0),
    at("ttl", "number", *_RUN, "ttlSecondsAfterFinished", minimum=0),
    bound("elastic_min", "min"),
    bound("elastic_max", "max"),
    at("suspend", "bool", *_RUN, "suspend"),
    at("min_available", "number", *_SCHEDULING, "minAvailable", minimum=0),
    at("priority_class", "text", *_SCHEDULING, "priorityClass"),
    at("schedule_timeout", "number", *_SCHEDULING, "scheduleTimeoutSeconds", minimum=0),
    at("restart_policy", "choice", *_LAUNCHER, "restartPolicy", choices=("Never", "OnFailure", "ExitCode")),
    kinds.marks("labels", "metadata", "labels"),
    kinds.marks("annotations", "metadata", "annotations", hide_ours=True),
    Field("env", "pairs", kinds.read_env, kinds.write_env),
    Field("volumes", "volumes", kinds.read, kinds.write),
    annotation("network", "choice", names.ANNOTATION_NETWORK, choices=("private", "host")),
    annotation("oversubscribe", "bool", names.ANNOTATION_OVERSUBSCRIBE),
)
FIELDS: Mapping[str, Field] = {field.name: field for field in _ALL}
