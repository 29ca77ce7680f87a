"""How a problem ended: what was run, what was refused in words, and what must not happen."""

import re
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

__all__ = ["LONGEST", "Fault", "Ledger", "Seen"]

LONGEST = 420
"""Letters of a message: a sentence or two."""
_LEGAL = (UserWarning, ConvergenceWarning)


class Fault(NamedTuple):
    """A property that does not hold, of what, and how it shows."""

    rule: str
    of: str
    detail: str


class Seen(NamedTuple):
    """What a call has returned, None if it was refused, and what it has warned of."""

    value: Any
    warned: list[str]


class Ledger:
    """Counts and faults of one problem."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.faults: list[Fault] = []

    def fault(self, rule: str, of: str, detail: Any) -> None:
        """Write a fault down."""
        self.faults.append(Fault(rule, of, " ".join(str(detail).split())[:500]))

    def require(self, holds: Any, rule: str, of: str, detail: Any = "") -> None:
        """Write a fault down unless the property holds."""
        if not bool(holds):
            self.fault(rule, of, detail)

    def run(self, of: str, call: Callable[[], Any], *, may_refuse: bool = True) -> Seen:
        """Call; a refusal is one sentence, a warning is meant for the user, or there is a fault."""
        value: Any = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                value = call()
            except ValueError as error:
                self._refused(of, error, may_refuse)
            except Exception as error:
                self._uncaught(of, error)
        return Seen(value, self._warnings(of, caught))

    def guard(self, of: str, call: Callable[[], Any]) -> None:
        """Call; whatever it raises is a fault."""
        try:
            call()
        except Exception as error:
            self._uncaught(of, error)

    def _uncaught(self, of: str, error: Exception) -> None:
        self.counts["uncaught"] += 1
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rsplit('/', 1)[-1]}:{where.lineno}"
        self.fault("uncaught error", of, f"{type(error).__name__} at {place}: {error}")

    def _refused(self, of: str, error: ValueError, may_refuse: bool) -> None:
        text = str(error)
        self.counts["refused"] += 1
        # Numbers and what is in parentheses differ; the sentence is the same.
        self.refusals[re.sub(r"\(.*\)|[-+]?\d[\d.e+-]*", "#", text)[:160]] += 1
        self.require(_meant(error), "an error that was not meant", of, f"{type(error)}: {text}")
        self.require(may_refuse, "what was accepted is refused", of, text)
        self.require(0 < len(text) <= LONGEST, "a long message", of, text)

    def _warnings(self, of: str, caught: Iterable[warnings.WarningMessage]) -> list[str]:
        found = []
        for one in caught:
            text = str(one.message)
            if not issubclass(one.category, _LEGAL):
                place = f"{one.filename.rsplit('/', 1)[-1]}:{one.lineno}"
                self.fault("a warning leaks", of, f"{one.category.__name__} at {place}: {text}")
            self.require(len(text) <= LONGEST, "a long message", of, text)
            found.append(text)
        return found

    def ended(self, of: str, converged: bool, warned: list[str]) -> None:
        """Count how an inference ended: what has not converged must have said so."""
        self.counts["fits"] += 1
        if converged:
            self.counts["converged"] += 1
        elif any("converg" in text for text in warned):
            self.counts["warned"] += 1
        else:
            self.counts["silent"] += 1
            self.fault("not converged, in silence", of, "")

    def finite(self, of: str, what: str, values: Any) -> bool:
        """Require numbers; return whether they are."""
        values = np.asarray(values, dtype=float)
        good = bool(np.all(np.isfinite(values)))
        self.counts["not finite"] += not good
        self.require(good, "not finite", of, f"{what}: {values.ravel()[:6]}")
        return good

    def near(self, rule: str, of: str, found: Any, truth: Any, atol: float, rtol: float) -> None:
        """Require two results to agree."""
        found, truth = np.asarray(found, dtype=float), np.asarray(truth, dtype=float)
        if found.shape != truth.shape:
            self.fault(rule, of, f"shapes {found.shape} and {truth.shape}")
            return
        with np.errstate(invalid="ignore"):
            off = np.abs(found - truth) - atol - rtol * np.abs(truth)
        # Two means beyond the largest float agree.
        off = np.where(found == truth, 0.0, off)
        if not np.all(off <= 0.0):
            worst = int(np.argmax(np.nan_to_num(off.ravel(), nan=np.inf)))
            pair = found.ravel()[worst], truth.ravel()[worst]
            self.fault(rule, of, f"{pair[0]:.10g} and {pair[1]:.10g}")


def _meant(error: ValueError) -> bool:
    """Whether somebody raised it on purpose, here or in scikit-learn's checks of arguments."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    of_ours = any(f"/{name}/" in last.filename for name in ("cavity", "sklearn", "farm", "tests"))
    return of_ours and (last.line or "").startswith("raise")
