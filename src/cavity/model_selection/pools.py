"""From an estimator and a table to the pools from which training sets are drawn."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from cavity.arrays import Array
from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.fitted import FittedModel, fitted_model
from cavity.estimators.problems import given_noise, noise_variances
from cavity.estimators.process import FittedProcess
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.validation import (
    check_offset,
    check_prior_variance,
    is_precomputed,
    is_table,
    validate_inputs,
)
from cavity.likelihoods import Gaussian, Likelihood, Probit, Shifted
from cavity.model_selection.block_pools import (
    BlockInputs,
    block_pools,
    class_tuning_of,
    scores_of,
    tuning_of,
    weights_of,
)
from cavity.model_selection.populations import checked_sizes, population
from cavity.priors import DensePrior
from cavity.resampling import (
    LAWS,
    Averages,
    ClassPool,
    JointScores,
    Pool,
    RegressionScores,
    Scores,
    check_size,
)
from cavity.resampling.pool import Examples
from cavity.resampling.scores import Losses, checked_units, class_scores

DEFAULT_SIZES = (0.1, 0.25, 0.5, 0.75, 0.9)
_WHAT = "Learning curves need"


@dataclass(frozen=True)
class PoolInputs:
    """A table of examples, the fitted estimator that predicts them, and how they are drawn.

    ``X`` are the inputs as the kernel takes them, after the transformers ``before`` the model, and
    ``y`` the labels as given; ``share`` is each example's share of the population; training sets
    have ``sizes`` examples.
    """

    model: Any
    fitted: FittedModel
    before: Pipeline | None
    X: Any
    y: Array
    share: Array
    resampling: str
    sizes: Array
    retune: bool = False
    """Whether averages are over kernels tuned on each training set."""
    splits_noise: bool = True
    """Whether the kernel's noise is moved to the likelihood, where that is possible."""
    offset: Array | None = None
    """What is added to the latent value of each example."""
    dense: ClassVar[bool] = True
    """Whether the covariances of all examples are a matrix."""

    @property
    def joint(self) -> bool:
        """Whether one model has the latent values of more than two classes."""
        return self.fitted.coding is not None and self.fitted.coding.several

    @property
    def classes(self) -> Array | None:
        """The classes, in the order of their codes; None for a real target."""
        return getattr(self.model, "classes_", None)

    @property
    def task(self) -> str:
        """Either "classification" or "regression"."""
        return self.scores.task

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.y)

    @property
    def rank(self) -> int:
        """The size of the matrices that are factored."""
        return self.n * (self.fitted.coding.n_classes - 1) if self.joint else self.n

    def labels(self, index: Array) -> Array:
        """Return the labels of some examples."""
        return self.y[index]

    @cached_property
    def likelihoods(self) -> list[Likelihood]:
        """The fitted likelihood of each latent function, for the examples of this pool."""
        return list(map(self._likelihood, self.fitted.processes))

    def _likelihood(self, process: FittedProcess) -> Likelihood:
        base = process.likelihood.bare
        if self.classes is None and base.quadratic:
            noise = given_noise(self.model, self.fitted.scale)
            base = Gaussian(noise_variances(noise, len(self.y)))
        added = self.fitted.shift_of(self.offset) + process.likelihood.drift(self.X)
        return Shifted.rows(base, self.X, np.broadcast_to(added, len(self.y)))

    @cached_property
    def pools(self) -> list[Any]:
        """A pool for each latent function, or one for all classes together."""
        if self.joint:
            check_size(self.n, self.fitted.coding.n_classes)
            return [self._class_pool(self.fitted.processes[0])]
        each = zip(self.fitted.processes, self._targets(), self.likelihoods, strict=True)
        return [self._pool(*about) for about in each]

    def _targets(self) -> list[Array]:
        """Return labels ±1 for each latent function, or the target in the model's units."""
        coding = self.fitted.coding
        if coding is None:
            return [(self.y - self.fitted.origin) / self.fitted.scale]
        if not coding.has_proba:
            raise ValueError(
                "Learning curves of more than two classes need multi_class='multinomial' or "
                "'one_vs_rest'."
            )
        return [task.labels for task in coding.tasks(np.searchsorted(self.model.classes_, self.y))]

    def _class_pool(self, process: FittedProcess) -> ClassPool:
        """Return a pool of all classes. An example that is drawn twice keeps the kernel's noise."""
        if self.likelihoods[0] != Probit():
            raise ValueError(
                "Learning curves of all classes together are those of likelihood='probit'; got "
                f"{self.model.likelihood!r}. Use that, or multi_class='one_vs_rest'."
            )
        codes = np.searchsorted(self.model.classes_, self.y)
        prior = DensePrior(process.rule.matrix(self.X))
        tuning = self._tuning(process, class_tuning_of)
        return ClassPool(prior, codes, self.fitted.coding.n_classes, self.share, tuning)

    def _pool(self, process: FittedProcess, y: Array, own: Likelihood) -> Pool:
        """Return a pool in which the likelihood includes the kernel's noise, if possible.

        An example drawn twice has one latent value, and the noise of each draw. Noise that differs
        from input to input stays in the kernel.
        """
        rule, noises = process.rule, process.rule.noise(self.X)
        noise = float(noises[0]) if np.allclose(noises, noises[0], rtol=1e-6) else 0.0
        likelihood = own.with_noise(noise) if noise and self.splits_noise else None
        if likelihood is None:
            likelihood, noise = own, 0.0
        K = rule.matrix(self.X, self.X) if noise else rule.matrix(self.X)
        loo = self._loo(process, noise, y)
        tuning = self._tuning(process, partial(tuning_of, noise=noise), own.shift)
        return Pool(DensePrior(K), y, likelihood, self.share, loo, noise, tuning)

    def _tuning(
        self, process: FittedProcess, effect_of: Callable[[FittedProcess], Any], shift: Any = 0.0
    ) -> Any:
        """Return what tuning again changes, if the kernel was tuned on this very table."""
        place, train = self.fitted.rows.position, process.X_train_
        if not (self.retune and process.tuned and isinstance(self.X, np.ndarray)):
            return None
        there = place >= 0
        if len(place) != len(self.X) or np.any(self.share[~there]):
            return None
        if not np.array_equal(train[place[there]], self.X[there]):
            return None
        own = np.broadcast_to(process.likelihood.shift, len(train))[place[there]]
        if not np.allclose(own, np.broadcast_to(shift, len(place))[there]):
            return None
        found = effect_of(process)
        return None if found is None else found.at(place)

    def _loo(self, process: FittedProcess, noise: float, y: Array) -> Averages | None:
        """Return the leave-one-out cavities of the fit, if it was to the pool itself."""
        fit, tables = process.fits[0], (process.X_train_, self.X)
        # Lists of objects never count as equal.
        same = all(isinstance(X, np.ndarray) for X in tables) and np.array_equal(*tables)
        if not same or not np.array_equal(fit.problem.rows.y, y):
            return None
        (m, v), floor = fit.cavities, np.finfo(float).eps
        return Averages(np.maximum(v - noise, floor * v), m, np.zeros_like(m))

    @cached_property
    def scores(self) -> Scores:
        """Scores of the predictions from training sets out of the pools."""
        if self.classes is None:
            found = self.fitted
            return RegressionScores(self.pools, float(found.scale), float(found.origin))
        if self.joint:
            return JointScores(self.pools)
        return scores_of(self.fitted.coding, self.pools)

    def covariances(self, X: Any) -> list[tuple[Array, Array]]:
        """Return, by latent function, new inputs' covariances with the pool, and variances."""
        seen, given = inputs_of(self.model, self.before, X), None
        if is_precomputed(self.model.kernel):
            given = check_prior_variance(self.model.kernel, self.X, None, len(seen))
        return [
            (rule.matrix(seen, self.X), (rule.diag(seen) if given is None else given) - pool.noise)
            for rule, pool in zip((p.rule for p in self.fitted.processes), self.pools, strict=True)
        ]

    def apparent(self) -> tuple[float, float]:
        """Return error and log loss of the estimator on the pool itself."""
        found = self._apparent()
        return float(found.error @ self.share), float(found.log_loss @ self.share)

    def _apparent(self) -> Losses:
        if self.classes is not None:
            # As scikit-learn's log_loss: finite.
            p = self.model.predict_proba(self.X, offset=self.offset)
            p = np.maximum(p, np.finfo(float).eps)
            return class_scores(np.log(p), self.scores.truth)
        [own], kernel = self.likelihoods, self.model.kernel
        given = check_prior_variance(kernel, self.fitted.processes[0].X_train_, None, self.n)
        [q] = self.fitted.latents(self.X, given, self.offset)
        examples = Examples(self._targets()[0], own.bare)
        return RegressionScores([examples], self.scores.scale, self.scores.origin).losses([q])


def pools_of(
    estimator: Any,
    X: Any,
    y: Any,
    train_sizes: Any,
    resampling: str,
    sample_weight: Any,
    retune: bool = False,
    offset: Any = None,
) -> PoolInputs | BlockInputs:
    """Return the table behind a fitted estimator, or behind a copy fitted to the whole table."""
    if resampling not in LAWS:
        raise ValueError(f"resampling must be one of {list(LAWS)}; got {resampling!r}.")
    model, before = take_apart(estimator, _WHAT)
    if fitted_model(model) is None:
        step = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
        given = {"sample_weight": sample_weight, "offset": offset}
        options = {step + name: value for name, value in given.items() if value is not None}
        model, before = take_apart(clone(estimator).fit(X, y, **options), _WHAT)
    fitted = fitted_model(model)
    if not fitted.processes[0].evaluation.prior.dense:
        about = model, before, X, y, train_sizes, resampling, sample_weight, retune, offset
        return _in_blocks(*about)
    if X is None:
        raise ValueError("Give X and y: only a model with inducing points keeps its rows.")
    X = inputs_of(model, before, X)
    offset = _offset_of(fitted, offset, len(X))
    y, share = _labels(model, X, y), population(sample_weight, len(X))
    sizes = checked_sizes(train_sizes, resampling, share)
    found = PoolInputs(model, fitted, before, X, y, share, resampling, sizes, retune)
    return replace(found, offset=offset)


def _offset_of(fitted: FittedModel, offset: Any, n: int) -> Array | None:
    """Return the offsets of a pool, without which a model that was fitted with some is no use."""
    if offset is None and fitted.has_offsets:
        raise ValueError(
            "This model was fitted with an offset for each row: pass offset= for the rows of X."
        )
    return check_offset(offset, n)


def _in_blocks(
    model: Any,
    before: Pipeline | None,
    X: Any,
    y: Any,
    train_sizes: Any,
    resampling: str,
    sample_weight: Any,
    retune: bool,
    offset: Any,
) -> BlockInputs:
    """Return the rows behind a fitted estimator with inducing points."""
    fitted, share, labels = fitted_model(model), None, None
    if len(fitted.fits) > len(fitted.processes):
        raise ValueError("Learning curves need one target; this model has several.")
    if X is None or is_table(X):
        if offset is not None or (X is not None and fitted.has_offsets):
            raise ValueError("offset= needs the rows as arrays X and y, which it belongs to.")
        table = X if y is None or X is None else X.with_targets(y)
        weight = weights_of(fitted.fits[0].problem.rows if table is None else table)
    else:
        inputs = inputs_of(model, before, X)
        labels, weight = _labels(model, inputs, y), sample_weight
        offset = _offset_of(fitted, offset, len(labels))
        table = inputs, labels
    if weight is not None:
        share = population(weight, len(weight))
    pools = block_pools(fitted, table, share, retune=retune, offset=offset)
    each = np.full(pools[0].size, 1.0 / pools[0].size) if share is None else share
    sizes = checked_sizes(train_sizes, resampling, each)
    return BlockInputs(model, fitted, before, pools, labels, resampling, sizes)


def take_apart(estimator: Any, what: str) -> tuple[Any, Pipeline | None]:
    """Return the Gaussian process that something needs, and the transformers before it, if any."""
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(model, GaussianProcessClassifier | GaussianProcessRegressor):
        raise ValueError(
            f"{what} a cavity.GaussianProcessClassifier or GaussianProcessRegressor, "
            f"or a Pipeline that ends in one; got {type(model).__name__}."
        )
    before = estimator[:-1] if isinstance(estimator, Pipeline) and len(estimator) > 1 else None
    return model, before


def inputs_of(model: Any, before: Pipeline | None, table: Any) -> Any:
    """Return inputs as the kernel takes them."""
    transformed = table if before is None else before.transform(table)
    return validate_inputs(model, transformed, reset=False)


def shifts_of(fitted: FittedModel, X: Any, offset: Any) -> list[Any]:
    """Return what is added to each latent function at new inputs, as the kernel takes them."""
    own = fitted.shift_of(check_offset(offset, len(X)))
    return [own + process.likelihood.drift(X) for process in fitted.processes]


def _labels(model: Any, X: Any, y: Any) -> Array:
    """Return the labels, of classes that the model was fitted to, or one real target."""
    is_classifier = isinstance(model, GaussianProcessClassifier)
    _, y = validate_inputs(model, X, y, reset=False, multi_output=not is_classifier)
    if not is_classifier:
        y = np.asarray(y, dtype=np.float64)
        if y.ndim != 1:
            raise ValueError(f"Learning curves need one target; y has shape {y.shape}.")
        return checked_units(y)
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(
            f"y holds {unknown[0]!r}, a class that the estimator was not fitted to; its "
            f"classes are {model.classes_.tolist()}."
        )
    return y
