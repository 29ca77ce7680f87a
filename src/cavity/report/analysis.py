"""Everything a report says, computed once into plain numbers, strings, lists and dicts."""

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from cavity import __version__, compare_inference
from cavity.arrays import Array
from cavity.kernels import length_scales
from cavity.report.examples import inputs_of, notable_rows, points_of
from cavity.report.forecast import curve_of, describe_curve
from cavity.report.scores import calibration, class_scores, confusion, coverage, quantity_scores
from cavity.tables.model import Settings, fit_model
from cavity.tables.prepare import Prepared

__all__ = ["Analysis", "analyse", "compare", "kernel_text", "relevance_of", "scores_of"]

_MOST_EXAMPLES = 10
Json = dict[str, Any]


@dataclass(frozen=True)
class Analysis:
    """The numbers of a report; every field but the title may be written as JSON as it is.

    Attributes
    ----------
    title : str
    data : dict
        source, target, task, classes, class_counts, feature_names, counts, notes.
    model : dict
        kernel, inference, likelihood, log_evidence, evidence_correction (EP only, else None),
        converged, seconds, warnings.
    left_out, held_out : dict or None
        Scores of leave-one-out predictions and of held-out rows: rows, error, log_loss, brier,
        or rmse, mae, r2, log_loss; ``..._se`` and ``baseline_...`` of them.
    calibration : list of dict
        Per class (the second of two, else every one): class and bins. In regression one entry,
        class None, whose bins are nominal and seen shares of central intervals.
    confusion : list of list of int or None
        Leave-one-out: rows are the true classes, columns the predicted ones.
    least_certain, suspects : list of dict
        Training rows with the least certain leave-one-out prediction, and those whose own
        target the rest of the data contradicts most: row, label, prediction, and probability of
        the predicted class and of the label, or std and z.
    relevance : list of dict or None
        Inverse length scales, the largest being 1; feature, relevance, per_class. None if the
        kernel has one length scale for all.
    comparison : list of dict
        A row of `cavity.compare_inference` for each method; empty in regression, which is exact.
    curve : dict
        As `cavity.report.forecast.describe_curve` returns it.
    points : dict of lists
        Leave-one-out predictions of all training rows: row, label, prediction; then probability
        of the predicted class and probability_of_label, or std.
    inputs : dict of dict
        By row, as a string, the inputs of the least certain rows and the suspects.
    settings : dict
    versions : dict
    command : str
        What to type to get this again.
    """

    title: str
    data: Json
    model: Json
    left_out: Json
    held_out: Json | None
    calibration: list[Json]
    confusion: list[list[int]] | None
    least_certain: list[Json]
    suspects: list[Json]
    relevance: list[Json] | None
    comparison: list[Json]
    curve: Json
    points: Json
    inputs: dict[str, dict[str, str]]
    settings: Json
    versions: dict[str, str]
    command: str


def analyse(
    data: Prepared,
    settings: Settings,
    *,
    command: str = "",
    tell: Callable[[str], None] = lambda stage: None,
) -> Analysis:
    """Fit, and answer from the fit everything that a report asks.

    Parameters
    ----------
    data : Prepared
    settings : Settings
    command : str
        Recorded in the analysis.
    tell : callable
        Told what happens next.

    Examples
    --------
    >>> from cavity.report.analysis import analyse
    >>> from cavity.tables.model import Settings
    >>> from cavity.tables.prepare import prepare
    >>> from cavity.tables.read import read_table
    >>> found = analyse(prepare(read_table("crabs")), Settings("rbf"))
    >>> found.left_out["error"] < 0.1, len(found.comparison)
    (True, 6)
    """
    tell("tuning the kernel")
    begin = time.perf_counter()
    fitted, warned = fit_model(data, settings)
    seconds = time.perf_counter() - begin
    tell("predicting held-out rows")
    left_out, held_out = scores_of(data, fitted)
    tell("comparing inference methods")
    comparison = compare(data, fitted.kernel_, settings) if data.task == "classification" else []
    points = points_of(data, fitted)
    named = notable_rows(points, _MOST_EXAMPLES)
    tell("computing the learning curve")
    about = _about_classes if data.task == "classification" else _about_quantities
    return Analysis(
        title=f"{data.target} of {data.source}",
        data=_about_data(data),
        model=_about_model(fitted, settings, data, seconds, warned),
        left_out=left_out,
        held_out=held_out,
        relevance=relevance_of(fitted.kernel_, data.feature_names),
        comparison=comparison,
        curve=describe_curve(curve_of(data, fitted)),
        points=points,
        inputs={str(points["row"][i]): inputs_of(data, i) for i in named},
        settings=vars(settings).copy(),
        versions=_versions(),
        command=command,
        **about(data, fitted),
    )


def _versions() -> dict[str, str]:
    return {
        "cavity": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _about_data(data: Prepared) -> Json:
    counts = [int(np.sum(data.y == code)) for code in range(len(data.classes))]
    return {
        "source": data.source,
        "target": data.target,
        "task": data.task,
        "classes": [str(name) for name in data.classes],
        "class_counts": counts,
        "feature_names": list(data.feature_names),
        "counts": dict(data.counts),
        "notes": list(data.notes),
    }


def kernel_text(kernel: Kernel, classes: Sequence[Any]) -> str:
    """Return the kernel in words; of several classes, each of which has its own, all of them.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, CompoundKernel
    >>> from cavity.report.analysis import kernel_text
    >>> kernel_text(CompoundKernel([RBF(1.0), RBF(2.0), RBF(3.0)]), ["a", "b", "c"])
    'a: RBF(length_scale=1); b: RBF(length_scale=2); c: RBF(length_scale=3)'
    """
    if not isinstance(kernel, CompoundKernel):
        return str(kernel)
    pairs = zip(classes, kernel.kernels, strict=True)
    return "; ".join(f"{name}: {part}" for name, part in pairs)


def _about_model(
    fitted: Any, settings: Settings, data: Prepared, seconds: float, warned: list[str]
) -> Json:
    is_classes = data.task == "classification"
    has_correction = is_classes and hasattr(fitted, "evidence_correction_")
    return {
        "kernel": kernel_text(fitted.kernel_, data.classes),
        "inference": settings.inference if is_classes else "exact",
        "likelihood": settings.likelihood if is_classes else "gaussian",
        "log_evidence": float(fitted.log_marginal_likelihood_value_),
        "evidence_correction": float(fitted.evidence_correction_) if has_correction else None,
        "converged": bool(fitted.converged_) if is_classes else True,
        "seconds": seconds,
        "warnings": warned,
    }


def scores_of(data: Prepared, fitted: Any) -> tuple[Json, Json | None]:
    """Return the scores of the leave-one-out predictions and, if there are any, of the held-out.

    Examples
    --------
    >>> from cavity.report.analysis import scores_of
    >>> from cavity.tables.model import Settings, fit_model
    >>> from cavity.tables.prepare import prepare
    >>> from cavity.tables.read import read_table
    >>> data = prepare(read_table("crabs"), test_size=50)
    >>> left_out, held_out = scores_of(data, fit_model(data, Settings("rbf"))[0])
    >>> left_out["rows"], held_out["rows"]
    (150, 50)
    """
    y, tested = data.y, len(data.y_test) > 0
    if data.task == "regression":
        left_out = quantity_scores(fitted.loo_mean_, fitted.loo_std_, y, y)
        if not tested:
            return left_out, None
        mean, std = fitted.predict(data.X_test, return_std=True)
        return left_out, quantity_scores(mean, std, data.y_test, y)
    shares = np.bincount(y, minlength=len(data.classes)) / len(y)
    left_out = class_scores(fitted.loo_proba_, y, shares)
    if not tested:
        return left_out, None
    return left_out, class_scores(fitted.predict_proba(data.X_test), data.y_test, shares)


def _about_classes(data: Prepared, fitted: Any) -> Json:
    proba, y = fitted.loo_proba_, data.y
    events = [1] if len(data.classes) == 2 else range(len(data.classes))
    return {
        "calibration": [
            {"class": str(data.classes[k]), "bins": calibration(proba[:, k], y == k)}
            for k in events
        ],
        "confusion": confusion(proba, y),
        "least_certain": _examples(data, proba, np.argsort(proba.max(axis=1))),
        "suspects": _examples(data, proba, np.argsort(proba[np.arange(len(y)), y])),
    }


def _examples(data: Prepared, proba: Array, order: Array) -> list[Json]:
    return [
        {
            "row": int(data.rows[i]),
            "label": str(data.classes[data.y[i]]),
            "prediction": str(data.classes[int(np.argmax(proba[i]))]),
            "probability": float(proba[i].max()),
            "probability_of_label": float(proba[i, data.y[i]]),
        }
        for i in order[:_MOST_EXAMPLES]
    ]


def _about_quantities(data: Prepared, fitted: Any) -> Json:
    mean, std, y = fitted.loo_mean_, fitted.loo_std_, data.y
    return {
        "calibration": [{"class": None, "bins": coverage(mean, std, y)}],
        "confusion": None,
        "least_certain": _quantities(data, mean, std, np.argsort(-std)),
        "suspects": _quantities(data, mean, std, np.argsort(-np.abs(y - mean) / std)),
    }


def _quantities(data: Prepared, mean: Array, std: Array, order: Array) -> list[Json]:
    return [
        {
            "row": int(data.rows[i]),
            "label": float(data.y[i]),
            "prediction": float(mean[i]),
            "std": float(std[i]),
            "z": float((data.y[i] - mean[i]) / std[i]),
        }
        for i in order[:_MOST_EXAMPLES]
    ]


def relevance_of(kernel: Kernel, names: list[str]) -> list[Json] | None:
    """Return each input's inverse length scale relative to the largest.

    With several classes each has its own; ``relevance`` is then their mean.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.report.analysis import relevance_of
    >>> [line["relevance"] for line in relevance_of(1.0 * RBF([1.0, 4.0]), ["a", "b"])]
    [1.0, 0.25]
    """
    parts = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    scales = [_length_scales(part, len(names)) for part in parts]
    if any(scale is None for scale in scales):
        return None
    inverse = np.array([scale.min() / scale for scale in scales if scale is not None])
    return [
        {"feature": name, "relevance": float(column.mean()), "per_class": column.tolist()}
        for name, column in zip(names, inverse.T, strict=True)
    ]


def _length_scales(kernel: Kernel, d: int) -> Array | None:
    parameters = kernel.get_params()
    found = compress(parameters.values(), length_scales(list(parameters)))
    return next((np.asarray(scale) for scale in found if np.shape(scale) == (d,) and d > 1), None)


def compare(data: Prepared, kernel: Kernel, settings: Settings, tune: bool = False) -> list[Json]:
    """Put all inference methods side by side; a row of `compare_inference` for each.

    Parameters
    ----------
    data : Prepared
    kernel : kernel object
        Of several classes' kernels, each with its own hyperparameters, the geometric mean.
    settings : Settings
    tune : bool
        Whether each method tunes the kernel by its own evidence.
    """
    if isinstance(kernel, CompoundKernel):
        theta = np.mean([part.theta for part in kernel.kernels], axis=0)
        kernel = kernel.kernels[0].clone_with_theta(theta)
    table = compare_inference(
        data.X,
        data.y,
        kernel,
        likelihood=settings.likelihood,
        optimizer="fmin_l_bfgs_b" if tune else None,
        random_state=settings.seed,
    )
    return [vars(row).copy() for row in table]
