"""The parts of an analysis: calibration, rows to check, learning curve, kernel."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel
from sklearn.metrics import confusion_matrix

from cavity import learning_curve
from cavity.arrays import Array
from cavity.model_selection.suspects import most_doubtful
from cavity.report.scores import Summary, Unseen, scores_of, verdict_of
from cavity.tables.prepare import Prepared

_MOST_EXAMPLES = 10
MOST_POINTS = 2000
"""Rows that are shown one by one; of more, these are a random sample."""
SURE, _BINS = 0.9, 16
"""A probability from which on a prediction counts as sure, and the bars of a histogram."""
LEVEL = 0.9
"""Coverage of the intervals of forecasts, of importances and of effects."""
_SIZES = 8
_ROUNDS, _FEWER_ROUNDS = 200, 40
_KERNELS = 4
"""Tuned again for the curve: a fifth to a third of a report's time; twenty would double it."""
_FACTORS = np.geomspace(1.0, 4.0, 9)
"""From the present number of rows to four times as many; twice as many is among them."""
_FAR_FACTORS = np.geomspace(1.0, 1000.0, 61)
"""From the present number of rows to the largest that `LearningCurve.size_for` tries."""


def rows_of(
    data: Prepared, left_out: Unseen, held_out: Unseen | None, suspects: Array, seed: int
) -> dict[str, Any]:
    """Return the fields of an analysis that are about rows which the model has not seen."""
    ordered = data.task == "ordinal"
    return {
        "left_out": scores_of(left_out, data.y, ordered=ordered),
        "left_out_by": left_out.how,
        "held_out": held_out and scores_of(held_out, data.y, ordered=ordered),
        "verdict": verdict_of(left_out),
        "calibration": calibration_of(data, left_out),
        "confusion": confusion_of(data, left_out),
        "certainty": certainty_of(data, left_out),
        **examples_of(data, left_out, suspects, seed),
    }


def confusion_of(data: Prepared, left_out: Unseen) -> list[list[int]] | None:
    """Return the counts of true (rows) and predicted (columns) classes of left-out rows."""
    if left_out.proba is None:
        return None
    predicted, codes = np.argmax(left_out.proba, axis=1), np.arange(len(data.classes))
    return list(confusion_matrix(data.y, predicted, labels=codes).tolist())


def calibration_of(data: Prepared, left_out: Unseen) -> list[dict[str, Any]]:
    """Return class and bins for the second of two classes or for each of several.

    In regression there is one entry, whose class is None: the share of targets inside central
    intervals of nominal 10, 20, ..., 90 %.
    """
    proba = left_out.proba
    if proba is None:
        levels = (np.arange(1, 10) / 10).tolist()
        bins = [_observed(level, left_out.inside(level)) for level in levels]
        return [{"class": None, "bins": bins}]
    events = [1] if len(data.classes) == 2 else range(len(data.classes))
    return [
        {"class": str(data.classes[k]), "bins": calibration(proba[:, k], data.y == k)}
        for k in events
    ]


def calibration(p: Array, happened: Array, bins: int = 10) -> list[Summary]:
    """Compare probabilities of an event with how often it happened, in bins of equal width."""
    place = np.minimum((p * bins).astype(int), bins - 1)
    return [
        {
            "lower": k / bins,
            "upper": (k + 1) / bins,
            **_observed(float(p[place == k].mean()), happened[place == k]),
        }
        for k in np.unique(place).tolist()
    ]


def _observed(predicted: float, happened: Array) -> Summary:
    # A count may lie in an interval in part.
    count, n = round(float(happened.sum())), len(happened)
    low, high = binomtest(count, n).proportion_ci(0.95, "wilson")
    return {
        "count": n,
        "predicted": predicted,
        "observed": float(happened.mean()),
        "observed_low": float(low),
        "observed_high": float(high),
    }


def certainty_of(data: Prepared, left_out: Unseen) -> dict[str, Any]:
    """Return how certain the predictions of left-out rows are, counted over all rows.

    A histogram has edges and counts by kind: right and wrong by the probability of the predicted
    class, or rows by the standard deviation. For classes, sure is how many have a probability of
    at least 0.9, and sure_right how many of these are right; in regression, middle and high are
    quantiles (0.5 and 0.95) of the standard deviation, and inside is the share of the targets in
    their 95 % intervals.
    """
    if left_out.proba is None:
        std, n = np.sort(left_out.std), len(left_out.std)
        reach = 0.0 if std[-1] > std[0] else 0.5 * abs(std[0])
        edges = np.linspace(std[0] - reach, std[-1] + reach, _BINS + 1)
        inside = left_out.inside(0.95)
        about = {"middle": std[n // 2], "high": std[math.ceil(0.95 * n) - 1]}
        return {**about, "inside": inside.mean(), **_histogram({"rows": std}, edges)}
    probability = left_out.proba.max(axis=1)
    right = np.argmax(left_out.proba, axis=1) == data.y
    floor = math.floor(20.0 / len(data.classes)) / 20.0
    edges = np.linspace(floor, 1.0, round((1.0 - floor) * 20) + 1)
    sure = probability >= SURE
    about = {"sure": int(sure.sum()), "sure_right": int(np.sum(sure & right))}
    return about | _histogram({"right": probability[right], "wrong": probability[~right]}, edges)


def _histogram(kinds: dict[str, Array], edges: Array) -> dict[str, Any]:
    counts = {
        kind: np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        for kind, values in kinds.items()
    }
    return {"edges": edges, "counts": counts}


def examples_of(data: Prepared, left_out: Unseen, suspects: Array, seed: int) -> dict[str, Any]:
    """Return the fields points, least_certain and inputs of an analysis."""
    proba, every = left_out.proba, np.arange(len(data.y))
    uncertainty = left_out.std if proba is None else -proba.max(axis=1)
    doubtful = most_doubtful(uncertainty, _MOST_EXAMPLES)
    if len(every) > MOST_POINTS:
        drawn = np.random.default_rng(seed).choice(len(every), MOST_POINTS, replace=False)
        every = np.sort(drawn)
    shown = np.unique(np.concatenate([doubtful, suspects[:_MOST_EXAMPLES]]))
    inputs = zip(data.rows[shown], data.inputs_at(shown), strict=True)
    return {
        "points": _points_of(data, left_out, every),
        "least_certain": records_of(data, left_out, doubtful),
        "inputs": {str(row): data.encoder.decode(x) for row, x in inputs},
    }


def records_of(data: Prepared, left_out: Unseen, places: Array) -> list[dict[str, Any]]:
    """Return what is known of some rows: targets, predictions and how sure these are."""
    return records(_points_of(data, left_out, places))


def records(columns: Mapping[str, Sequence[Any] | Array]) -> list[dict[str, Any]]:
    """Return named columns row by row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _points_of(data: Prepared, left_out: Unseen, places: Array) -> dict[str, Array]:
    points = {"row": data.rows[places], "label": data.y[places]}
    if left_out.proba is None:
        points |= {"prediction": left_out.mean[places], "std": left_out.std[places]}
        return points | {"z": left_out.deviations[places]}
    names = np.array([str(name) for name in data.classes], dtype=object)
    proba, codes = left_out.proba[places], data.y[places]
    return points | {
        "label": names[codes],
        "prediction": names[np.argmax(proba, axis=1)],
        "probability": proba.max(axis=1),
        "probability_of_label": proba[np.arange(len(places)), codes],
    }


def curve_of(
    data: Prepared, fitted: Any, sizes: Sequence[int] | None = None, resampling: str = "subsample"
) -> Any:
    """Return the `LearningCurve` of a fitted model on its training rows.

    By default its sizes are eight from a fortieth of the rows (at least five; with outliers from a
    tenth, at least twenty) to all of them. Its
    ``converged`` says whether its equations were solved; there are no warnings.
    """
    n = len(data.y)
    if sizes is None:
        first = max(min(5, n), n / 40) if data.task != "robust" else max(min(20, n), n / 10)
        sizes = np.unique(np.round(np.geomspace(first, n, _SIZES)).astype(int)).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learning_curve(
            fitted,
            data.X,
            data.y,
            train_sizes=sizes,
            resampling=resampling,
            n_kernels=_KERNELS,
            offset=data.offset,
            # With few rows and heavy tails there are several solutions, and hardly an end.
            max_iter=_FEWER_ROUNDS if data.task == "robust" else _ROUNDS,
        )


def describe_curve(curve: Any, ahead: Sequence[int] | None = None) -> dict[str, Any]:
    """Return a learning curve and its forecasts in numbers.

    These are measure ("error rate" or "mean squared error"), resampling, rows (the present number),
    sizes, error, log_loss, converged; level, and forecast and log_loss_forecast, lists of size,
    value, low, high at the sizes ``ahead``; far, the forecast of error and log_loss by size up to a
    thousand times the rows.
    """
    n = len(curve.y)
    sizes = np.round(n * _FACTORS).astype(int) if ahead is None else np.array(ahead)
    far = np.unique(np.round(n * _FAR_FACTORS).astype(int))
    at = {"size": sizes}
    return {
        "measure": "error rate" if curve.task == "classification" else "mean squared error",
        "resampling": curve.resampling,
        "rows": n,
        "sizes": [int(size) for size in curve.train_sizes],
        "error": curve.test_error.tolist(),
        "log_loss": curve.test_log_loss.tolist(),
        "converged": curve.converged.tolist(),
        "level": LEVEL,
        "forecast": records(curve.forecast(sizes, "error", LEVEL)._asdict() | at),
        "log_loss_forecast": records(curve.forecast(sizes, "log_loss", LEVEL)._asdict() | at),
        "far": {
            "size": far.tolist(),
            "error": curve.forecast(far, "error").value.tolist(),
            "log_loss": curve.forecast(far, "log_loss").value.tolist(),
        },
    }


def kernel_text(kernel: Kernel, classes: Sequence[Any]) -> str:
    """Return the kernel as text; with several classes, the kernel of each."""
    if not isinstance(kernel, CompoundKernel):
        return str(kernel)
    parts = zip(classes, kernel.kernels, strict=True)
    return "; ".join(f"{name}: {part}" for name, part in parts)
