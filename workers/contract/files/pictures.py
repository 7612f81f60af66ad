"""What a picture's first bytes say: its format and its size, without decoding it."""

from __future__ import annotations

import struct
import zlib

HEAD_BYTES = 256 * 1024
"""Enough to find the size of a JPEG behind its thumbnails."""


def format_of(head: bytes) -> str | None:
    """PNG, JPEG, GIF or BMP by the first bytes; None for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return "GIF"
    return "BMP" if head.startswith(b"BM") else None


def size_of(head: bytes) -> tuple[int, int, int] | None:
    """Height, width and channels (1 or 3); None when it cannot be told."""
    try:
        kind = format_of(head)
        if kind == "PNG":
            width, height, _, colour = struct.unpack_from(">IIBB", head, 16)
            return height, width, 1 if colour in (0, 4) else 3
        if kind == "GIF":
            width, height = struct.unpack_from("<HH", head, 6)
            return height, width, 3
        if kind == "BMP":
            width, height = struct.unpack_from("<ii", head, 18)
            return abs(height), width, 3
        return _jpeg(head) if kind == "JPEG" else None
    except struct.error:
        return None


def is_whole(content: bytes) -> bool:
    """Whether a picture goes on to its end: the checksums of a PNG, the last mark of a JPEG."""
    kind = format_of(content)
    if kind == "JPEG":
        return content.rfind(b"\xff\xd9") > 0
    if kind != "PNG":
        return True
    place = 8
    while place + 12 <= len(content):
        length = int.from_bytes(content[place : place + 4], "big")
        body, place = content[place + 4 : place + 8 + length], place + 12 + length
        if place > len(content) or zlib.crc32(body) != int.from_bytes(content[place - 4 : place], "big"):
            return False
        if body[:4] == b"IEND":
            return True
    return False


def _jpeg(head: bytes) -> tuple[int, int, int] | None:
    """From the frame header (SOF0 to SOF15 but for DHT, JPG and DAC), past the segments before it."""
    place = 2
    while place + 9 < len(head):
        if head[place] != 0xFF:
            return None
        marker = head[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width, parts = struct.unpack_from(">HHB", head, place + 5)
            return height, width, 1 if parts == 1 else 3
        place += 2 + int(struct.unpack_from(">H", head, place + 2)[0])
    return None
