"""The two versions of an MPIJob document, field by field, each with one sentence of meaning.

These models are the only place where the fields are listed: checking a manifest, the CRD and the
reference pages are all made from them. Types are strict, and a field that is not here is a mistake.
Pod templates are left to `template.py`, which checks them by tables.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictStr, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from oarsman.manifest.quantity import QuantityError
from oarsman.manifest.quantity import parse as parse_quantity


def _quantity(value: Any) -> Any:
    try:
        parse_quantity(value)
    except QuantityError as error:
        raise PydanticCustomError("quantity", "{text}", {"text": str(error), "hint": error.hint}) from None
    return value


Int32 = Annotated[int, Field(ge=0, le=2**31 - 1)]
AtLeastOne = Annotated[int, Field(ge=1, le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=0, le=2**63 - 1)]
Quantity = Annotated[
    Any,
    AfterValidator(_quantity),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
]
# The template is kept whole; the schema says only that it is an object.
Template = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})]
Free = Annotated[Any, WithJsonSchema({"x-kubernetes-preserve-unknown-fields": True})]

CleanPods = Literal["None", "Running", "All"]


class Strict(BaseModel):
    # defer_build: a call of the command needs few of these models, and most calls none.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel, defer_build=True)


class Metadata(Strict):
    """Who the job is. Fields the API server writes are accepted, so that a printed job can be submitted again."""

    name: StrictStr = Field(description="Name of the job; its hosts are named after it.")
    namespace: StrictStr = Field("default", description="The namespace the job belongs to.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels to select jobs by.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Notes for tools, oarsman.dev/* among them.")
    generate_name: StrictStr | None = Field(None, description="Prefix of a name the API server makes up.")
    creation_timestamp: StrictStr | None = Field(None, description="When the job was created; written by the server.")
    deletion_timestamp: StrictStr | None = Field(None, description="When deletion was asked; written by the server.")
    deletion_grace_period_seconds: int | None = Field(
        None, description="Time to end gracefully; written by the server."
    )
    generation: int | None = Field(None, description="Counts changes of the spec; written by the server.")
    resource_version: StrictStr | None = Field(None, description="Version of the object; written by the server.")
    self_link: StrictStr | None = Field(None, description="Address of the object; written by old servers.")
    uid: StrictStr | None = Field(None, description="Unique name in time and space; written by the server.")
    finalizers: list[str] | None = Field(None, description="What must happen before the object goes away.")
    owner_references: list[dict[str, Any]] | None = Field(None, description="Objects this one belongs to.")
    managed_fields: list[dict[str, Any]] | None = Field(None, description="Who set which field; written by the server.")
    cluster_name: StrictStr | None = Field(None, description="Not used any more; accepted in old objects.")


class SchedulingFields(Strict):
    """How a gang scheduler should treat the job."""

    min_available: Int32 | None = Field(
        None, description="Pods that must fit before any of them starts; by default all workers and the launcher."
    )
    queue: StrictStr = Field("", description="Queue of the gang scheduler.")
    min_resources: dict[str, Quantity] | None = Field(
        None, description="Resources that must be free before any pod starts; by default the sum over all pods."
    )
    priority_class: StrictStr = Field("", description="PriorityClass the whole job is scheduled with.")
    schedule_timeout_seconds: Int32 | None = Field(
        None, description="Seconds a scheduler may wait for the whole gang to fit."
    )


M = TypeVar("M", bound=str)


class RunPolicy(Strict, Generic[M]):
    """What happens around a run: cleaning up, limits, retries, waiting."""

    clean_pod_policy: CleanPods | None = Field(
        None,
        description="Which workers go away when the job ends: None, those still Running, or All.",
    )
    ttl_seconds_after_finished: Int32 | None = Field(
        None, description="Seconds after its end when the job and its record are deleted; never by default."
    )
    active_deadline_seconds: Int64 | None = Field(
        None, description="Seconds the job may be active before it is ended as failed; no limit by default."
    )
    backoff_limit: Int32 | None = Field(None, description="How often a failed launcher is tried again.")
    scheduling_policy: SchedulingFields | None = Field(None, description="What a gang scheduler should know.")
    suspend: bool = Field(False, description="True keeps the job from running, and ends its pods if it already does.")
    managed_by: M | None = Field(
        None, description="The controller that looks after this job; by default the one that sees it."
    )


RunPolicyV2beta1 = RunPolicy[Literal["kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"]]
RunPolicyV1 = RunPolicy[Literal["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"]]


class ReplicaBase(Strict):
    replicas: int | None = Field(
        None, le=2**31 - 1, description="How many pods of this role: exactly 1 launcher, at least 1 worker."
    )
    template: Template = Field(description="The pod to start; its MPI container is the first unless said otherwise.")


class ReplicaV2beta1(ReplicaBase):
    """One role of the job."""

    restart_policy: Literal["Never", "OnFailure", "ExitCode"] | None = Field(
        None, description="What happens when the pod fails; launcher: OnFailure, worker: Never by default."
    )


class ReplicaV1(ReplicaBase):
    """One role of the job."""

    restart_policy: Literal["Never", "OnFailure", "Always", "ExitCode"] | None = Field(
        None, description="What happens when the pod fails; Never by default."
    )


R = TypeVar("R", bound=ReplicaBase)


class Replicas(Strict, Generic[R]):
    """The roles."""

    launcher: R = Field(alias="Launcher", description="The pod that runs mpirun.")
    worker: R | None = Field(
        None, alias="Worker", description="The pods that run the ranks; none for a launcher-only job."
    )


class SpecV2beta1(Strict):
    """What to run."""

    slots_per_worker: AtLeastOne | None = Field(
        None, description="Processes that fit on one worker; 1 by default.", json_schema_extra={"default": 1}
    )
    run_launcher_as_worker: bool = Field(False, description="True lets the launcher take ranks, as the first host.")
    run_policy: RunPolicyV2beta1 = Field(
        default_factory=RunPolicyV2beta1, description="Cleaning up, limits, retries, waiting."
    )
    mpi_replica_specs: Replicas[ReplicaV2beta1] = Field(description="The launcher and the workers.")
    ssh_auth_mount_path: StrictStr = Field(
        "/root/.ssh", min_length=1, description="Folder in which the launcher and the workers find the keys of the job."
    )
    launcher_creation_policy: Literal["AtStartup", "WaitForWorkersReady"] = Field(
        "AtStartup", description="Whether the launcher is created at once or after all workers are ready."
    )
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] | None = Field(
        None,
        description="The MPI whose launcher is called; it decides the hostfile's form. OpenMPI by default.",
        json_schema_extra={"default": "OpenMPI"},
    )


class SpecV1(Strict):
    """What to run."""

    slots_per_worker: AtLeastOne | None = Field(
        None, description="Processes that fit on one worker; 1 by default.", json_schema_extra={"default": 1}
    )
    clean_pod_policy: CleanPods | None = Field(
        None, description="The older place of runPolicy.cleanPodPolicy, which wins over it."
    )
    mpi_replica_specs: Replicas[ReplicaV1] = Field(description="The launcher and the workers.")
    main_container: StrictStr | None = Field(
        None, description="Name of the container that takes part in MPI; the first one by default."
    )
    run_policy: RunPolicyV1 = Field(default_factory=RunPolicyV1, description="Cleaning up, limits, retries, waiting.")


class MPIJobV2beta1(Strict):
    """An MPI job: one launcher, many workers."""

    api_version: Literal["kubeflow.org/v2beta1"] = Field(description="The version this document is written in.")
    kind: Literal["MPIJob"] = Field(description="Always MPIJob.")
    metadata: Metadata = Field(description="Name, namespace, labels and annotations.")
    spec: SpecV2beta1 = Field(description="What to run.")
    status: Free = Field(None, description="What became of the job; written by the controller, ignored in a manifest.")


class MPIJobV1(Strict):
    """An MPI job: one launcher, many workers."""

    api_version: Literal["kubeflow.org/v1"] = Field(description="The version this document is written in.")
    kind: Literal["MPIJob"] = Field(description="Always MPIJob.")
    metadata: Metadata = Field(description="Name, namespace, labels and annotations.")
    spec: SpecV1 = Field(description="What to run.")
    status: Free = Field(None, description="What became of the job; written by the controller, ignored in a manifest.")


AnyMPIJob = MPIJobV1 | MPIJobV2beta1
