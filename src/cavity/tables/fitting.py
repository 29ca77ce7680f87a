"""Estimators of tables: from a task, and a kernel as text, to a fitted model."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import Kernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.estimators.fitted import fitted_model
from cavity.estimators.joint import JOINT_METHODS
from cavity.tables.prepare import Prepared

COUNTS = ("poisson", "negative_binomial")
"""Likelihoods of counts: the second has one parameter more."""
_MOST_JOINT = 1500, 4000
"""Rows, and rows times classes but one, up to which all classes are one model. The first is what
an exact fit may have if its kernel is chosen, the second what a learning curve can hold."""

WORDS: dict[str, Callable[[int], Kernel]] = {
    "rbf": lambda d: kernels.RBF(1.0),
    "ard": lambda d: kernels.RBF(np.ones(d)),
    "matern12": lambda d: kernels.Matern(1.0, nu=0.5),
    "matern32": lambda d: kernels.Matern(1.0, nu=1.5),
    "matern52": lambda d: kernels.Matern(1.0, nu=2.5),
    "ard-matern12": lambda d: kernels.Matern(np.ones(d), nu=0.5),
    "ard-matern32": lambda d: kernels.Matern(np.ones(d), nu=1.5),
    "ard-matern52": lambda d: kernels.Matern(np.ones(d), nu=2.5),
    "rq": lambda d: kernels.RationalQuadratic(),
    "linear": lambda d: kernels.DotProduct(),
    "quadratic": lambda d: kernels.DotProduct() ** 2,
    "periodic": lambda d: kernels.ExpSineSquared(),
    "white": lambda d: kernels.WhiteKernel(),
}
"""For each word, the kernel on d inputs."""


def parse_kernel(text: str, n_features: int, *, noise: bool = False) -> Any:
    """Return the scikit-learn kernel that a text describes.

    Its words are joined by ``+`` and ``*``, of which ``*`` binds tighter; "auto" stays as it is:
    the estimators choose the kernel. Each term except "white" gets its own amplitude. With
    ``noise``, which regression needs, "white" is added unless the text has it.

    >>> parse_kernel("rbf + linear", 3)
    1**2 * RBF(length_scale=1) + 1**2 * DotProduct(sigma_0=1)
    >>> parse_kernel("ard", 2, noise=True)
    1**2 * RBF(length_scale=[1, 1]) + WhiteKernel(noise_level=1)
    """
    if text.strip().lower() == "auto":
        return "auto"
    terms = [[word.strip().lower() for word in term.split("*")] for term in text.split("+")]
    unknown = [word for term in terms for word in term if word not in WORDS]
    if unknown:
        raise ValueError(
            f"'{unknown[0]}' in kernel '{text}' is not a kernel: use auto, or a combination by "
            f"+ and * of {', '.join(WORDS)}."
        )
    if noise and ["white"] not in terms:
        terms.append(["white"])
    return reduce(add, (_term(term, n_features) for term in terms))


def _term(words: list[str], n_features: int) -> Kernel:
    if words == ["white"]:
        return kernels.WhiteKernel()
    return reduce(mul, (WORDS[word](n_features) for word in words), kernels.ConstantKernel(1.0))


@dataclass(frozen=True)
class Settings:
    """How to model the data.

    The kernel is what `parse_kernel` takes. The likelihood is for classification, inference for
    that, for classes in an order and for counts; what else there is has its own. ``restarts`` are
    additional starts of the tuning. ``inducing`` is the number of inducing points, or None for the
    estimators' own rule: none for small tables.
    """

    kernel: str = "auto"
    inference: str = "ep"
    likelihood: str = "probit"
    restarts: int = 0
    seed: int = 0
    inducing: int | None = None


def likelihood_of(task: str, settings: Settings) -> str:
    """Return the likelihood of a task; of counts, the simpler one."""
    own = {"regression": "gaussian", "robust": "student_t", "ordinal": "ordinal"}
    return {**own, "counts": COUNTS[0], "classification": settings.likelihood}[task]


def tuned_likelihood(task: str, settings: Settings, fitted: Any) -> Any:
    """Return the likelihood of a fitted model, with its tuned parameters if it has any."""
    if task == "ordinal":
        return fitted_model(fitted).likelihood
    return settings.likelihood if task == "classification" else fitted.likelihood_


def inference_of(task: str, settings: Settings) -> str:
    """Return the inference of a task; regression and outliers have their own."""
    return "auto" if task in ("regression", "robust") else settings.inference


def multi_class_of(data: Prepared, settings: Settings) -> str:
    """Return how more than two classes are modelled: all at once, unless they are too many.

    This is the one place that says which.
    """
    rows, size = _MOST_JOINT
    fits = len(data.y) <= rows and len(data.y) * (len(data.classes) - 1) <= size
    goes = settings.inference in JOINT_METHODS.get(settings.likelihood, ())
    goes &= not settings.inducing
    return "multinomial" if fits and goes else "one_vs_rest"


def classes_note(data: Prepared, settings: Settings) -> str:
    """Return why several classes are not one model, in a sentence; nothing if they are."""
    if data.task != "classification" or len(data.classes) <= 2:
        return ""
    if multi_class_of(data, settings) == "multinomial":
        return ""
    rows, size = _MOST_JOINT
    return (
        f"Each of the {len(data.classes)} classes has a model of its own, this class against the "
        f"rest: one model of all classes is used up to {rows:,} rows, with rows × (classes − 1) up "
        f"to {size:,}, without --inducing, and with "
        + ", or ".join(
            f"--likelihood {name} and {' or '.join(m)}" for name, m in JOINT_METHODS.items()
        )
        + "."
    )


def unfitted(data: Prepared, settings: Settings) -> Any:
    """Return the estimator for these data, not yet fitted."""
    is_noisy = data.task == "regression"
    kernel = parse_kernel(settings.kernel, data.n_features, noise=is_noisy)
    if data.classes:
        estimator: Any = GaussianProcessClassifier(kernel)
        estimator.set_params(multi_class=multi_class_of(data, settings))
    else:
        estimator = GaussianProcessRegressor(kernel, normalize_y=True)
    return estimator.set_params(
        inference=inference_of(data.task, settings),
        likelihood=likelihood_of(data.task, settings),
        n_restarts_optimizer=settings.restarts,
        random_state=settings.seed,
        n_inducing=settings.inducing or "auto",
    )


def fit_model(data: Prepared, settings: Settings) -> tuple[Any, list[str]]:
    """Fit; return the estimator and its warnings. Decisions are added to the data's notes.

    Counts are fitted by both likelihoods. The negative binomial has one parameter more, whose price
    is ½ log n: it is used if its log evidence is higher by more than that.
    """
    estimator, warned = fitted_as(data, unfitted(data, settings))
    note = classes_note(data, settings)
    if data.task == "counts":
        wider = unfitted(data, settings).set_params(likelihood=COUNTS[1])
        wider, more = fitted_as(data, wider)
        evidences = [e.log_marginal_likelihood_value_ for e in (estimator, wider)]
        price = 0.5 * math.log(len(data.y))
        note = _counts_note(evidences[0], evidences[1], price)
        if evidences[1] - evidences[0] > price:
            estimator, warned = wider, more
    if note and note not in data.notes:
        data.notes.append(note)
    return estimator, warned


def _counts_note(poisson: float, wider: float, price: float) -> str:
    gain = wider - poisson
    used, least = ("negative binomial", "more") if gain > price else ("Poisson", "no more")
    return (
        f"The counts are modelled as {used}: the log evidence of the negative binomial is "
        f"{wider:.1f} and that of the Poisson {poisson:.1f}, a difference of {least} than the "
        f"price of its one further parameter, {price:.1f}."
    )


def fitted_as(data: Prepared, estimator: Any) -> tuple[Any, list[str]]:
    """Fit this estimator to the training rows; return it and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit(data.X, data.y, **offset_of(data.offset))
    return estimator, [str(warning.message) for warning in caught]


def offset_of(offset: Any) -> dict[str, Any]:
    """Return the option of an estimator's methods for these offsets, if there are any."""
    return {} if offset is None else {"offset": offset}
