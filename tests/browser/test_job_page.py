"""The page of one job, as somebody uses it who watches it, understands it and changes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.api.running import Served
from tests.engines.hosts.machine import mpijob

from .conftest import Opened, delete, oarsman

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

LITTLE = ("--cpus", "50m")  # these jobs sleep: all of them run at once on any machine
SMALL = {"resources": {"requests": {"cpu": "50m"}}}
# Every rank tells its steps until a file appears; rank 1 stops telling after the third.
TRAINS = """
rank=$OMPI_COMM_WORLD_RANK; step=0
until test -e {done}; do
  step=$((step + 1))
  if [ "$rank" != 1 ] || [ $step -le 3 ]; then echo "step $step loss: 0.$((9000 - step)) of rank $rank"; fi
  sleep 0.2
done
"""


@pytest.fixture(scope="module")
def training(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A job that runs as long as the tests of this file: rank 1 of its 4 is behind."""
    done = tmp_path_factory.mktemp("training") / "done"
    words = ["submit", "-n", "4", *LITTLE, "--name", "training", "--"]
    oarsman(server, *words, "sh", "-c", TRAINS.format(done=done))
    yield "/jobs/default/training"
    done.touch()
    delete(server, "default/training")


def test_what_hosts_use_and_what_lines_tell_is_drawn_while_the_job_runs(opened: Opened, training: str) -> None:
    page = opened(f"{training}?tab=Usage")
    cpu = drawing(page, r"CPU .*training-worker-0 [\d.]+ %, training-worker-1 [\d.]+ %")
    expect(cpu.locator("canvas")).to_be_visible()
    expect(drawing(page, r"Memory: .*training-worker-0 [\d.]+ [KM]iB")).to_be_visible()
    page.get_by_role("tab", name="Metrics").click()
    loss = drawing(page, r"loss: Rank 0 0\.8\d+")
    expect(loss.locator("canvas")).to_be_visible()
    before = loss.get_attribute("aria-label") or ""
    expect(loss).not_to_have_attribute("aria-label", before)  # it goes on by itself
    expect(page).to_have_url(re.compile(r"\?tab=Metrics$"))


def test_why_a_rank_is_behind_is_chinese_for_a_chinese_reader(opened: Opened, training: str) -> None:
    page = opened("/jobs/default/training?tab=Ranks", "zh-CN")
    expect(page.get_by_role("button", name=re.compile(r"^Rank 1 .*落后：在第 3 步，其他 rank 在第"))).to_be_visible()
    expect(page.get_by_role("cell", name=re.compile("^在第 3 步，其他 rank 在第"))).to_be_visible()


def test_a_straggler_is_marked_and_its_cell_leads_to_its_log(opened: Opened, training: str) -> None:
    page = opened(f"{training}?tab=Ranks")
    late = page.get_by_role("button", name=re.compile(r"^Rank 1 · training-worker-0 · running .*behind: at step 3"))
    expect(late).to_have_class(re.compile("is-behind"))
    expect(page.locator(".oarsman-grid .is-behind")).to_have_count(1)
    worker = page.get_by_role("row").filter(has_text="training-worker-1").first
    expect(worker).to_contain_text("2-3")
    expect(worker).to_contain_text(re.compile(r"\d+ %.*[KM]iB"))
    late.click()
    expect(page.get_by_label("Rank", exact=True)).to_have_value("1")
    expect(page.get_by_role("log")).to_contain_text("step 3 loss: 0.8997 of rank 1")
    expect(page.get_by_role("log")).not_to_contain_text("of rank 0")
    expect(page.get_by_role("link", name="Download")).to_have_attribute("href", re.compile(r"/log/download\?rank=1$"))


def test_an_elastic_job_is_scaled_suspended_resumed_and_stopped(server: Served, opened: Opened, tmp_path: Path) -> None:
    submit(server, tmp_path, elastic(tmp_path, "grows"))
    page = opened("/jobs/default/grows?tab=Summary")
    expect(state(page, "Running")).to_be_visible()
    act(page, "Scale")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The job is elastic")
    dialog.get_by_label("Number of workers").fill("3")
    act(dialog, "Scale")
    expect(page.get_by_text("3 of 3 ready")).to_be_visible()
    act(page, "Suspend")
    act(page.get_by_role("dialog"), "Suspend")
    expect(state(page, "Suspended")).to_be_visible()
    act(page, "Resume")
    expect(state(page, "Running")).to_be_visible()
    act(page, "Stop")
    act(page.get_by_role("dialog"), "Cancel")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(state(page, "Running")).to_be_visible()
    act(page, "Stop")
    act(page.get_by_role("dialog"), "Stop")
    expect(state(page, "Stopped")).to_be_visible()
    expect(page.get_by_role("button", name="Run again")).to_be_visible()


def test_a_number_of_workers_that_cannot_be_is_refused_with_the_reason(opened: Opened, training: str) -> None:
    page = opened(training)
    act(page, "Scale")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("reads its hosts only when it starts")
    dialog.get_by_label("Number of workers").fill("1")
    act(dialog, "Scale")
    expect(page.get_by_role("alert")).to_contain_text("4 processes")
    expect(dialog).to_be_visible()


def test_a_clone_gets_its_name_and_runs(server: Served, opened: Opened) -> None:
    oarsman(server, "run", "-n", "2", *LITTLE, "--name", "original", "--", "echo", "said by each")
    page = opened("/jobs/default/original")
    act(page, "Clone")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Edit before it runs")).to_be_visible()
    dialog.get_by_label("New name").fill("Not A Name")
    expect(dialog.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    dialog.get_by_label("New name").fill("second-of-its-kind")
    act(dialog, "Run")
    expect(page).to_have_url(server.address + "/jobs/default/second-of-its-kind")
    expect(state(page, "Succeeded")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("said by each")


def test_a_progress_bar_moves_in_the_log(opened: Opened, server: Served, tmp_path: Path) -> None:
    draws = f"printf '\\r1 of 2'; until test -e {tmp_path}/go; do sleep 0.1; done; printf '\\r2 of 2'; sleep 600"
    oarsman(server, "submit", "-n", "1", *LITTLE, "--name", "bar", "--", "sh", "-c", draws)
    log = opened("/jobs/default/bar?tab=Logs").get_by_role("log")
    expect(log).to_contain_text("1 of 2")
    (tmp_path / "go").touch()
    expect(log).to_contain_text("2 of 2")
    expect(log).not_to_contain_text("1 of 2")
    oarsman(server, "stop", "bar")
    expect(log.locator(".oarsman-log-line", has_text="2 of 2")).to_have_count(1)


def test_each_attempt_has_its_log_and_the_manifest_is_shown_as_given_and_completed(
    server: Served, opened: Opened, tmp_path: Path
) -> None:
    tried = tmp_path / "tried"
    program = f"if test -e {tried}; then echo second try; else touch {tried}; echo first try; exit 3; fi"
    wanted = mpijob(
        "retried", ["mpirun", "-n", "1", "sh", "-c", program], workers=1, run_policy={"backoffLimit": 1}, worker=SMALL
    )
    wanted["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "OnFailure"
    submit(server, tmp_path, wanted)
    page = opened("/jobs/default/retried")
    expect(state(page, "Succeeded")).to_be_visible()
    log = page.get_by_role("log")
    expect(log).to_contain_text("second try")
    page.get_by_role("combobox", name="Attempt").click()
    page.get_by_role("option", name="1 · Failed").click()
    expect(log).to_contain_text("first try")
    expect(log).not_to_contain_text("second try")
    expect(page.get_by_role("link", name="Download")).to_have_attribute("href", re.compile(r"\?attempt=1$"))
    page.get_by_role("tab", name="Summary").click()
    expect(page.get_by_role("list", name="Timeline").locator(".is-ahead")).to_have_text(re.compile("Queued"))
    expect(page.locator(".oarsman-attempts li")).to_have_count(2)
    page.get_by_role("tab", name="YAML").click()
    text = page.locator(".cm-content")
    expect(text).to_contain_text("name: retried")
    expect(text).not_to_contain_text("cleanPodPolicy")
    page.get_by_role("button", name="As completed").click()
    expect(text).to_contain_text("cleanPodPolicy")
    with page.expect_download() as kept:
        page.get_by_role("button", name="Download").click()
    assert kept.value.suggested_filename == "retried.completed.yaml"


def test_a_job_that_is_run_again_keeps_its_earlier_run_and_shows_it(
    server: Served, opened: Opened, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    program = f"if test -e {ran}; then echo said later; else touch {ran}; echo said first; exit 3; fi"
    oarsman(server, "run", "-n", "1", *LITTLE, "--name", "twice", "--", "sh", "-c", program, code=3)
    page = opened("/jobs/default/twice")
    act(page, "Run again")
    expect(page.get_by_role("dialog")).to_contain_text("What it wrote stays as an earlier run.")
    act(page.get_by_role("dialog"), "Run again")
    expect(page.get_by_role("log")).to_contain_text("said later")
    expect(page.get_by_text("Run 2", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Runs").click()
    first = page.get_by_role("row").filter(has_text="exited with code 3")
    expect(page.get_by_role("row").filter(has_text="Succeeded")).to_be_visible()
    first.get_by_role("link", name="1").click()
    expect(page).to_have_url(re.compile(r"/jobs/default/twice\?run=1"))
    expect(page.get_by_role("log")).to_contain_text("said first")
    expect(page.get_by_role("log")).not_to_contain_text("said later")
    expect(page.locator(".oarsman-cause")).to_contain_text("exited with code 3")
    expect(page.get_by_role("button", name="Run again")).to_have_count(0)  # an earlier run is only looked at
    expect(page.get_by_role("link", name="Download")).to_have_attribute("href", re.compile(r"/log/download\?run=1$"))
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_role("row").filter(has_text="Failed").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?run=1&tab=Events$"))
    page.get_by_role("link", name="Clone").click()
    expect(page).to_have_url(f"{server.address}/create?from=default/twice&run=1")
    expect(page.get_by_label("Name", exact=True)).to_have_value("twice-2")
    page.go_back()
    page.get_by_role("link", name="To the newest run").click()
    expect(page.get_by_role("log")).to_contain_text("said later")


def test_a_thousand_ranks_are_one_stop_of_the_tab_key(server: Served, opened: Opened, tmp_path: Path) -> None:
    submit(
        server,
        tmp_path,
        mpijob("wide", ["mpirun", "-n", "1000", "true"], workers=10, slots=100, run_policy={"suspend": True}),
    )
    page = opened("/jobs/default/wide?tab=Ranks")
    cells = page.locator(".oarsman-grid button")
    expect(cells).to_have_count(1000)
    expect(page.locator(".oarsman-grid button[tabindex='0']")).to_have_count(1)
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Rank", exact=True)).to_have_value("1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_on_buttons_stand_out_from_what_is_behind_them(opened: Opened, training: str, scheme: str) -> None:
    page = opened(training, color_scheme=scheme)
    for name in ("Suspend", "Delete"):
        assert contrast(page.get_by_role("button", name=name)) >= 4.5
    act(page, "Stop")
    for name in ("Cancel", "Stop"):
        assert contrast(page.get_by_role("dialog").get_by_role("button", name=name)) >= 4.5


# -- helpers ------------------------------------------------------------------------------------------
def drawing(page: Page, label: str) -> Locator:
    """A chart says what it shows, for those who do not see it, and for us."""
    return page.get_by_role("img", name=re.compile(label))


def state(page: Page, word: str) -> Locator:
    return page.locator(".oarsman-state").filter(has_text=re.compile(f"{word}$")).first


def act(where: Page | Locator, name: str) -> None:
    where.get_by_role("button", name=name, exact=True).click()


def submit(server: Served, folder: Path, document: Mapping[str, Any]) -> None:
    path = folder / "job.yaml"
    path.write_text(json.dumps(document))
    oarsman(server, "submit", str(path))


def elastic(folder: Path, name: str) -> dict[str, Any]:
    """The launcher asks for its hosts again and again, as horovodrun does."""
    runner = folder / "horovodrun"
    runner.write_text("#!/bin/sh\nwhile /etc/mpi/discover_hosts.sh; do sleep 0.2; done\n")
    runner.chmod(0o755)
    command = [
        str(runner),
        "-np",
        "1",
        "--min-np",
        "1",
        "--max-np",
        "4",
        "--host-discovery-script",
        "/etc/mpi/discover_hosts.sh",
        "python3",
        "train.py",
    ]
    return mpijob(name, command, workers=2, worker=SMALL)


def contrast(words: Locator) -> float:
    """As WCAG counts it: from 1, the same, to 21, black on white."""
    expect(words).to_be_visible()
    found: float = words.evaluate(
        """element => {
            const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
            const light = (colour) => parts(colour).slice(0, 3).map((c) => c / 255)
                .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
                .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
            const ground = (one) => getComputedStyle(one).backgroundColor;
            let behind = element;
            while (behind.parentElement && parts(ground(behind))[3] === 0) behind = behind.parentElement;
            const [a, b] = [getComputedStyle(element).color, ground(behind)].map(light);
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        }"""
    )
    return found
