"""What `make demo` says when it cannot start, and that its own job is a valid one."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.house import free_port
from webapp.embedded import demo, redis_server


def test_it_says_in_one_sentence_that_a_port_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(demo.CannotStart, match=f"Port {port} .*make demo PORT="):
            demo.run(port=port, first_job=False, say=print)


@pytest.mark.parametrize("port", [-1, 65536])
def test_it_refuses_a_port_that_does_not_exist(port: int) -> None:
    with pytest.raises(demo.CannotStart, match=str(port)):
        demo.run(port=port, first_job=False, say=print)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "unix:///nowhere/redis.sock?db=0", "bogus"])
def test_it_says_at_once_that_the_redis_it_was_given_does_not_answer(url: str, settings: Any, tmp_path: Path) -> None:
    settings.LOCKSTEP_HOME, settings.REDIS_URL = tmp_path, url
    with pytest.raises(demo.CannotStart, match=r"REDIS_URL cannot be used .*unset REDIS_URL"):
        demo.run(port=free_port(), first_job=False, say=print)
    assert not (tmp_path / "redis").exists()


def test_its_first_job_is_a_real_distributed_one() -> None:
    spec = demo.first_job_spec()
    assert (spec.dataset.name, spec.strategy.name, spec.layout.replicas) == ("digits", "multi_worker_mirrored", 2)


def test_it_keeps_the_socket_path_short_enough_for_unix() -> None:
    deep = Path("/tmp") / ("x" * 200)
    url = demo.environment(deep)["REDIS_URL"]
    assert len(url.removeprefix("unix://").partition("?")[0]) < 100
    assert url == demo.environment(deep)["REDIS_URL"]


def test_it_names_the_remedy_without_any_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(redis_server, "_bundled", lambda: None)
    with pytest.raises(redis_server.NoRedis, match="install redis-server"):
        redis_server.executable()


def test_it_finds_the_bundled_redis_when_path_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert Path(redis_server.executable()).name == "valkey-server"
