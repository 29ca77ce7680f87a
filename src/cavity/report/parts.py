"""The parts of an analysis: scores, calibration, rows to check, learning curve, kernel."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import binomtest
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel
from sklearn.metrics import confusion_matrix

from cavity import cross_val_tuned, learning_curve
from cavity.arrays import Array
from cavity.model_selection.leave_one_out import inputs_help, loo_class_losses
from cavity.model_selection.suspects import most_doubtful
from cavity.resampling.scores import Losses, class_scores, target_scores
from cavity.tables.prepare import Prepared

_MOST_EXAMPLES = 10
MOST_POINTS = 2000
"""Rows that are shown one by one; of more, these are a random sample."""
SURE, _BINS = 0.9, 16
"""A probability from which on a prediction counts as sure, and the bars of a histogram."""
LEVEL = 0.9
"""Coverage of the intervals of forecasts, of importances and of effects."""
_SIZES = 8
_KERNELS = 4
"""Tuned again for the curve: a fifth to a third of a report's time; twenty would double it."""
_FACTORS = np.geomspace(1.0, 4.0, 9)
"""From the present number of rows to four times as many; twice as many is among them."""
_FAR_FACTORS = np.geomspace(1.0, 1000.0, 61)
"""From the present number of rows to the largest that `LearningCurve.size_for` tries."""
Summary = dict[str, float]


def rows_of(data: Prepared, fitted: Any, seed: int) -> dict[str, Any]:
    """Return the fields of an analysis that are about rows which the model has not seen."""
    predicted, guess = left_out_of(data, fitted), without_inputs(data, fitted)
    left_out, held_out = scores_of(data, fitted, predicted, guess)
    return {
        "left_out": left_out,
        "left_out_by": predicted.how,
        "held_out": held_out,
        "verdict": verdict_of(data, predicted, guess),
        "calibration": calibration_of(data, predicted),
        "confusion": confusion_of(data, predicted),
        "certainty": certainty_of(data, predicted),
        **examples_of(data, predicted, seed),
    }


Guess = tuple[LeftOut, LeftOut | None] | None


def verdict_of(data: Prepared, left_out: LeftOut, guess: Guess = None) -> dict[str, Any]:
    """Return whether the inputs help, with the gain in log loss and its standard error."""
    without = None if guess is None else guess[0].losses(data.y).log_loss
    losses = left_out.losses(data.y).log_loss
    return inputs_help(losses, data.y, classes=bool(data.classes), guess=without)._asdict()


def scores_of(
    data: Prepared, fitted: Any, left_out: LeftOut, guess: Guess = None
) -> tuple[Summary, Summary | None]:
    """Return the scores of left-out rows, and those of the held-out rows if there are any.

    ``guess`` has what is predicted without inputs, if it was worked out before.
    """
    new = held_out_of(data, fitted)
    if guess is None:
        guess = without_inputs(data, fitted)
    without = guess or (None, None)
    found = summary_of(data, fitted, left_out, data.y, without[0])
    return found, None if new is None else summary_of(data, fitted, new, data.y_test, without[1])


def summary_of(
    data: Prepared, fitted: Any, predicted: LeftOut, y: Array, guess: LeftOut | None
) -> Summary:
    """Return the scores of predictions of these targets."""
    losses = predicted.losses(y)
    if predicted.proba is not None:
        scores = _of_classes(losses, y, data.y)
        return scores | (rank_scores(predicted.proba, y, data.y) if data.task == "ordinal" else {})
    if guess is None:
        baseline = target_scores(data.y.mean(), data.y.var(), y)
        return _of_quantities(losses, y, baseline)
    found = _of_quantities(losses, y, guess.losses(y))
    return found | more_scores(data.task, fitted.likelihood_, predicted.mean, guess.mean, y)


def _of_classes(losses: Losses, y: Array, train: Array) -> Summary:
    """Summarise scores; the baseline predicts the class frequencies of the training rows."""
    shares = np.bincount(train) / len(train)
    return {
        "rows": len(y),
        **_average("error", losses.error),
        **_average("log_loss", losses.log_loss),
        "brier": float(np.asarray(losses.brier).mean()),
        "baseline_error": float(np.mean(y != np.argmax(shares))),
        "baseline_log_loss": float(-np.mean(np.log(shares[y]))),
    }


def _of_quantities(losses: Losses, y: Array, baseline: Losses) -> Summary:
    """Summarise scores beside those of predictions without inputs."""
    rmse = math.sqrt(losses.error.mean())
    return {
        "rows": len(y),
        "rmse": rmse,
        "rmse_se": _standard_error(losses.error) / (2 * rmse),
        "mae": float(np.mean(np.sqrt(losses.error))),
        # A single row has no R².
        "r2": float(1.0 - losses.error.mean() / y.var()) if y.var() > 0.0 else math.nan,
        **_average("log_loss", losses.log_loss),
        "baseline_rmse": math.sqrt(baseline.error.mean()),
        "baseline_log_loss": float(baseline.log_loss.mean()),
    }


def _average(name: str, values: Array) -> Summary:
    return {name: float(values.mean()), f"{name}_se": _standard_error(values)}


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def confusion_of(data: Prepared, left_out: LeftOut) -> list[list[int]] | None:
    """Return the counts of true (rows) and predicted (columns) classes of left-out rows."""
    if left_out.proba is None:
        return None
    predicted, codes = np.argmax(left_out.proba, axis=1), np.arange(len(data.classes))
    return list(confusion_matrix(data.y, predicted, labels=codes).tolist())


def calibration_of(data: Prepared, left_out: LeftOut) -> list[dict[str, Any]]:
    """Return class and bins for the second of two classes or for each of several.

    In regression there is one entry, whose class is None: the share of targets inside central
    intervals of nominal 10, 20, ..., 90 %.
    """
    proba = left_out.proba
    if proba is None:
        levels = (np.arange(1, 10) / 10).tolist()
        bins = [_observed(level, left_out.inside(data.y, level)) for level in levels]
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


def certainty_of(data: Prepared, left_out: LeftOut) -> dict[str, Any]:
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
        inside = left_out.inside(data.y, 0.95)
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


def examples_of(data: Prepared, left_out: LeftOut, seed: int) -> dict[str, Any]:
    """Return the fields points, least_certain, suspects and inputs of an analysis."""
    proba, every = left_out.proba, np.arange(len(data.y))
    if proba is not None:
        uncertainty, doubt = -proba.max(axis=1), -proba[every, data.y]
    else:
        uncertainty, doubt = left_out.std, np.abs(left_out.deviations(data.y))
    few = [most_doubtful(values, _MOST_EXAMPLES) for values in (uncertainty, doubt)]
    least_certain, suspects = (_records_of(data, left_out, places) for places in few)
    if len(every) > MOST_POINTS:
        drawn = np.random.default_rng(seed).choice(len(every), MOST_POINTS, replace=False)
        every = np.sort(drawn)
    shown = np.unique(np.concatenate(few))
    inputs = zip(data.rows[shown], data.inputs_at(shown), strict=True)
    return {
        "points": _points_of(data, left_out, every),
        "least_certain": least_certain,
        "suspects": suspects,
        "inputs": {str(row): data.encoder.decode(x) for row, x in inputs},
    }


def _records_of(data: Prepared, left_out: LeftOut, places: Array) -> list[dict[str, Any]]:
    points = _points_of(data, left_out, places)
    if left_out.proba is None:
        points |= {"z": left_out.deviations(data.y)[places]}
    return records(points)


def records(columns: Mapping[str, Sequence[Any] | Array]) -> list[dict[str, Any]]:
    """Return named columns row by row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _points_of(data: Prepared, left_out: LeftOut, places: Array) -> dict[str, Array]:
    points = {"row": data.rows[places], "label": data.y[places]}
    if left_out.proba is None:
        return points | {"prediction": left_out.mean[places], "std": left_out.std[places]}
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

    By default its sizes are eight from a fortieth of the rows (at least five) to all of them. Its
    ``converged`` says whether its equations were solved; there are no warnings.
    """
    n = len(data.y)
    if sizes is None:
        first = max(min(5, n), n / 40)
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
