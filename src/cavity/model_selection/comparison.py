"""The same data and kernel under every inference method, in one table."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import CompoundKernel

from cavity.arrays import NotPositiveDefiniteError
from cavity.estimators.classifier import GaussianProcessClassifier, start_from
from cavity.estimators.columns import RowTable
from cavity.estimators.fitted import fitted_model
from cavity.estimators.joint import JOINT_METHODS
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.validation import check_offers
from cavity.inference import METHODS, IndistinguishableError, method
from cavity.likelihoods import Likelihood
from cavity.likelihoods import likelihood as find_likelihood
from cavity.model_selection.leave_one_out import loo_losses


@dataclass(frozen=True)
class ComparisonRow:
    """The results of one inference method."""

    inference: str
    log_evidence: float
    correction: float
    """What the second-order correction would add to EP's evidence; NaN for the others."""
    loo_log_loss: float
    """Mean leave-one-out log loss."""
    loo_error: float
    """Leave-one-out error rate, or mean squared error."""
    seconds: float
    converged: bool


class Comparison(RowTable[ComparisonRow]):
    """One row per inference method; prints as a table."""

    header = tuple(field.name for field in fields(ComparisonRow))

    def cells(self, row: ComparisonRow) -> list[Any]:
        """Return a row as it is printed, empty if there is no number."""
        cells = [f"{v:.4f}" if isinstance(v, float) else v for v in astuple(row)]
        return ["" if cell == "nan" else cell for cell in cells]


def compare_inference(
    X: Any,
    y: Any,
    kernel: Any = None,
    *,
    likelihood: Any = "probit",
    inference: Sequence[str] | None = None,
    optimizer: Any = "fmin_l_bfgs_b",
    random_state: Any = None,
    offset: Any = None,
    multi_class: str = "one_vs_rest",
    normalize_y: bool = False,
) -> Comparison:
    """Fit several inference methods to the same data and return their results as one table.

    Parameters
    ----------
    X, y : array-likes
        As for `GaussianProcessClassifier.fit`, or, if the likelihood is one of numbers such as
        "poisson", for `GaussianProcessRegressor.fit`.
    kernel, likelihood, optimizer, random_state
        As for `GaussianProcessClassifier`. Each method tunes the kernel by its own evidence;
        "sequential", which has no gradient, uses finite differences. The ``kernel_`` of a fit to
        more than two classes gives each binary problem the kernel that it has there.
    inference : sequence of str, optional
        Names of the methods; by default all that work with the likelihood.
    offset : float or array-like of shape (n_samples,), optional
        What is added to each row's latent value.
    multi_class : {"one_vs_rest", "multinomial"}, default "one_vs_rest"
        How more than two classes are modelled, as in `GaussianProcessClassifier`.
    normalize_y : bool, default False
        Whether targets that are numbers are scaled first, as in `GaussianProcessRegressor`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import compare_inference
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> table = compare_inference(X, y, 1.0 * RBF(10.0), optimizer=None)
    >>> sorted(row.inference for row in table)
    ['ensemble', 'ep', 'laplace', 'naive', 'sequential', 'variational']
    """
    model = find_likelihood(likelihood)
    joint = multi_class == "multinomial" and model.support == "signs" and len(np.unique(y)) > 2
    inference = _methods(model, joint) if inference is None else inference
    for name in inference:
        check_offers(model, method(name))
    labels = model.support in ("signs", "codes")
    form: Any = GaussianProcessClassifier if labels else GaussianProcessRegressor
    options = {"likelihood": likelihood, "optimizer": optimizer, "random_state": random_state}
    options |= {"multi_class": multi_class} if labels else {"normalize_y": normalize_y}
    estimator = form(kernel, **options)
    if labels:
        return _of_classes(estimator, X, y, inference, offset)
    return Comparison(
        tuple(_row(estimator.set_params(inference=n), X, y, offset) for n in inference)
    )


def _of_classes(
    classifier: GaussianProcessClassifier, X: Any, y: Any, inference: Sequence[str], offset: Any
) -> Comparison:
    """Compare methods on classes, each of which may have a kernel of its own."""
    kernel, rows = classifier.kernel, []
    own = kernel.kernels if isinstance(kernel, CompoundKernel) else []
    if own:
        _check_kernels(own, len(np.unique(y)))
        classifier.set_params(kernel=own[0], warm_start=True)
    for name in inference:
        # A warm start would begin at the kernels of the method before.
        start_from(classifier, own)
        rows.append(_row(classifier.set_params(inference=name), X, y, offset))
    return Comparison(tuple(rows))


def _methods(model: Likelihood, joint: bool) -> list[str]:
    """Return the methods that a likelihood can be used with; ``joint`` for all classes at once.

    "mixture" serves log-concave likelihoods, too, but is the variational method there.
    """
    if joint:
        known = {find_likelihood(name): found for name, found in JOINT_METHODS.items()}
        return sorted(known.get(model, ()))
    fitting = (name for name, cls in METHODS.items() if cls.needs in model.offers)
    return sorted(name for name in fitting if METHODS[name].serves(model))


def _check_kernels(kernels: Sequence[Any], n_classes: int) -> None:
    """Refuse kernels that are not one for each class, all of one form."""
    if n_classes < 3 or len(kernels) != n_classes:
        raise ValueError(
            "A CompoundKernel must hold a kernel for each of three or more classes; got "
            f"{len(kernels)} kernels and {n_classes} classes. Give one kernel for all of them."
        )
    forms = [[(h.name, h.n_elements, h.fixed) for h in k.hyperparameters] for k in kernels]
    if any(form != forms[0] for form in forms):
        raise ValueError(
            "The kernels of a CompoundKernel must have the same hyperparameters, as those of a "
            f"fitted classifier do; got {list(map(str, kernels))}."
        )


def _row(estimator: Any, X: Any, y: Any, offset: Any) -> ComparisonRow:
    begin = time.perf_counter()
    with warnings.catch_warnings():
        # Whether it converged is a column of the table.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            estimator.fit(X, y, offset=offset)
        except (NotPositiveDefiniteError, IndistinguishableError):
            # Some methods need the kernel's inverse, or a likelihood with noise of its own.
            none = float("nan")
            return ComparisonRow(estimator.inference, none, none, none, none, none, False)
    seconds = time.perf_counter() - begin
    loo = loo_losses(estimator, y)
    return ComparisonRow(
        inference=estimator.inference,
        log_evidence=estimator.log_marginal_likelihood_value_,
        correction=getattr(estimator, "evidence_correction_", float("nan")),
        loo_log_loss=float(np.mean(loo.log_loss)),
        loo_error=float(np.mean(loo.error)),
        seconds=seconds,
        converged=all(fit.report.converged for fit in fitted_model(estimator).fits),
    )
