"""Real hosts for tests of racks: each has namespaces of its own, an address, a real sshd. Needs root.

    from ssh_hosts import rack            # tests.ssh_hosts outside of pytest

    with rack(4) as hosts:
        node1, node2, *_ = hosts
        hosts.ssh(node1, "hostname")                    # the real ssh, by key, as rower: a CompletedProcess
        hosts.ssh(node1, "id", user="root")
        subprocess.run(["ssh", "-F", hosts.ssh_config, "node2", "hostname"])
        subprocess.run(["ssh", "node2", "hostname"], env=hosts.environment)     # an ssh in PATH that knows the config

A test asks for the fixture `rack` (four hosts; afterwards all it planted is repaired, what it left running is ended and
what it wrote is removed) or `shared_rack` (the same hosts, nothing is repaired), or makes its own rack. In a conftest:

    from ssh_hosts.fixtures import rack, shared_rack  # noqa: F401

The machine reaches every host directly, at host.address, port 22, by a cable of its own. Host names are known to
hosts.ssh_config and to the hosts, not to the machine. On every host there are:

- users `rower` (uid 5001, /home/rower, /bin/sh) and `root`; both have the password PASSWORD and admit hosts.key. ssh
  finds its folder by the user database and not by HOME: always say -F hosts.ssh_config, or use hosts.environment;
- a host name, processes, /etc, /home, /root and /var/tmp of its own (kept when it loses its power), and /tmp, /run and
  /dev/shm (not kept);
- all else of the machine, read-only: Debian's Open MPI as /usr/bin/mpirun, the environments in .mpi at their own paths;
- the folder hosts.shared, the same on all of them and on this machine;
- eth0 with its own address, and docker0, up, with 172.17.0.1/16 on every host: Open MPI that is not told to use eth0
  hangs or fails, as it does on real machines;
- no trust in each other until hosts.trust() has given rower a key for all of them.

Without ssh, as root and for looking behind the scenes:

    node1.sh("ip addr"); node1.run("id", "rower"); node1.commands("rower")      # what runs there for rower
    node1.path("/home/rower/file").read_text(); node1.write("/home/rower/file", "x", user="rower")
    node1.kill(); node1.start(); node1.reboot()                                 # the power

Faults (see faults.py) are planted on one host, and undone by undo(), by the end of a `with`, or by hosts.repair():

    with node1.faults.cut(): ...
    fault = node2.faults.full_disk("/home/rower"); ...; fault.undo()
    node2.faults.refuse_connections_from(hosts.address)       # from here it is reached only through another host
    node3.faults.without("python3", "bash"); node4.faults.busybox(); node4.faults.login_shell("/usr/bin/tcsh")

By hand, at the top of the repository: `python -m tests.ssh_hosts up [N]` and `python -m tests.ssh_hosts down`.
"""

import sys
from pathlib import Path

# Tests are no package: pytest finds their packages in this folder, and so must everybody else.
if (_tests := str(Path(__file__).resolve().parents[1])) not in sys.path:
    sys.path.append(_tests)

from .host import PASSWORD, Host
from .rack import Rack, rack, why_no_racks

__all__ = ["PASSWORD", "Host", "Rack", "rack", "why_no_racks"]
