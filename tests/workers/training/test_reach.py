"""A source that cannot be reached is said before a job is submitted, not when it runs."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from tests.house import free_port
from workers.training.datasets import _reach as reach
from workers.training.datasets import fashion_mnist, mnist


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCKSTEP_OFFLINE", raising=False)
    monkeypatch.setattr(reach, "_answers", {})


@pytest.fixture
def source() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_it_reaches_what_answers(source: str) -> None:
    assert reach.out_of_reach(source) is None


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_it_names_the_host_that_does_not_answer_and_the_remedy(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    module = {"mnist": mnist, "fashion_mnist": fashion_mnist}[name]
    gone = module.KEPT._replace(source=f"http://127.0.0.1:{free_port()}/{name}/")
    monkeypatch.setattr(module, "KEPT", gone)
    said = module.probe(module.Options(), tmp_path)
    assert said is not None
    assert "cannot reach 127.0.0.1" in said
    assert "Put " in said


def test_it_does_not_wait_for_a_source_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(reach, "PATIENCE", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        said = reach.out_of_reach(f"http://127.0.0.1:{silent.getsockname()[1]}/")
    assert said is not None


def test_it_tries_nothing_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_OFFLINE", "1")
    assert reach.out_of_reach("http://never.invalid/") == "works offline"
