"""How many steps go into one device call: enough to hide its cost, few enough that charts keep moving."""

from __future__ import annotations

from typing import Literal

TARGET_SECONDS = 0.12
GROWTH = 8
FALL = 2
"""Not faster: one call that a busy machine held up says little about the next."""
MOST = 2_000


class Pace:
    """`auto` starts with single steps, so that the first point shows at once, and aims at TARGET_SECONDS a call."""

    def __init__(self, steps_per_call: int | Literal["auto"]) -> None:
        self._auto = steps_per_call == "auto"
        self.steps = 1 if steps_per_call == "auto" else steps_per_call

    def learn(self, seconds_per_step: float) -> None:
        """Take in what a step costs; 0 when it is not known yet. Every process must be given the same number."""
        if self._auto and seconds_per_step > 0:
            wanted = int(TARGET_SECONDS / seconds_per_step)
            self.steps = max(1, self.steps // FALL, min(wanted, self.steps * GROWTH, MOST))
