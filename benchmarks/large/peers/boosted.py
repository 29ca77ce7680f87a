"""GPBoost: Laplace on inducing points by its own optimiser, from its own start."""

from typing import Any

import gpboost
import numpy as np

from benchmarks.contestants.common import Fitted

__all__ = ["fit"]


def fit(X: Any, y: Any, m: int, ard: bool) -> Fitted:
    """Tune the kernel; its defaults for everything but the approximation."""
    model = gpboost.GPModel(
        gp_coords=X,
        cov_function="gaussian_ard" if ard else "gaussian",
        likelihood="bernoulli_probit",
        gp_approx="fitc",
        num_ind_points=m,
        seed=0,
    )
    model.fit(y=y.astype(float))
    value = -float(model.get_current_neg_log_likelihood())
    found = np.ravel(model.get_cov_pars())
    note = "amplitude and ranges " + " ".join(f"{x:.3g}" for x in found)
    return Fitted(value, lambda new: _proba(model, new), note)


def _proba(model: Any, new: Any) -> Any:
    return model.predict(gp_coords_pred=new, predict_response=True)["mu"]
