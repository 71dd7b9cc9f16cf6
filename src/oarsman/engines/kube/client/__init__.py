"""A thin Kubernetes client: access, verbs, views, and informers that follow what changes."""

from oarsman.engines.kube.client import resources
from oarsman.engines.kube.client.access import Access, load_access
from oarsman.engines.kube.client.codec import HasMeta, Listed, Meta, PartialObject, WatchChange
from oarsman.engines.kube.client.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    StatusCause,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unreadable,
)
from oarsman.engines.kube.client.informer import Informer
from oarsman.engines.kube.client.kube import Kube
from oarsman.engines.kube.client.list_watch import ListWatch, Pauses
from oarsman.engines.kube.client.resources import Resource
from oarsman.engines.kube.client.transport import on_behalf_of
from oarsman.errors import AccessError
