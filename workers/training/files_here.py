"""Looks at the file of a run by hand, so that its spec holds what was found before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workers.contract import catalog
from workers.contract.problems import Problem, SpecInvalid


def resolve(data: dict[str, Any]) -> dict[str, Any]:
    """The document with the whole paths of its files, and the facts of the dataset's. Raises SpecInvalid.

    For the command line alone: nobody but who may read this machine's files may have them looked at.
    """
    data = {**data, **_model_here(data.get("model"))}
    choice = data.get("dataset")
    options = choice.get("options") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(options, dict) or not isinstance(options.get("file"), str):
        return data
    entry = catalog.entries("dataset").get(str(choice.get("name")))
    if entry is None or not hasattr(entry.module, "inspect"):
        return data
    path = Path(options["file"]).expanduser().absolute()
    try:
        chosen = entry.parse({**options, "file": str(path), "facts": None})
        facts = entry.module.inspect(path, chosen)
    except SpecInvalid as error:
        raise SpecInvalid(problem.under("dataset.options") for problem in error.problems) from None
    except OSError as error:
        raise SpecInvalid([_unreadable(path, error)]) from None
    found = {**options, "file": str(path), "facts": facts.model_dump(mode="json")}
    return {**data, "dataset": {**choice, "options": found}}


def _model_here(choice: object) -> dict[str, Any]:
    """The model with its file's whole path: the processes of a job run in folders of their own."""
    options = choice.get("options") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(options, dict) or not isinstance(options.get("file"), str):
        return {}
    path = Path(options["file"]).expanduser().absolute()
    return {"model": {**choice, "options": {**options, "file": str(path)}}}


def _unreadable(path: Path, error: OSError) -> Problem:
    message = f"cannot be read: {error.strerror or error}"
    return Problem("dataset.options.file", message, str(path), "Give a file that you may read")
