"""Numbers as JSON can say them."""

import json
import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

__all__ = ["to_json"]


def to_json(value: Any) -> str:
    """Return strict JSON: what is not a finite number becomes null.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.tables.plain import to_json
    >>> print(to_json({"x": np.float64("nan"), "y": np.arange(2)}))
    {
      "x": null,
      "y": [
        0,
        1
      ]
    }
    """
    return json.dumps(_plain(value), indent=2, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
