"""The new-job page in Chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server, violations

pytestmark = pytest.mark.browser

HOST = """
from webapp.cluster import hearing
from workers.contract.inventory import DeviceInfo, Inventory, SelfTest
devices = tuple(DeviceInfo(kind="cpu", index=index, name=f"cpu {index}", memory_bytes=2**32) for index in range(2))
hearing.hear_host(Inventory(host="box", address="127.0.0.1", cores=2, memory_bytes=2**33, devices=devices,
    unavailable={"mnist": "MNIST is not on this host. Put it there."},
    selftest=SelfTest(key="k", failures={"mirrored/mean/none/xla": "It took too long.",
        "mirrored/mean/bfloat16/plain": "It took too much."})))
from datetime import timedelta
Host.objects.update(heard=Host.objects.get().heard + timedelta(hours=1))
"""


@pytest.fixture
def new(server: Server, page: Page) -> Page:
    """The page of a member whose cluster has one host with two devices."""
    server.ask(HOST)
    server.log_in(page, "bob", team="form")
    page.goto(f"{server.url}/t/form/jobs/new/")
    expect(page.locator("#summary")).to_contain_text("Can start now")
    return page


def test_the_summary_follows_what_is_typed(new: Page) -> None:
    new.get_by_label("Global batch").fill("64")
    expect(new.locator(".figures")).to_contain_text("32of 64")
    new.get_by_role("radio", name="Multi-worker mirrored", exact=True).check()
    expect(new.locator(".placements li")).to_have_count(2)
    expect(new.get_by_label("Name", exact=True)).to_have_value("mlp on digits, multi worker mirrored x2")


def test_a_name_that_was_typed_is_left_alone(new: Page) -> None:
    new.get_by_label("Name", exact=True).fill("mine")
    new.get_by_role("radio", name="One device", exact=True).check()
    expect(new.locator(".figures")).to_contain_text("128of 128")
    expect(new.get_by_label("Name", exact=True)).to_have_value("mine")


def test_only_the_options_of_what_is_chosen_are_seen(new: Page) -> None:
    expect(new.get_by_role("textbox", name="Units")).to_be_visible()
    new.get_by_role("radio", name="Convolutional network").check()
    expect(new.locator("#field-model-cnn-filters")).to_be_visible()
    expect(new.locator("[name='model.mlp.units']")).to_be_hidden()


def test_a_models_figures_follow_the_data(new: Page) -> None:
    expect(new.locator("#about-model-linear")).to_contain_text("650 parameters")
    new.get_by_role("radio", name="Fashion-MNIST").check()
    expect(new.locator("#about-model-linear")).to_contain_text("7,850 parameters")


def test_more_devices_than_there_are_is_said_with_the_figures_still_there(new: Page) -> None:
    new.locator("[name='strategy.mirrored.devices']").fill("4")
    expect(new.locator("#summary")).to_contain_text("needs 4")
    expect(new.locator(".figures")).to_contain_text("32of 128")


def test_what_does_not_fit_is_folded_away_disabled_and_says_why(new: Page) -> None:
    expect(new.get_by_role("radio", name="MNIST", exact=True)).to_be_hidden()
    new.locator("[data-kind=dataset] [data-fold] > summary").click()
    expect(new.get_by_role("radio", name="MNIST", exact=True)).to_be_disabled()
    expect(new.locator("#about-dataset-mnist")).to_contain_text("Put it there")


def test_models_come_and_go_with_the_data(new: Page) -> None:
    perceptron = new.get_by_role("radio", name="Multilayer perceptron")
    language = new.get_by_role("radio", name="Transformer language model")
    expect(language).to_be_hidden()
    new.get_by_role("radio", name="Tiny text").check()
    expect(language).to_be_enabled()
    language.check()
    expect(perceptron).to_be_hidden()
    new.get_by_role("radio", name="Digits").check()
    expect(perceptron).to_be_enabled()
    expect(new.locator("[data-kind=model] [data-group='Built in'] .choice-title").first).to_have_text(
        "Adversarial network"
    )


def test_what_failed_in_the_self_test_is_disabled_until_another_choice_makes_it_work(new: Page) -> None:
    new.locator(".training > .fold > summary").click()
    box = new.locator("[name='training.jit']")
    precision = new.locator("[name='training.mixed_precision'] option[value='bfloat16']")
    expect(box).to_be_disabled()
    expect(new.locator(".field:has([name='training.jit']) [data-unfit]")).to_have_text(
        "Failed in the self-test of box: It took too long"
    )
    expect(precision).to_be_disabled()
    expect(precision).to_contain_text("It took too much")
    new.get_by_role("radio", name="One device", exact=True).check()
    expect(box).to_be_enabled()
    expect(new.locator(".field:has([name='training.jit']) [data-unfit]")).to_be_hidden()
    expect(precision).to_be_enabled()
    expect(precision).to_have_text("bfloat16")


def test_an_error_appears_beside_its_field_and_goes_when_it_is_mended(new: Page) -> None:
    batch = new.get_by_label("Global batch")
    batch.fill("127")
    expect(new.locator("[data-errors='training.global_batch']")).to_contain_text("126 or 128")
    expect(batch).to_have_attribute("aria-invalid", "true")
    batch.fill("128")
    expect(new.locator("[data-errors='training.global_batch']")).to_be_empty()
    expect(batch).not_to_have_attribute("aria-invalid", "true")


def test_a_refused_form_moves_the_focus_to_what_is_wrong_and_keeps_everything(new: Page) -> None:
    new.get_by_role("textbox", name="Units").fill("256, none")
    new.get_by_label("Tags").fill("first")
    new.get_by_role("button", name="Start job").click()
    expect(new.locator("#problems")).to_be_focused()
    expect(new.get_by_label("Tags")).to_have_value("first")
    new.locator(".problem-list a").click()
    expect(new.get_by_role("textbox", name="Units")).to_be_focused()
    expect(new.get_by_role("textbox", name="Units")).to_have_value("256, none")
    new.get_by_role("textbox", name="Units").fill("256, 32")
    expect(new.locator("#problems .notice")).to_have_count(0)


def test_form_and_yaml_are_two_views_of_one_spec(new: Page) -> None:
    new.get_by_label("Seed").fill("7")
    new.get_by_role("tab", name="YAML").click()
    text = new.locator("#yaml")
    expect(text).to_have_value(re.compile(r"seed: 7"))
    text.fill(text.input_value().replace("epochs: 10", "steps: 500"))
    new.get_by_role("tab", name="Form").click()
    expect(new.get_by_role("radio", name="Steps", exact=True)).to_be_checked()
    expect(new.locator("[name='training.steps']")).to_have_value("500")
    expect(new.locator(".figures")).to_contain_text("500")


def test_yaml_that_cannot_be_read_stays_with_its_line(new: Page) -> None:
    new.get_by_role("tab", name="YAML").click()
    text = new.locator("#yaml")
    text.fill("version: lockstep/v1\nname: [half")
    new.get_by_role("tab", name="Form").click()
    expect(new.locator("#yaml-errors")).to_contain_text("line 2")
    expect(text).to_be_visible()
    expect(text).to_have_value("version: lockstep/v1\nname: [half")


def test_a_submitted_job_is_queued_and_its_page_opens(new: Page, server: Server) -> None:
    new.get_by_label("Name", exact=True).fill("from the browser")
    new.keyboard.press("Control+Enter")
    new.wait_for_url(re.compile(r"/jobs/\d+/$"))
    submitted = "show(list(Job.objects.filter(team__slug='form').values_list('name', 'state')))"
    assert server.ask(submitted) == [["from the browser", "queued"]]


def test_it_submits_without_scripts(server: Server, page: Page) -> None:
    server.log_in(page, "bob", team="form")
    state = page.context.storage_state()
    assert page.context.browser is not None
    context = page.context.browser.new_context(java_script_enabled=False, storage_state=state)
    bare = context.new_page()
    bare.goto(f"{server.url}/t/form/jobs/new/")
    bare.get_by_role("radio", name="One device", exact=True).check()
    expect(bare.locator("[name='strategy.one_device.device']")).to_be_visible()
    bare.get_by_label("Name", exact=True).fill("plain")
    bare.get_by_role("button", name="Start job").click()
    bare.wait_for_url(re.compile(r"/jobs/\d+/$"))
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(new: Page, theme: str) -> None:
    new.emulate_media(color_scheme=theme, reduced_motion="reduce")
    expect(new.locator("html")).to_have_attribute("data-theme", theme)
    new.get_by_label("Global batch").fill("127")
    expect(new.locator("[data-errors='training.global_batch']")).not_to_be_empty()
    assert violations(new) == []


@pytest.mark.parametrize("width", [390, 1280, 1680])
def test_nothing_sticks_out_at_any_width(new: Page, width: int) -> None:
    new.set_viewport_size({"width": width, "height": 800})
    assert new.evaluate("document.documentElement.scrollWidth") <= width


def test_settings_come_and_go_with_what_they_belong_to(new: Page) -> None:
    every, final = new.get_by_label("Falls every"), new.get_by_label("Final part")
    expect(every).to_be_hidden()
    new.locator("[name='training.schedule.kind']").select_option("step")
    expect(every).to_be_visible()
    expect(final).to_be_hidden()
    expect(new.locator("[data-errors='training.schedule.every_steps']")).to_contain_text("Is required")
    new.locator("[name='training.schedule.kind']").select_option("cosine")
    expect(final).to_be_visible()
    expect(new.locator("#summary")).to_contain_text("Can start now")


def test_a_regression_has_no_use_for_class_weights_and_no_accuracy(new: Page) -> None:
    new.locator(".training details > summary", has_text="Advanced").click()
    weights = new.get_by_label("Class weights")
    expect(weights).to_be_enabled()
    new.get_by_role("radio", name="Diabetes", exact=True).check()
    expect(weights).to_be_disabled()
    option = new.locator("[name='training.early_stopping.metric'] option[value=val_accuracy]")
    expect(option).to_be_disabled()
    new.get_by_role("radio", name="Wine", exact=True).check()
    expect(weights).to_be_enabled()
    expect(option).to_be_enabled()


def test_every_kind_of_job_is_offered_and_says_what_it_needs(new: Page) -> None:
    new.locator(".radios label", has_text="Evaluate").click()
    expect(new.locator("[data-errors='resume.job']")).to_contain_text("needs the weights of a checkpoint")
    expect(new.locator(".recent:visible")).to_contain_text("No job of this team has left a checkpoint yet")
    expect(new.get_by_label("Optimizer")).to_be_hidden()
    expect(new.get_by_label("Name", exact=True)).to_have_value("evaluate mlp on digits, mirrored x2")
    new.locator(".radios label", has_text="Train").click()
    expect(new.get_by_label("Optimizer")).to_be_visible()
