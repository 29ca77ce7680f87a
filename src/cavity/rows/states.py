"""What visits keep, in temporary files: one for each state, whatever the number of rows."""

import contextlib
import errno
import mmap
import pickle
import tempfile
import weakref
from collections.abc import Sequence
from typing import Any


class Writing:
    """What the blocks of one pass keep, on its way into a temporary file.

    The file has no name, so it is gone when nobody holds it, however the program ends. What
    a pass did not complete is never read.
    """

    def __init__(self) -> None:
        self._file: Any = None
        self._ends = [0]

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, kept: Any, share: float | None) -> None:
        """Append what a block keeps; the block's share of the table's rows, if that is known."""
        try:
            if self._file is None and kept is not None:
                self._begin()
            if self._file is not None:
                pickle.dump(kept, self._file, protocol=5)
            self._ends.append(self._file.tell() if self._file is not None else 0)
        except OSError as error:
            needed = len(pickle.dumps(kept, protocol=5)) / share if share else None
            raise _explained(error, needed) from error

    def _begin(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by the finalizer
        weakref.finalize(self, _close, self._file)
        # Blocks before this one kept nothing.
        for k in range(1, len(self._ends)):
            pickle.dump(None, self._file, protocol=5)
            self._ends[k] = self._file.tell()

    def done(self) -> Sequence[Any]:
        """Return what each block keeps, to be read from the file when it is asked for."""
        if self._file is None:
            return [None] * len(self)
        try:
            self._file.flush()
            return Written(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self._ends)
        except OSError as error:
            raise _explained(error, self._ends[-1]) from error


class Written(Sequence[Any]):
    """What each block keeps, in a temporary file that is mapped into memory."""

    def __init__(self, content: Any, ends: list[int]) -> None:
        self._content, self._ends = content, ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < len(self):
            raise IndexError(k)
        return pickle.loads(self._content[self._ends[k] : self._ends[k + 1]])

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy has to live without the file.
        return list, (list(self),)


def _close(file: Any) -> None:
    # What a full disk did not take before, it does not take now.
    with contextlib.suppress(OSError):
        file.close()


def _explained(error: OSError, needed: float | None) -> OSError:
    """Return an error that says what to do if the disk is full, or else the error itself."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error
    # The last round's file is there until this one is complete.
    much = f" It needs about {2.0 * needed / 1e6:,.1f} MB." if needed else ""
    return OSError(
        error.errno,
        f"The disk is full. What a fit keeps of the rows is written to temporary files in "
        f"{tempfile.gettempdir()!r}.{much} Free some space, or set the environment variable "
        "TMPDIR to a folder on another disk before Python starts. What was written in part "
        "is not used.",
    )
