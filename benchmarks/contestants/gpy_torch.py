"""GPyTorch: stochastic-free variational inference with the probit likelihood and inducing points.

Its evidence is a lower bound. All examples are inducing points up to 200 of them; beyond, 200
examples are where they start, and their places are learned. There is no bar against it.
"""

from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

from benchmarks.contestants.common import Fitted

__all__ = ["fit"]

_INDUCING = 200
_STEPS = 300
_RATE = 0.05


class _Model(gpytorch.models.ApproximateGP):
    def __init__(self, places: Any, learn: bool) -> None:
        q = CholeskyVariationalDistribution(len(places))
        super().__init__(VariationalStrategy(self, places, q, learn_inducing_locations=learn))
        self.mean_module = gpytorch.means.ZeroMean()
        rbf = gpytorch.kernels.RBFKernel(ard_num_dims=places.shape[1])
        self.covar_module = gpytorch.kernels.ScaleKernel(rbf)
        self.covar_module.outputscale = 1.0
        rbf.lengthscale = 1.0

    def forward(self, x: Any) -> Any:
        mean, covariance = self.mean_module(x), self.covar_module(x)
        return gpytorch.distributions.MultivariateNormal(mean, covariance)


def fit(X: Any, y: Any, deadline: float) -> Fitted:
    """Raise the bound by a fixed number of full-batch Adam steps."""
    torch.manual_seed(0)
    inputs = torch.as_tensor(X)
    labels = torch.as_tensor((y > 0.0).astype(float))
    model = _Model(inputs[:_INDUCING].clone(), learn=len(y) > _INDUCING).double()
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    _climb(model, lambda: bound(model(inputs), labels))
    model.eval()
    with torch.no_grad():
        value = len(y) * float(bound(model(inputs), labels))
    note = f"bound; {min(len(y), _INDUCING)} inducing points, {_STEPS} Adam steps"
    return Fitted(value, lambda new: _proba(model, likelihood, new), note)


def _climb(model: Any, bound: Any) -> None:
    optimiser = torch.optim.Adam(model.parameters(), lr=_RATE)
    model.train()
    for _ in range(_STEPS):
        optimiser.zero_grad()
        (-bound()).backward()
        optimiser.step()


def _proba(model: Any, likelihood: Any, new: Any) -> Any:
    with torch.no_grad():
        return np.asarray(likelihood(model(torch.as_tensor(new))).mean)
