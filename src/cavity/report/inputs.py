"""The part of an analysis about inputs: which matter, and what each does to the predictions."""

from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.model_selection.effect import effect_of
from cavity.model_selection.importance import shares
from cavity.model_selection.surface import Surface, surface_of
from cavity.report.parts import LEVEL
from cavity.tables.prepare import Prepared

_DRAWS, _GRID, _MOST_ROWS = 200, 16, 2000
_MOST_EFFECTS, _FEWEST_EFFECTS, _MOST_CLASSES = 12, 2, 4


def inputs_of(data: Prepared, fitted: Any, seed: int) -> dict[str, Any]:
    """Return the fields importance and effects of an analysis.

    The importance of a column is that of `cavity.feature_importance`, with all inputs of a category
    replaced together: feature, importance, low, high, the most important first. An effect has
    feature, is_number, values (in the table's units, or levels) and curves: class (None in
    regression), mean, low, high. There are effects of the columns that clearly matter, up to twelve
    and at least the two most important, on the second of two classes or on each of the four most
    common. Of many rows, a random sample is used.
    """
    surface, rng = surface_of(fitted), np.random.RandomState(seed)
    data = data.sample(_MOST_ROWS, seed)
    found = shares(surface, data.X, data.encoder.groups, _DRAWS, LEVEL, rng)
    order = np.argsort([-share.importance for share in found], kind="stable").tolist()
    drawn = [j for k, j in enumerate(order) if found[j].low > 0.0 or k < _FEWEST_EFFECTS]
    names = [column.name for column in data.encoder.columns]
    return {
        "importance": [{"feature": names[j], **found[j]._asdict()} for j in order],
        "effects": [_effect(data, surface, j, rng) for j in drawn[:_MOST_EFFECTS]],
    }


def _effect(data: Prepared, surface: Surface, place: int, rng: Any) -> dict[str, Any]:
    group, name = data.encoder.groups[place], data.encoder.columns[place].name
    values, inputs = data.encoder.values(data.X, place, _GRID)
    band = effect_of(surface, data.X, group, inputs.tolist(), LEVEL, rng)
    curves = [
        {"class": str(data.classes[k]) if data.classes else None}
        | {part: curve[:, k] for part, curve in band._asdict().items()}
        for k in _shown_classes(data)
    ]
    is_number = not isinstance(values[0], str)
    return {"feature": name, "is_number": is_number, "values": values, "curves": curves}


def _shown_classes(data: Prepared) -> Array:
    """Return the target, the second of two classes, or the most common of several."""
    if len(data.classes) <= 2:
        return np.array([len(data.classes) // 2])
    return np.sort(np.argsort(-np.bincount(data.y), kind="stable")[:_MOST_CLASSES])
