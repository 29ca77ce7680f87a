"""An end to what takes too long."""

import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["TooLong", "limited"]


class TooLong(BaseException):
    """The time is over; not an Exception, so that nobody takes it for an answer."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after so much CPU time, if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(_: int, frame: Any) -> None:
        ours = [place for place in traceback.extract_stack(frame) if "/cavity/" in place.filename]
        where = " < ".join(f"{place.filename.rsplit('/', 1)[-1]}:{place.name}" for place in ours)
        raise TooLong(f"after {seconds:g} s of CPU time in {where}")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
