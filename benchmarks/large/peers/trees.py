"""LightGBM with its defaults."""

import os
from typing import Any

from lightgbm import LGBMClassifier

from benchmarks.contestants.common import Fitted

__all__ = ["fit"]


def fit(X: Any, y: Any, m: int) -> Fitted:
    """Grow a hundred trees, the default."""
    threads = int(os.environ.get("OMP_NUM_THREADS", "-1"))
    model = LGBMClassifier(n_jobs=threads, random_state=0, verbose=-1).fit(X, y)
    return Fitted(float("nan"), lambda new: model.predict_proba(new)[:, 1])
