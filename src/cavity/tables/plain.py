"""What a text file holds: unpacked, in UTF-8, in memory or in a temporary file."""

import codecs
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cavity.tables.output import TableError
from cavity.tables.table import fits_in_memory

_CHUNK = 2**22
_GZIP = b"\x1f\x8b"
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LONGEST_MARK = 4


class Scratch:
    """A temporary folder, removed when it is closed or nobody refers to it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="cavity-"))
        self.close = weakref.finalize(self, shutil.rmtree, self.path, True)


def encoding_of(start: bytes) -> str | None:
    """Return the encoding that a byte-order mark tells; None for UTF-8 and for no mark."""
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)


def is_packed(start: bytes) -> bool:
    """Whether these are the first bytes of a gzip file."""
    return start.startswith(_GZIP)


def plain_text(file: IO[bytes], source: str, encoding: str | None) -> bytes | Scratch:
    """Return all text of an open file; if it is too much for memory, in a temporary folder.

    The folder has one file, ``table.txt``.
    """
    parts = _decoded(_unpacked(file, source), source, encoding)
    held, size = [], 0
    for part in parts:
        held.append(part)
        size += len(part)
        if not fits_in_memory(size):
            return _spooled(held, parts)
    return b"".join(held)


def _spooled(held: list[bytes], rest: Iterator[bytes]) -> Scratch:
    scratch = Scratch()
    try:
        with (scratch.path / "table.txt").open("wb") as file:
            file.writelines(held)
            held.clear()
            file.writelines(rest)
    except TableError:
        scratch.close()
        raise
    except OSError as error:
        scratch.close()
        raise no_room(scratch.path.parent, error) from error
    return scratch


def no_room(folder: Path, error: Exception) -> TableError:
    """Return the error that a temporary file cannot be written."""
    problem = (
        f"cannot be written ({error}): the table is converted to a temporary file first. Free "
        "some space there, or name another folder in the environment variable TMPDIR."
    )
    return TableError(str(folder), problem)


def _unpacked(file: IO[bytes], source: str) -> Iterator[bytes]:
    """Yield the bytes of a file, or what is packed in it."""
    start = file.read(_LONGEST_MARK)
    if not is_packed(start):
        yield start
        yield from iter(lambda: file.read(_CHUNK), b"")
        return
    # Concatenated gzip files are one file.
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    packed = start
    try:
        while packed:
            yield unpack.decompress(packed)
            packed = unpack.unused_data
            if unpack.eof and packed.strip(b"\0"):
                unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
            else:
                packed = file.read(_CHUNK)
    except zlib.error as error:
        raise TableError(source, f"is a damaged gzip file ({error}).") from error
    if not unpack.eof:
        raise TableError(source, "is an incomplete gzip file: its end is missing.")


def _decoded(parts: Iterator[bytes], source: str, encoding: str | None) -> Iterator[bytes]:
    """Yield the bytes as UTF-8; without an encoding, as a byte-order mark tells or as they are."""
    start = b""
    for part in parts:
        start += part
        if len(start) >= _LONGEST_MARK:
            break
    encoding = encoding or encoding_of(start)
    if encoding is None:
        yield start
        yield from parts
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    for part, last in _with_last(start, parts):
        before = done - len(decoder.getstate()[0])
        try:
            yield decoder.decode(part, last).encode()
        except UnicodeDecodeError as error:
            problem = (
                f"byte 0x{error.object[error.start]:02x} at position {before + error.start} is "
                f"not {encoding}: name the file's encoding with --encoding, or save it as UTF-8."
            )
            raise TableError(source, problem) from error
        done += len(part)


def _with_last(start: bytes, parts: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    yield start, False
    for part in parts:
        yield part, False
    yield b"", True
