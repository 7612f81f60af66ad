"""The Celery application of a training host: carries `launch`, `stop` and `inspect`, remembers nothing."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from celery import Celery

from workers.host.settings import HostSettings


def broker_url(url: str) -> str:
    """The Redis address as kombu writes it: `unix:///path?db=0` becomes `redis+socket:///path?virtual_host=0`."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.path}?virtual_host={database}"


# Without fixups: a DJANGO_SETTINGS_MODULE in the environment must not bring Django here.
app = Celery("lockstep", broker=broker_url(HostSettings().redis_url), include=["workers.tasks"], fixups=[])
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    result_backend=None,
    # Acknowledged before it runs: a launch lost with its worker is sent again until the supervisor is heard.
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"socket_connect_timeout": 2.0, "socket_keepalive": True},
    enable_utc=True,
)
