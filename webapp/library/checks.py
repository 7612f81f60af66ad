"""Has uploads looked at by a training host, and takes its answer: a chore of the control process.

The order travels by Celery and may be lost, so it is sent again to another host until there is a report in the store.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone
from pydantic import ValidationError

from webapp.cluster import broker
from webapp.cluster.models import Host
from webapp.library import uploads
from webapp.library.models import Item, Upload, UploadState, Version
from workers.contract.library import FORMATS, Inspection, Report, check_seconds, report_key
from workers.contract.store import Store

ASK_AGAIN = timedelta(seconds=60)
"""Besides what the look itself may take."""
GIVE_UP = timedelta(minutes=30)
SWEEP_SECONDS = 600.0
REPORT_BYTES = 2**20

log = logging.getLogger(__name__)
_swept = 0.0


def turn() -> None:
    """Look at every upload that waits; a store or a broker that is away leaves them for the next turn."""
    global _swept  # noqa: PLW0603  the control process has one loop
    waiting = list(Upload.objects.filter(state=UploadState.CHECKING).select_related("team", "owner", "item"))
    if waiting:
        try:
            _look(waiting)
        except (OSError, ValueError, broker.BrokerAway) as error:
            log.warning("uploads wait: %s", error)
    if time.monotonic() - _swept > SWEEP_SECONDS:
        _swept = time.monotonic()
        uploads.sweep()


def _look(waiting: list[Upload]) -> None:
    store = uploads.store()
    unanswered = []
    for upload in waiting:
        report = _report(store, upload)
        if report is not None:
            conclude(upload, report)
        elif timezone.now() - upload.touched > GIVE_UP + _length(upload):
            uploads.refuse(upload, "No training host has looked at it within half an hour. Start one, and try again.")
        elif upload.asked is None or timezone.now() - upload.asked > ASK_AGAIN + _length(upload):
            unanswered.append(upload)
    hosts = list(Host.objects.online().values_list("name", flat=True)) if unanswered else []
    if not hosts:
        return
    with broker.connect() as connection:
        for upload in unanswered:
            order = inspection(upload).model_dump(mode="json")
            broker.send(connection, broker.INSPECT, host=hosts[upload.asks % len(hosts)], args=[order])
            # Not `touched`, by which an upload that nobody answers is given up.
            Upload.objects.filter(pk=upload.pk).update(asked=timezone.now(), asks=upload.asks + 1)


def _length(upload: Upload) -> timedelta:
    return timedelta(seconds=check_seconds(upload.size))


def inspection(upload: Upload) -> Inspection:
    """What a host is asked."""
    return Inspection(upload=str(upload.pk), format=upload.format, sha256=upload.sha256, **upload.options)


def conclude(upload: Upload, report: Report) -> Version | None:
    """Make of an upload what the report says: a version, or a refusal."""
    if report.refused:
        uploads.refuse(upload, report.refused, report.output)
        return None
    try:
        with transaction.atomic():
            version = _register(upload, report)
    except IntegrityError:
        uploads.refuse(upload, f"Meanwhile somebody else has taken the name {upload.name}. Upload it under another.")
        return None
    uploads.store().remove(report_key(str(upload.pk)))
    return version


def _register(upload: Upload, report: Report) -> Version:
    item = upload.item or Item.objects.create(
        team=upload.team, kind=FORMATS[upload.format].kind, name=upload.name, owner=upload.owner
    )
    Item.objects.select_for_update().get(pk=item.pk)
    newest = item.versions.order_by("-number").first()
    version = Version.objects.create(
        item=item,
        number=newest.number + 1 if newest else 1,
        format=upload.format,
        filename=upload.filename,
        sha256=upload.sha256,
        size=upload.size,
        report_json=report.model_dump(mode="json"),
        owner=upload.owner,
    )
    upload.state, upload.version, upload.output = UploadState.DONE, version, report.output
    upload.save(update_fields=["state", "version", "output", "touched"])
    return version


def _report(store: Store, upload: Upload) -> Report | None:
    key = report_key(str(upload.pk))
    if not store.has(key):
        return None
    with store.open(key) as file:
        content = file.read(REPORT_BYTES + 1)
    try:
        # PostgreSQL stores no NUL, and a column's name or a printed line may hold one.
        return Report.model_validate_json(content.replace(b"\\u0000", b""))
    except ValidationError:
        return Report(refused="The host's report cannot be read: is it of another version of Lockstep?")
