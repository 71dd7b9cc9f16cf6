"""MPIJob documents from Python: made from a few words, read from YAML, changed, checked, written.

job = MPIJob("train", image="registry/train:1", command=["python", "train.py"], workers=4, gpus=1)
print(job.to_yaml())
"""

from __future__ import annotations

import ast
import builtins
import copy
import dis
import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from oarsman import manifest, names
from oarsman.client import places
from oarsman.errors import ManifestError, Problem, UsageError, UserError
from oarsman.manifest import builder
from oarsman.manifest.fields import FIELDS, RANKS, total_slots, write
from oarsman.manifest.places import WORKER, Document, look, unshared
from oarsman.portal import shared

if TYPE_CHECKING:
    from oarsman.service.models import PreviewView

Volumes = Mapping[str, str | Mapping[str, Any]]
# What a job can be changed by, and the fields of a document that are called otherwise.
_CHANGES = ["name", "namespace", "image", "workers", "slots", "command", "env", "cpus", "memory", "gpus"]
_CHANGES += ["clean_pod_policy", "backoff_limit", "deadline", "ttl", "labels", "annotations", "volumes", "priority"]
_CHANGES += ["queue", "environment", "install"]
_CALLED = {"cpus": "worker_cpu", "memory": "worker_memory", "gpus": "worker_gpu"}
_CALLED |= {"clean_pod_policy": "clean_policy", "backoff_limit": "retries"}
_OF_WORKERS = ("workers", "cpus", "memory", "gpus")
_LONGEST = 100_000  # characters; the kernel takes no longer word in a command


class MPIJob:
    """A document. Nothing changes it: `changed` makes another one."""

    __slots__ = ("_document",)

    def __init__(
        self,
        name: str | None = None,
        image: str | None = None,
        command: Sequence[str] = (),
        *,
        workers: int = 2,
        slots: int = 1,
        env: Mapping[str, object] | None = None,
        cpus: float | str | None = None,
        memory: int | str | None = None,
        gpus: int | None = None,
        gpu_resource: str = "nvidia.com/gpu",
        clean_pod_policy: str | None = None,
        backoff_limit: int | None = None,
        deadline: float | None = None,
        ttl: int | None = None,
        min_workers: int | None = None,
        max_workers: int | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        volumes: Volumes | None = None,
        priority: int | None = None,
        queue: str | None = None,
        implementation: str | None = None,
        environment: str | None = None,
        install: str | None = None,
        namespace: str | None = None,
        api_version: str = "v2beta1",
    ) -> None:
        """`command` runs on every one of workers x slots ranks. Amounts are per worker.

        name: None makes one from the command. image: needed on Kubernetes; one machine uses its own programs.
        deadline, ttl: seconds. min_workers, max_workers: an elastic job, which horovodrun starts and which finds its
        hosts anew when it is scaled. volumes: a path in the job -> a folder of the host ("/data"), the name of a
        PersistentVolumeClaim ("claim"), either with ":ro", or a Kubernetes volume source. implementation: openmpi,
        mpich, intel, or the path of an MPI. environment: the name of a set of packages, which comes first on PATH.
        install: shell commands that run before the job. api_version: v2beta1 or v1.
        """
        if isinstance(command, str) or not command:
            raise UsageError("a job needs a command: a list of words", field="command", hint='["python", "train.py"]')
        if api_version.removeprefix(f"{names.GROUP}/") not in ("v1", "v2beta1"):
            raise UsageError(
                f"there is no version '{api_version}' of MPIJob", field="api_version", hint="v2beta1 or v1"
            )
        shape = builder.Shape(
            processes=_positive(workers, "workers") * _positive(slots, "slots"),
            workers=workers,
            slots=slots,
            env={k: str(v) for k, v in (env or {}).items()},
            cpus=None if cpus is None else f"{cpus}",
            memory=None if memory is None else f"{memory}",
            gpus=gpus,
            gpu_resource=gpu_resource,
            image=image,
        )
        suffix = "" if name else builder.new_suffix()
        made = builder.document(list(map(str, command)), shape, builder.JobSettings(), suffix=suffix)
        FIELDS["api_version"].write(made, f"{names.GROUP}/{api_version.removeprefix(f'{names.GROUP}/')}")
        mpi = implementation.lower() if implementation and "/" not in implementation else implementation
        settings = builder.JobSettings(name=name, mpi=mpi, priority=priority, deadline=deadline)
        self._document = builder.apply(made, settings)
        if min_workers is not None or max_workers is not None:
            line = _elastic(list(map(str, command)), workers, slots, min_workers, max_workers)
            FIELDS["command"].write(self._document, line)
        more = {
            "clean_policy": clean_pod_policy,
            "retries": backoff_limit,
            "ttl": ttl,
            "labels": labels,
            "annotations": annotations,
            "volumes": volumes,
            "queue": queue,
            "namespace": namespace,
            "environment": environment,
            "install": install,
        }
        write(self._document, more)

    # -- other ways to make one ------------------------------------------------------------------------
    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> MPIJob:
        """Any document, right or wrong; `validate` tells."""
        made = cls.__new__(cls)
        made._document = unshared(dict(document))
        return made

    @classmethod
    def from_yaml(cls, source: str | os.PathLike[str]) -> MPIJob:
        """The one job of a text, or of a file. Raises ManifestError with every problem and its place."""
        is_text = isinstance(source, str) and ("\n" in source or not source.endswith((".yaml", ".yml", ".json")))
        text, where = (str(source), "<manifest>") if is_text else (text_of(Path(source)), str(Path(source)))
        found = manifest.documents(text, where)
        if len(found) != 1:
            raise UsageError(f"{where} holds {len(found)} jobs, not one", hint="client.submit them one by one")
        return cls.from_dict(found[0])

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        name: str | None = None,
        image: str | None = None,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        python: str | None = None,
        **fields: Any,
    ) -> MPIJob:
        """A job in which every rank calls the function once. What it returns is not kept: print it, or write a file.

        Its source text is sent, so it has to stand alone: a `def`, no lambda, no method, no decorators, no variables of
        a surrounding function, modules imported inside. Arguments are numbers, text, and lists, dicts and the like of
        them. python: the interpreter; by default this one, and python3 in an image or an environment. fields: those of
        MPIJob.
        """
        text = _program(function, args, kwargs or {})
        interpreter = python or ("python3" if image or fields.get("environment") else sys.executable)
        if name is None:
            name = f"{builder.name_stem([function.__name__])}-{builder.new_suffix()}"
        return cls(name, image, [interpreter, "-c", text], **fields)

    def changed(self, **changes: Any) -> MPIJob:
        """The same job but for: name, namespace, image, command, workers, slots, env, cpus, memory, gpus,
        clean_pod_policy, backoff_limit, deadline, ttl, labels, annotations, volumes, priority, queue, environment,
        install.

        env, labels and annotations are added to what is there; a value of None takes one away.
        """
        made = MPIJob.from_dict(self._document)
        for field, value in changes.items():
            if field not in _CHANGES:
                raise UsageError(
                    f"a job cannot be changed by '{field}'", field=field, hint=f"one of {', '.join(_CHANGES)}"
                )
            _change(made._document, field, value)
        return made

    def placed(self, namespace: str | None) -> MPIJob:
        """In that namespace, if it mentions none itself."""
        mentioned = (self._document.get("metadata") or {}).get("namespace")
        return self if namespace is None or mentioned else self.changed(namespace=namespace)

    # -- what it is --------------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return str((self._document.get("metadata") or {}).get("name", ""))

    def to_dict(self) -> dict[str, Any]:
        return copy.deepcopy(self._document)

    def to_yaml(self) -> str:
        return manifest.to_yaml([self._document])

    def validate(self) -> list[Problem]:
        """Everything that is wrong with it, each with field, hint and the line of `to_yaml()`; empty if all is well."""
        try:
            manifest.load(self.to_yaml(), "<job>")
        except ManifestError as error:
            return list(error.problems)
        return []

    def preview(self) -> PreviewView:
        """What would become of it on this machine. `client.preview(job)` asks another place."""
        from oarsman.service.models import Create

        wanted = Create(document=self.to_dict(), folder=str(places.current_folder()), environment=dict(os.environ))
        return shared().run(places.in_this_process().preview(wanted))

    def patch_from(self, before: MPIJob) -> dict[str, Any]:
        """The JSON merge patch that makes `before` into this."""
        return _merge_patch(before._document, self._document)

    def __eq__(self, other: object) -> bool:
        return self._document == other._document if isinstance(other, MPIJob) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it is equal by what it says, and that may be long

    def __str__(self) -> str:
        return self.to_yaml()

    def __repr__(self) -> str:
        return f"<MPIJob {self.name}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_yaml())}</pre>"


def _positive(value: int, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{field} must be a whole number of at least 1, not {value!r}", field=field)
    return value


def _change(document: Document, field: str, value: Any) -> None:
    if field in ("workers", "slots"):
        _positive(value, field)
    if field in _OF_WORKERS and not isinstance(look(document, *WORKER), dict):
        raise UsageError("the job has no workers", field="spec.mpiReplicaSpecs.Worker")
    if field == "command":
        value = _launch_line(document, value)
        FIELDS["args"].write(document, None)
    FIELDS[_CALLED.get(field, field)].write(document, value)


def _launch_line(document: Document, command: Sequence[str]) -> list[str]:
    """The command behind the mpirun that the job has, or behind one that fills every slot."""
    if isinstance(command, str) or not command:
        raise UsageError("a command is a list of words", field="command", hint='["python", "train.py"]')
    if not isinstance(look(document, "spec", "mpiReplicaSpecs", "Launcher"), dict):
        raise UsageError("the job has no launcher", field="spec.mpiReplicaSpecs.Launcher")
    before = FIELDS["command"].read(document)
    ours = len(before) >= 3 and before[0] == "mpirun" and before[1] in RANKS
    return [*(before[:3] if ours else ["mpirun", "-n", str(total_slots(document))]), *map(str, command)]


def _elastic(command: list[str], workers: int, slots: int, least: int | None, most: int | None) -> list[str]:
    """horovodrun starts the job and asks the discovery script for its hosts."""
    least, most = least if least is not None else 1, most if most is not None else workers
    if not _positive(least, "min_workers") <= workers <= _positive(most, "max_workers"):
        raise UsageError(
            f"{workers} workers are not between min_workers={least} and max_workers={most}", field="workers"
        )
    counts = {"-np": workers * slots, "--min-np": least * slots, "--max-np": most * slots}
    options = [word for option, count in counts.items() for word in (option, str(count))]
    script = f"{names.MPI_CONFIG_DIR}/{names.DISCOVER_HOSTS}"
    return ["horovodrun", *options, "--host-discovery-script", script, *command]


def _merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7396) from one document to the other. Lists are replaced whole."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := _merge_patch(old, value):
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch


def text_of(path: Path, **more: str) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}", **(more or {"hint": "a manifest is a YAML file"})) from error


# -- a function as a program that every rank runs ------------------------------------------------------
# Its source text is sent, and the arguments it is called with. Nothing is pickled, so the program can be read in the
# manifest and runs on any Python. The price is that the function has to stand alone; what does not is refused here, by
# name, and not on some rank later.
def _program(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The text of a program that calls the function once. Raises UsageError for one that does not stand alone."""
    if not isinstance(function, FunctionType):
        raise _refused(function, "it is not a function defined with `def`")
    if function.__name__ == "<lambda>":
        raise _refused(function, "it is a lambda", "give it a name with `def`")
    if around := function.__code__.co_freevars:
        raise _refused(
            function, f"it uses variables of the function around it: {_several(around)}", "pass them in args or kwargs"
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise _refused(function, "it is a coroutine or a generator, and calling it would do nothing")
    text, definition = _source(function)
    _check_names(function, definition)
    call = ", ".join(
        [*(_literal(function, a) for a in args), *(f"{k}={_literal(function, v)}" for k, v in kwargs.items())]
    )
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise _refused(function, str(error)) from error
    made = f"from __future__ import annotations\n\n{text.rstrip()}\n\n\n{function.__name__}({call})\n"
    if len(made) > _LONGEST:
        raise _refused(function, f"with its arguments it is longer than {_LONGEST} characters", "put it into a file")
    return made


def _source(function: FunctionType) -> tuple[str, ast.FunctionDef]:
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise _refused(function, "its source text is not known", "write it in a file or a notebook cell") from error
    found = ast.parse(text).body
    if len(found) != 1 or not isinstance(found[0], ast.FunctionDef):
        raise _refused(function, "its source is not one plain `def`")
    if found[0].decorator_list:
        raise _refused(function, "it has decorators, which the ranks do not know", "call the plain function")
    if function.__qualname__ != function.__name__ and "<locals>" not in function.__qualname__:
        raise _refused(function, "it is a method", "define it at the top of a module")
    return text, found[0]


def _check_names(function: FunctionType, definition: ast.FunctionDef) -> None:
    defaults = [d for d in (*definition.args.defaults, *definition.args.kw_defaults) if d is not None]
    used = {node.id for default in defaults for node in ast.walk(default) if isinstance(node, ast.Name)}
    used |= set(_globals_of(function.__code__))
    foreign = sorted(name for name in used if not hasattr(builtins, name) and name != function.__name__)
    if foreign:
        raise _refused(
            function,
            f"it uses names from outside: {_several(foreign)}",
            "import modules inside the function; pass values in args or kwargs",
        )


def _globals_of(code: CodeType) -> Iterator[str]:
    stored = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL"}
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval not in stored:
            yield instruction.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            defined = set(inner.co_varnames)
            yield from (name for name in _globals_of(inner) if name not in defined and not name.startswith("__"))


def _literal(function: FunctionType, value: Any) -> str:
    text = repr(value)
    try:
        same = ast.literal_eval(text) == value
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        same = False
    if not same:
        raise _refused(
            function,
            f"an argument of type {type(value).__name__} cannot be written as text",
            "numbers, text, None, and lists, tuples, sets and dicts of them can",
        )
    return text


def _several(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _refused(function: object, why: str, hint: str | None = None) -> UsageError:
    name = getattr(function, "__qualname__", type(function).__name__)
    return UsageError(f"{name} cannot be sent to the ranks: {why}", field="function", hint=hint)
