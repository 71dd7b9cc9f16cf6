"""A job made in the browser: form and YAML edit each other, mistakes are marked, and what was made runs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from oarsman.manifest import documents
from tests.console.api.running import ROOT, Served

from .conftest import Opened, make_account, oarsman

pytestmark = pytest.mark.mpi
SCRIPT = "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the benchmark of the example lies: our own, which needs no GPU, a short one, under the name it calls."""
    script = tmp_path / SCRIPT
    script.parent.mkdir(parents=True)
    text = (ROOT / "examples" / "benchmarks" / "synthetic_benchmarks.py").read_text()
    script.write_text(re.sub(r'(_batches", type=int, default)=\d+', r"\1=1", text))
    return tmp_path


def test_the_example_is_made_in_the_form_runs_and_a_clone_with_one_change_fails_with_its_cause(
    server: Served, opened: Opened, folder: Path
) -> None:
    page = opened("/create")
    choose(page, "Template", "TensorFlow benchmarks, v1")
    page.get_by_label("Name", exact=True).fill("benchmarks-mpi")
    page.get_by_label("Description").fill("the usual benchmark")
    expect(yaml(page)).to_contain_text("name: benchmarks-mpi")
    expect(page.get_by_text("Does not fit, ever")).to_be_visible()
    step(page, "Run")
    expect(page.get_by_label("Launch command")).to_have_value(re.compile(r"^mpirun --allow-run-as-root -np 2 "))
    page.get_by_label("Folder on this machine").fill(str(folder))
    step(page, "Resources")
    for label, amount in (
        ("CPU of a worker", "200m"),
        ("Memory of a worker", "256Mi"),
        ("CPU of the launcher", "100m"),
        ("Memory of the launcher", "256Mi"),
        ("vGPU of a worker", ""),
        ("GPU memory of a worker", ""),
    ):
        page.get_by_label(label, exact=True).fill(amount)
    expect(page.get_by_text("every slot is used").first).to_be_visible()
    expect(page.get_by_text("Fits: it can start now.")).to_be_visible()
    step(page, "Review")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(f"{server.address}/jobs/default/benchmarks-mpi")
    expect(page.get_by_role("log")).to_contain_text("images/sec")
    expect(page.get_by_text("Succeeded").first).to_be_visible()

    page.goto(f"{server.address}/create?from=default/benchmarks-mpi")
    expect(page.get_by_label("Name", exact=True)).to_have_value("benchmarks-mpi-2")
    step(page, "Run")
    command = page.get_by_label("Launch command")
    command.fill(command.input_value().replace(SCRIPT, "scripts/not_there.py"))
    expect(yaml(page)).to_contain_text("not_there.py")
    page.get_by_label("Folder on this machine").fill(str(folder))
    step(page, "Review")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(f"{server.address}/jobs/default/benchmarks-mpi-2")
    expect(page.locator(".oarsman-cause")).to_contain_text("not_there.py")
    expect(page.locator(".oarsman-cause")).to_contain_text("rank")


def test_the_form_follows_the_text_and_the_text_the_form(opened: Opened) -> None:
    page = opened("/create?template=hello")
    expect(page.get_by_label("Name", exact=True)).to_have_value("hello")
    replace_in_yaml(page, "name: hello", "name: typed-by-hand")
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed-by-hand")
    step(page, "Resources")
    page.get_by_label("Number of workers").fill("3")
    expect(yaml(page)).to_contain_text("replicas: 3")
    expect(yaml(page)).to_contain_text('- "6"')  # -n follows the slots
    expect(yaml(page)).to_contain_text("# Greetings from four ranks")  # what somebody noted stays
    expect(page.get_by_text("3 workers × 2 slots = 6 slots").first).to_be_visible()


def test_what_never_fits_and_what_is_warned_of_stands_at_its_field(server: Served, opened: Opened) -> None:
    oarsman(server, "submit", "-n", "1", "--cpus", "50m", "--name", "my-job", "--", "true")
    page = opened("/create")
    expect(page.get_by_label("Name", exact=True)).to_have_value("my-job-2")  # one that nobody has, and no mistake
    step(page, "Resources")
    cpu = page.locator(".asks-for-worker_cpu")
    cpu.get_by_role("textbox").fill("4000")
    expect(cpu).to_contain_text("asks for 8000 CPUs")
    expect(cpu).to_have_class(re.compile("q-field--error"))
    cpu.get_by_role("textbox").fill("50m")
    expect(cpu).to_contain_text("such as 2 or 500m")
    step(page, "Run")
    image = page.locator(".asks-for-image")
    image.get_by_role("textbox").fill("horovod")
    expect(image).to_contain_text("image horovod is not pulled")
    image.get_by_role("textbox").fill("")
    expect(image).to_contain_text("used on Kubernetes")


def test_a_command_that_would_run_once_is_warned_of(opened: Opened) -> None:
    page = opened("/create?template=hello")
    step(page, "Run")
    command = page.get_by_label("Launch command")
    said = page.get_by_role("status").get_by_text("so it runs once, on the launcher")
    command.fill("python train.py")
    expect(said).to_be_visible()
    command.fill("mpirun -n 4 python train.py")
    expect(said).to_have_count(0)


def test_a_mistake_is_marked_at_its_line_and_nothing_can_be_submitted(opened: Opened) -> None:
    page = opened("/create?template=hello")
    expect(page.get_by_text("can start now")).to_be_visible()
    replace_in_yaml(page, "slotsPerWorker: 2", "slotsPerWorker: many")
    marked = page.locator(".cm-line.oarsman-mistake")
    expect(marked).to_have_text("  slotsPerWorker: many")
    expect(page.get_by_role("status").get_by_text("slotsPerWorker")).to_be_visible()
    step(page, "Review")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    step(page, "Resources")
    page.get_by_label("Slots per worker").fill("4")
    expect(marked).to_have_count(0)
    step(page, "Review")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


def test_more_ranks_than_slots_stand_at_their_fields_and_their_steps_in_the_words_of_the_form(opened: Opened) -> None:
    page = opened("/create?template=hello")
    expect(page.get_by_text("can start now")).to_be_visible()
    step(page, "Run")
    page.get_by_label("Launch command").fill("mpirun -np 40 hostname")
    expect(page.locator(".asks-for-command")).to_have_class(re.compile("q-field--error"))
    tabs, red = page.locator(".q-stepper__tab"), re.compile("q-stepper__tab--error")
    for name in ("Run", "Resources"):
        expect(tabs.filter(has_text=f". {name}")).to_have_class(red)
    expect(tabs.filter(has_text=". Basics")).not_to_have_class(red)
    step(page, "Resources")
    expect(page.locator(".asks-for-slots")).to_have_class(re.compile("q-field--error"))
    hint = page.get_by_role("status").get_by_text("set 'Slots per worker' to 20 or 'Number of workers' to 20")
    expect(hint).to_be_visible()
    page.get_by_label("Slots per worker").fill("20")
    expect(page.locator(".asks-for-slots")).not_to_have_class(re.compile("q-field--error"))
    expect(tabs.filter(has_text=". Run")).not_to_have_class(red)


def test_what_cannot_be_said_is_marked_and_stands_in_the_way(opened: Opened) -> None:
    page = opened("/create")
    step(page, "Run")
    page.get_by_label("Launch command").fill('mpirun -n 2 python "train.py')
    expect(page.get_by_text("No closing quotation")).to_be_visible()
    page.get_by_label("Folder on this machine").fill("/no/such/folder")
    expect(page.get_by_text("is not a folder of this machine").first).to_be_visible()
    step(page, "Review")
    expect(page.get_by_text("Correct these fields first: Launch command")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    step(page, "Run")
    page.get_by_label("Launch command").fill("mpirun -n 2 hostname -f")
    page.get_by_label("Folder on this machine").fill("/tmp")
    step(page, "Review")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


def test_a_field_waits_until_the_text_can_be_read_again(opened: Opened) -> None:
    page = opened("/create?template=hello")
    replace_in_yaml(page, "kind: MPIJob", "kind: a: b")
    expect(page.locator(".cm-line.oarsman-mistake")).to_have_count(1)
    page.get_by_label("Name", exact=True).fill("later")
    expect(page.get_by_text("the YAML cannot be read; mend it first")).to_be_visible()
    replace_in_yaml(page, "kind: a: b", "kind: MPIJob")
    expect(yaml(page)).to_contain_text("name: later")
    expect(page.get_by_text("can start now")).to_be_visible()


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "seeds").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_manifest_goes_through_form_and_text_and_keeps_every_field(opened: Opened, file: Path) -> None:
    """A field is changed in every step, then changed back: what is left in the editor is the file, to the letter."""
    page = opened("/create")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="File").click()
    chooser.value.set_files(file)
    [original] = documents(file.read_text(), file.name)
    name, workers = original["metadata"]["name"], original["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    expect(page.get_by_label("Name", exact=True)).to_have_value(name)
    changes = (
        ("Basics", "Name", "another", name),
        ("Run", "Working folder", "/elsewhere", ""),
        ("Resources", "Number of workers", str(workers + 1), str(workers)),
        ("Advanced", "Retries", "5", None),
    )
    for section, label, changed, _ in changes:
        step(page, section)
        before = page.get_by_label(label, exact=True)
        before.fill(changed)
        before.blur()
    text = draft(page, "another", f"replicas: {workers + 1}", "/elsewhere", "backoffLimit: 5")
    [edited] = documents(text, "edited")
    assert edited != original
    for section, label, _, first in changes:
        step(page, section)
        kept = (original["spec"].get("runPolicy") or {}).get("backoffLimit")
        page.get_by_label(label, exact=True).fill(first if first is not None else "" if kept is None else str(kept))
    page.wait_for_function("(text) => localStorage.getItem('oarsman-draft') === text", arg=file.read_text())


def draft(page: Page, *parts: str) -> str:
    """The whole text, which the editor shows only in part, once it says all of that."""
    said = "(parts) => parts.every((part) => (localStorage.getItem('oarsman-draft') || '').includes(part))"
    page.wait_for_function(said, arg=list(parts))
    return str(page.evaluate("localStorage.getItem('oarsman-draft')"))


def test_a_draft_survives_a_closed_page(server: Served, opened: Opened) -> None:
    page = opened("/create")
    page.get_by_label("Name", exact=True).fill("unfinished")
    expect(yaml(page)).to_contain_text("unfinished")
    expect(page.get_by_text("can start now")).to_be_visible()
    page.wait_for_function("(localStorage.getItem('oarsman-draft') || '').includes('unfinished')")
    page.goto(server.address + "/jobs")
    page.goto(server.address + "/create")
    page.get_by_role("button", name="Go on with it").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("unfinished")


def test_who_may_only_look_gets_no_form(server: Served, opened: Opened) -> None:
    page = logged_in(server, opened, "looker", "viewer")
    expect(page.get_by_text("You may look, and not start jobs.")).to_be_visible()


@pytest.mark.skipif(os.geteuid() != 0, reason="only a server of root refuses jobs of accounts")
def test_whose_jobs_the_server_refuses_is_told_at_the_top_of_the_form(server: Served, opened: Opened) -> None:
    page = logged_in(server, opened, "ann", "user")
    expect(page.get_by_role("alert").get_by_text("Your jobs cannot run here: the server runs as root")).to_be_visible()


def logged_in(server: Served, opened: Opened, name: str, role: str) -> Page:
    make_account(server, name, role)
    page = opened(None)
    page.goto(server.address + "/login?to=/create")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    return page


def step(page: Page, name: str) -> None:
    page.locator(".q-stepper__tab").filter(has_text=name).click()


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


def yaml(page: Page) -> Locator:
    return page.locator(".cm-content")


def replace_in_yaml(page: Page, old: str, new: str) -> None:
    """The line is selected, but for what it is indented by, and written anew."""
    line = yaml(page).locator(".cm-line").filter(has_text=old)
    line.click()
    page.keyboard.press("End")
    page.keyboard.press("Shift+Home")
    page.keyboard.insert_text(new)
