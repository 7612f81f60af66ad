"""`python -m workers.host`: the training host. Its settings come from the environment (workers/host/settings.py)."""

from __future__ import annotations

import logging
import sys

from pydantic import ValidationError

from workers.host.daemon import AlreadyRunning, Daemon
from workers.host.settings import HostSettings


def main() -> int:
    """0 after SIGTERM or SIGINT, 2 when it cannot start, said in one sentence."""
    try:
        settings = HostSettings()
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            name = ".".join(map(str, problem["loc"])).upper()
            print(f"{name}: {problem['msg']} (got {problem['input']!r})", file=sys.stderr)  # noqa: T201
        return 2
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        Daemon(settings).run()
    except (AlreadyRunning, OSError) as error:
        print(f"The training host cannot start: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
