"""The pages about racks are tried on real hosts."""

from ssh_hosts.fixtures import rack, shared_rack  # noqa: F401
