"""The throw-away process: opens what a stranger may have written, with no network, no secrets and little time."""
