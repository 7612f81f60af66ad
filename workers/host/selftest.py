"""`python -m workers.host.selftest`: tries here and now what this host has not tried yet, and prints the table."""

from __future__ import annotations

import argparse
import subprocess
import sys

from pydantic import ValidationError

from workers.contract import matrix
from workers.host.selftesting import command, key, read, results_file
from workers.host.settings import ROOT, HostSettings


def main(arguments: list[str] | None = None) -> int:
    """0 when every case that was tried works, 1 when some fail or the test could not go on, 2 without any results."""
    parser = argparse.ArgumentParser(prog="python -m workers.host.selftest", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    parser.add_argument("--only", action="append", default=[], metavar="PREFIX", help="cases that begin so")
    parser.add_argument("--show", action="store_true", help="try nothing, show what was found")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--markdown", action="store_true", help="the table as Markdown")
    shape.add_argument("--json", action="store_true", help="the results as they are stored")
    chosen = parser.parse_args(arguments)
    try:
        settings = HostSettings()
    except ValidationError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    settings.export()
    of = key()
    file = results_file(settings.lockstep_runs, of)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if chosen.fresh:
        file.unlink(missing_ok=True)
    code = 0
    if not chosen.show:
        only = [word for prefix in chosen.only for word in ("--only", prefix)]
        code = subprocess.run(command(file, of, *only), cwd=ROOT, check=False).returncode
    found = read(file, of)
    if found is None:
        print("Nothing has been tried here with these versions.", file=sys.stderr)  # noqa: T201
        return 2
    shown = matrix.markdown(found) if chosen.markdown else matrix.text(found)
    print(found.model_dump_json(indent=1) if chosen.json else shown)  # noqa: T201
    return 1 if code or found.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
