"""What a file begins like, whatever it is called: so that somebody who chose the wrong one is told which it is."""

from __future__ import annotations

from workers.contract.files.records import is_head

KNOWN: dict[bytes, str] = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"PK\x03\x04": "a zip file",
    b"PK\x05\x06": "a zip file with nothing in it",
    b"PAR1": "a Parquet table",
    b"\x93NUMPY": "a single array of NumPy, which numpy.savez would write as .npz",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b\x08": "a file packed with gzip, which has to be unpacked first",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"%PDF": "a PDF",
    b"\xd0\xcf\x11\xe0": "a file of an old office program",
    b"SQLite format 3": "an SQLite database",
    b"\xff\xfe": "UTF-16 text, which has to be saved as UTF-8",
    b"\xfe\xff": "UTF-16 text, which has to be saved as UTF-8",
}


def name_of(head: bytes) -> str:
    """In words; empty for what nothing here knows."""
    known = next((words for start, words in KNOWN.items() if head.startswith(start)), "")
    return known or ("TFRecords" if is_head(head[:12]) else "")


def is_text(head: bytes) -> bool:
    """Whether it may be plain text."""
    return b"\0" not in head and not name_of(head)
