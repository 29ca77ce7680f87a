"""Values that can be written as strict JSON."""

import json
import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np


def to_json(value: Any) -> str:
    """Return strict JSON, in which a number that is not finite is null."""
    return json.dumps(plain(value), indent=2, allow_nan=False, ensure_ascii=False)


def plain(value: Any) -> Any:
    """Return dicts, lists, strings and numbers, with None for a number that is not finite.

    >>> plain({"x": np.float64("nan"), "y": (np.int64(2),)})
    {'x': None, 'y': [2]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
