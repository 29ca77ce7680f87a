"""GPyTorch: stochastic variational inference on inducing points whose places are learned.

Settings are those of its tutorials "Stochastic Variational GP Regression" and "Natural Gradient
Descent": minibatches of 1024, Adam at 0.01, 4 epochs; with natural gradients the variational
distribution takes steps of 0.1. Inputs and sums are in single precision, the default there.
"""

from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    NaturalVariationalDistribution,
    VariationalStrategy,
)

from benchmarks.contestants.common import Fitted

__all__ = ["fit"]

_BATCH, _RATE, _NATURAL_RATE, _EPOCHS = 1024, 0.01, 0.1, 4


class _Model(gpytorch.models.ApproximateGP):
    def __init__(self, places: Any, natural: bool) -> None:
        kind = NaturalVariationalDistribution if natural else CholeskyVariationalDistribution
        q = kind(len(places))
        super().__init__(VariationalStrategy(self, places, q, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        rbf = gpytorch.kernels.RBFKernel(ard_num_dims=places.shape[1])
        rbf.lengthscale = float(np.sqrt(places.shape[1]))
        self.covar_module = gpytorch.kernels.ScaleKernel(rbf)

    def forward(self, x: Any) -> Any:
        mean, covariance = self.mean_module(x), self.covar_module(x)
        return gpytorch.distributions.MultivariateNormal(mean, covariance)


def fit(X: Any, y: Any, m: int, natural: bool, epochs: int = _EPOCHS) -> Fitted:
    """Raise the bound in minibatches."""
    torch.manual_seed(0)
    inputs, labels = torch.as_tensor(X).float(), torch.as_tensor(y).float()
    model = _Model(inputs[torch.randperm(len(inputs))[:m]].clone(), natural)
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    optimisers = _optimisers(model, len(y), natural)
    data = torch.utils.data.TensorDataset(inputs, labels)
    model.train()
    for _ in range(epochs):
        for some, theirs in torch.utils.data.DataLoader(data, _BATCH, shuffle=True):
            for optimiser in optimisers:
                optimiser.zero_grad()
            last = -bound(model(some), theirs)
            last.backward()
            for optimiser in optimisers:
                optimiser.step()
    model.eval()
    value = -len(y) * float(last.detach())
    return Fitted(value, lambda new: _proba(model, likelihood, new), f"{epochs} epochs")


def _optimisers(model: Any, n: int, natural: bool) -> list[Any]:
    adam = torch.optim.Adam(model.hyperparameters() if natural else model.parameters(), lr=_RATE)
    if not natural:
        return [adam]
    steps = gpytorch.optim.NGD(model.variational_parameters(), num_data=n, lr=_NATURAL_RATE)
    return [steps, adam]


def _proba(model: Any, likelihood: Any, new: Any) -> Any:
    parts = torch.as_tensor(new).float().split(_BATCH)
    with torch.no_grad():
        return np.concatenate([np.asarray(likelihood(model(part)).mean) for part in parts])
