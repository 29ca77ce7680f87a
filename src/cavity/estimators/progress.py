"""Who hears of a fit's progress: a reader of the standard output, and scikit-learn's callbacks."""

import sys
from typing import Any

from cavity.evidence.tuning import Optimum

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn's class would."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "Narrator", "begin_fit", "end_fit", "with_callbacks"]


class Narrator:
    """Tells of one climb: of each evaluation while it goes on, of the whole when it is over.

    Parameters
    ----------
    name : str
        Which climb it is, in words.
    verbose : int
        1 for a line about the climb, 2 for one about every evaluation as well.
    estimator : estimator whose callbacks hear of it, if any
    context : the climb's callback context, if any
    """

    def __init__(self, name: str, verbose: int, estimator: Any = None, context: Any = None) -> None:
        self.name = name
        self.verbose = verbose
        self._estimator = estimator
        self._context = context
        self._evaluation: Any = None
        self._count = 0

    def begin_climb(self) -> None:
        """Say that the climb begins."""
        _call(self._context, "call_on_fit_task_begin", self._estimator)

    def begin(self) -> None:
        """Say that an evaluation begins."""
        if self._context is not None:
            self._evaluation = self._context.subcontext(task_name="evaluation")
        _call(self._evaluation, "call_on_fit_task_begin", self._estimator)

    def end(self, value: float) -> None:
        """Say how the evaluation ended."""
        self._count += 1
        _call(self._evaluation, "call_on_fit_task_end", self._estimator)
        if self.verbose > 1:
            _say(f"{self.name}, evaluation {self._count}: {_outcome(value)}")

    def end_climb(self) -> None:
        """Say that the climb is over."""
        _call(self._context, "call_on_fit_task_end", self._estimator)

    def sum_up(self, optimum: Optimum) -> None:
        """Say how the climb went."""
        if self.verbose > 0:
            _say(
                f"{self.name}: {optimum.n_evaluations} evaluations, {_outcome(optimum.value)}, "
                f"{optimum.seconds:.1f} s"
            )


def begin_fit(estimator: Any, climbs: int) -> list[Any]:
    """Tell the estimator's callbacks that a fit begins; return a context for each climb in it."""
    if not hasattr(estimator, "_init_callback_context"):
        return [None] * climbs
    root = estimator._init_callback_context(max_subtasks=climbs, sequential_subtasks=False)
    root.call_on_fit_task_begin(estimator=estimator)
    if not hasattr(estimator, "_skl_callbacks"):
        return [None] * climbs
    return [root.subcontext(task_name="start", task_id=i, max_subtasks=None) for i in range(climbs)]


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


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
