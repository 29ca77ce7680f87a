"""What the rest of the data say about each training row, and the row's own inputs."""

from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.tables.encoding import Category, Number
from cavity.tables.prepare import Prepared

__all__ = ["inputs_of", "notable_rows", "points_of"]

Json = dict[str, Any]


def points_of(data: Prepared, fitted: Any) -> Json:
    """Return leave-one-out predictions of all training rows, column by column.

    Returns
    -------
    dict
        row, label, prediction; then probability of the predicted class and
        probability_of_label, or std.

    Examples
    --------
    >>> from cavity.report.examples import points_of
    >>> from cavity.tables.model import Settings, fit_model
    >>> from cavity.tables.prepare import prepare
    >>> from cavity.tables.read import read_table
    >>> data = prepare(read_table("crabs"))
    >>> points = points_of(data, fit_model(data, Settings("rbf"))[0])
    >>> len(points["row"]), points["label"][0]
    (200, 'M')
    """
    rows = [int(row) for row in data.rows]
    if data.task == "regression":
        columns = {"label": data.y, "prediction": fitted.loo_mean_, "std": fitted.loo_std_}
        return {"row": rows, **{name: column.tolist() for name, column in columns.items()}}
    proba, names = fitted.loo_proba_, [str(name) for name in data.classes]
    return {
        "row": rows,
        "label": [names[code] for code in data.y],
        "prediction": [names[code] for code in np.argmax(proba, axis=1)],
        "probability": proba.max(axis=1).tolist(),
        "probability_of_label": proba[np.arange(len(data.y)), data.y].tolist(),
    }


def notable_rows(points: Json, most: int) -> list[int]:
    """Return which rows a report names: the least certain and the most surprising, as places."""
    if "std" in points:
        std = np.array(points["std"])
        off = np.abs(np.array(points["label"]) - np.array(points["prediction"])) / std
        orders = [np.argsort(-std), np.argsort(-off)]
    else:
        orders = [np.argsort(points[key]) for key in ("probability", "probability_of_label")]
    return sorted({int(i) for order in orders for i in order[:most]})


def inputs_of(data: Prepared, place: int) -> dict[str, str]:
    """Return the inputs of a training row as its table has them, filled in where missing.

    Examples
    --------
    >>> from cavity.report.examples import inputs_of
    >>> from cavity.tables.prepare import prepare
    >>> from cavity.tables.read import read_table
    >>> inputs_of(prepare(read_table("pima")), 0)["glu"]
    '86'
    """
    encoder = data.encoder
    scale = np.array(encoder.scale)
    raw = data.X[place] * scale + np.array(encoder.mean)
    # A zero comes back from standardising as rounding error.
    raw[np.abs(raw) < 1e-9 * scale] = 0.0
    found, begin = {}, 0
    for column in encoder.columns:
        end = begin + len(column.feature_names)
        found[column.name] = _decoded(column, raw[begin:end])
        begin = end
    return found


def _decoded(column: Number | Category, raw: Array) -> str:
    if isinstance(column, Number):
        # Six digits hide what standardising and undoing it does to the last ones.
        return f"{float(raw[0]):.6g}"
    # Of two levels only the second has an input, of one level the only one.
    hidden = len(column.levels) - len(column.feature_names)
    level = column.levels[int(np.argmax(raw)) + hidden if raw.max() > 0.5 else 0]
    return "missing" if level is None else level
