"""The environments of a namespace: ConfigMaps, the Jobs that build them, and a claim that holds what was built.

Nobody has to stay for a build: its Job goes on by itself, and whoever looks next writes down what became of it.
"""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from typing import Any, Final

from oarsman import names
from oarsman.backends.base import current_user
from oarsman.backends.kube import environment_builds as builder
from oarsman.backends.kube import records
from oarsman.engines.kube import environments as kept
from oarsman.engines.kube import views
from oarsman.engines.kube.client import (
    AlreadyExists,
    ApiError,
    Forbidden,
    Invalid,
    Kube,
    NotFound,
    PartialObject,
    resources,
)
from oarsman.errors import ConflictError, NotFoundError, RetryableError, UsageError, UserError
from oarsman.job.confined import Confined
from oarsman.job.environment import BuildLog, EnvironmentRecord, EnvironmentWanted, digest_of
from oarsman.store.environments import MPI, NAME, check_name
from oarsman.text.sentence import Text, dump

_MOST_REQUIREMENTS: Final = 64 << 10  # one variable of a process has no more than twice that
_LOG_PIECE: Final = 256 << 10
_TRIES: Final = 50
_PAUSE: Final = 0.2  # until the server has really let go of a name


class KubeEnvironments:
    def __init__(self, asking: Callable[[], AbstractAsyncContextManager[Kube]], namespace: str) -> None:
        self._asking = asking
        self._namespace = namespace

    # -- looking -------------------------------------------------------------------------------------
    async def list(self) -> Sequence[EnvironmentRecord]:
        async with self._asking() as kube:
            return await self._records(kube, kept.LABEL)

    async def get(self, name: str) -> EnvironmentRecord:
        async with self._asking() as kube:
            return await self._get(kube, name)

    async def log(self, name: str, *, after: int = 0) -> BuildLog:
        async with self._asking() as kube:
            found = await self._found(kube, name)
            digest = found.data.get(kept.DIGEST, "")
            jobs, pods = await self._builds(kube, f"{kept.LABEL}={name}")
            build = jobs.get(kept.build_name(name, digest))
            pod = pods.get(build.metadata.uid) if build is not None else None
            ended = bool(kept.result_of(found.data) or kept.end_of(build) or build is None)  # asked before it is read
            if pod is None:
                return BuildLog(text="", after=0, ended=ended)
            return await _log_piece(kube, pod, after, ended=ended)

    async def _get(self, kube: Kube, name: str) -> EnvironmentRecord:
        await self._found(kube, name)
        found = await self._records(kube, f"{kept.LABEL}={name}")
        if not found:
            raise self._unknown(name)
        return found[0]

    async def _records(self, kube: Kube, labels: str) -> Sequence[EnvironmentRecord]:
        users, listed = await asyncio.gather(
            self._users(kube), kube.list(resources.CONFIG_MAPS, self._namespace, labels=labels, view=views.ConfigMap)
        )
        found = sorted(listed, key=lambda one: one.metadata.name)
        written = [kept.result_of(one.data) for one in found]
        builds: dict[str, views.BatchJob] = {}
        pods: dict[str, views.Pod] = {}
        if not all(written):
            builds, pods = await self._builds(kube, labels)
        together = []
        for one, known in zip(found, written, strict=True):
            name = one.metadata.labels[kept.LABEL]
            result = known or await self._judged(kube, one, builds, pods)
            together.append(builder.record(one, result, users.get(name, ())))
        return together

    async def _judged(
        self, kube: Kube, found: views.ConfigMap, builds: dict[str, views.BatchJob], pods: dict[str, views.Pod]
    ) -> builder.Result:
        """What its build has come to; an end is written down, because Jobs and pods do not stay for ever."""
        digest = found.data.get(kept.DIGEST, "")
        build = builds.get(kept.build_name(found.metadata.labels[kept.LABEL], digest))
        result = builder.result_of(digest, build, pods.get(build.metadata.uid) if build is not None else None)
        if kept.DIGEST in result:
            version = {"resourceVersion": found.metadata.resource_version}
            written = json.dumps(result | {"message": dump(result.get("message", ""))})
            patch = {"metadata": version, "data": {kept.RESULT: written}}
            with suppress(ApiError):  # whoever may only look still sees it
                await kube.patch(resources.CONFIG_MAPS, found.metadata.name, patch, self._namespace)
        return result

    async def _found(self, kube: Kube, name: str) -> views.ConfigMap:
        try:
            if NAME.fullmatch(name):
                return await kube.get(
                    resources.CONFIG_MAPS, kept.object_name(name), self._namespace, view=views.ConfigMap
                )
        except NotFound as error:
            if error.message.startswith("namespaces "):
                raise
        raise self._unknown(name)

    def _unknown(self, name: str) -> NotFoundError:
        message = Text("there is no environment {name} in namespace {space}", name=name, space=self._namespace)
        return NotFoundError(message, hint=Text("`oarsman env list` shows those there are"))

    async def _builds(self, kube: Kube, labels: str) -> tuple[dict[str, views.BatchJob], dict[str, views.Pod]]:
        """Jobs by their name, pods by the Job they are of."""
        jobs, pods = await asyncio.gather(
            kube.list(resources.JOBS, self._namespace, labels=labels, view=views.BatchJob),
            kube.list(resources.PODS, self._namespace, labels=labels, view=views.Pod),
        )
        owned = {owner.uid: pod for pod in pods for owner in (pod.metadata.controller,) if owner is not None}
        return {job.metadata.name: job for job in jobs}, owned

    async def _users(self, kube: Kube) -> dict[str, builtins.list[str]]:
        users: dict[str, builtins.list[str]] = {}
        for found in await kube.list(resources.MPIJOBS, self._namespace):
            name = (found["metadata"].get("annotations") or {}).get(names.ANNOTATION_ENVIRONMENT)
            if name and not records.record(found).status.finished:
                users.setdefault(name, []).append(records.key_of(found))
        return users

    # -- changing ------------------------------------------------------------------------------------
    async def put(
        self, wanted: EnvironmentWanted, *, owner: str | None = None, confined: Confined | None = None
    ) -> EnvironmentRecord:
        _check(wanted)
        async with self._asking() as kube:
            await self._require_claim(kube)
            digest, before = digest_of(wanted), None
            with suppress(NotFoundError):
                before = await self._found(kube, wanted.name)
            result = kept.result_of(before.data) if before is not None else {}
            again = before is not None and before.data.get(kept.DIGEST) == digest
            await self._write(kube, wanted, digest, before, owner)
            if not (again and result.get("state") == kept.READY):
                await self._start(kube, wanted, digest)
            return await self._get(kube, wanted.name)

    async def _write(
        self, kube: Kube, wanted: EnvironmentWanted, digest: str, before: views.ConfigMap | None, owner: str | None
    ) -> None:
        builds = before.data.get(builder.BUILDS, "").split() if before is not None else []
        body = builder.config_map(wanted, digest, builds, owner or current_user())
        if before is None:
            with suppress(AlreadyExists):
                await kube.create(resources.CONFIG_MAPS, body, self._namespace)
                return
        data: dict[str, str | None] = body["data"]
        if before is not None and kept.result_of({**before.data, kept.DIGEST: digest}).get("state") != kept.READY:
            data = {**data, kept.RESULT: None}  # a failed build is tried again
        name = kept.object_name(wanted.name)
        await kube.patch(resources.CONFIG_MAPS, name, {"data": data}, self._namespace)

    async def _start(self, kube: Kube, wanted: EnvironmentWanted, digest: str) -> None:
        """A build that goes on or went well stays; one that failed makes room for the next."""
        await self._drop_job(kube, builder.clearing_name(digest))
        body = builder.build_job(wanted, digest, restricted=await self._restricted(kube))
        name = body["metadata"]["name"]
        for _ in range(_TRIES):
            with suppress(AlreadyExists):
                made = await kube.create(resources.JOBS, body, self._namespace, view=PartialObject)
                if (secret := builder.build_secret(wanted, made)) is not None:
                    await self._hand_over(kube, secret, made)
                return
            with suppress(NotFound):
                found = await kube.get(resources.JOBS, name, self._namespace, view=views.BatchJob)
                if found.metadata.deletion_timestamp is None and kept.end_of(found) != kept.FAILED:
                    return
                await kube.delete(resources.JOBS, name, self._namespace, uid=found.metadata.uid)
            await asyncio.sleep(_PAUSE)
        raise RetryableError(Text("the failed build {name} does not go away", name=name))

    async def _hand_over(self, kube: Kube, secret: Mapping[str, Any], build: PartialObject) -> None:
        """The pod waits for it. One of an earlier build may still be on its way out."""
        name, uid = build.metadata.name, build.metadata.uid
        try:
            for _ in range(_TRIES):
                with suppress(AlreadyExists):
                    await kube.create(resources.SECRETS, secret, self._namespace)
                    return
                with suppress(NotFound):
                    old = await kube.get(resources.SECRETS, name, self._namespace, view=PartialObject)
                    await kube.delete(resources.SECRETS, name, self._namespace, uid=old.metadata.uid)
                await asyncio.sleep(_PAUSE)
            raise RetryableError(Text("the secret {name} of an earlier build does not go away", name=name))
        except BaseException:
            with suppress(ApiError):
                await kube.delete(resources.JOBS, name, self._namespace, uid=uid)  # it would wait for ever
            raise

    async def delete(self, name: str) -> None:
        async with self._asking() as kube:
            found = await self._found(kube, name)
            users = (await self._users(kube)).get(name)
            if users:
                message = Text("environment {name} is used by {users}", name=name, users=", ".join(users))
                raise ConflictError(message, hint=Text("stop it first, or wait until it has ended"))
            builds, pods = await self._builds(kube, f"{kept.LABEL}={name}")
            await kube.delete(resources.CONFIG_MAPS, found.metadata.name, self._namespace, uid=found.metadata.uid)
            for build in builds.values():
                await kube.delete(resources.JOBS, build.metadata.name, self._namespace, uid=build.metadata.uid)
            began = kept.result_of(found.data) or any(pod.status.phase != "Pending" for pod in pods.values())
            image = builder.wanted_of(found).image
            if began and image:
                with suppress(ApiError):  # what is left in the claim takes room and does no harm
                    await self._clear_up(kube, found.data.get(builder.BUILDS, "").split(), image)

    async def _clear_up(self, kube: Kube, digests: Sequence[str], image: str) -> None:
        others = await kube.list(resources.CONFIG_MAPS, self._namespace, labels=kept.LABEL, view=views.ConfigMap)
        used = {digest for other in others for digest in other.data.get(builder.BUILDS, "").split()}
        gone = [digest for digest in digests if digest not in used and kept.is_digest(digest)]
        if gone:
            body = builder.clearing_job(gone, image, restricted=await self._restricted(kube))
            await self._drop_job(kube, body["metadata"]["name"])
            await kube.create(resources.JOBS, body, self._namespace)

    async def _drop_job(self, kube: Kube, name: str) -> None:
        with suppress(NotFound):
            found = await kube.get(resources.JOBS, name, self._namespace, view=PartialObject)
            await kube.delete(resources.JOBS, name, self._namespace, uid=found.metadata.uid)

    # -- what is there -------------------------------------------------------------------------------
    async def _require_claim(self, kube: Kube) -> None:
        try:
            await kube.get(resources.PERSISTENT_VOLUME_CLAIMS, kept.CLAIM, self._namespace)
        except NotFound as error:
            wrong = Text("{what} ({why})", what=builder.NO_CLAIM, why=self._namespace)
            raise UserError(wrong, hint=builder.CLAIM_HINT) from error
        except Forbidden:
            return  # its build will tell

    async def _restricted(self, kube: Kube) -> bool:
        """Whether the namespace takes no pod that may be root; those who may not ask try it as the image has it."""
        try:
            found = await kube.get(resources.NAMESPACES, self._namespace)
        except (Forbidden, NotFound):
            return False
        labels = found["metadata"].get("labels") or {}
        return bool(labels.get("pod-security.kubernetes.io/enforce") == "restricted")


def _check(wanted: EnvironmentWanted) -> None:
    check_name(wanted.name)
    if not wanted.image:
        hint = Text("it is built by that image's Python: say --image IMAGE")
        raise UsageError(Text("on Kubernetes an environment needs the image its jobs run in"), field="image", hint=hint)
    if wanted.mpi and wanted.mpi not in MPI:
        hint = Text("one of {names}", names=", ".join(MPI))
        raise UsageError(Text("'{mpi}' is not known here", mpi=wanted.mpi), field="mpi", hint=hint)
    if len(wanted.requirements.encode()) > _MOST_REQUIREMENTS:
        wrong = Text("more than {size} KiB of requirements", size=_MOST_REQUIREMENTS >> 10)
        raise UsageError(wrong, field="requirements")


async def _log_piece(kube: Kube, pod: views.Pod, after: int, *, ended: bool) -> BuildLog:
    """The server cannot be asked for a place in a log, so what comes before it is read and thrown away."""
    meta, at, piece = pod.metadata, 0, bytearray()
    try:
        async with aclosing(kube.log(meta.name, meta.namespace, container=builder.BUILD)) as lines:
            async for line in lines:
                whole = line + b"\n"
                begin = max(after - at, 0)
                at += len(whole)
                if begin >= len(whole):
                    continue
                piece += whole[begin:]
                if len(piece) >= _LOG_PIECE:
                    ended = False
                    break
    except (Invalid, NotFound):  # the container waits to be started, or the pod is gone
        return BuildLog(text="", after=after, ended=ended)
    if after > at:  # a place in the log of an earlier build
        return BuildLog(text="", after=0, ended=False)
    taken = bytes(piece[:_LOG_PIECE])
    if len(piece) > _LOG_PIECE and b"\n" in taken:
        taken = taken[: taken.rindex(b"\n") + 1]
    return BuildLog(text=taken.decode(errors="replace"), after=after + len(taken), ended=ended)
