"""`oarsman hosts`: the SSH hosts that jobs run on."""

from __future__ import annotations

from oarsman.cli import hosts_check, hosts_list, hosts_trust
from oarsman.cli.host_arguments import option
from oarsman.cli.messages import t
from oarsman.cli.verbs import family

command = family(
    "hosts",
    of_place=True,
    help=t(
        "Look at SSH hosts: machines that are reached over ssh and have an MPI, and nothing else. A file "
        "names them, as mpirun's hostfile does: --hosts, OARSMAN_HOSTS, or hosts.yaml, hosts or hostfile in "
        "~/.config/oarsman."
    ),
    examples=[
        ("oarsman hosts --hosts hostfile list", t("what there is, and what is free")),
        ("oarsman hosts check", t("every host, and every way between two of them")),
    ],
)
command.params.insert(0, option())
command.add_command(hosts_list.command)
command.add_command(hosts_check.command)
command.add_command(hosts_trust.command)
