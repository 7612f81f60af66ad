"""Picks free ports for the processes of one job, so that two jobs starting at once do not pick the same."""

from __future__ import annotations

import random
import socket
import sys

from workers.contract.layout import ProcessAssignment

# Below the range from which systems give ports to outgoing connections.
PORT_RANGE = (20000, 29999)


class NoFreePort(RuntimeError):
    """Every port that was tried is taken."""


class PortReservation:
    """Ports that no other gang on this machine takes until this one is closed or its process ends.

    TensorFlow must bind the port itself seconds later, so the port cannot be held open; what is held is an abstract
    unix socket named after it (Linux; elsewhere only the check that the port is free remains).
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self, first: int, last: int) -> int:
        """A free port between `first` and `last`.

        Raises NoFreePort.
        """
        for port in random.sample(range(first, last + 1), min(last - first + 1, 500)):
            if _is_free(port) and self._hold(port):
                return port
        raise NoFreePort(f"no free port between {first} and {last}: widen LOCKSTEP_PORT_RANGE or end other jobs")

    def close(self) -> None:
        for held in self._held:
            held.close()
        self._held.clear()

    def _hold(self, port: int) -> bool:
        if sys.platform != "linux":
            return True
        held = socket.socket(socket.AF_UNIX)
        try:
            held.bind(f"\0lockstep-port-{port}")
        except OSError:
            held.close()
            return False
        self._held.append(held)
        return True


def plan_ports(
    processes: tuple[ProcessAssignment, ...],
    reservation: PortReservation | None = None,
    port_range: tuple[int, int] = PORT_RANGE,
) -> tuple[ProcessAssignment, ...]:
    """The same processes with every port 0 replaced by a free one; a single process needs none.

    Raises NoFreePort. Without a `reservation` of the caller's the ports are only known to be free now.
    """
    if len(processes) == 1:
        return processes
    own = reservation or PortReservation()
    try:
        return tuple(p if p.port else p.model_copy(update={"port": own.take(*port_range)}) for p in processes)
    finally:
        if reservation is None:
            own.close()


def _is_free(port: int) -> bool:
    # On every interface, as TensorFlow's server will bind it.
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
