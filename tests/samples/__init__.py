"""Files and pickles of earlier versions, and what they predicted when they were written.

``python -m tests.samples.write`` writes those of this version into a folder of its name. It is run
once for each release; what was released is never written again.

- ``0.1.0``: by ``python -m tests.samples.write_first`` with the sources of version 0.1.0 in place
  of these (the last ones before the changes of 0.2.0: commit 9742080).
- ``0.2.0.dev``: by sources on the way to 0.2.0, which still called themselves 0.1.0.
"""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

HERE = Path(__file__).parent
KERNEL = 2.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)
NEW = [[0.5, -0.5], [-1.0, 0.25], [0.0, 2.0]]
"""Inputs of which predictions are kept."""


def data() -> tuple[Any, Any]:
    """Return inputs and a smooth function of them."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1]


def targets(f: Any) -> dict[str, Any]:
    """Return two classes, three classes and a quantity."""
    labels = np.where(f > 0.0, "y", "n")
    three = np.array(list("abc"))[np.digitize(f, [-0.5, 0.5])]
    return {"": labels, " of classes": three, " of numbers": f}


def columns(target: Any) -> dict[str, Any]:
    """Return a table with a number, a category and this target."""
    X, _ = data()
    return {"a": X[:, 0], "c": np.where(X[:, 1] > 0, "u", "v"), "t": target}


def answer(model: Any) -> Any:
    """Return what a model predicts at the kept inputs: probabilities where it has them."""
    votes = getattr(model, "multi_class", None) == "one_vs_one"
    ask = "predict_proba" if hasattr(model, "classes_") and not votes else "predict"
    return getattr(model, ask)(np.array(NEW)).tolist()


def place(folder: Path, name: str, suffix: str = "model") -> Path:
    """Return where a sample is kept."""
    return folder / f"{name.replace(' ', '_')}.{suffix}"
