"""A learning curve: averages over training sets of many sizes, by theory or by refitting."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.estimators.columns import columns
from cavity.model_selection.curve_suspects import suspects_of_curve
from cavity.model_selection.forecast import ErrorTrend, Forecast, one_goal
from cavity.model_selection.suspects import Suspects, most_doubtful
from cavity.resampling import Averages
from cavity.resampling.scores import Losses, Scores

_OF_LOSSES = ("error", "log_loss", "support")

Measure = Callable[[Array, Array], Array]


class PointScores(NamedTuple):
    """Held-out scores of single examples, by size."""

    error: Array
    log_loss: Array
    support: Array
    doubt: Array
    mean: Array
    variance: Array

    @classmethod
    def of(
        cls, scores: Scores, held_out: Sequence[Sequence[Averages]], points: Sequence[Losses]
    ) -> "PointScores":
        """Return the scores of examples with given averages and losses, one for each size."""
        each = (np.stack([getattr(found, name) for found in points]) for name in _OF_LOSSES)
        error, log_loss, support = each
        doubt = np.stack(list(map(scores.doubt, held_out, support)))
        return cls(error, log_loss, support, doubt, *scores.predicted(held_out))

    def most_doubtful(self, k: int) -> tuple[Array, "PointScores"]:
        """Return the numbers and the scores of k examples at the last size, by their doubt."""
        order = most_doubtful(self.doubt[-1], k)
        return order, PointScores(*(part[-1][order] for part in self))


@dataclass(frozen=True)
class Source(ABC):
    """What a curve was computed from, for further questions about it."""

    inputs: Any
    theory: str

    @property
    def retuning(self) -> Array | float:
        """What kernels of parts of the table add to the error on the pool, at each size."""
        return 0.0

    @property
    def n_present(self) -> int:
        """Number of examples that can be drawn: those that have a weight."""
        return int(np.count_nonzero(self.inputs.share))

    @property
    @abstractmethod
    def point_scores(self) -> PointScores:
        """Scores of every example at every size."""

    def most_doubtful(self, k: int) -> tuple[Array, PointScores]:
        """Return the numbers of the most doubtful examples at the last size, and their scores."""
        return self.point_scores.most_doubtful(k)

    @abstractmethod
    def predict(self, X: Any, offset: Any = None) -> tuple[Array, Array]:
        """Return mean and variance over training sets of the prediction at new inputs."""

    @abstractmethod
    def measure(self, g: Measure) -> Array:
        """Average g(prediction, y) over training sets and examples, at each size."""

    @abstractmethod
    def trend(self, measure: str) -> ErrorTrend:
        """Return the curve of a held-out score, to be continued beyond the pool."""

    @abstractmethod
    def instability(self, sizes: Array) -> Array:
        """Return how much each example's prediction varies over training sets, (sizes, n)."""


class LearningCurve:
    """Averages over random training sets, one per size.

    Held-out averages are over the training sets that an example is not in: held out with
    ``resampling="subsample"``, out of bag with "bootstrap".

    Attributes
    ----------
    task : str
        "classification" or "regression".
    resampling : str
        "subsample" or "bootstrap".
    theory : str
        "cavity", "pairs", "variational", or "simulation".
    train_sizes : ndarray of shape (n_sizes,)
    test_error : ndarray of shape (n_sizes,)
        Held-out error rate, or mean squared error.
    test_log_loss : ndarray of shape (n_sizes,)
        Held-out log loss, or negative log predictive density (of counts, log probability).
    test_brier : ndarray of shape (n_sizes,) or None
        Held-out Brier score of a classifier.
    pool_error : ndarray of shape (n_sizes,)
        Error on the whole pool, whether an example was trained on or not.
    posterior_variance : ndarray of shape (n_sizes,)
        Posterior variance of the latent function, averaged over the pool.
    point_error, point_log_loss : ndarrays of shape (n_sizes, n)
        Held-out error and log loss of each example.
    point_mean, point_variance : ndarrays of shape (n_sizes, n) or (n_sizes, n, n_classes)
        Mean and variance over training sets of each example's held-out prediction: of the latent
        function for a classifier, of the target for a regressor.
    point_support : ndarray of shape (n_sizes, n)
        Log of each label's held-out probability (or density), averaged over training sets.
    point_doubt : ndarray of shape (n_sizes, n)
        Log odds against each label, or how surprising each target is: by how many standard
        deviations a Gaussian target as unlikely would be off (`cavity.likelihoods.surprise`).
    apparent_error, apparent_log_loss : float
        Error and log loss of the fit to the whole pool, on the pool itself.
    y : ndarray of shape (n,)
        The labels.
    classes : ndarray or None
    share : ndarray of shape (n,)
        Each example's share of the population.
    converged, n_iter, residual : ndarrays of shape (n_sizes,)
        How the theory's equations were solved, and whether the theory holds, as far as it can tell.
    standard_error : dict of ndarrays
        For a simulation: the standard error of each average, by name.
    """

    def __init__(
        self,
        source: Source,
        reports: Sequence[Sequence[Any]],
        means: Mapping[str, Array],
        standard_error: Mapping[str, Array] | None = None,
    ) -> None:
        inputs = source.inputs
        self.source, self.theory, self.task = source, source.theory, inputs.task
        self.resampling, self.train_sizes = inputs.resampling, inputs.sizes
        self.classes: Array | None = inputs.classes
        self.test_error, self.test_log_loss = means["test_error"], means["test_log_loss"]
        self.test_brier: Array | None = means.get("test_brier")
        self.pool_error, self.posterior_variance = means["pool_error"], means["posterior_variance"]
        self.converged = np.array([all(r.converged for r in of_size) for of_size in reports])
        self.n_iter = np.array([max(r.n_iter for r in of_size) for of_size in reports])
        self.residual = np.array([max(r.residual for r in of_size) for of_size in reports])
        self.standard_error = standard_error or {}

    y = property(lambda self: self.source.inputs.y)
    share = property(lambda self: self.source.inputs.share)
    apparent_error = property(lambda self: self._apparent[0])
    apparent_log_loss = property(lambda self: self._apparent[1])
    point_error = property(lambda self: self.source.point_scores.error)
    point_log_loss = property(lambda self: self.source.point_scores.log_loss)
    point_support = property(lambda self: self.source.point_scores.support)
    point_doubt = property(lambda self: self.source.point_scores.doubt)
    point_mean = property(lambda self: self.source.point_scores.mean)
    point_variance = property(lambda self: self.source.point_scores.variance)

    @cached_property
    def _apparent(self) -> tuple[float, float]:
        """Error and log loss of the fit to the whole pool, on the pool itself."""
        return self.source.inputs.apparent()  # type: ignore[no-any-return]

    @property
    def point_evidence(self) -> Array:
        """The former name of ``point_doubt``."""
        warnings.warn(
            "LearningCurve.point_evidence is now point_doubt", DeprecationWarning, stacklevel=2
        )
        return self.point_doubt

    @property
    def error_632(self) -> Array:
        """The .632 estimate .368 × apparent + .632 × out-of-bag error; meant for m = n."""
        return self._estimate_632(self.apparent_error, self.test_error)

    @property
    def log_loss_632(self) -> Array:
        """The .632 estimate of the log loss."""
        return self._estimate_632(self.apparent_log_loss, self.test_log_loss)

    def _estimate_632(self, apparent: float, out_of_bag: Array) -> Array:
        if self.resampling != "bootstrap":
            raise ValueError(
                "The .632 estimate needs out-of-bag averages: use resampling='bootstrap'."
            )
        return 0.368 * apparent + 0.632 * out_of_bag

    def predict(self, X: Any, offset: Any = None) -> tuple[Array, Array]:
        """Return mean and variance over training sets of the prediction at new inputs.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
        offset : float or array-like of shape (n_new,), optional
            What is added to each latent value; 0 if not given.

        Returns
        -------
        mean, variance : ndarrays of shape (n_sizes, n_new) or (n_sizes, n_new, n_classes)
            Of the latent function for a classifier, of the target for a regressor.
        """
        return self.source.predict(X, offset)

    def measure(self, g: Measure) -> Array:
        """Average a measure of your own over the training sets that an example is not in.

        Parameters
        ----------
        g : callable
            Maps predictions and labels to numbers, elementwise. For a classifier these are the
            probability of the second class and the label 0 or 1; for a regressor, the expected
            target and the target.

        Returns
        -------
        averages : ndarray of shape (n_sizes,)
        """
        return self.source.measure(g)

    def forecast(self, n: Any, measure: str = "error", level: float = 0.9) -> Forecast:
        """Return the expected held-out error at any size, including sizes beyond the data.

        This assumes that the kernel stays as tuned and that new data are like the present data.
        Within the data it is the curve; at the size of the pool, the leave-one-out.

        Parameters
        ----------
        n : int or array-like of int
            Number of training examples; for a simulation, from its smallest size on.
        measure : {"error", "log_loss"}, default "error"
        level : float, default 0.9
            Coverage of the interval.

        Returns
        -------
        Forecast
            ``size``, ``value``, ``low`` and ``high``.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
        found = self._trend(measure).at(n)(n, level)
        return Forecast(*(float(part) for part in found)) if np.ndim(n) == 0 else found

    def probability(
        self, n: Any, *, error: float | None = None, log_loss: float | None = None
    ) -> Any:
        """Return the probability that a goal is met with n training examples.

        It goes with the intervals of `forecast`: a goal at the forecast itself is met with
        probability one half. At ``n=np.inf`` it is that of the floor.

        Parameters
        ----------
        n : int or array-like of int
        error, log_loss : float, default None
            The goal; give exactly one of the two.

        Returns
        -------
        probability : float or ndarray
        """
        name, value = one_goal("probability", error=error, log_loss=log_loss)
        found = self._trend(name).at(n).distribution(n).probability(value)
        return float(found) if np.ndim(n) == 0 else found

    def size_for(
        self,
        *,
        error: float | None = None,
        log_loss: float | None = None,
        probability: float = 0.5,
    ) -> int | None:
        """Return the smallest size that reaches an error or a log loss, or None if none does.

        Parameters
        ----------
        error, log_loss : float, default None
            The goal; give exactly one of the two.
        probability : float, default 0.5
            That the goal is met. The default is for the size that is expected to reach it.
        """
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability must lie between 0 and 1; got {probability!r}.")
        name, value = one_goal("size_for", error=error, log_loss=log_loss)
        return self._trend(name).size_for(value, probability)

    def _trend(self, measure: str) -> ErrorTrend:
        if measure not in ("error", "log_loss"):
            raise ValueError(f"measure must be 'error' or 'log_loss'; got {measure!r}.")
        return self.source.trend(measure)

    def suspects(self, k: int | None = None, *, precision: float | None = None) -> Suspects:
        """Return the examples whose label the rest of the data contradicts most.

        Parameters
        ----------
        k : int, optional
            Number of examples: 10 unless a precision is given.
        precision : float, optional
            As many examples as are expected to have wrong labels in this share, and how many labels
            are wrong. For more than two classes `cavity.find_suspects` does that.

        Returns
        -------
        Suspects
            A table of these examples, sorted by the doubt about their labels, the largest first.
        """
        return suspects_of_curve(self, k, precision)

    def to_frame(self) -> Any:
        """Return the averages as a pandas data frame, one row per size."""
        import pandas as pd

        return pd.DataFrame(self._columns(), index=pd.Index(self.train_sizes, name="train_size"))

    def plot(self, **options: Any) -> Any:
        """Draw the curve; see `cavity.LearningCurveDisplay.from_curve`."""
        from cavity.model_selection.display import LearningCurveDisplay

        return LearningCurveDisplay.from_curve(self, **options)

    def _columns(self) -> dict[str, Array]:
        names = ["test_error", "test_log_loss", "test_brier", "pool_error", "posterior_variance"]
        found = {name: getattr(self, name) for name in names}
        found |= {f"{name}_se": values for name, values in self.standard_error.items()}
        found |= {"converged": self.converged}
        return {name: values for name, values in found.items() if values is not None}

    def __repr__(self) -> str:
        found = {"train_size": self.train_sizes, **self._columns()}
        lines = list(zip(*found.values(), strict=True))
        title = f"{self.task} learning curve, {self.resampling}, {self.theory}"
        return "\n".join([title, *columns(list(found), lines)])
