"""Starts the processes of one job on this machine and ends them together."""

from workers.gang.downloads import data_home
from workers.gang.leftovers import MARK, kill_leftovers, leftovers
from workers.gang.ports import NoFreePort, plan_ports
from workers.gang.processes import Gang, ProcessExit

__all__ = ["MARK", "Gang", "NoFreePort", "ProcessExit", "data_home", "kill_leftovers", "leftovers", "plan_ports"]
