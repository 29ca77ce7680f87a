"""Coal-mining disasters: published evidences of a log Gaussian Cox process.

333 equal bins, whose centres span the dates; the exposure is the width of a bin in years.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from cavity import GaussianProcessRegressor
from cavity.datasets import load_coal

# Two independent programs; the edges of the bins matter in the third digit behind the point.
AT_ONE = {"laplace": -322.2920, "variational": -322.3074, "ep": -322.2841}
TUNED = {"laplace": -313.640, "variational": -313.644, "ep": -313.643}


@pytest.fixture(scope="module")
def bins():
    dates = load_coal().dates
    centres = np.linspace(dates.min(), dates.max(), 333)
    width = centres[1] - centres[0]
    edges = np.append(centres - width / 2, centres[-1] + width / 2)
    counts, _ = np.histogram(dates, edges)
    return centres[:, None], counts, np.full(333, np.log(width))


@pytest.mark.parametrize("inference", AT_ONE)
def test_evidence_at_given_hyperparameters(bins, inference):
    """Amplitude² 1, length 4 years, constant 1."""
    X, counts, offset = bins
    kernel = 1.0 * Matern(4.0, nu=2.5) + ConstantKernel(1.0)
    model = GaussianProcessRegressor(
        kernel, likelihood="poisson", inference=inference, optimizer=None
    ).fit(X, counts, offset=offset)
    assert model.log_marginal_likelihood_value_ == pytest.approx(AT_ONE[inference], abs=2e-3)


@pytest.mark.parametrize("inference", TUNED)
def test_tuned_evidence_and_leave_one_out(bins, inference):
    """All three methods find about the same rate, and predict left-out bins alike."""
    X, counts, offset = bins
    # Tuning takes the constant away: the level of the rate is near one disaster a year.
    kernel = 1.0 * Matern(4.0, (1e-1, 1e3), nu=2.5)
    model = GaussianProcessRegressor(kernel, likelihood="poisson", inference=inference)
    model.fit(X, counts, offset=offset)
    assert model.log_marginal_likelihood_value_ == pytest.approx(TUNED[inference], abs=6e-3)
    variance, length = np.exp(model.kernel_.theta)
    assert np.sqrt(variance) == pytest.approx(0.768, rel=0.01)
    assert length == pytest.approx(20.0, rel=0.01)
    fixed = GaussianProcessRegressor(
        model.kernel_, likelihood="poisson", inference=inference, optimizer=None
    ).fit(X, counts, offset=offset)
    assert fixed.loo_log_prob_.mean() == pytest.approx(-0.9263, abs=1e-3)
