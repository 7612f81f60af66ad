"""The documentation is what the code is: reference pages are up to date, and every command has its heading."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from workers.contract.library import Preview
from workers.contract.spec import parse

ROOT = Path(__file__).resolve().parent.parent


def program(name: str) -> ModuleType:
    """A program of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = program("generate")
COMMANDS = sorted(path.stem for path in ROOT.glob("webapp/*/management/commands/[a-z]*.py"))


@pytest.mark.parametrize("page", generate.PAGES)
def test_it_is_what_the_code_says(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (ROOT / "docs" / page).read_text() == generate.PAGES[page](), "run `make docs`"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_heading(command: str) -> None:
    assert f"## {command}\n" in (ROOT / "docs" / "commands.md").read_text()


def test_the_example_is_a_valid_job() -> None:
    assert parse((ROOT / "docs" / "example.yaml").read_text()).layout.replicas == 2


def test_every_room_of_the_tree_stands_in_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = [path.parent.name for path in (ROOT / "webapp").glob("*/apps.py")]
    missing = [room for room in rooms if f"webapp.{room}" not in page]
    assert not missing


def test_the_readme_names_its_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_compose_names_the_services_of_the_readme() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert {"web", "control", "ingest", "host", "redis", "postgres"} <= set(services)


def test_what_is_shown_of_built_in_data_is_what_it_holds() -> None:
    # Here, since it imports scikit-learn.
    glimpses = program("glimpses")
    for name in (*glimpses.NAMES, "tiny_text"):
        shown = Preview.model_validate_json((glimpses.FOLDER / f"{name}.json").read_bytes())
        assert shown == glimpses.glimpse(name), "run `make docs`"
