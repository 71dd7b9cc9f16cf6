"""What goes over the wire between a server and whoever asks it: the same models for REST, pages and SDK.

In JSON the names are camelCase, times RFC 3339 in UTC. Everything here is a value: it is made by
the service from what the engines know, and never changed.
"""

# One namespace in several files: every name of theirs is meant for others.
from oarsman.service.models.base import *  # noqa: F403
from oarsman.service.models.jobs import *  # noqa: F403
from oarsman.service.models.place import *  # noqa: F403
