"""Ends a process whose collective waits for longer than it may: TensorFlow would wait for ever.

TensorFlow's own `timeout_seconds` sleeps in two threads for each collective (measured: 6,000 threads after 3,000
collectives within its time), so it is not used; this counts in the graph, and one thread looks at the counts.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


class WaitedTooLong(Exception):
    """Another worker has not come to a collective in time; the message is one sentence that ends with what to do."""


class CollectiveWatch:
    """Counts the collectives of this process as they begin and end."""

    def __init__(self, seconds: float, process: str) -> None:
        """`seconds` is what one collective may take."""
        import tensorflow as tf

        self.seconds = seconds
        self._process = process
        with tf.device("/cpu:0"):
            self._begun, self._ended = tf.Variable(0, dtype=tf.int64), tf.Variable(0, dtype=tf.int64)
        self._resting = False

    def around(self, value: Any, collective: Callable[[Any], Any]) -> Any:
        """`collective(value)`, counted from when `value` is known. To be called inside a tf.function."""
        import tensorflow as tf

        with tf.control_dependencies([value]):
            begun = self._begun.assign_add(1, read_value=False)
        with tf.control_dependencies([begun]):
            answer = collective(tf.identity(value))
        with tf.control_dependencies([answer]):
            ended = self._ended.assign_add(1, read_value=False)
        with tf.control_dependencies([ended]):
            return tf.identity(answer)

    def start(self, give_up: Callable[[WaitedTooLong], None]) -> None:
        """Look on from a thread of its own, and call `give_up` from there when one takes too long."""
        threading.Thread(target=self._look, args=(give_up,), name="collectives", daemon=True).start()

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Meanwhile waiting may take its time."""
        self._resting = True
        try:
            yield
        finally:
            self._resting = False

    def _look(self, give_up: Callable[[WaitedTooLong], None]) -> None:
        ended, since = -1, time.monotonic()
        while True:
            time.sleep(min(1.0, self.seconds / 4))
            now = int(self._ended.numpy())
            if self._resting or now != ended or int(self._begun.numpy()) <= now:
                ended, since = now, time.monotonic()
            elif time.monotonic() - since >= self.seconds:
                give_up(self._reason())
                return

    def _reason(self) -> WaitedTooLong:
        return WaitedTooLong(
            f"{self._process} waited in an all-reduce for {self.seconds:g} s, the strategy's timeout_seconds, and "
            "another worker did not come; look at the logs of the other workers, or set "
            "strategy.options.timeout_seconds higher if one of them may be busy for longer."
        )
