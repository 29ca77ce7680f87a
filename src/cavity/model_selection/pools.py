"""The door to learning curves: a fitted estimator and the table from which training sets come."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_sample_weight

from cavity.arrays import Array
from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.process import LatentProcess
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.validation import check_prior_variance, is_precomputed, validate_inputs
from cavity.kernels import Rule
from cavity.likelihoods import Likelihood, likelihood
from cavity.likelihoods.gaussian import Gaussian
from cavity.model_selection.theory import THEORIES
from cavity.priors import DensePrior
from cavity.resampling import LAWS, Classes, Order, Pool, Scorer, Target, TwoClasses

__all__ = [
    "DEFAULT_SIZES",
    "PoolDoor",
    "check_resampling",
    "check_sizes",
    "open_door",
    "population",
]

DEFAULT_SIZES = (0.1, 0.25, 0.5, 0.75, 0.9)
_MOST_SIZES = 200


def open_door(estimator: Any, X: Any, y: Any, sample_weight: Any) -> "PoolDoor":
    """Return the door to the pool, through the estimator or a copy fitted to the whole table."""
    model, before = take_apart(estimator)
    if not hasattr(model, "_latent") and not hasattr(model, "_latents"):
        fitted = clone(estimator)
        weights = {} if sample_weight is None else _fit_weights(fitted, sample_weight)
        model, before = take_apart(fitted.fit(X, y, **weights))
    return PoolDoor(model, before, X)


def take_apart(estimator: Any) -> tuple[Any, Pipeline | None]:
    """Return the Gaussian process and the transformers before it, if there are any."""
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(model, GaussianProcessClassifier | GaussianProcessRegressor):
        raise ValueError(
            "Learning curves need a cavity.GaussianProcessClassifier or GaussianProcessRegressor, "
            f"or a Pipeline that ends in one; got {type(model).__name__}."
        )
    before = estimator[:-1] if isinstance(estimator, Pipeline) and len(estimator) > 1 else None
    return model, before


def _fit_weights(estimator: Any, sample_weight: Any) -> dict[str, Any]:
    if not isinstance(estimator, Pipeline):
        return {"sample_weight": sample_weight}
    return {f"{estimator.steps[-1][0]}__sample_weight": sample_weight}


def check_resampling(resampling: str, theory: str) -> None:
    """Refuse unknown names, and a theory that does not know the law."""
    if resampling not in LAWS:
        raise ValueError(f"resampling must be one of {list(LAWS)}; got {resampling!r}.")
    if theory not in THEORIES:
        raise ValueError(f"theory must be one of {list(THEORIES)}; got {theory!r}.")
    if theory == "variational" and resampling != "bootstrap":
        raise ValueError("theory='variational' draws with replacement: use resampling='bootstrap'.")


def population(sample_weight: Any, n: int) -> Array:
    """Return each example's share of the population."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weight = _check_sample_weight(
        sample_weight, np.empty((n, 1)), ensure_non_negative=True, dtype=np.float64
    )
    if not np.any(weight):
        raise ValueError("All sample weights are zero: there is nothing to draw from.")
    return weight / weight.sum()


def check_sizes(train_sizes: Any, resampling: str, share: Array) -> Array:
    """Return increasing training sizes, as numbers of examples."""
    n = len(share)
    sizes = np.atleast_1d(np.asarray(train_sizes))
    if sizes.ndim != 1 or not sizes.size or sizes.dtype.kind not in "iuf":
        raise ValueError(
            f"train_sizes must be a sequence of integers or fractions; got {train_sizes!r}."
        )
    if sizes.size > min(_MOST_SIZES, n):
        raise ValueError(
            f"train_sizes has {sizes.size} entries for {n} examples: give at most "
            f"{min(_MOST_SIZES, n)}; curve.forecast() reads off any size between them."
        )
    if not np.all(np.isfinite(sizes)) or np.any(sizes <= 0):
        raise ValueError(f"train_sizes must be positive; got {train_sizes!r}.")
    if sizes.dtype.kind == "f":
        sizes = np.maximum(np.round(sizes * n), 1.0)
    sizes = np.unique(sizes.astype(float))
    most = 1.0 / np.max(share)
    if resampling == "subsample" and sizes[-1] > most * (1.0 + 1e-12):
        raise ValueError(
            f"Without replacement a training set has at most {int(most + 1e-9)} examples here; "
            f"got {sizes[-1]:.0f}. Fractions lie between 0 and 1; or use resampling='bootstrap'."
        )
    return sizes


@dataclass(frozen=True)
class PoolDoor:
    """A fitted estimator and a pool: between the user's table and the theory.

    Parameters
    ----------
    model : GaussianProcessClassifier or GaussianProcessRegressor
        Fitted.
    before : Pipeline or None
    table : array-like
        The pool's inputs as given.
    """

    model: Any
    before: Pipeline | None
    table: Any

    @cached_property
    def X(self) -> Any:
        """The pool's inputs as the kernel sees them."""
        return self._inputs(self.table)

    def _inputs(self, table: Any) -> Any:
        seen = table if self.before is None else self.before.transform(table)
        return validate_inputs(self.model, seen, reset=False)

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.X)

    @property
    def is_classifier(self) -> bool:
        """Whether labels are classes."""
        return isinstance(self.model, GaussianProcessClassifier)

    @property
    def latents(self) -> list[LatentProcess]:
        """The estimator's latent functions."""
        return list(self.model._latents) if self.is_classifier else [self.model._latent]

    @cached_property
    def rules(self) -> list[Rule]:
        """A kernel for each latent function."""
        return [latent.rule for latent in self.latents]

    @cached_property
    def noises(self) -> list[float]:
        """Variance of the noise that each kernel has of its own and the likelihood can take over.

        Examples drawn twice have the same latent value but noise of their own.
        """
        return [_own_noise(rule, self.X) if self._blurred(1.0) else 0.0 for rule in self.rules]

    def _blurred(self, variance: float) -> Likelihood | None:
        return self.likelihood.blurred(variance)

    @cached_property
    def likelihood(self) -> Likelihood:
        """As the estimator has it."""
        if self.is_classifier:
            return likelihood(self.model.likelihood)
        return Gaussian(self.model._noise(self.size))

    @property
    def scale(self) -> float:
        """Unit of the target."""
        return 1.0 if self.is_classifier else float(self.model._scale)

    @property
    def offset(self) -> float:
        """Origin of the target."""
        return 0.0 if self.is_classifier else float(self.model._mean)

    def scorer(self, y: Any, share: Array) -> tuple[Scorer, Array, Array | None]:
        """Return the pools and how they are judged, the labels, and the classes."""
        _, y = validate_inputs(
            self.model, self.X, y, reset=False, multi_output=not self.is_classifier
        )
        if not self.is_classifier:
            return self._target(np.asarray(y, dtype=np.float64), share)
        classes, unknown = self.model.classes_, np.setdiff1d(y, self.model.classes_)
        if len(unknown):
            raise ValueError(
                f"y holds {unknown[0]!r}, a class that the estimator was not fitted to; its "
                f"classes are {classes.tolist()}."
            )
        if not self.model._split.has_proba:
            raise ValueError(
                "Learning curves of more than two classes need multi_class='one_vs_rest'."
            )
        tasks = self.model._split.tasks(np.searchsorted(classes, y), len(classes))
        pools = self._pools([task.labels for task in tasks], share)
        return (TwoClasses if len(pools) == 1 else Classes)(pools), y, classes

    def _target(self, y: Array, share: Array) -> tuple[Scorer, Array, None]:
        if y.ndim != 1:
            raise ValueError(f"Learning curves need one target; y has shape {y.shape}.")
        return Target(self._pools([(y - self.offset) / self.scale], share)), y, None

    def _pools(self, targets: Sequence[Array], share: Array) -> list[Pool]:
        return [
            Pool(
                DensePrior(_matrix(latent.rule, self.X, noise)),
                y,
                self._with_noise(noise),
                share,
                self._found(latent, y, noise),
            )
            for latent, noise, y in zip(self.latents, self.noises, targets, strict=True)
        ]

    def _found(self, latent: LatentProcess, y: Array, noise: float) -> Order | None:
        """Return the leave-one-out cavities of the fit, if that was to the pool itself."""
        fit = latent.fits[0]
        if not _same(latent.X_train_, self.X) or not np.array_equal(fit.problem.y, y):
            return None
        (m, v), floor = fit.cavities, np.finfo(float).eps
        return Order(np.maximum(v - noise, floor * v), m, np.zeros_like(m))

    def _with_noise(self, noise: float) -> Likelihood:
        return (self._blurred(noise) if noise else None) or self.likelihood

    def covariances(self, X: Any) -> list[tuple[Array, Array]]:
        """Return covariances of new inputs with the pool's, and their own prior variances."""
        seen = self._inputs(X)
        given = None
        if is_precomputed(self.model.kernel):
            given = check_prior_variance(self.model.kernel, self.X, None, len(seen))
        return [
            (rule.matrix(seen, self.X), (rule.diag(seen) if given is None else given) - noise)
            for rule, noise in zip(self.rules, self.noises, strict=True)
        ]

    def apparent(self, y: Array, share: Array) -> tuple[float, float]:
        """Return error and log loss of the estimator on the pool itself."""
        if self.is_classifier:
            p, classes = self.model.predict_proba(self.X), self.model.classes_
            wrong = float((classes[np.argmax(p, axis=1)] != y) @ share)
            return wrong, float(log_loss(y, p, sample_weight=share, labels=classes))
        mean, std = self.model.predict(self.X, return_std=True)
        variance = std**2 + self.model._noise(self.size) * self.scale**2
        log_density = Gaussian(variance).log_prob(y, mean)
        return float((y - mean) ** 2 @ share), -float(log_density @ share)


def _same(A: Any, B: Any) -> bool:
    """Whether two tables of numbers are equal; lists of objects never count as such."""
    return isinstance(A, np.ndarray) and isinstance(B, np.ndarray) and np.array_equal(A, B)


def _own_noise(rule: Rule, X: Any) -> float:
    """Return the variance of a kernel's own noise, where it is the same for all inputs."""
    noise = rule.noise(X)
    return float(noise[0]) if np.allclose(noise, noise[0], rtol=1e-6) else 0.0


def _matrix(rule: Rule, X: Any, noise: float) -> Array:
    """Return the pool's covariances, without the noise that the likelihood takes over."""
    return rule.matrix(X, X) if noise else rule.matrix(X)
