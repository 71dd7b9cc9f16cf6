"""`oarsman operator`: the process in a cluster that looks after its MPIJobs. It takes the MPI Operator's place, and its
flags as Go programs read them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import failures, options
from oarsman.cli.session import Session
from oarsman.cli.text import t
from oarsman.cli.verbs import Verb, option, verb
from oarsman.errors import OarsmanError, UsageError

if TYPE_CHECKING:
    from oarsman.control.operator_settings import OperatorSettings

_EXTRA = {"aiohttp", "cryptography", "msgspec", "prometheus_client"}  # what the extra `kube` brings
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TO_RELEASE = 5.0  # seconds beyond those for the turns under way
_DEBUG_FROM = 4  # klog's -v
KLOG = "oarsman.klog"  # in the context's `meta`: the flags of klog that were given, with their values
_FLAG = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
_ALIASES = {"kubeConfig": "kubeconfig", "mpi-kubectl-delivery-image": "kubectl-delivery-image"}
_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}
_KLOG_SWITCHES = {"add_dir_header", "alsologtostderr", "legacy_stderr_threshold_behavior", "logtostderr", "one_output"}
_KLOG_SWITCHES |= {"skip_headers", "skip_log_headers"}
_KLOG_VALUES = {"log_backtrace_at", "log_dir", "log_file", "log_file_max_size", "stderrthreshold", "v", "vmodule"}


class GoVerb(Verb):
    """Takes flags with one dash or two, `--flag=value` or `--flag value`, and booleans with `=true`. They are rewritten
    to the form click reads, so that help, errors and suggestions stay as everywhere else; those of klog, Go's logging,
    are taken out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        klog = ctx.meta.setdefault(KLOG, {})
        options = {name: o for o in self.get_params(ctx) if isinstance(o, click.Option) for name in o.opts}
        return super().parse_args(ctx, list(_translated(iter(args), options, klog)))


def _translated(words: Iterator[str], options: Mapping[str, click.Option], klog: dict[str, str]) -> Iterator[str]:
    for word in words:
        flag = _FLAG.fullmatch(word)
        if word == "--" or flag is None:
            yield word
            yield from words  # Go stops at the first word that is no flag; what follows is refused by click
            return
        name, value = _ALIASES.get(flag[1], flag[1]), flag[2]
        option = options.get(f"--{name}")
        if word in options and value is None and option is None:
            yield word  # a short option of our own
        elif option is not None:
            yield from _known(f"--{name}", option, value, words)
        elif name in _KLOG_SWITCHES:
            klog[name] = "true" if value is None else value
        elif name in _KLOG_VALUES:
            klog[name] = next(words, "") if value is None else value
        else:
            yield f"--{name}" if value is None else f"--{name}={value}"


def _known(name: str, option: click.Option, value: str | None, words: Iterator[str]) -> Iterator[str]:
    if option.is_flag:
        if value is None or value in _TRUE:
            yield name
        elif value in _FALSE:
            yield from option.secondary_opts[:1]
        else:
            raise UsageError(t("{what} takes true or false", what=name))
        return
    if value is None:
        value = next(words, None)
    yield name if value is None else f"{name}={value}"


@verb(
    "operator",
    t(
        "Manage the MPIJobs of a Kubernetes cluster. The operator's pods run this command; one of them "
        "leads, the others stand by. After SIGTERM it finishes what it is doing and lets another take over "
        "at once.\n\n"
        "The flags of the MPI Operator work as they are, with one dash or two; its logging flags have no "
        "effect, except that -v=4 and more means --log-level debug."
    ),
    ("oarsman operator", t("in a pod, or with your own kubeconfig")),
    ("oarsman operator --namespace team-a,team-b", t("only these namespaces")),
    ("oarsman operator -alsologtostderr --lock-namespace=kubeflow -v=4", t("as the MPI Operator is called")),
    of_place=True,
    cls=GoVerb,
)
@option(
    "--namespace NS,...",
    t("Manage jobs in these namespaces only (also: KUBEFLOW_NAMESPACE); default: all."),
    "namespaces",
    multiple=True,
)
@option(
    "--gang-scheduling NAME",
    t("Schedule all pods of a job or none: volcano, kubernetes, or a scheduler with scheduler-plugins."),
    default="",
)
@option("--cluster-domain DOMAIN", t("Write host names with this domain, such as cluster.local."), default="")
@option("--kubectl-delivery-image IMAGE", t("For v1 jobs: the image that brings kubectl to launchers."), default="")
@option(
    "--start-barrier TIME",
    t("How long a launcher may wait for its workers; default 5m."),
    "start_barrier_seconds",
    default="5m",
    callback=options.seconds,
)
@option(
    "--kubeconfig FILE",
    t("How to reach the cluster; default: KUBECONFIG, then the pod's own account."),
    type=options.SECRET,
)
@option("--context NAME", t("Which context of that file; default: its current one."))
@option("--master URL", t("The API server's address, if another than the file's."))
@option(
    "--leader-elect/--no-leader-elect",
    t("Elect one leader among several operators (default). Without it, run only one."),
    default=True,
)
@option("--lock-namespace NS", t("The namespace of the leader's lease; default: the pod's own."))
@option("--lease-name NAME", t("The name of that lease."), default="mpi-operator")
@option("--threadiness N", t("Jobs that are worked on at the same time; default 16."), type=options.COUNT, default=16)
@option(
    "--kube-api-qps N", t("Requests per second to the API server; default 0, no limit."), "qps", type=int, default=0
)
@option(
    "--kube-api-burst N", t("How many may exceed that at once; default: twice as many."), "burst", type=int, default=0
)
# Upstream limits its turns because each costs requests; ours are taken only when something changed.
@click.option("--controller-queue-rate-limit", type=int, hidden=True, expose_value=False)
@click.option("--controller-queue-burst", type=int, hidden=True, expose_value=False)
@option(
    "--health-port PORT", t("Port of /healthz and /readyz; default 8080, 0: none."), type=options.PORT, default=8080
)
@option("--monitoring-port PORT", t("Port of /metrics; default 8081, 0: none."), type=options.PORT, default=8081)
@option(
    "--monitoring-auth/--no-monitoring-auth",
    t(
        "Serve metrics through TLS, to users whom the cluster allows to get /metrics (default). Without it: "
        "plain HTTP, to everybody."
    ),
    default=True,
)
@option("--bind-address ADDRESS", t("The address of both ports; default: all."), default="")
@option(
    "--log-level LEVEL",
    t("From which level on to log: debug, info (default), warning, error."),
    type=click.Choice(["debug", "info", "warning", "error"]),
)
@option(
    "--log-format FORM",
    t("How to log, one line each: text (default), json."),
    type=click.Choice(["text", "json"]),
    default="text",
)
@options.version
def command(session: Session, kubeconfig: str | None, context: str | None, master: str | None, **given: Any) -> None:
    import logging

    ctx = click.get_current_context()
    klog: Mapping[str, str] = ctx.meta.get(KLOG, {})
    try:
        from oarsman.control import process
        from oarsman.control.process import run_until_told
        from oarsman.engines.kube.client import load_access

        settings = _settings(session, klog, given)
        file = kubeconfig or session.kubeconfig
        access = load_access(
            kubeconfig=Path(file) if file else None, context=context or session.context, master=master or None
        )
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


def _settings(session: Session, klog: Mapping[str, str], given: dict[str, Any]) -> OperatorSettings:
    """What flags and variables ask for. Most flags are called as the settings are."""
    from oarsman.control.operator_settings import OperatorSettings

    asked = given["namespaces"] or [session.namespace or os.environ.get("KUBEFLOW_NAMESPACE", "")]
    given["namespaces"] = _namespaces(asked)
    given["cluster_domain"] = given["cluster_domain"].strip(".")
    given["lock_namespace"] = given["lock_namespace"] or own_namespace()
    given["qps"], given["burst"] = (max(given[name], 0) or None for name in ("qps", "burst"))
    given["log_level"] = given["log_level"] or _level(session, klog)
    json_logs = given.pop("log_format") == "json"
    return OperatorSettings(**given, json_logs=json_logs)


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


def _level(session: Session, klog: Mapping[str, str]) -> str:
    verbosity = klog.get("v", "")
    if verbosity.isdecimal() and int(verbosity) >= _DEBUG_FROM:
        return "debug"
    return "warning" if session.quiet else "info"
