"""`oarsman operator`: the process in a cluster that looks after its MPIJobs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import failures, options
from oarsman.cli.goflags import KLOG, GoVerb
from oarsman.cli.session import Session, pass_session
from oarsman.cli.text import t
from oarsman.cli.verbs import verb
from oarsman.errors import OarsmanError, UsageError

if TYPE_CHECKING:
    from oarsman.control.operator_settings import OperatorSettings
    from oarsman.engines.kube.client import Access

_PORT = click.IntRange(0, 65535)
_EXTRA = {"aiohttp", "cryptography", "msgspec", "prometheus_client"}  # what the extra `kube` brings
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TO_RELEASE = 5.0  # seconds beyond those for the turns under way
_DEBUG_FROM = 4  # klog's -v


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from oarsman.version import __version__

        click.echo(f"oarsman {__version__}")
        ctx.exit()


_FLAGS = [
    click.Option(
        ["--namespace", "namespaces"],
        metavar="NS,...",
        multiple=True,
        help=t("Look after these namespaces only (also: KUBEFLOW_NAMESPACE); default: all."),
    ),
    click.Option(
        ["--gang-scheduling"],
        metavar="NAME",
        default="",
        help=t("Schedule all pods of a job or none: volcano, or a scheduler with scheduler-plugins."),
    ),
    click.Option(
        ["--cluster-domain"],
        metavar="DOMAIN",
        default="",
        help=t("Write host names with this domain, such as cluster.local."),
    ),
    click.Option(
        ["--kubectl-delivery-image"],
        metavar="IMAGE",
        default="",
        help=t("For v1 jobs: the image that brings kubectl to launchers."),
    ),
    click.Option(
        ["--start-barrier"],
        metavar="TIME",
        default="5m",
        callback=options.seconds,
        help=t("How long a launcher may wait for its workers; default 5m."),
    ),
    click.Option(
        ["--kubeconfig"],
        metavar="FILE",
        help=t("How to reach the cluster; default: KUBECONFIG, then the pod's own account."),
    ),
    click.Option(["--context"], metavar="NAME", help=t("Which context of that file; default: its current one.")),
    click.Option(["--master"], metavar="URL", help=t("The API server's address, if another than the file's.")),
    click.Option(
        ["--leader-elect/--no-leader-elect"],
        default=True,
        help=t("Let one of several operators act; default. Without: there must be only one."),
    ),
    click.Option(
        ["--lock-namespace"],
        metavar="NS",
        help=t("Where the lease lies that says who acts; default: the pod's own namespace."),
    ),
    click.Option(["--lease-name"], metavar="NAME", default="mpi-operator", help=t("The name of that lease.")),
    click.Option(
        ["--threadiness"],
        metavar="N",
        type=click.IntRange(min=1),
        default=16,
        help=t("Jobs that are worked on at the same time; default 16."),
    ),
    click.Option(
        ["--kube-api-qps"],
        metavar="N",
        type=int,
        default=0,
        help=t("Requests per second to the API server; default 0, no limit."),
    ),
    click.Option(
        ["--kube-api-burst"],
        metavar="N",
        type=int,
        default=0,
        help=t("How many may exceed that at once; default: twice as many."),
    ),
    # Upstream limits its turns because each costs requests; ours are taken only when something changed.
    click.Option(["--controller-queue-rate-limit"], type=int, hidden=True, expose_value=False),
    click.Option(["--controller-queue-burst"], type=int, hidden=True, expose_value=False),
    click.Option(
        ["--health-port"],
        metavar="PORT",
        type=_PORT,
        default=8080,
        help=t("Port of /healthz and /readyz; default 8080, 0: none."),
    ),
    click.Option(
        ["--monitoring-port"],
        metavar="PORT",
        type=_PORT,
        default=8081,
        help=t("Port of /metrics; default 8081, 0: none."),
    ),
    click.Option(["--bind-address"], metavar="ADDRESS", default="", help=t("The address of both ports; default: all.")),
    click.Option(
        ["--log-level"],
        type=click.Choice(["debug", "info", "warning", "error"]),
        metavar="LEVEL",
        help=t("From which level on to log: debug, info (default), warning, error."),
    ),
    click.Option(
        ["--log-format"],
        type=click.Choice(["text", "json"]),
        default="text",
        metavar="FORM",
        help=t("How to log, one line each: text (default), json."),
    ),
    click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help=t("Show the version.")
    ),
]


@verb(
    "operator",
    of_place=True,
    cls=GoVerb,
    params=_FLAGS,
    aliases={"kubeConfig": "kubeconfig", "mpi-kubectl-delivery-image": "kubectl-delivery-image"},
    help=t(
        "Look after the MPIJobs of a Kubernetes cluster. This is what runs in the operator's pod; of several, one acts "
        "and the others stand by. SIGTERM lets the turns under way finish and hands over at once.\n\n"
        "The flags of the MPI Operator are understood as they are, with one dash or two; those of its logging have no "
        "effect, except that -v=4 and more means --log-level debug."
    ),
    examples=[
        ("oarsman operator", t("in a pod, or with your own kubeconfig")),
        ("oarsman operator --namespace team-a,team-b", t("only these namespaces")),
        ("oarsman operator -alsologtostderr --lock-namespace=kubeflow -v=4", t("as the MPI Operator is called")),
    ],
)
@click.pass_context
@pass_session
def command(session: Session, ctx: click.Context, /, **given: Any) -> None:
    import logging

    klog: Mapping[str, str] = ctx.meta.get(KLOG, {})
    if given["log_level"] is None:
        given["log_level"] = _level(session, klog)
    try:
        from oarsman.control import process
        from oarsman.control.process import run_until_told

        settings = settings_from(given, os.environ, namespace=session.namespace)
        access = _access(session, given)
        process.set_up(settings.log_level, as_json=settings.json_logs)
        if klog:
            shown = " ".join(f"-{name}={value}" for name, value in klog.items())
            logging.getLogger("oarsman").debug("flags of klog without a meaning here: %s", shown)
        from oarsman.control.operator import run
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise UsageError(
            t("the operator needs {name}, which is not installed", name=error.name),
            hint=t("install it with: pip install 'oarsman[kube]'"),
        ) from error
    try:
        run_until_told(run(settings, access), patience=settings.shutdown_seconds + _TO_RELEASE)
    except OarsmanError as error:
        hint = f" ({error.hint})" if error.hint else ""
        logging.getLogger("oarsman").error("%s%s", error, hint)
        ctx.exit(error.exit_code)
    except Exception:
        logging.getLogger("oarsman").exception("the operator failed")
        ctx.exit(failures.UNEXPECTED)


def settings_from(
    given: Mapping[str, Any], environment: Mapping[str, str], *, namespace: str | None = None
) -> OperatorSettings:
    """The settings that flags and variables ask for."""
    from oarsman.control.operator_settings import OperatorSettings

    asked = given["namespaces"] or [namespace or environment.get("KUBEFLOW_NAMESPACE", "")]
    return OperatorSettings(
        namespaces=_namespaces(asked),
        gang_scheduling=given["gang_scheduling"],
        cluster_domain=given["cluster_domain"].strip("."),
        kubectl_delivery_image=given["kubectl_delivery_image"],
        start_barrier_seconds=given["start_barrier"],
        leader_elect=given["leader_elect"],
        lock_namespace=given["lock_namespace"] or own_namespace(),
        lease_name=given["lease_name"],
        threadiness=given["threadiness"],
        qps=_positive(given["kube_api_qps"]),
        burst=_positive(given["kube_api_burst"]),
        health_port=given["health_port"],
        monitoring_port=given["monitoring_port"],
        bind_address=given["bind_address"],
        log_level=given["log_level"] or "info",
        json_logs=given["log_format"] == "json",
    )


def own_namespace(account: Path | None = None) -> str:
    """The namespace of the pod this runs in; elsewhere, the one upstream uses."""
    from oarsman.control.operator_settings import LOCK_NAMESPACE
    from oarsman.engines.kube.client.access import SERVICE_ACCOUNT

    try:
        return ((account or SERVICE_ACCOUNT) / "namespace").read_text("utf-8").strip() or LOCK_NAMESPACE
    except OSError:
        return LOCK_NAMESPACE


def _namespaces(asked: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(name.strip() for group in asked for name in group.split(",") if name.strip())
    for name in found:
        if _NAMESPACE.fullmatch(name) is None:
            raise UsageError(
                t("'{name}' is not the name of a namespace", name=name), hint=t("write --namespace team-a,team-b")
            )
    return tuple(found)


def _positive(number: int) -> int | None:
    return number if number > 0 else None


def _level(session: Session, klog: Mapping[str, str]) -> str:
    verbosity = klog.get("v", "")
    if verbosity.isdecimal() and int(verbosity) >= _DEBUG_FROM:
        return "debug"
    return "warning" if session.quiet else "info"


def _access(session: Session, given: Mapping[str, Any]) -> Access:
    from oarsman.engines.kube.client import load_access

    kubeconfig = given["kubeconfig"] or getattr(session, "kubeconfig", None)
    return load_access(
        kubeconfig=Path(kubeconfig) if kubeconfig else None,
        context=given["context"] or getattr(session, "context", None),
        master=given["master"] or None,
    )
