"""What waits for one socket, as few frames: the newest header and row of a job, its points and log lines joined."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from webapp.live.hub import Item


def frames(items: Iterable[Item]) -> list[str]:
    """One frame a job and kind: headers first, then points, logs and rows."""
    newest: dict[tuple[str, int], str] = {}
    joined: dict[tuple[str, int], list[str]] = {}
    for item in items:
        if item.kind in {"job", "row"}:
            newest[item.kind, item.job] = item.text
        else:
            joined.setdefault((item.kind, item.job), []).append(item.text)
    headers = [text for (kind, _), text in newest.items() if kind == "job"]
    points = [_points(texts) for (kind, _), texts in joined.items() if kind == "points"]
    logs = [_log(texts) for (kind, _), texts in joined.items() if kind == "log"]
    return headers + points + logs + [text for (kind, _), text in newest.items() if kind == "row"]


def _points(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    messages = [json.loads(text) for text in texts]
    parts: list[dict[str, Any]] = []
    last: dict[tuple[str, int | None], dict[str, Any]] = {}
    for part in [part for message in messages for part in message["series"]]:
        before = last.get((part["name"], part["replica"]))
        if before is not None and before["start"] + len(before["steps"]) == part["start"]:
            for column in ("steps", "times", "values"):
                before[column] += part[column]
        else:
            last[part["name"], part["replica"]] = part
            parts.append(part)
    return _dump({**messages[0], "series": parts})


def _log(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    messages = [json.loads(text) for text in texts]
    return _dump({**messages[0], "lines": [line for message in messages for line in message["lines"]]})


def _dump(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)
