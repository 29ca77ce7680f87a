"""scikit-learn: logistic regression on Nyström features of the RBF kernel."""

from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from benchmarks.contestants.common import Fitted

__all__ = ["fit"]

_GAMMAS, _COSTS = (0.1, 0.3, 1.0), (0.1, 1.0, 10.0)
"""Gamma in units of one over the number of inputs, which have variance 1."""
_SEARCHED = 20_000
"""Rows on which they are chosen; the final fit has all."""


def fit(X: Any, y: Any, m: int) -> Fitted:
    """Choose gamma and C by the log loss of three-fold cross-validation, then fit all rows."""
    model = make_pipeline(
        Nystroem(n_components=m, random_state=0), LogisticRegression(max_iter=1000)
    )
    gammas = [gamma / X.shape[1] for gamma in _GAMMAS]
    grid = {"nystroem__gamma": gammas, "logisticregression__C": list(_COSTS)}
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3, refit=False)
    some = np.random.default_rng(0).permutation(len(y))[:_SEARCHED]
    chosen = search.fit(X[some], y[some]).best_params_
    model.set_params(**chosen).fit(X, y)
    note = ", ".join(f"{name.split('__')[1]} {value:.3g}" for name, value in chosen.items())
    return Fitted(float("nan"), lambda new: model.predict_proba(new)[:, 1], note)
