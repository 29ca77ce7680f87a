"""Numbers of an earlier revision, and the problems that they belong to.

``python -m tests.frozen.write`` writes them afresh with the code of today.
"""

import json
from pathlib import Path

import numpy as np

__all__ = ["DIRECT", "ITERATED", "load", "save", "worst"]

DIRECT = 1e-10
"""Agreement to ask for where nothing is iterated: rounding alone is left."""
ITERATED = 1e-8
"""Agreement to ask for where an iteration stops: another path may lead to the same solution."""

_FOLDER = Path(__file__).parent
_DIGITS = 14


def load(name):
    """Return what a file holds."""
    return json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def save(name, numbers):
    """Write numbers to a file, one problem a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(_plain(value))}" for key, value in numbers.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (_FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def worst(found, expected):
    """Return the largest deviation, relative or absolute, whichever is smaller."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    if found.shape != expected.shape or not np.all(np.isfinite(found)):
        return np.inf
    off = np.abs(found - expected) / np.maximum(1.0, np.abs(expected))
    return float(np.max(off, initial=0.0))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, str | int):
        return value
    if np.ndim(value):
        return [_plain(entry) for entry in value]
    return float(f"{value:.{_DIGITS}g}")
