"""Where jobs are handed in: from this process and this folder, or at a server."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, cast

from oarsman.errors import UsageError, UserError
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.service.contract import Service


def current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise UserError(Text("the current folder is gone"), hint=Text("change to a folder that exists")) from error


def in_this_process(
    on: str = "local",
    context: str | None = None,
    kubeconfig: str | None = None,
    namespace: str | None = None,
    hosts: str | os.PathLike[str] | None = None,
) -> Service:
    """The service on the jobs of this user, who may do here whatever the engine allows."""
    from oarsman.backends import open_backend
    from oarsman.backends.base import current_user
    from oarsman.service import JobService
    from oarsman.service.models import Identity, Role

    if hosts is not None and on != "ssh":
        raise UsageError('hosts are for on="ssh"', field="hosts")
    file = os.fspath(hosts) if hosts is not None else None
    jobs = open_backend(on, context=context, kubeconfig=kubeconfig, namespace=namespace, hosts=file)
    return JobService(jobs, Identity(name=current_user(), role=Role.ADMIN))


def at_server(address: str, token: str | None, verify: str | os.PathLike[str] | ssl.SSLContext | bool) -> Service:
    """That of a server. Says what to install, rather than which import failed."""
    try:
        import httpx_sse  # noqa: F401 - only whether it is there, and httpx with it
    except ModuleNotFoundError as error:
        raise UsageError(
            "a server is reached with httpx, which is not installed", hint="pip install 'oarsman[client]'"
        ) from error
    from oarsman.client.remote import RemoteService

    return cast("Service", RemoteService(address, token=token, verify=verify))  # its methods are made at run time
