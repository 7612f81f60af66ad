"""Everything that the environment decides on a training host, typed and read once."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parent.parent.parent
HOST_NAME = r"^[A-Za-z0-9][\w.-]{0,99}$"


def _host_name() -> str:
    return socket.gethostname().split(".")[0] or "host"


class HostSettings(BaseSettings):
    """One field per variable; a file of the same name under /run/secrets serves as well (Docker secrets)."""

    model_config = SettingsConfigDict(
        extra="ignore", env_file=ROOT / ".env", secrets_dir="/run/secrets" if Path("/run/secrets").is_dir() else None
    )

    redis_url: str = Field("redis://127.0.0.1:6379/0", description="redis://, rediss:// or unix:///path?db=0")
    lockstep_host: str = Field(
        default_factory=_host_name, pattern=HOST_NAME, description="This host's name, unique. Default: the hostname."
    )
    lockstep_runs: Path = Field(ROOT / ".lockstep" / "runs", description="Folder of the attempts' run folders.")
    lockstep_store: str = Field(
        str(ROOT / ".lockstep" / "store"),
        description="Artifact store, the same as the web's: a shared folder, or what fsspec opens (s3://bucket).",
    )
    lockstep_store_patience: float = Field(
        60.0, ge=0, description="Seconds for which an ended job waits for a failing store to take its files."
    )
    lockstep_cpu_devices: int = Field(
        default_factory=lambda: max(4, os.cpu_count() or 1),
        ge=0,
        le=1024,
        description="How many processes may train on this host's CPU at once. Default: the cores, at least 4.",
    )
    lockstep_tpu_cores: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="Cores of the TPU pod slice that this host drives by its name. Default: its own.",
    )
    lockstep_address: str = Field(
        "", description="Where other training hosts reach this one. Default: the address on the way to Redis."
    )
    lockstep_port_range: str = Field("20000-29999", description="Ports for the processes of a job, first-last.")
    lockstep_offline: bool = Field(False, description="Never download datasets.")
    lockstep_isolate: Literal["auto", "off"] = Field(
        "auto", description="auto: jobs of one host get a network of their own where the kernel allows it."
    )
    lockstep_grace: float = Field(
        3.0, ge=0, le=60, description="Seconds between TERM and KILL when a job's processes are ended."
    )
    lockstep_end_with_host: bool = Field(
        False, description="End running jobs when the host daemon ends (the demo); else they go on without it."
    )
    lockstep_keep_runs_days: float = Field(
        7.0,
        ge=0,
        description="After this many days an ended run folder keeps its model and what the store lacks.",
    )
    lockstep_selftest: Literal["auto", "off"] = Field(
        "auto", description="auto: try each strategy with small trainings while no job runs; forms disable what fails."
    )
    lockstep_selftest_quiet: float = Field(
        60.0, ge=0, description="Seconds without a job after which the self-test begins or goes on."
    )
    lockstep_engine: str = Field(
        "workers.training.process", description="The module that each process of a job runs. Others are for tests."
    )
    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR.")

    @field_validator("lockstep_port_range")
    @classmethod
    def _two_ports(cls, value: str) -> str:
        first, _, last = value.partition("-")
        if not (first.isdigit() and last.isdigit() and 1024 <= int(first) <= int(last) <= 65535):
            raise ValueError("must be first-last within 1024-65535, for example 20000-29999")
        return value

    @field_validator("redis_url")
    @classmethod
    def _known_scheme(cls, value: str) -> str:
        if urlsplit(value).scheme not in {"redis", "rediss", "unix"}:
            raise ValueError("must begin with redis://, rediss:// or unix://")
        return value

    @field_validator("lockstep_runs")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().resolve()

    def export(self) -> None:
        """Let dataset plugins, which read the environment alone, see what a .env file or a secret decided."""
        os.environ["LOCKSTEP_OFFLINE"] = "1" if self.lockstep_offline else "0"

    @property
    def library(self) -> Path:
        """Where files of the library are kept, by their content."""
        return self.lockstep_runs / "library"

    @property
    def port_range(self) -> tuple[int, int]:
        """First and last port."""
        first, _, last = self.lockstep_port_range.partition("-")
        return int(first), int(last)

    @property
    def address(self) -> str:
        """Where other training hosts reach this one."""
        return self.lockstep_address or _address_towards(self.redis_url)


def _address_towards(url: str) -> str:
    """Our address on the route to Redis; connecting a datagram socket sends nothing."""
    parts = urlsplit(url)
    if parts.scheme == "unix" or not parts.hostname:
        return "127.0.0.1"
    try:
        family, _, _, _, peer = socket.getaddrinfo(parts.hostname, parts.port or 6379, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(peer)
            address = str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
    return f"[{address}]" if ipaddress.ip_address(address.partition("%")[0]).version == 6 else address
