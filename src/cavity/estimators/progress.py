"""Progress of a fit: printed to standard output, and passed to scikit-learn's callbacks."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cavity.evidence import Optimum

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """A placeholder for scikit-learn's class."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


@contextmanager
def whole_fit(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if what is done to it within fails.

    A posterior of one table must not be left with the columns of another.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        # In one step: there is no moment at which another thread, or a second interrupt, finds the
        # estimator empty or half restored.
        estimator.__dict__ = before
        raise


@dataclass
class FitProgress:
    """Reports one start of the tuning: each evaluation, and a summary at the end."""

    name: str
    """Which start it is, in words."""
    verbose: int
    """1 for a line per start, 2 for a line per evaluation as well."""
    _estimator: Any
    """The estimator whose callbacks are called, and the context of this start, if any."""
    _context: Any
    most: int | None = None
    """The largest number of evaluations, if it is known."""
    _evaluation: Any = None
    _count: int = 0
    _begin: float = 0.0

    def begin_start(self) -> None:
        """Report that the search begins."""
        self._begin = time.perf_counter()
        _call(self._context, "call_on_fit_task_begin", self._estimator)

    def begin_evaluation(self) -> None:
        """Report that an evaluation begins."""
        if self._context is not None:
            self._evaluation = self._context.subcontext(task_name="evaluation")
        _call(self._evaluation, "call_on_fit_task_begin", self._estimator)

    def end_evaluation(self, value: float) -> None:
        """Report how the evaluation ended."""
        self._count += 1
        _call(self._evaluation, "call_on_fit_task_end", self._estimator)
        if self.verbose > 1:
            _print(f"{self.name}, evaluation {self._count}: {_outcome(value)}{self._to_go()}")

    def _to_go(self) -> str:
        """Return, in words, how long the rest takes at most."""
        if self.most is None:
            return ""
        each = (time.perf_counter() - self._begin) / self._count
        return f", at most {max(self.most - self._count, 0) * each:.0f} s to go"

    def end_start(self) -> None:
        """Report that the search has ended."""
        _call(self._context, "call_on_fit_task_end", self._estimator)

    def summarise(self, optimum: Optimum) -> None:
        """Print how the search went."""
        if self.verbose > 0:
            _print(
                f"{self.name}: {optimum.n_evaluations} evaluations, {_outcome(optimum.value)}, "
                f"{optimum.seconds:.1f} s"
            )


def progress_of_starts(
    estimator: Any, counts: Sequence[int], further: int = 0
) -> list[FitProgress]:
    """Tell the callbacks that the fit begins; return a report for each start of each problem.

    After them ``further`` searches may follow, on larger tables.
    """
    several = len(counts) > 1
    names = [
        (f"problem {i} of {len(counts)}, " if several else "") + f"start {j} of {count}"
        for i, count in enumerate(counts, 1)
        for j in range(1, count + 1)
    ]
    return [
        # Workers need the estimator for its callbacks only.
        FitProgress(name, estimator.verbose, None if context is None else estimator, context)
        for name, context in zip(names, _begin_fit(estimator, len(names), further), strict=True)
    ]


def progress_of_rung(estimator: Any, name: str, most: int) -> FitProgress:
    """Return the report of a search on a larger table, within a fit that has begun.

    It takes at most so many evaluations.
    """
    context = None
    if hasattr(estimator, "_skl_callbacks") and hasattr(estimator, "_callback_fit_ctx"):
        context = estimator._callback_fit_ctx.subcontext(task_name=name, max_subtasks=most)
    own = None if context is None else estimator
    return FitProgress(name, estimator.verbose, own, context, most)


def _begin_fit(estimator: Any, starts: int, further: int) -> list[Any]:
    """Tell the estimator's callbacks that a fit begins; return a context for each start in it."""
    if not hasattr(estimator, "_init_callback_context"):
        return [None] * starts
    root = estimator._init_callback_context(
        max_subtasks=starts + further, sequential_subtasks=False
    )
    root.call_on_fit_task_begin(estimator=estimator)
    if not hasattr(estimator, "_skl_callbacks"):
        return [None] * starts
    return [root.subcontext(task_name="start", task_id=i, max_subtasks=None) for i in range(starts)]


def end_fit(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Tell the estimator's callbacks that the fit is over and the estimator ready to predict."""
    if hasattr(estimator, "_callback_fit_ctx"):
        estimator._callback_fit_ctx.call_on_fit_task_end(
            estimator=estimator,
            X=X,
            y=y,
            metadata=None if sample_weight is None else {"sample_weight": sample_weight},
            reconstruction_attributes={},
        )


def _call(context: Any, hook: str, estimator: Any) -> None:
    if context is not None:
        getattr(context, hook)(estimator=estimator)


def _outcome(value: float) -> str:
    return f"log evidence {value:.4f}" if value > -float("inf") else "no usable evidence"


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
