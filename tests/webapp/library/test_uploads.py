"""Uploads arrive in ranges, go on where they stopped, and are refused in words."""

from __future__ import annotations

import hashlib
import io
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from tests.webapp.library import scene
from tests.workers.contract.keras_files import entry, layer, sequential, write
from tests.workers.file_corpus import number_records, write_records
from webapp.library import checks, uploads
from webapp.library.models import Item, Upload, UploadState, Version
from webapp.library.uploads import WrongOffset
from webapp.teams.models import Membership, Team, User
from workers.contract.library import Report, file_key, report_key
from workers.contract.problems import SpecInvalid

pytestmark = pytest.mark.django_db


def begin(team: Team, owner: User, **more: Any) -> Upload:
    given = {"format_name": "keras_file", "filename": "net.keras", "size": 10, **more}
    return uploads.begin(team=team, owner=owner, **given)


def refusal(team: Team, owner: User, **more: Any) -> str:
    with pytest.raises(SpecInvalid) as refused:
        begin(team, owner, **more)
    assert not Upload.objects.exists()
    return str(refused.value)


def test_it_puts_together_what_came_in_ranges(team: Team, bob: User) -> None:
    content = scene.keras_bytes()
    upload = scene.send(team, bob, content, step=700)
    assert upload.state == UploadState.CHECKING
    assert upload.sha256 == hashlib.sha256(content).hexdigest()
    with uploads.store().open(file_key(upload.sha256)) as file:
        assert file.read() == content
    assert not upload.path.exists()


def test_it_goes_on_only_where_it_stopped(team: Team, bob: User) -> None:
    content = scene.keras_bytes()
    upload = begin(team, bob, size=len(content))
    uploads.append(upload, 0, io.BytesIO(content[:500]))
    for offset in (0, 499, 501):
        with pytest.raises(WrongOffset) as wrong:
            uploads.append(upload, offset, io.BytesIO(content[offset:]))
        assert wrong.value.received == 500
    assert uploads.append(upload, 500, io.BytesIO(content[500:])).state == UploadState.CHECKING


def test_it_takes_no_more_than_was_said(team: Team, bob: User) -> None:
    upload = begin(team, bob, size=10)
    with pytest.raises(SpecInvalid, match="more bytes than it said"):
        uploads.append(upload, 0, io.BytesIO(b"PK\x03\x04" + b"x" * 20))
    upload.refresh_from_db()
    assert upload.received == 0


def test_it_refuses_before_anything_is_sent(team: Team, bob: User) -> None:
    assert "larger than 2,048 MiB" in refusal(team, bob, size=2**31 + 1)
    assert "is empty" in refusal(team, bob, size=0)
    assert "not a kind of file" in refusal(team, bob, format_name="pickle")
    assert "name" in refusal(team, bob, filename=".keras", name="\x07")
    scene.item(team, bob, name="taken")
    Upload.objects.all().delete()
    assert "is taken" in refusal(team, bob, name="taken")


def test_it_keeps_no_folder_of_a_name(team: Team, bob: User) -> None:
    assert begin(team, bob, filename="../../etc/passwd").filename == "passwd"
    assert begin(team, bob, filename="net\0\n.keras").filename == "net.keras"
    assert begin(team, bob, filename="C:\\models\\net.keras").filename == "net.keras"


def test_readers_upload_nothing_and_code_needs_a_right(team: Team, bob: User, rita: User, alice: User) -> None:
    with pytest.raises(PermissionDenied):
        begin(team, rita)
    with pytest.raises(PermissionDenied, match="you may not run code"):
        begin(team, bob, format_name="python_module", filename="net.py")
    assert begin(team, alice, format_name="python_module", filename="net.py")
    Membership.objects.filter(user=bob).update(code=True)
    assert begin(team, bob, format_name="python_module", filename="net.py")


def test_the_first_range_must_be_what_the_file_claims(team: Team, bob: User, folders: Path) -> None:
    upload = begin(team, bob, size=1_000_000)
    upload = uploads.append(upload, 0, io.BytesIO(b"\x89HDF\r\n\x1a\n" + b"x" * 1000))
    assert upload.state == UploadState.REFUSED
    assert upload.reason == (
        "net.keras is not of the kind Keras model (.keras): it begins like an HDF5 file. Choose the kind that it is."
    )
    assert not list((folders / "uploads").iterdir())


@pytest.mark.parametrize(
    ("filename", "content", "words"),
    [
        ("a.csv", b"\x89PNG\r\n\x1a\n", "it begins like a PNG picture"),
        ("a.csv", "x,y\n1,2\n".encode("utf-16"), "UTF-16 text, which has to be saved as UTF-8"),
        ("a.txt", b"\0\1\2", "it does not begin as such files do"),
        ("a.npz", b"\x93NUMPY\x01\0", "a single array of NumPy"),
        ("a.zip", b"PK\x05\x06" + b"\0" * 18, "a zip file with nothing in it"),
        ("a.tfrecord", b"\x1f\x8b\x08" + b"\0" * 30, "packed with gzip, which has to be unpacked first"),
        ("a.tfrecord", b"x,y\n1,2\n" * 9, "it does not begin as such files do"),
    ],
)
def test_it_says_what_a_file_begins_like(team: Team, bob: User, filename: str, content: bytes, words: str) -> None:
    upload = begin(team, bob, size=10**6, format_name=scene.FORMAT_OF[Path(filename).suffix], filename=filename)
    assert words in uploads.append(upload, 0, io.BytesIO(content)).reason


def test_it_takes_tfrecords(team: Team, bob: User, tmp_path: Path) -> None:
    content = write_records(tmp_path / "a.tfrecord", number_records(20)).read_bytes()
    assert scene.send(team, bob, content, filename="a.tfrecord").state == UploadState.CHECKING


def test_the_stored_file_is_moved_and_others_may_read_it(team: Team, bob: User, folders: Path) -> None:
    upload = begin(team, bob, size=6, format_name="text", filename="a.txt")
    place = upload.path.stat().st_ino
    upload = uploads.append(upload, 0, io.BytesIO(b"hello\n"))
    kept = folders / "store" / file_key(upload.sha256)
    assert kept.stat().st_ino == place
    assert kept.stat().st_mode & 0o004


def _slip(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../evil.py", "x")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: write(path, sequential(entry(4), layer("Lambda"))), "Lambda layer, which is code"),
        (lambda path: write(path, b" " * 4_000_000 + b"{}"), "times its size"),
        (_slip, "leave its folder"),
        (lambda path: path.write_bytes(path.read_bytes()[:-50]), "torn or not"),
    ],
    ids=["lambda", "bomb", "slip", "torn"],
)
def test_nothing_stays_of_what_is_refused(
    team: Team, bob: User, folders: Path, tmp_path: Path, change: Any, words: str
) -> None:
    path = write(tmp_path / "net.keras")
    change(path)
    upload = scene.send(team, bob, path.read_bytes(), step=2**20)
    assert upload.state == UploadState.REFUSED
    assert words in upload.reason
    assert not Item.objects.exists()
    assert not list((folders / "uploads").iterdir())
    assert not list((folders / "store").rglob("*"))


def test_a_passed_check_makes_an_item_and_a_second_one_its_next_version(team: Team, bob: User) -> None:
    first = scene.item(team, bob)
    assert (first.name, first.kind, first.latest.number) == ("digits net", "model", 1)
    upload = scene.send(team, bob, scene.keras_bytes(), item=first)
    version = scene.answered(upload)
    assert version is not None
    assert (version.item, version.number) == (first, 2)
    upload.refresh_from_db()
    assert upload.state == UploadState.DONE


def test_a_failed_check_leaves_words_and_no_item(team: Team, bob: User, folders: Path) -> None:
    upload = scene.send(team, bob, scene.keras_bytes())
    assert scene.answered(upload, refused="It loops for ever.", output="building") is None
    upload.refresh_from_db()
    assert (upload.state, upload.reason, upload.output) == ("refused", "It loops for ever.", "building")
    assert not Item.objects.exists()
    assert not uploads.store().has(file_key(upload.sha256))


def test_the_same_content_of_another_team_stays_when_one_goes(team: Team, bob: User, charlie: User) -> None:
    speech = Team.objects.get(slug="speech")
    kept = scene.item(speech, charlie)
    refused = scene.send(team, bob, scene.keras_bytes())
    scene.answered(refused, refused="no")
    assert uploads.store().has(file_key(kept.latest.sha256))


def test_it_takes_the_report_that_a_host_left(team: Team, bob: User, tmp_path: Path) -> None:
    upload = scene.send(team, bob, scene.keras_bytes())
    checks.turn()
    upload.refresh_from_db()
    assert upload.state == UploadState.CHECKING
    written = tmp_path / "report.json"
    written.write_text(Report(host="h", model=scene.FACTS, output="a\0b").model_dump_json())
    uploads.store().put(written, report_key(str(upload.pk)))
    checks.turn()
    assert Version.objects.get().facts == scene.FACTS
    assert Version.objects.get().report.output == "ab"
    assert not uploads.store().has(report_key(str(upload.pk)))


def test_a_report_that_is_none_refuses(team: Team, bob: User, tmp_path: Path) -> None:
    upload = scene.send(team, bob, scene.keras_bytes())
    written = tmp_path / "report.json"
    written.write_text('{"model": {"parameters": "many"}}')
    uploads.store().put(written, report_key(str(upload.pk)))
    checks.turn()
    upload.refresh_from_db()
    assert "cannot be read" in upload.reason


def test_it_gives_up_when_no_host_ever_answers(team: Team, bob: User) -> None:
    upload = scene.send(team, bob, scene.keras_bytes())
    Upload.objects.update(touched=timezone.now() - timedelta(hours=1))
    checks.turn()
    upload.refresh_from_db()
    assert "No training host" in upload.reason


def test_abandoned_uploads_go_with_their_bytes(team: Team, bob: User, folders: Path) -> None:
    begin(team, bob, size=1000)
    assert uploads.sweep() == 0
    Upload.objects.update(touched=timezone.now() - timedelta(days=2))
    assert uploads.sweep() == 1
    assert not list((folders / "uploads").iterdir())
