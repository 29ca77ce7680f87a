"""Learning curves by theory, and what else the theory says about the pool."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cavity.arrays import Array, threads_for
from cavity.model_selection.block_curve import BlockSource, measured
from cavity.model_selection.block_pools import BlockInputs
from cavity.model_selection.curve import LearningCurve, Measure, PointScores, Source
from cavity.model_selection.forecast import ErrorTrend, sampling_error
from cavity.model_selection.instability import instability_of
from cavity.model_selection.pools import (
    DEFAULT_SIZES,
    PoolInputs,
    inputs_of,
    pools_of,
    shifts_of,
)
from cavity.model_selection.price import TuningPrice
from cavity.model_selection.trends import bootstrapped, rises, solved_trend, trend_of
from cavity.resampling import (
    LAWS,
    THEORIES,
    Averages,
    SizeSolution,
    solve_class_sizes,
    solve_on_blocks,
    solve_sizes,
)
from cavity.resampling.laws import Occupancy
from cavity.resampling.scores import Losses


def learning_curve(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    train_sizes: Any = DEFAULT_SIZES,
    resampling: str = "subsample",
    theory: str = "auto",
    sample_weight: Any = None,
    tol: float = 3e-4,
    max_iter: int = 200,
    retune: bool = True,
    random_state: Any = 0,
    n_kernels: int = 20,
    offset: Any = None,
) -> LearningCurve:
    """Return the average error on unseen data for training sets of any size, by theory.

    If the kernel was tuned on this table, the curve is that of models tuned on each training set;
    at the size of the table it is the estimator's leave-one-out. With kernel="auto" or a
    hierarchical prior, the kernel is tuned again on twelve quarters and eight halves of the table,
    and the theory is averaged over these kernels. That takes about eight times as long as the fit
    at 200 rows, and six times at 500. Other tuning counts to first order, without refitting.

    With multi_class="multinomial" the latent values of all classes are averaged over together,
    correlated as they are. The matrices have n (C − 1) rows, of which there may be 4,000.

    The theory is that of exact inference for Gaussian targets, of the bound of inference="mixture"
    for likelihoods that are not log-concave, and else of EP, whatever the estimator uses.

    Parameters
    ----------
    estimator : GaussianProcessClassifier, GaussianProcessRegressor, or a Pipeline ending in one
        If it is not fitted, a copy is fitted to the whole table first.
    X : array-like of shape (n_samples, n_features), or a table of `cavity.rows`, default None
        The pool from which training sets are drawn; if it is left out, the rows that a model with
        inducing points was fitted to.
    y : array-like of shape (n_samples,), default None
    train_sizes : sequence of int or of float, default (0.1, 0.25, 0.5, 0.75, 0.9)
        Numbers of examples, or fractions of those that have a weight.
    resampling : {"subsample", "bootstrap"}, default "subsample"
        Draw without replacement and score on the examples left out (m = n is leave-one-out), or
        draw with replacement, possibly more than n times, and score on the examples out of the bag.
    theory : {"auto", "cavity", "pairs", "variational"}, default "auto"
        "cavity" treats each example within the average over all others. "pairs" adds the joint
        effects of pairs: it is closer to refits in regression with little data, and the same in
        classification. "variational" is the older theory, for regression with "bootstrap" only.
        "auto" is "pairs" for regression and "cavity" for classification and for models with
        inducing points, which do not have the covariances that pairs need.
    sample_weight : array-like of shape (n_samples,), optional
        How often each example is drawn (and scored), relative to the others.
    tol : float, default 0.0003
        Residual at which the theory's equations count as solved. The default gives averages to four
        digits, more than the accuracy of the theory itself.
    max_iter : int, default 200
    retune : bool, default True
        Whether to count the tuning of the kernel; if not, it stays as tuned on the whole table, and
        nothing is fitted again.
    random_state : int, RandomState or None, default 0
        Draws the quarters and halves. The default gives the same curve every time.
    n_kernels : int, default 20
        How many kernels are tuned, three of five on quarters and the others on halves. The cost is
        in proportion, and fewer scatter more. With 0, and for models with inducing points, all
        tuning counts to first order.
    offset : float or array-like of shape (n_samples,), optional
        What is added to each example's latent value, as in the estimator's ``fit``.

    Returns
    -------
    LearningCurve

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier, learning_curve
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> clf = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    >>> curve = learning_curve(clf, X, y, train_sizes=[20, 50, 100])
    >>> bool(curve.test_error[0] > curve.test_error[2])
    True
    """
    _check_theory(theory, resampling)
    inputs = pools_of(estimator, X, y, train_sizes, resampling, sample_weight, retune, offset)
    theory = _theory_for(inputs, theory)
    solve = partial(_solver_of(inputs, theory), tol=tol, max_iter=max_iter)
    source_of = _source_of(inputs, theory, solve, random_state, n_kernels)
    with threads_for(inputs.rank):
        by_pool = map(partial(solve, sizes=inputs.sizes, law=resampling), inputs.pools)
        solutions = list(zip(*by_pool, strict=True))
        source = source_of(solutions)
        curve = LearningCurve(source, solutions, source.means())
    reliable = [all(solution.reliable for solution in of_size) for of_size in solutions]
    _warn_about(curve, ~np.array(reliable), tol)
    return curve


def _check_theory(theory: str, resampling: str) -> None:
    names = ["auto", *THEORIES]
    if theory not in names:
        raise ValueError(f"theory must be one of {names}; got {theory!r}.")
    if theory == "variational" and resampling != "bootstrap":
        raise ValueError("theory='variational' draws with replacement: use resampling='bootstrap'.")


def _theory_for(inputs: PoolInputs | BlockInputs, theory: str) -> str:
    """Return the theory that is meant."""
    is_class = inputs.classes is not None
    if theory == "variational" and is_class:
        raise ValueError("theory='variational' is for regression: use theory='cavity'.")
    if theory == "variational" and not inputs.fitted.likelihood.quadratic:
        raise ValueError("theory='variational' needs likelihood='gaussian': use theory='cavity'.")
    if theory == "auto":
        gaussian = not is_class and inputs.fitted.likelihood.quadratic
        return "pairs" if inputs.dense and gaussian else "cavity"
    if theory == "pairs" and not inputs.dense:
        raise ValueError(
            "theory='pairs' needs the covariances between all examples, which a model with "
            "inducing points does not have: use theory='cavity'."
        )
    return theory


def _solver_of(inputs: Any, theory: str) -> Callable[..., Any]:
    """Return what finds averages from pool, sizes and law."""
    if not inputs.dense:
        return partial(solve_on_blocks, theory=theory)
    return solve_class_sizes if inputs.joint else partial(solve_sizes, theory=theory)


def _source_of(
    inputs: Any, theory: str, solve: Callable[..., Any], random_state: Any, n_kernels: int
) -> Callable[[Any], Any]:
    """Return what makes the source of a curve from the solutions."""
    if not inputs.dense:
        return partial(BlockSource, inputs, theory, solve)
    # The older theory keeps to the first order.
    priced = inputs if theory != "variational" else replace(inputs, retune=False)
    price = TuningPrice.seeded(priced, solve, random_state, n_kernels)
    return partial(TheorySource, inputs, theory, solve, price)


def _warn_about(curve: LearningCurve, unreliable: Array, tol: float) -> None:
    """Warn of equations that were not solved, and of sizes at which the theory may not hold."""
    failed = ~curve.converged
    rising = rises(curve) & ~failed & ~unreliable
    messages = []
    if np.any(failed):
        messages.append(
            "The theory's equations did not converge at train_sizes "
            f"{curve.train_sizes[failed].tolist()} (residual {np.max(curve.residual[failed]):.1e}, "
            f"tolerance {tol:.1e}); curve.converged marks them. Raise max_iter."
        )
    if np.any(unreliable):
        messages.append(
            f"The theory does not hold at train_sizes {curve.train_sizes[unreliable].tolist()}: "
            "many examples have a near twin, and whether it is drawn matters more than the theory "
            "allows for. curve.converged marks these sizes. Use simulate_learning_curve()."
        )
    if np.any(rising):
        messages.append(
            f"The error on the pool is larger at train_sizes {curve.train_sizes[rising].tolist()} "
            "than with fewer rows: more of them mislead this kernel, or the theory does not hold. "
            "curve.converged marks these sizes. Use simulate_learning_curve()."
        )
    curve.converged = curve.converged & ~unreliable & ~rising
    for message in messages:
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


@dataclass(frozen=True)
class TheorySource(Source):
    """What a curve by theory was computed from.

    ``solutions`` are, for each size, the averages of every latent function; ``solve`` finds those
    of one of them from pool, sizes and law.
    """

    solve: Callable[..., list[SizeSolution]]
    price: TuningPrice
    solutions: Sequence[Sequence[SizeSolution]]

    @property
    def held_out(self) -> list[list[Averages]]:
        """Held-out averages of all latent functions, for each size."""
        return [[solution.held_out for solution in of_size] for of_size in self.solutions]

    @cached_property
    def expanded(self) -> list[Losses]:
        """Held-out scores of each example, for each size, with tuning to first order."""
        return [self.inputs.scores.held_out(averages) for averages in self.held_out]

    @cached_property
    def points(self) -> list[Losses]:
        """Held-out scores of each example, for each size."""
        return self.price.applied(self.different, self.expanded)

    @cached_property
    def point_scores(self) -> PointScores:
        """Scores of every example at every size."""
        return PointScores.of(self.inputs.scores, self.held_out, self.points)

    def means(self) -> dict[str, Array]:
        """Return averages over training sets and examples, by name."""
        scores, share = self.inputs.scores, self.inputs.share
        pools = [[solution.pool for solution in of_size] for of_size in self.solutions]
        means = {
            "test_" + name: np.stack([getattr(found, name) for found in self.points]) @ share
            for name in ("error", "log_loss", "brier")
            if getattr(self.points[0], name) is not None
        }
        pool_errors = np.stack(list(map(scores.pool_error, pools, self.held_out, self._drawn)))
        means["pool_error"] = pool_errors @ share + self.retuning
        G = np.array([np.mean([c.variance @ share for c in of_size]) for of_size in pools])
        means["posterior_variance"] = G * scores.scale**2
        return means

    @property
    def retuning(self) -> Array:
        """What tuning again on parts of the table adds to the error on the pool, at each size."""
        absent = np.stack([1.0 - drawn.probability.sum(axis=0) for drawn in self._drawn])
        each = zip(self.points, self.expanded, strict=True)
        more = absent * np.stack([new.error - old.error for new, old in each])
        return np.asarray(more @ self.inputs.share)

    def predict(self, X: Any, offset: Any = None) -> tuple[Array, Array]:
        """Return mean and variance over training sets of the prediction at new inputs."""
        inputs = self.inputs
        given = list(zip(inputs.pools, inputs.covariances(X), strict=True))
        averages = [
            [s.at(pool.prior, *about) for s, (pool, about) in zip(of_size, given, strict=True)]
            for of_size in self.solutions
        ]
        shifts = shifts_of(inputs.fitted, inputs_of(inputs.model, inputs.before, X), offset)
        return inputs.scores.predicted(averages, shifts)  # type: ignore[no-any-return]

    def measure(self, g: Measure) -> Array:
        """Return averages of g(prediction, y) over training sets and examples, at each size."""
        self.inputs.scores.check_measurable()
        score = partial(measured, g)
        found = np.stack([score(self.inputs.scores, averages) for averages in self.held_out])
        return found @ self.inputs.share + self.price.measured(self.different, score)

    @property
    def different(self) -> Array:
        """How many different examples a training set of each size has on average."""
        return np.array([float(np.sum(drawn.probability)) for drawn in self._drawn])

    @property
    def _drawn(self) -> list[Occupancy]:
        """How often each example is drawn, for each size."""
        inputs = self.inputs
        return [LAWS[inputs.resampling](size * inputs.share) for size in inputs.sizes]

    def trend(self, measure: str) -> ErrorTrend:
        """Return the held-out curve of the pool, drawn without replacement.

        It ends at the leave-one-out, from which forecasts start.
        """
        sizes, begin, *held_out = self._trends
        points, shape = (np.stack([getattr(found, measure) for found in some]) for some in held_out)
        share = self.inputs.share
        is_class = self.inputs.classes is not None
        spread = sampling_error(points[-1], share, rate=is_class and measure == "error")
        found = trend_of(sizes, points @ share, spread, begin, measure, is_class=is_class)
        return replace(found, shape=shape @ share)

    def instability(self, sizes: Array) -> Array:
        """Return how much each example's prediction varies over bootstrap samples, (sizes, n)."""
        each = bootstrapped(self, sizes)
        return np.stack([instability_of(self.inputs.scores, [s.held_out for s in e]) for e in each])

    @cached_property
    def _trends(self) -> tuple[Array, int, list[Losses], list[Losses]]:
        """Sizes, where the fit of the shape begins, and scores of each example at each size.

        The fit is to the second ones, in which the kernel is that of all rows.
        """
        with threads_for(self.inputs.rank):
            sizes, solutions, begin = solved_trend(self)
            found = [self.inputs.scores.held_out([s.held_out for s in e]) for e in solutions]
            return sizes, begin, self.price.applied(sizes, found), found
