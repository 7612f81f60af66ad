"""Everything that the environment decides, typed and read once; a wrong value ends the start with its name."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parent.parent


class Env(BaseSettings):
    """One field per variable; a file of the same name under /run/secrets serves as well (Docker secrets)."""

    model_config = SettingsConfigDict(
        extra="ignore", env_file=ROOT / ".env", secrets_dir="/run/secrets" if Path("/run/secrets").is_dir() else None
    )

    debug: bool = Field(False, description="Django's debug pages. Never in production.")
    secret_key: str = Field(
        "", description="Signs sessions and links. Required with HTTPS; without, one is generated into LOCKSTEP_HOME."
    )
    allowed_hosts: str = Field("localhost,127.0.0.1,[::1]", description="Host names that are served, by comma.")
    csrf_trusted_origins: str = Field(
        "", description="Origins behind a TLS proxy, by comma: https://lockstep.example.org"
    )
    database_url: str = Field(
        "", description="postgresql://user:password@host/name or sqlite:///path. Default: SQLite."
    )
    redis_url: str = Field("redis://127.0.0.1:6379/0", description="redis://, rediss:// or unix:///path?db=0")
    lockstep_home: Path = Field(
        ROOT / ".lockstep", description="Where the SQLite file, the secret key and the demo's runs live."
    )
    lockstep_store: str = Field(
        str(ROOT / ".lockstep" / "store"),
        description="Artifact store, the same as the training hosts': a shared folder, or what fsspec opens (s3://bucket).",
    )
    static_root: Path = Field(ROOT / "staticfiles", description="Where `manage.py collectstatic` puts files.")
    https: bool = Field(True, description="Cookies only over TLS, HSTS and redirect. The demo turns it off.")
    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR.")

    def names(self, value: str) -> list[str]:
        """A comma-separated list without blanks."""
        return [part.strip() for part in value.split(",") if part.strip()]

    def key(self) -> str:
        """The secret key; without one in the environment it is generated once and kept, readable by its owner only."""
        if self.secret_key:
            return self.secret_key
        path = self.lockstep_home / "secret_key"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(64))
        return path.read_text().strip()


def database(url: str, home: Path) -> dict[str, Any]:
    """Django's settings for `url`.

    Raises ValueError for a scheme that is neither SQLite nor PostgreSQL.
    """
    parts = urlsplit(url or f"sqlite:///{home / 'lockstep.sqlite3'}")
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": unquote(parts.path.removeprefix("/")) or str(home / "lockstep.sqlite3"),
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;",
            },
        }
    if parts.scheme in {"postgres", "postgresql"}:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": parts.hostname or dict(parse_qsl(parts.query)).get("host", ""),
            "PORT": str(parts.port or ""),
            "OPTIONS": {"pool": {"min_size": 1, "max_size": 8}},
        }
    raise ValueError(f"DATABASE_URL: {parts.scheme}:// is not supported. Use postgresql:// or sqlite:///")


def digest_of(folder: Path) -> str:
    """A short digest of every file below `folder`, by name and content."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
