"""What a fitted estimator keeps: latent functions, and how they relate to the user's table."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cavity.arrays import Array, threads_for, to_numpy
from cavity.estimators.latents import class_codes
from cavity.estimators.process import Coverage, FittedProcess, block_slices, part_of
from cavity.estimators.validation import RowMap
from cavity.evidence import named_failure
from cavity.inference import Fit, second_order_correction
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals

F = TypeVar("F", bound=Callable[..., Any])


def _sized(method: F) -> F:
    """Let a model's method have as many threads of BLAS as the model's matrices can use.

    A method of inference that has not factored a matrix in the fit may fail at it here.
    """

    @wraps(method)
    def run(model: "FittedModel", *args: Any, **options: Any) -> Any:
        largest = max(len(process.X_train_) for process in model.processes)
        with threads_for(largest), named_failure(model.processes[0].rule):
            return method(model, *args, **options)

    return run  # type: ignore[return-value]


_VISIBLE = 1e-3
"""Relative error of predictions, or error of the evidence, that somebody may see."""


@dataclass(frozen=True)
class FittedModel:
    """Latent functions, and what relates them to the user's table."""

    processes: list[FittedProcess]
    """One for each binary problem of a classifier; one with all targets for a regressor."""
    rows: RowMap
    unweighted: tuple[Any, Array | None, Array | None]
    """Inputs of the rows without weight, with a precomputed kernel their prior variances, and
    their offsets, if there are any."""
    coding: Any = None
    """A classifier's `Coding`."""
    origin: Any = 0.0
    """What was subtracted from a regressor's targets before dividing by the scale."""
    scale: Any = 1.0
    noise: Any = 0.0
    """Noise variance of each row of a regressor's table."""
    level: float = 0.0
    """What is added to every latent value."""
    comparison: Any = None
    """The kernels that were tried, if there was a choice."""

    @property
    def loo_is_believable(self) -> bool:
        """Whether leave-one-out predictions account for the tuning well enough."""
        if any(process.has_too_many for process in self.processes):
            return False
        return all(p.response.believable for p in self.processes if p.responds)

    def kernel_comparison(self) -> Any:
        """Return the table of the kernels that were tried; an AttributeError if none was chosen."""
        if self.comparison is None:
            raise AttributeError("Only kernel='auto' compares kernels.")
        return self.comparison

    def coverages(self) -> list[Coverage]:
        """How well the inducing points stand for the table; an AttributeError if there are none."""
        found = [process.coverage for process in self.processes if process.coverage is not None]
        if not found:
            raise AttributeError("This model was fitted without inducing points: see n_inducing.")
        return found

    def inputs(self) -> Any:
        """Return the training inputs; None with inducing points."""
        [process] = self.processes
        return process.X_train_ if process.coverage is None else None

    def inducing_points(self) -> Any:
        """Return the inducing points of the process, or a list with those of each."""
        self.coverages()
        found = [process.evaluation.prior.points for process in self.processes]
        return found[0] if len(found) == 1 else found

    def inducing_gain(self) -> float | None:
        """Return the log evidence gained by the last doubling, the mean over the processes."""
        gains = [found.gain for found in self.coverages() if found.gain is not None]
        return float(np.mean(gains)) if gains else None

    @property
    def fits(self) -> list[Fit]:
        """The inference of each latent function."""
        return [fit for process in self.processes for fit in process.fits]

    @property
    def codes(self) -> Array:
        """Numbers of the training rows' classes."""
        if self.coding.several:
            return class_codes(self.fits[0])
        return np.asarray(self.coding.codes([fit.targets.y for fit in self.fits]))

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of new rows, at its tuned parameters."""
        return self.processes[0].likelihood.bare

    @property
    def has_offsets(self) -> bool:
        """Whether the rows that the model was fitted to had offsets that differ."""
        return any(np.ptp(getattr(p.likelihood, "offset", 0.0)) > 0.0 for p in self.processes)

    def shift_of(self, offset: Any) -> Any:
        """Return what is added to latent values, in the model's units."""
        return self.level if offset is None else self.level + np.asarray(offset) / self.scale

    @_sized
    def latents(
        self, X: Any, prior_variance: Array | None = None, offset: Any = None
    ) -> list[Marginals]:
        """Return each latent function of the first process at new inputs, all that is added in."""
        found, shift = self.processes[0].predict(X, prior_variance), self.shift_of(offset)
        return [q._replace(mean=q.mean + shift) for q in found]

    @_sized
    def means(self, X: Any, offset: Any = None) -> list[Array]:
        """Return their means."""
        shift = self.shift_of(offset)
        return [mean + shift for mean in self.processes[0].mean(X)]

    @_sized
    def scores(self, X: Any, prior_variance: Array | None = None, offset: Any = None) -> Array:
        """Return a classifier's score of each class at new inputs, block by block."""
        scores = np.empty((len(X), self.coding.n_classes))
        numbers = max(process.row_numbers for process in self.processes)
        for block in block_slices(len(X), numbers):
            part, shift = part_of(prior_variance, block), self.shift_of(part_of(offset, block))
            answers = [process.log_proba(X[block], part, shift) for process in self.processes]
            scores[block] = self.coding.scores(answers)
        return scores

    @_sized
    def predictions(self, X: Any) -> Array:
        """Return class probabilities or expected targets at new inputs, one column for each."""
        if self.coding is not None:
            return np.exp(self.scores(X))
        means = self.means(X) if self.is_linear else self._responses(self.latents(X))
        return np.stack(means, axis=1) * self.scale + self.origin

    @_sized
    def draws(self, X: Any, count: int, rng: Any) -> Array:
        """Draw what the predictions would be if the latent functions were known.

        The draws are from the joint posterior at all inputs, of shape (count, inputs, columns).
        """
        if self.coding is None:
            found = self.processes[0].draws(X, count, rng) + self.level
            if not self.is_linear:
                noise = np.broadcast_to(self.processes[0].rule.noise(X), found[0].shape)
                found = np.stack(self._responses([Marginals(f, noise) for f in found]))
            return np.moveaxis(found, 0, -1) * self.scale + self.origin
        drawn = [process.drawn_log_proba(X, count, rng) for process in self.processes]
        return np.exp(self.coding.scores(drawn)).reshape(count, len(X), -1)

    @property
    def is_linear(self) -> bool:
        """Whether predictions are the latent function itself, in other units."""
        return self.coding is None and self.likelihood.quadratic

    def _responses(self, latents: Iterable[Marginals]) -> list[Array]:
        """Return E[y] in the model's units, given the latent values."""
        return [self.likelihood.response(q).mean for q in latents]

    @_sized
    def averages(self, sets: Iterable[Any]) -> Marginals:
        """Return mean and variance of a regressor's function, averaged over each set of inputs."""
        means, variances = zip(*self.processes[0].averages(sets), strict=True)
        mean, variance = (np.stack(parts, axis=1) for parts in (means, variances))
        return Marginals(mean * self.scale + self.origin, variance * self.scale**2)

    @_sized
    def log_evidence(self, theta: Array | None = None, eval_gradient: bool = False) -> Any:
        """Return the log evidence, the mean over the processes, at the fit or at other theta.

        These are one kernel's, used for all processes, or those of all kernels, concatenated.
        """
        if theta is None and eval_gradient:
            raise ValueError("Gradient can only be evaluated for theta!=None")
        if theta is None:
            return np.mean([process.evaluation.value for process in self.processes])
        parts, shared = self._theta_parts(np.asarray(theta, dtype=float))
        each = zip(self.processes, parts, strict=True)
        found = [process.log_evidence(part, eval_gradient) for process, part in each]
        value = np.mean([value for value, _ in found])
        gradients = np.array([gradient for _, gradient in found]) / len(found)
        gradient = gradients.sum(axis=0) if shared else gradients.ravel()
        return (value, gradient) if eval_gradient else value

    @_sized
    def evidence_correction(self) -> float:
        """Return the correction of EP's log evidence; an AttributeError if there is none."""
        if not all(fit.method.corrected and fit.problem.prior.dense for fit in self.fits):
            raise AttributeError(
                "Only the evidence of inference='ep' (with power one, and without inducing points) "
                "has this correction."
            )
        return float(np.mean([second_order_correction(fit) for fit in self.fits]))

    @_sized
    def moved(self, theta: Array) -> "FittedModel":
        """Return the model at other hyperparameters, given as in `log_evidence`."""
        if any(process.coverage is not None for process in self.processes):
            raise ValueError(
                "Inducing points are chosen for the fitted kernel, which cannot be replaced: leave "
                "clone_kernel at True, or leave out n_inducing."
            )
        parts, _ = self._theta_parts(np.asarray(theta, dtype=float))
        each = zip(self.processes, parts, strict=True)
        return replace(self, processes=[process.moved(part) for process, part in each])

    def _theta_parts(self, theta: Array) -> tuple[list[Array], bool]:
        """Split hyperparameters among the processes; tell whether they share them."""
        count, first = len(self.processes), self.processes[0]
        size = len(first.rule.theta)
        for own in (size, len(first.evaluation.theta)):
            if theta.shape == (own,):
                return [theta] * count, True
            if theta.shape == (own * count,):
                return list(theta.reshape(count, own)), False
        raise ValueError(
            f"Shape of theta must be either {size} or {size * count}. "
            f"Obtained theta with shape {theta.shape}."
        )

    @_sized
    def loo_scores(self, *, tuned_without: bool = True) -> Array:
        """Return these scores for each row of the table, given all the others.

        Unless ``tuned_without``, the row has taken part in the tuning of the kernel.
        """
        answers = [process.loo_log_proba(tuned_without) for process in self.processes]
        trained = self.coding.scores(answers)
        scores, absent = trained[self.rows.position], self.rows.position < 0
        if np.any(absent):
            scores[absent] = self.scores(*self.unweighted)
        return scores

    @_sized
    def loo_latents(self, *, tuned_without: bool = True) -> list[Marginals]:
        """Return each latent function of the first process at each row, given all the others.

        Rows without weight get their ordinary prediction.
        """
        [process], position = self.processes, self.rows.position
        cavities, shift = process.cavities(tuned_without), process.likelihood.shift
        found = [Marginals((c.mean + shift)[position], c.variance[position]) for c in cavities]
        absent = position < 0
        if np.any(absent):
            for q, new in zip(found, self.latents(*self.unweighted), strict=True):
                q.mean[absent], q.variance[absent] = new
        return found


def fitted_model(estimator: Any) -> Any:
    """Return the model of a fitted estimator, or None."""
    return getattr(estimator, "_model", None)


def warn_about(model: FittedModel) -> None:
    """Warn of what went wrong, once for all latent functions of an estimator's fit."""
    failed = [fit for fit in model.fits if not fit.report.converged]
    messages = []
    if failed:
        worst = max(failed, key=lambda fit: fit.report.residual)
        messages.append(
            f"Inference by {worst.method.name!r} {worst.report.message} (tolerance "
            f"{worst.method.tol:.1e}). Raise max_iter_predict, or check the scale of the inputs "
            "and of the kernel."
        )
    if model.coding is None and (error := _rounding(model)) > _VISIBLE:
        messages.append(
            f"Predictions are rounded to about {error:.1g} of the targets: where inputs are nearly "
            "equal, targets differ more than the noise allows. Raise alpha, or add a WhiteKernel."
        )
    if (lost := max(fit.method.rounding(fit) for fit in model.fits)) > _VISIBLE:
        messages.append(
            f"The evidence is rounded by up to {lost:.1g}: the kernel's matrix is nearly singular, "
            'and its inverse is needed. Add a WhiteKernel, or use inference="ep".'
        )
    # A bound that several binary problems share is named once.
    at_bounds = dict.fromkeys(name for process in model.processes for name in process.at_bounds)
    for message in [*messages, *at_bounds]:
        # The warning points above the estimator's fit, to the caller's line.
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


def _rounding(model: FittedModel) -> float:
    """Return the error of predicted means K α by rounding, as a share of the largest target.

    Weights of either sign that are far larger than the predictions cancel in them. Of counts and
    amounts f is a logarithm, whose error is already a share of what is predicted.
    """
    found = [0.0]
    for fit in model.fits:
        if fit.problem.prior.dense:
            deviation = np.sqrt(to_numpy(fit.problem.prior.diag))
            weights = np.linalg.norm(deviation * to_numpy(fit.posterior.alpha))
            error = np.finfo(float).eps * np.max(deviation) * weights
            real = model.likelihood.support == "reals"
            size = np.max(np.abs(to_numpy(fit.targets.y))) if real else 1.0
            found.append(float(error / max(size, np.finfo(float).tiny)))
    return max(found)


def warn_of_loo(model: FittedModel) -> None:
    """Warn if leave-one-out predictions are too good because of the tuning."""
    if not model.loo_is_believable:
        warnings.warn(
            "Leave-one-out predictions may be too good: the tuning of the hyperparameters is not "
            "near a quadratic optimum, or of too many of them (more than 1,000), so that its "
            "effect cannot be removed to first order. Use "
            "cavity.cross_val_tuned, which tunes again in every fold, or a kernel that overfits "
            "less: kernel='auto' or hyperprior='hierarchical'.",
            UserWarning,
            stacklevel=4,
        )


def require_dense(model: FittedModel, name: str) -> None:
    """Raise an AttributeError if an attribute does not go with inducing points."""
    if model.processes[0].coverage is not None:
        raise AttributeError(
            f"{name} belongs to the covariances of all rows: leave out n_inducing."
        )
    # A model from a file has no rows, and says so.
    np.shape(model.processes[0].fits[0].problem.rows.y)
