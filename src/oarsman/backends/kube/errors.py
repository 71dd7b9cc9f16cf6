"""What a server refused, as the user's mistake that it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from oarsman import names
from oarsman.engines.kube.client import (
    Access,
    AlreadyExists,
    Forbidden,
    Invalid,
    NotFound,
    Unauthorized,
    Unavailable,
)
from oarsman.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OarsmanError,
    UnauthenticatedError,
    UnsupportedError,
    UserError,
)

_OURS = f"{names.PLURAL}.{names.GROUP}"


@contextmanager
def in_plain_words(access: Access) -> Iterator[None]:
    try:
        yield
    except AlreadyExists as error:
        hint = "delete it first, or give this one another name"
        raise ConflictError(f"there is a job of this name already: {error.message}", hint=hint) from error
    except NotFound as error:
        raise _not_found(error) from error
    except Invalid as error:
        raise UserError(f"the cluster refused it: {error.message}", field=error.field, hint=error.hint) from error
    except Forbidden as error:
        raise ForbiddenError(
            f"this user may not do that: {error.message}", hint="`oarsman doctor --on kube` shows what this user may do"
        ) from error
    except Unauthorized as error:
        raise UnauthenticatedError(
            f"the cluster does not know this user: {error.message}",
            hint=f"the credentials are those of {access.source}",
        ) from error
    except Unavailable as error:
        error.hint = error.hint or f"the server is {access.server}, from {access.source}"
        raise


def not_installed() -> OarsmanError:
    return UnsupportedError("the cluster has no MPIJobs", hint="run `oarsman install --image IMAGE`")


def no_namespace(place: str) -> OarsmanError:
    hint = f"make it: kubectl create namespace {place}"
    return NotFoundError(f"there is no namespace {place} on this cluster", hint=hint)


def _not_found(error: NotFound) -> OarsmanError:
    if error.message.startswith("namespaces "):
        place = error.message.split('"')[1] if '"' in error.message else "NAME"
        return no_namespace(place)
    if _OURS in error.message:
        return NotFoundError(f"there is no such job: {error.message}")
    return not_installed()
