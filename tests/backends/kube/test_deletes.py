"""What is deleted is what was looked at: an object that took its name meanwhile stays."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from oarsman.backends.kube import environment_builds as builder
from oarsman.backends.kube import install
from oarsman.backends.kube.environments import KubeEnvironments
from oarsman.backends.kube.install import InstallSettings, documents
from oarsman.engines.kube.client import Resource, resources
from oarsman.engines.kube.environments import CLAIM
from oarsman.job.environment import EnvironmentWanted, digest_of
from tests.engines.kube.memory_kube import MemoryKube

WANTED = EnvironmentWanted(name="torch", requirements="numpy\n", image="pi")


class Replacing(MemoryKube):
    """Whatever somebody looks at is another object of the same name right afterwards."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None, *, view: Any = dict) -> Any:
        seen = await super().get(resource, name, namespace, view=view)
        found = self.objects[resource.plural, namespace or "", name]["metadata"]
        found["uid"] = f"after-{found['uid']}"
        return seen

    async def has(self, resource: Resource) -> bool:
        return True


def test_uninstalling_leaves_objects_that_came_after_the_look() -> None:
    async def story() -> None:
        kube = Replacing()
        wanted = documents(InstallSettings(namespace="here"))
        for document in wanted:
            resource, _, namespace = install._address(document)
            kube.add(resource, document, **({"namespace": namespace} if namespace else {"namespace": ""}))
        there = set(kube.objects)
        steps = [step async for step in install.remove(kube, wanted, with_definition=True)]  # type: ignore[arg-type]
        assert {step.what for step in steps} == {"absent"}
        assert len(kube.writes("delete")) == len(wanted)
        assert set(kube.objects) == there

    asyncio.run(story())


def test_a_clearing_job_that_came_after_the_look_stays() -> None:
    async def story() -> None:
        kube = Replacing()
        clearing = builder.clearing_name(digest_of(WANTED))
        kube.add(resources.PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": CLAIM}})
        kube.add(resources.JOBS, {"metadata": {"name": clearing}})

        @contextlib.asynccontextmanager
        async def asking() -> AsyncIterator[Any]:
            yield kube

        await KubeEnvironments(asking, "default").put(WANTED)
        assert ("delete", "jobs", clearing) in kube.asked
        assert clearing in kube.names(resources.JOBS)

    asyncio.run(story())
