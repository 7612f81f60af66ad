"""Ends a job that has stopped learning; every process decides alike, since an evaluation is the same in each."""

from __future__ import annotations

import math
from collections.abc import Mapping

from workers.contract.metrics import metric
from workers.contract.schedule import EarlyStopping


class Patience:
    """Looks at each validation. Without settings it never stops anything."""

    def __init__(self, settings: EarlyStopping | None) -> None:
        self._settings = settings
        self.best: float | None = None
        self.waited = 0
        self.reason = ""
        """Why the job ends now, a clause; empty while it goes on."""

    def look(self, metrics: Mapping[str, float], epoch: int) -> bool:
        """Whether the job ends after this epoch (counted from 1). A value that is not a number is no improvement."""
        if self._settings is None:
            return False
        name = self._settings.watched
        if self._improves(metrics[name]):
            self.best, self.waited = metrics[name], 0
            return False
        self.waited += 1
        if self.waited < self._settings.patience:
            return False
        epochs = f"{self.waited} epoch{'s' * (self.waited > 1)}"
        self.reason = f"Stopped early at epoch {epoch}: {name} did not improve for {epochs}"
        return True

    def _improves(self, value: float) -> bool:
        if self._settings is None or math.isnan(value):
            return False
        gain = math.inf if self.best is None else self.best - value
        if self.best is not None and metric(self._settings.watched).better == "max":
            gain = -gain
        return gain > (self._settings.min_delta or 0.0)
