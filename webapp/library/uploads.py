"""Uploads: begun with a size and a format, received in ranges, looked at while they come, then whole in the store."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webapp.jobs import notices
from webapp.library.models import Item, Upload, UploadState, Version
from webapp.teams import access
from webapp.teams.models import Team, User
from workers.contract import keras_file
from workers.contract.files.beginnings import name_of
from workers.contract.library import FORMATS, MAX_BYTES, file_key, report_key
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.store import Store

RANGE_BYTES = 8 * 2**20
"""How much a browser sends at once."""
BLOCK = 2**20
MODULE_BYTES = 2**20
SPARE_BYTES = 2**28
ABANDONED = timedelta(days=1)
MOST_AT_ONCE = 20


class Readable(Protocol):
    """What a range is read from: a request, or a file."""

    def read(self, size: int, /) -> bytes: ...


class WrongOffset(Exception):
    """The range does not begin where the file ends; `received` is where it does."""

    def __init__(self, received: int) -> None:
        super().__init__(f"the file has {received} bytes so far")
        self.received = received


def store() -> Store:
    """The artifact store."""
    return Store(settings.LOCKSTEP_STORE)


def begin(
    *,
    team: Team,
    owner: User,
    format_name: str,
    filename: str,
    size: int,
    name: str = "",
    item: Item | None = None,
    options: dict[str, Any] | None = None,
) -> Upload:
    """A place for a file that is to come.

    Raises SpecInvalid with what is wrong with it, PermissionDenied for a module of somebody who may not run code.
    """
    access.check_may_write(owner, team)
    if format_name not in FORMATS or (item is not None and FORMATS[format_name].kind != item.kind):
        raise _problem("format", "is not a kind of file that can be uploaded here", format_name, _known(item))
    if format_name == "python_module":
        access.check_may_run_code(owner, team)
    filename = "".join(letter for letter in Path(filename.replace("\\", "/")).name[:200] if letter.isprintable())
    name = item.name if item else (name.strip() or Path(filename).stem)[:80]
    _check_name(team, format_name, name, item)
    _check_size(format_name, filename, size)
    if Upload.objects.filter(team=team, state=UploadState.RECEIVING).count() >= MOST_AT_ONCE:
        raise _problem("", f"{MOST_AT_ONCE} uploads of this team are under way", None, "Finish or cancel one of them")
    upload = Upload.objects.create(
        team=team,
        owner=owner,
        item=item,
        name=name,
        format=format_name,
        filename=filename,
        size=size,
        options=options or {},
    )
    upload.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    upload.path.touch()  # its folder keeps others away; the store, where it is moved, may be shared
    return upload


def append(upload: Upload, offset: int, data: Readable) -> Upload:
    """Take one range; the last one has the file checked and stored.

    Raises WrongOffset, and SpecInvalid for a range that is too long. A file that is not what it claims is refused.
    """
    with open(upload.path, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        upload.refresh_from_db()
        if upload.state != UploadState.RECEIVING or offset != upload.received:
            raise WrongOffset(upload.received)
        file.seek(offset)
        while block := data.read(BLOCK):
            if file.tell() + len(block) > min(upload.size, offset + RANGE_BYTES):
                raise _problem("", "sends more bytes than it said it would", upload.size, "Begin the upload again")
            file.write(block)
        received = file.tell()
        file.flush()
        if offset == 0 and (reason := _begins_wrong(upload)):
            return refuse(upload, reason)
        upload.received = received
        upload.save(update_fields=["received", "touched"])
        # A store that was away fails the range; sent again, empty now, it is finished then.
        return finish(upload) if received == upload.size else upload


def finish(upload: Upload) -> Upload:
    """Check the whole file as far as that needs no TensorFlow, put it into the store, and ask for the rest."""
    try:
        if upload.format == "keras_file":
            keras_file.check(upload.path)
    except SpecInvalid as error:
        return refuse(upload, f"{upload.filename}: {error}.")
    with open(upload.path, "rb") as file:
        upload.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    place = store()
    if not place.has(file_key(upload.sha256)):
        place.take(upload.path, file_key(upload.sha256))
    upload.state = UploadState.CHECKING
    with transaction.atomic():
        upload.save(update_fields=["sha256", "state", "touched"])
        notices.wake_control()
    upload.path.unlink(missing_ok=True)
    return upload


def refuse(upload: Upload, reason: str, output: str = "") -> Upload:
    """End an upload with the reason; none of its bytes stay."""
    upload.state, upload.reason, upload.output = UploadState.REFUSED, reason[:2000], output
    upload.save(update_fields=["state", "reason", "output", "touched"])
    forget_bytes(upload)
    return upload


def cancel(upload: Upload) -> None:
    """Take an upload away, whatever became of it; a version that it became stays."""
    forget_bytes(upload)
    upload.delete()


def sweep() -> int:
    """Remove what nobody has touched for a day: uploads that stopped, and the answers to those that ended."""
    old = Upload.objects.exclude(state=UploadState.CHECKING).filter(touched__lt=timezone.now() - ABANDONED)
    gone = list(old)
    for upload in gone:
        cancel(upload)
    return len(gone)


def forget_bytes(upload: Upload) -> None:
    """Remove the file, in the store too unless something else has the same content."""
    upload.path.unlink(missing_ok=True)
    place = store()
    place.remove(report_key(str(upload.pk)))
    if not upload.sha256 or Version.objects.filter(sha256=upload.sha256).exists():
        return
    others = Upload.objects.filter(sha256=upload.sha256, state=UploadState.CHECKING).exclude(pk=upload.pk)
    if not others.exists():
        place.remove(file_key(upload.sha256))


def _begins_wrong(upload: Upload) -> str:
    """Why it cannot be of its kind; empty when it may be."""
    with open(upload.path, "rb") as file:
        head = file.read(1024)
    if FORMATS[upload.format].begins(head):
        return ""
    like = name_of(head)
    begins = f"it begins like {like}" if like else "it does not begin as such files do"
    return f"{upload.filename} is not of the kind {FORMATS[upload.format].title}: {begins}. Choose the kind that it is."


def _check_name(team: Team, format_name: str, name: str, item: Item | None) -> None:
    if not name or any(ord(letter) < 32 for letter in name):
        raise _problem("name", "is needed to find the file again", name, "Give one of 1 to 80 letters")
    same = Item.objects.in_use().filter(team=team, kind=FORMATS[format_name].kind, name=name)
    if item is None and same.exists():
        raise _problem("name", "is taken in this team", name, "Choose another, or add a version on that page")


def _check_size(format_name: str, filename: str, size: int) -> None:
    limit = MODULE_BYTES if format_name == "python_module" else MAX_BYTES
    if not 0 < size <= limit:
        what = "is empty" if size <= 0 else f"is larger than {limit // 2**20:,} MiB"
        raise _problem("size", f"{filename} {what}", size, "Choose another file")
    if shutil.disk_usage(settings.LOCKSTEP_HOME).free < size * 2 + SPARE_BYTES:
        raise _problem("size", "does not fit on the server's disk", size, "Ask an operator to make room")


def _known(item: Item | None) -> str:
    return "Known: " + ", ".join(name for name, one in FORMATS.items() if item is None or one.kind == item.kind)


def _problem(path: str, message: str, value: object, remedy: str) -> SpecInvalid:
    return SpecInvalid([Problem(path, message, value, remedy)])
