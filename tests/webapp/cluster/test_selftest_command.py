"""`manage.py selftest`."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from tests.webapp.cluster.hosts import hear, tried
from workers.contract.inventory import SelfTest


def test_it_prints_the_table_of_each_host(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    hear("h1", selftest=tried({"mirrored/mean/none/xla": "XLA said no."}, "mirrored/mean/none/plain"))
    hear("h2")
    call_command("selftest")
    told = capsys.readouterr().out
    assert "h1:" in told and "ok FAILED [" in told and "mirrored: XLA said no." in told
    assert "not complete yet" in told
    assert "h2:\nIts self-test has not begun" in told


def test_it_prints_markdown_and_json_of_one_host(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    found = tried({}, "mirrored/mean/none/plain")
    hear("h1", selftest=found)
    hear("h2")
    call_command("selftest", "--host", "h1", "--markdown")
    told = capsys.readouterr().out
    assert told.startswith("## h1\n") and "| mirrored | ✓ · |" in told and "h2" not in told
    call_command("selftest", "--host", "h1", "--json")
    assert SelfTest.model_validate_json(capsys.readouterr().out) == found


def test_it_says_when_there_is_no_host(db: None) -> None:
    with pytest.raises(CommandError, match="`--run` tries this machine"):
        call_command("selftest")
    with pytest.raises(CommandError, match="there is no host 'h9'"):
        call_command("selftest", "--host", "h9")
