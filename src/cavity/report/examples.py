"""Leave-one-out predictions of the training rows, and the rows worth a look."""

from typing import Any

import numpy as np

from cavity.model_selection.suspects import most_doubtful
from cavity.tables.prepare import Prepared

_MOST = 10


def examples_of(data: Prepared, fitted: Any) -> dict[str, Any]:
    """Return the fields points, least_certain, suspects and inputs of an analysis."""
    points = _points_of(data, fitted)
    columns = {name: np.array(values) for name, values in points.items()}
    rows = records(points)
    if data.classes:
        uncertainty, doubt = -columns["probability"], -columns["probability_of_label"]
    else:
        z = (columns["label"] - columns["prediction"]) / columns["std"]
        rows = [row | {"z": float(off)} for row, off in zip(rows, z, strict=True)]
        uncertainty, doubt = columns["std"], np.abs(z)
    least_certain, suspects = (most_doubtful(values, _MOST) for values in (uncertainty, doubt))
    shown = sorted({*least_certain, *suspects})
    return {
        "points": points,
        "least_certain": [rows[i] for i in least_certain],
        "suspects": [rows[i] for i in suspects],
        "inputs": {str(rows[i]["row"]): data.encoder.decode(data.X[i]) for i in shown},
    }


def records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return named columns row by row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _points_of(data: Prepared, fitted: Any) -> dict[str, list[Any]]:
    rows = data.rows.tolist()
    if not data.classes:
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
