"""Which rows to label next, and what that is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from cavity.arrays import Array, threads_for
from cavity.estimators.answers import new_likelihood
from cavity.estimators.columns import RowTable
from cavity.estimators.fitted import FittedModel, fitted_model
from cavity.estimators.validation import is_precomputed, select_rows
from cavity.model_selection.curve import LearningCurve
from cavity.model_selection.outcomes import ClassOutcomes, NumberOutcomes, Outcomes
from cavity.model_selection.outlook import Function, Outlook, best_next, gains_of
from cavity.model_selection.pools import inputs_of, take_apart

CRITERIA = ("information", "error")
"""The first is the default: on six tables, which are not those of the how-to, it lowered the
log loss at least as much as the other on five."""
_CANDIDATES, _TARGETS = 10_000, 200
"""More rows of the pool are drawn at random: a mean over 200 rows ranks as all do."""
_PATHS, _LONGEST = 4, 200
"""Random orders, and their length, that say what random rows are worth."""
_SEEN = 0.01
"""Share of the loss: a smaller fall changes no digit that one would quote."""
_ENOUGH = 50
"""Rows from which on a model may say that more will not help; with fewer it was wrong about it."""


@dataclass(frozen=True)
class Suggestion:
    """One row to label.

    Attributes
    ----------
    row : int
        Row of the pool.
    information : float
        What its label is expected to say about the latent function, given the rows above, in nats.
    gain : float
        By how much its label is expected to lower the loss on the targets, given the rows above.
    worth : float
        How many random rows would lower it as much.
    """

    row: int
    information: float
    gain: float
    worth: float


@dataclass(frozen=True, repr=False)
class Suggestions(RowTable[Suggestion]):
    """Rows to label next, in order; prints as a table with a verdict.

    Attributes
    ----------
    rows : tuple of Suggestion
    information, gain : float
        What all of them are expected to say and to gain.
    worth : float
        How many random rows would do as much; infinite if 200, or all of a smaller pool, do not.
    loss, loss_after : float
        Expected loss of the targets, log loss or squared error, now and with the labels: less by
        the gain.
    stop : bool
        Whether the labels are expected to change too little to be worth it.
    verdict : str
        The same as a sentence.
    """

    information: float
    gain: float
    worth: float
    loss: float
    loss_after: float
    stop: bool
    verdict: str
    header = ("row", "information", "gain", "worth")

    @property
    def index(self) -> Array:
        """The rows of the pool, in order."""
        return np.array([suggestion.row for suggestion in self.rows])

    def cells(self, row: Suggestion) -> list[Any]:
        """Return a row as it is printed."""
        return [row.row, f"{row.information:.3g}", f"{row.gain:.3g}", f"{row.worth:.1f}"]

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self.verdict}"


def suggest(
    model: Any,
    X_pool: Any,
    k: int = 10,
    *,
    criterion: str = "information",
    X_target: Any = None,
    curve: Any = None,
    random_state: Any = 0,
) -> Suggestions:
    """Return the rows of a pool whose labels would help most, and what they are worth.

    Rows are chosen one after the other. After each, the posterior is updated as it will be on
    average over the label, so that no two rows are chosen for the same reason. The kernel stays as
    it is. The model's own probabilities say what labels to expect: what the model is wrong about,
    this does not see.

    Parameters
    ----------
    model : GaussianProcessClassifier, GaussianProcessRegressor, or a Pipeline ending in one
        Fitted. Of several classes, each is told from all others, and half of what these log losses
        fall is what counts: for two classes, the log loss itself. If predictions are averaged over
        hyperparameters, the best ones count. Offsets are taken to be zero, and a linear trend
        (mean="linear") to be known.
    X_pool : array-like of shape (n_pool, n_features)
        Rows that could be labelled. Of more than 10,000, that many are drawn.
    k : int, default 10
        How many rows to choose.
    criterion : {"information", "error"}, default "information"
        What a label should do most: say something about the latent function (expected information
        gain), or lower the expected loss on the targets, the log loss of classes or the squared
        error of numbers.
    X_target : array-like of shape (n_target, n_features), optional
        Rows like those to be predicted; by default the pool itself, where a label's effect on its
        own row does not count. Of more than 200, that many are drawn.
    curve : LearningCurve, optional
        The model's learning curve. If given, its forecast decides on the stop sign.
    random_state : int, RandomState instance or None, default 0
        Draws rows, and the random rows for comparison.

    Returns
    -------
    Suggestions
        The rows in order, with what each is expected to say and to gain, and the number of random
        rows that would gain as much. There is a stop sign if all of them lower the expected loss by
        less than a hundredth of it and the model was fitted to at least 50 rows; or, given a curve,
        if it forecasts that for as many random rows as they are worth.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier, suggest
    >>> X = np.linspace(-3.0, 3.0, 8)[:, None]
    >>> clf = GaussianProcessClassifier(9.0 * RBF(1.0), optimizer=None).fit(X, X[:, 0] > 0.0)
    >>> pool = [[-2.0], [4.0], [4.1], [0.1]]
    >>> found = suggest(clf, pool, k=2, X_target=np.linspace(-3.0, 6.0, 50)[:, None])
    >>> found.index.tolist()
    [2, 3]
    """
    model, before = take_apart(model, "suggest needs")
    fitted = _checked(model, criterion)
    pool = inputs_of(model, before, X_pool)
    if not isinstance(k, Integral) or not 1 <= k <= len(pool):
        raise ValueError(f"k must lie between 1 and the {len(pool)} rows of the pool; got {k!r}.")
    if curve is not None and not isinstance(curve, LearningCurve):
        raise ValueError(f"curve must be what learning_curve returns; got {type(curve).__name__}.")
    target = None if X_target is None else inputs_of(model, before, X_target)
    with threads_for(max(len(process.X_train_) for process in fitted.processes)):
        question = _Question.of(fitted, pool, target, criterion, check_random_state(random_state))
        answer = question.chosen(k)
        worth = question.worth(np.cumsum(answer.gains))
    # Of rows beyond the last random one nothing is known but that they are worth more.
    each = np.diff(np.minimum(worth, np.finfo(float).max), prepend=0.0)
    each[np.isinf(worth)] = np.inf
    parts = (question.rows[answer.places], answer.information, answer.gains, each)
    found = tuple(map(Suggestion, *(part.tolist() for part in parts)))
    totals = float(np.sum(answer.information)), float(np.sum(answer.gains)), float(worth[-1])
    stop, verdict = _verdict(answer, totals[-1], curve, _rows_of(fitted))
    return Suggestions(found, *totals, answer.loss, answer.loss_after, stop, verdict)


class _Answer(NamedTuple):
    """Rows chosen, and what is expected of them."""

    places: Array
    information: Array
    gains: Array
    loss: float
    loss_after: float


@dataclass(frozen=True)
class _Question:
    """A pool, what a model says about it, and what is asked."""

    functions: Sequence[Function]
    covariances: Sequence[Array]
    """Of all inputs with the targets, and then with the random rows."""
    rows: Array
    """The candidates, as rows of the pool; they are the first of the functions' inputs."""
    targets: Array
    """Numbers of the inputs whose loss counts."""
    others: Array
    """Numbers of the random rows, which are candidates, too."""
    criterion: str
    rng: Any

    @classmethod
    def of(
        cls, fitted: FittedModel, pool: Any, target: Any, criterion: str, rng: Any
    ) -> "_Question":
        """Draw rows where there are too many, and ask the model about them."""
        rows = np.sort(rng.permutation(len(pool))[:_CANDIDATES])
        X, others = select_rows(pool, rows), rng.permutation(len(rows))[:_LONGEST]
        targets = rng.permutation(len(rows))[:_TARGETS]
        if target is not None:
            drawn = select_rows(target, rng.permutation(len(target))[:_TARGETS])
            targets = len(X) + np.arange(len(drawn))
            X = np.concatenate([X, drawn]) if isinstance(X, np.ndarray) else [*X, *drawn]
        outcomes, shift = _outcomes(fitted), fitted.shift_of(None)
        functions = [Function(process, X, outcomes, shift) for process in fitted.processes]
        both = np.concatenate([targets, others])
        covariances = [function.covariances(both) for function in functions]
        return cls(functions, covariances, rows, targets, others, criterion, rng)

    def chosen(self, k: int) -> _Answer:
        """Return the k rows of largest gain, each given those before."""
        free, n = np.arange(len(self.rows)), len(self.rows)
        outlooks = [
            Outlook(f, free, self.targets, C[:n, : len(self.targets)], partial(_column, f, n))
            for f, C in zip(self.functions, self.covariances, strict=True)
        ]
        loss, places, found = _loss(outlooks), [], []
        for _ in range(k):
            place = best_next(outlooks, free, self.criterion)
            found.append([gains_of(outlooks, np.array([place]), what)[0] for what in CRITERIA])
            places.append(place)
            free = free[free != place]
            for outlook in outlooks:
                outlook.label(place)
        information, gains = np.transpose(found)
        # The outlooks count what a label says of its own row, which no new row has.
        return _Answer(np.array(places), information, gains, loss, loss - float(np.sum(gains)))

    def worth(self, goals: Array) -> Array:
        """Return how many random rows gain this much; infinite if not all of them do."""
        paths = [self._random() for _ in range(_PATHS)]
        orders = [self.rng.permutation(len(self.others)) for _ in paths]
        reached = [0.0]
        for places in zip(*orders, strict=True):
            if reached[-1] >= goals[-1]:
                break
            gain = [
                gains_of(outlooks, np.array([place]), "error")[0]
                for outlooks, place in zip(paths, places, strict=True)
            ]
            reached.append(reached[-1] + float(np.mean(gain)))
            for outlooks, place in zip(paths, places, strict=True):
                for outlook in outlooks:
                    outlook.label(place)
        return np.interp(goals, reached, np.arange(len(reached)), right=np.inf)

    def _random(self) -> list[Outlook]:
        """Return the outlook of each function on the random rows alone."""
        T = len(self.targets)
        each = [
            (f, C[self.others, :T], C[self.others, T:])
            for f, C in zip(self.functions, self.covariances, strict=True)
        ]
        return [Outlook(f, self.others, self.targets, C, partial(_part, own)) for f, C, own in each]


def _column(function: Function, n: int, place: int) -> Array:
    return function.covariances(np.array([place]))[:n, 0]


def _part(covariance: Array, place: int) -> Array:
    return covariance[:, place]


def _loss(outlooks: Sequence[Outlook]) -> float:
    return float(np.sum([outlook.loss for outlook in outlooks]))


def _checked(model: Any, criterion: str) -> FittedModel:
    """Return the model of a fitted estimator, if it can be asked."""
    fitted: FittedModel | None = fitted_model(model)
    if fitted is None:
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet: call fit first.")
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}; got {criterion!r}.")
    if is_precomputed(model.kernel):
        raise ValueError(
            "suggest needs covariances among the rows of the pool, which kernel='precomputed' does "
            "not have: fit with a kernel object."
        )
    if fitted.coding is None and not fitted.is_linear:
        raise ValueError(
            f"suggest is for classes and for numbers with Gaussian noise; {fitted.likelihood!r} is "
            "neither: fit a GaussianProcessRegressor with likelihood='gaussian' to choose rows."
        )
    if fitted.coding is not None and not fitted.coding.has_proba:
        raise ValueError(
            "One-vs-one classification has no probabilities, which say what labels to expect: use "
            "multi_class='one_vs_rest'."
        )
    if fitted.coding is not None and fitted.coding.several:
        raise ValueError(
            "suggest tells each class from the rest, which multi_class='multinomial' does not: "
            "use multi_class='one_vs_rest'."
        )
    return fitted


def _outcomes(fitted: FittedModel) -> Outcomes:
    """Return what the labels of a model may be."""
    coding = fitted.coding
    if coding is None:
        noise: Any = new_likelihood(fitted).noise_variance
        return NumberOutcomes(float(noise), float(np.mean(np.square(fitted.scale))))
    share = 1.0 if coding.n_tasks == 1 else 0.5
    return ClassOutcomes(fitted.likelihood, coding.labels, share)


def _rows_of(fitted: FittedModel) -> int:
    """Return how many rows a model was fitted to; with inducing points there are enough."""
    if any(process.coverage is not None for process in fitted.processes):
        return _ENOUGH
    return max(len(fitted.rows.index), *(len(process.X_train_) for process in fitted.processes))


def _verdict(answer: _Answer, worth: float, curve: Any, known: int) -> tuple[bool, str]:
    """Return whether to stop, and why, in a sentence."""
    k, share = len(answer.places), 1.0 - answer.loss_after / answer.loss
    rows = f"{k} row{'s' if k > 1 else ''}"
    like = f"about {worth:.0f}" if np.isfinite(worth) else f"more than {_LONGEST}"
    found = f"The {rows} do as much as {like} random ones"
    said = "they are expected to lower"
    if curve is not None:
        n, more = curve.source.n_present, min(worth, _LONGEST)
        measure = "log_loss" if curve.classes is not None else "error"
        now, then = curve.forecast([n, n + more], measure).value
        share, said = (now - then) / abs(now), "the curve forecasts that these lower"
    little = bool(share < _SEEN)
    stop = little and (known >= _ENOUGH or curve is not None)
    early = f"too little to be seen, but a model of {known} rows may be wrong about that: go on."
    end = "too little to be seen: stop here." if stop else early if little else "worth it."
    return stop, f"{found}; {said} the loss by {100.0 * share:.1f} %, {end}"
