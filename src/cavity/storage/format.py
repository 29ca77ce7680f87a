"""Model files that are safe to open and always complete.

A file is a zip of plain NumPy arrays and one JSON header, nothing compressed, nothing pickled. It
is written beside its destination and moved there in one step. When a file is read, sizes are
checked against the header before memory is allocated, and nothing in it is ever executed.
"""

import glob
import io
import json
import math
import os
import reprlib
import stat
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from cavity._version import __version__
from cavity.arrays import Array

try:
    import fcntl
except ImportError:  # Not on Windows, where temporary files of killed writers stay.
    fcntl = None  # type: ignore[assignment]

_FORMAT = "cavity"
_VERSION = 1
_HEADER = "header.json"
_LARGEST_HEADER = 16 * 2**20
_SUFFIX = ".partial"
_KINDS = "biufU"
"""Numbers, booleans and strings; never objects, which would be pickled."""


class StorageError(ValueError):
    """A file that cannot be read safely, or a model that cannot be stored."""


def short(value: Any, most: int = 120) -> str:
    """Return a value, or an error's message, as a part of a line that others can be added to."""
    text = " ".join((str(value) if isinstance(value, Exception) else reprlib.repr(value)).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def clipped(text: str, most: int) -> str:
    """Return a text without its middle if it is long: the beginning and the end say the most.

    >>> clipped("a text of many letters", 15)
    'a text...etters'
    """
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:half]}...{text[-half:]}"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Replace a file in one step: at any moment the path holds the old file or the new one.

    Yields a temporary path in the same folder, an empty file to be written over. What was written
    there is moved to the destination at the end; after an error it is removed and the old file
    stays. Only regular files are replaced. What writers that were killed have left is removed.
    """
    # Through a symbolic link, to the file that it names.
    target = Path(os.path.realpath(path))
    check_regular(target)
    remove_litter(target)
    beside, lock = _temporary(target)
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, target)
    finally:
        _discard(beside, lock)
    _sync_folder(target.parent)


def _discard(beside: Path, lock: int) -> None:
    """Remove a temporary file if it is still there, and let go of it in any case."""
    try:
        os.unlink(beside)
    except FileNotFoundError:
        pass
    finally:
        os.close(lock)


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise an error if the path, links followed, is there and not a regular file.

    To replace a device, a pipe or a socket would destroy it.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise StorageError(
                f"{os.fspath(path)}: is not a regular file and is not replaced; give another name"
            )


def remove_litter(target: str | os.PathLike[str]) -> None:
    """Remove temporary files beside a path that no living process is writing."""
    place = Path(os.path.realpath(target))
    for found in place.parent.glob(f".{glob.escape(place.name)}.*{_SUFFIX}"):
        with suppress(OSError):
            lock = os.open(found, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _locked(lock, wait=False):
                    found.unlink()
            finally:
                os.close(lock)


def _temporary(target: Path) -> tuple[Path, int]:
    """Create a file beside the target, and hold its lock as long as the descriptor is open."""
    while True:
        beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}{_SUFFIX}")
        lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _locked(lock, wait=True)
            # In between, somebody may have taken it for litter.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(beside)):
                    return beside, lock
        except BaseException:
            _discard(beside, lock)
            raise
        os.close(lock)


def _locked(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file if possible; return whether it was. The dead hold no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a loss of power, where the system allows it."""
    if os.name != "posix":
        return
    with suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a file; if that fails, an older file at the same path is left as it was.

    The kind says what the file holds; `read` checks it. The header is anything that can be written
    as JSON, and the arrays hold numbers, booleans or strings.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from cavity import storage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model"
    ...     storage.write(path, "example", {"n": 3}, {"x": np.arange(3.0)})
    ...     header, arrays = storage.read(path, "example")
    >>> header["n"], arrays["x"].tolist()
    (3, [0.0, 1.0, 2.0])
    """
    plain = {name: _plain(name, array) for name, array in arrays.items()}
    text = _to_json(kind, header, plain)
    with replacing(path) as beside, beside.open("wb") as file, _archive(file) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)
        for name, array in plain.items():
            bare = io.BytesIO()
            npy.write_array(bare, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), bare.getbuffer())


@contextmanager
def _archive(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Yield a zip file to be written; what interrupts the writing is raised as it is."""
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
    try:
        yield archive
        archive.close()
    finally:
        # Half-way through a member it cannot be closed, and would complain of that instead.
        archive.fp = None


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read a file of this kind; return its header and its arrays.

    It raises `StorageError` if it is not a file of this kind, is damaged, or holds anything but
    plain arrays, and `OSError` if it cannot be opened.
    """
    with Path(path).open("rb") as file:
        try:
            return _unpack(file, kind)
        except StorageError as error:
            raise StorageError(f"{os.fspath(path)}: {error}") from None
        except Exception as error:  # Parsers raise anything on damaged or foreign bytes.
            why = short(error) or type(error).__name__
            problem = f"not a model file of cavity, or a damaged one ({why})"
            raise StorageError(f"{os.fspath(path)}: {problem}") from error


def _plain(name: str, array: Array) -> Array:
    found = np.asarray(array)
    if found.dtype.kind not in _KINDS:
        raise StorageError(
            f"array {name!r} has type {found.dtype}; only numbers, booleans and strings are stored"
        )
    # Read back in the same order in memory, so that sums round the same.
    return np.ascontiguousarray(found).reshape(found.shape)


def _to_json(kind: str, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    whole = {
        "format": _FORMAT,
        "version": _VERSION,
        "cavity": __version__,
        "kind": kind,
        "header": dict(header),
        "arrays": shapes,
    }
    try:
        return json.dumps(whole).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"the header cannot be written as JSON: {error}") from error


def _unpack(file: BinaryIO, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        members = _members(archive, size)
        text = _bytes(archive, members.pop(_HEADER, None), _LARGEST_HEADER)
        whole = json.loads(text)
        header, shapes = _declared(whole, kind)
        if {f"{name}.npy" for name in shapes} != set(members):
            raise StorageError("its arrays are not those declared in its header")
        arrays = {
            name: _array(archive, members[f"{name}.npy"], dtype, shape)
            for name, (dtype, shape) in shapes.items()
        }
    return header, arrays


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; uncompressed, they cannot be larger than the file."""
    found = archive.infolist()
    members = {info.filename: info for info in found}
    if len(members) < len(found):
        raise StorageError("two of its members have the same name")
    if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 for info in found):
        raise StorageError("compressed or encrypted members are not accepted")
    if any(info.file_size != info.compress_size for info in found) or (
        sum(info.file_size for info in found) > size
    ):
        raise StorageError("its members are declared larger than the file itself")
    return members


def _bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo | None, most: float = math.inf) -> bytes:
    if info is None:
        raise StorageError("not a model file of cavity: it has no header")
    if info.file_size > most:
        raise StorageError(f"its header is larger than {most} bytes")
    with archive.open(info) as member:
        found = member.read(info.file_size + 1)
    if len(found) != info.file_size:
        raise StorageError(f"{info.filename} is shorter or longer than declared")
    return found


def _declared(whole: Any, kind: str) -> tuple[dict[str, Any], dict[str, tuple[str, list[int]]]]:
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise StorageError("not a model file of cavity")
    if whole.get("version") != _VERSION:
        # Files of the first versions do not say who wrote them; theirs are all read.
        needed = short(whole.get("cavity", "a later version"), 20).strip("'")
        raise StorageError(
            f"written by cavity {needed} in version {short(whole.get('version'))} of the format, "
            f"and cavity {__version__} reads version {_VERSION}: install {needed} or a later one"
        )
    if whole.get("kind") != kind:
        raise StorageError(f"holds {short(whole.get('kind'))}, expected {kind!r}")
    header, arrays = whole["header"], whole["arrays"]
    if not isinstance(header, dict) or not isinstance(arrays, dict):
        raise StorageError("its header is not a mapping of names to values")
    return header, {name: (dtype, shape) for name, (dtype, shape) in arrays.items()}


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, dtype: str, shape: list[int]) -> Array:
    """Return an array once its own header, the file's header and its size agree."""
    raw = _bytes(archive, info)
    start = io.BytesIO(raw)
    if npy.read_magic(start) != (1, 0):
        raise StorageError(f"{info.filename} is of an unknown version")
    found_shape, fortran, found = npy.read_array_header_1_0(start, max_header_size=10_000)
    if found.hasobject or found.kind not in _KINDS:
        raise StorageError(f"{info.filename} holds Python objects, which are never loaded")
    if fortran or found.str != dtype or list(found_shape) != shape:
        raise StorageError(f"{info.filename} is not the array declared in the header")
    count = math.prod(found_shape)
    if min(found_shape, default=0) < 0 or start.tell() + count * found.itemsize != len(raw):
        raise StorageError(f"{info.filename} does not have the size of its shape")
    return np.frombuffer(raw, found, count, start.tell()).reshape(found_shape).copy()
