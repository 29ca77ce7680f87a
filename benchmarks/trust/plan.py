"""How much to do, and how to do it on several cores."""

import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

__all__ = ["FULL", "QUICK", "Plan", "say", "spread"]


class Plan(NamedTuple):
    """How much to do."""

    quick: bool
    splits: int
    """Splits of each set into training rows and fresh rows."""
    coins: int
    """Tables of coin flips."""
    pool: int
    """Rows from which the refits draw their training sets."""
    refits: int
    """Refits at each size below the whole pool."""
    left_out: int
    """Refits that leave one row of the pool out."""
    parts: int
    """Random parts from which a forecast is made."""
    truths: int
    """Fits whose average a forecast is compared with."""
    rounds: int
    """Times that each fit is timed."""


FULL = Plan(False, 10, 100, 250, 40, 100, 30, 20, 3)
QUICK = Plan(True, 2, 6, 80, 4, 8, 3, 3, 1)


def spread(job: Callable[..., Any], calls: Iterable[tuple[Any, ...]], jobs: int) -> list[Any]:
    """Return the results of all calls in order, from several processes of one thread each."""
    return list(Parallel(n_jobs=jobs)(delayed(_quietly)(job, call) for call in calls))


def _quietly(job: Callable[..., Any], call: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings(), threadpool_limits(1):
        # Length scales at their bounds are how a kernel leaves inputs out.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Free relevances are shown as they are.
        warnings.filterwarnings("ignore", message="Leave-one-out predictions may be too good")
        # LightGBM is fitted to arrays, for which it makes up names of columns.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        # Defaults of LogisticRegressionCV change in scikit-learn 1.10: either will do here.
        warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")
        return job(*call)


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)
