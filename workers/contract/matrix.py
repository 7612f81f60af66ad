"""The self-test's results as a table: a row for each strategy, a column for each aggregation and precision.

A cell holds two marks, without XLA and with it. Why something failed, is refused or cannot be tried stands below, each
sentence once, under its number.
"""

from __future__ import annotations

from typing import NamedTuple

from workers.contract import catalog
from workers.contract.inventory import SelfTest
from workers.contract.selftest import Case, Verdict, aggregations, cases_of, precisions, verdict

TEXT: dict[Verdict, str] = {"ok": "ok", "failed": "FAILED", "refused": "-", "absent": "-", "untried": "?"}
MARKDOWN: dict[Verdict, str] = {"ok": "✓", "failed": "✗", "refused": "-", "absent": "-", "untried": "·"}


class _Table(NamedTuple):
    head: list[str]
    rows: list[list[str]]
    notes: list[str]


def text(result: SelfTest) -> str:
    """For a terminal."""
    table = _table(result, TEXT, " [{}]")
    lines = [table.head, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.head))]
    grid = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    notes = (f"[{number}] {note}" for number, note in enumerate(table.notes, 1))
    return "\n".join([result.key, "", *grid, "", *notes, _legend(result, TEXT)])


def markdown(result: SelfTest) -> str:
    """For the README."""
    table = _table(result, MARKDOWN, "<sup>{}</sup>")
    head, *rows = [f"| {' | '.join(line)} |" for line in (table.head, *table.rows)]
    notes = [f"{number}. {note}" for number, note in enumerate(table.notes, 1)]
    return "\n".join([head, "|---" * len(table.head) + "|", *rows, "", f"{_legend(result, MARKDOWN)}\n", *notes])


def _table(result: SelfTest, marks: dict[Verdict, str], reference: str) -> _Table:
    notes: list[str] = []

    def mark(case: Case) -> str:
        found, sentence = verdict(case, result)
        if not sentence:
            return marks[found]
        note = f"{case.strategy}: {sentence}"
        if note not in notes:
            notes.append(note)
        return marks[found] + reference.format(notes.index(note) + 1)

    head = ["strategy", *(f"{aggregation} {precision}" for aggregation in aggregations() for precision in precisions())]
    rows = []
    for strategy in catalog.entries("strategy"):
        told = [mark(case) for case in cases_of(strategy)]
        pairs = zip(told[::2], told[1::2], strict=True)
        rows.append([strategy, *(" ".join(pair) for pair in pairs)])
    return _Table(head, rows, notes)


def _legend(result: SelfTest, marks: dict[Verdict, str]) -> str:
    signs = f"{marks['ok']} works, {marks['failed']} fails, {marks['refused']} refused or not there"
    tried = f"{len(result.passed)} cases passed, {len(result.failures)} failed."
    return f"First mark without XLA, second with it: {signs}, {marks['untried']} not tried. {tried}"
