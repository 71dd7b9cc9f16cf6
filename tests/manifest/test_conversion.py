from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifest_samples import SEEDS, V1, V2BETA1, spec

from oarsman.job.job import ApiVersion
from oarsman.manifest import convert, documents, load, to_yaml
from oarsman.manifest.source import read

OTHER = {ApiVersion.V1: ApiVersion.V2BETA1, ApiVersion.V2BETA1: ApiVersion.V1}


def behaviour(text: str) -> tuple[object, ...]:
    (job,) = load(text)
    return (
        job.name,
        job.slots_per_worker,
        job.hosts,
        job.run_policy.clean_pod_policy,
        job.run_policy.backoff_limit,
        job.launcher.restart_policy,
        job.launcher.containers,
        job.worker and job.worker.containers,
        job.launch,
    )


@pytest.mark.parametrize("file", sorted(SEEDS.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_seed_behaves_the_same_there_and_back(file) -> None:
    text = file.read_text()
    (job,) = load(text)
    there = convert(text, file.name, OTHER[job.api_version])
    back = convert(there.text, file.name, job.api_version)
    assert there.losses == back.losses == ()
    assert load(there.text)[0].api_version is OTHER[job.api_version]
    assert behaviour(text) == behaviour(there.text) == behaviour(back.text)


@pytest.mark.parametrize(
    ("text", "losses"),
    [
        (spec("cleanPodPolicy: All", base=V1), ()),
        (spec("runPolicy: {suspend: true, managedBy: kubeflow.org/training-operator}", base=V1), ()),
        (spec("mainContainer: mpi", base=V1), ()),
        (
            spec("mainContainer: train", base=V1) + "          - {name: train, image: t}\n",
            (
                "pi: spec.mainContainer of the Worker: kubeflow.org/v2beta1 always uses the first container;"
                " train was moved to the front",
            ),
        ),
        (
            V1.replace("replicas: 2", "replicas: 2\n      restartPolicy: Always"),
            (
                "pi: spec.mpiReplicaSpecs.Worker.restartPolicy: kubeflow.org/v2beta1 has no Always;"
                " OnFailure is the nearest it has",
            ),
        ),
        (spec("mpiImplementation: OpenMPI\nlauncherCreationPolicy: AtStartup\nsshAuthMountPath: /root/.ssh"), ()),
        (
            spec("mpiImplementation: Intel"),
            ("pi: spec.mpiImplementation: kubeflow.org/v1 knows Open MPI only, not Intel",),
        ),
        (
            spec("sshAuthMountPath: /home/a"),
            ("pi: spec.sshAuthMountPath: kubeflow.org/v1 does not use SSH; /home/a is not needed",),
        ),
        (
            spec("launcherCreationPolicy: WaitForWorkersReady"),
            ("pi: spec.launcherCreationPolicy: kubeflow.org/v1 cannot ask the launcher to wait for workers",),
        ),
        (
            spec("runLauncherAsWorker: true"),
            ("pi: spec.runLauncherAsWorker: in kubeflow.org/v1 only a launcher with a GPU limit takes ranks",),
        ),
        (
            V2BETA1.replace("image: pi\n", "image: pi\n            resources: {limits: {nvidia.com/gpu: 1}}\n", 1),
            ("pi: spec.runLauncherAsWorker: in kubeflow.org/v1 a launcher with a GPU limit always takes ranks",),
        ),
    ],
)
def test_what_the_other_version_cannot_say_is_named(text: str, losses: tuple[str, ...]) -> None:
    (job,) = load(text)
    converted = convert(text, "f", OTHER[job.api_version])
    assert converted.losses == losses
    assert load(converted.text)


@pytest.mark.parametrize(
    "text",
    [
        spec("cleanPodPolicy: All\nrunPolicy: {backoffLimit: 2, managedBy: kubeflow.org/training-operator}", base=V1),
        V1.replace("replicas: 2", "replicas: 2\n      restartPolicy: ExitCode"),
        V1.replace("image: pi\n", "image: pi\n            resources: {limits: {nvidia.com/gpu: 1}}\n", 1),
        spec("runPolicy: {suspend: true, schedulingPolicy: {queue: q, minResources: {cpu: 1e3}}}", base=V1),
    ],
)
def test_v1_there_and_back_keeps_everything_that_can_be_said(text: str) -> None:
    there = convert(text, "f", ApiVersion.V2BETA1)
    back = convert(there.text, "f", ApiVersion.V1)
    assert there.losses == back.losses == ()
    (before,), (after,) = load(text), load(back.text)
    for name in (
        "run_policy",
        "launcher_kind",
        "transport",
        "run_launcher_as_worker",
        "hosts",
        "slots",
        "main_container",
    ):
        assert getattr(before, name) == getattr(after, name), name
    assert before.worker is not None
    assert after.worker is not None
    assert before.worker.restart_policy is after.worker.restart_policy
    assert before.launcher.restart_policy is after.launcher.restart_policy


def test_a_job_already_in_the_wanted_version_keeps_its_values() -> None:
    assert documents(convert(V1, "f", ApiVersion.V1).text) == documents(V1)


def test_several_jobs_are_converted_together() -> None:
    second = V2BETA1.replace("name: pi\n", "name: pj\n", 1)
    converted = convert(f"{V1}---\n{second}", "f", ApiVersion.V1)
    assert [(job.name, job.api_version) for job in load(converted.text)] == [
        ("pi", ApiVersion.V1),
        ("pj", ApiVersion.V1),
    ]


words = st.one_of(
    st.sampled_from(
        ["on", "yes", "017", "1e3", "0o17", "12:30", "2019-07-09", "null", "~", "", "-", ".inf", "0x1", "a: b", "# c"]
    ),
    st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff\ufffe\uffff"), max_size=20),
    st.sampled_from(["a\nb\n", "a\n\n b", " a\nb", "a \nb", "\n", "a\tb\n"]),
)
values = st.recursive(
    st.one_of(
        words,
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(words, values, min_size=1, max_size=4))
def test_what_is_written_is_read_back_unchanged(document: dict[str, object]) -> None:
    (again,), problems = read(to_yaml([document]), "f")
    assert not problems
    assert again.value == document


def test_texts_of_several_lines_are_blocks_where_yaml_allows_it() -> None:
    for value, text in (("a\nb\n", "x: |\n  a\n  b\n"), ("a\nb", "x: |-\n  a\n  b\n")):
        assert to_yaml([{"x": value}]) == text
    for value in (" a\nb", "a \nb", "a\x07\nb", "a\u200b\nb", "\na"):
        text = to_yaml([{"x": value}])
        assert "|" not in text
        assert read(text, "f")[0][0].value == {"x": value}


def test_words_that_any_reader_could_take_for_something_else_are_quoted() -> None:
    for value, text in (("a", "a"), ("on", "'on'"), ("017", '"017"'), ("1", '"1"'), ("文", "文"), ("", '""')):
        assert to_yaml([{"x": value}]) == f"x: {text}\n"


def test_nothing_is_sorted_folded_or_aliased() -> None:
    part = {"z": ["w " * 200 + "w"], "a": 1}
    text = to_yaml([{"b": part, "a": part}, {}])
    assert text.count("z:") == 2
    assert "&" not in text
    assert text.index("z:") < text.index("a: 1")
    assert "w " * 200 + "w\n" in text
