from ssh_hosts.fixtures import rack, shared_rack  # noqa: F401
