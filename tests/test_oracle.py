"""Every method against exact evidences: orthant probabilities of up to seven dimensions.

With a probit likelihood the evidence is P(z < 0) for z ~ N(0, y yᵀ ∘ (K + I)).
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from common import CLASSIFYING
from scipy import stats

from cavity.inference import Problem, method, second_order_correction
from cavity.likelihoods import Probit
from cavity.priors import DensePrior

PROBLEMS = 200
NODES = 18


def random_problem(rng):
    """Two to seven points in the plane, amplitudes 0.3 to 5, length scales 0.2 to 5."""
    n = int(rng.integers(2, 8))
    X = rng.normal(size=(n, 2))
    amplitude = np.clip(np.exp(rng.normal(math.log(1.5), 0.7)), 0.3, 5.0)
    ell = np.clip(np.exp(rng.normal(0.0, 0.8)), 0.2, 5.0)
    r2 = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    return amplitude**2 * np.exp(-0.5 * r2 / ell**2), rng.choice([-1.0, 1.0], size=n)


def orthant(R, nodes=NODES):
    """P(all z < 0) for correlation matrices R of shape (..., n, n).

    Up to three dimensions in closed form. Beyond, Plackett's identity (Biometrika 41, 1954):
    along R(t) = I + t (R − I) the probability grows by Σ r_ij φ₂(0, 0; t r_ij) times the orthant
    probability of the other coordinates given that these two are zero, two dimensions less.
    """
    n = R.shape[-1]
    if n <= 3:
        pairs = itertools.combinations(range(n), 2)
        angles = sum((np.arcsin(R[..., i, j]) for i, j in pairs), np.zeros(R.shape[:-2]))
        return 0.5**n + angles * {0: 0.0, 1: 0.0, 2: 0.5 / math.pi, 3: 0.25 / math.pi}[n]
    x, w = np.polynomial.legendre.leggauss(nodes)
    # The integrand may be steep near t = 1, where R(t) comes closest to singular.
    t, w = 1.0 - 0.25 * (1.0 - x) ** 2, 0.5 * w * (1.0 - x)
    moved = np.eye(n) + t[:, None, None] * (R - np.eye(n))[..., None, :, :]
    total = 0.0
    for pair in itertools.combinations(range(n), 2):
        total = total + R[(..., *pair)] * np.sum(w * _plackett(moved, pair, nodes), axis=-1)
    return 0.5**n + total


def _plackett(R, pair, nodes):
    """Slope of the orthant probability in the correlation of a pair."""
    i, j = pair
    rest = [k for k in range(R.shape[-1]) if k not in pair]
    r = R[..., i, j]
    cross = R[..., rest, :][..., list(pair)]
    A = R[..., rest, :][..., rest] - cross @ np.linalg.solve(
        R[..., list(pair), :][..., list(pair)], np.swapaxes(cross, -1, -2)
    )
    sd = np.sqrt(np.einsum("...ii->...i", A))
    conditional = A / (sd[..., :, None] * sd[..., None, :])
    return orthant(conditional, nodes) / (2.0 * math.pi * np.sqrt(1.0 - r**2))


def exact(K, y, nodes=NODES):
    S = np.outer(y, y) * (K + np.eye(len(y)))
    sd = np.sqrt(np.diag(S))
    return math.log(orthant(S / np.outer(sd, sd), nodes))


@cache
def results():
    """Exact evidence and its own error, and each method's evidence, for every problem."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(PROBLEMS):
        K, y = random_problem(rng)
        problem = Problem.of(Probit(), DensePrior(K), y, np.ones(len(y)))
        fits = {name: method(name).fit(problem) for name in CLASSIFYING}
        assert all(fit.report.converged for fit in fits.values())
        truth = exact(K, y)
        row = {name: fit.log_evidence - truth for name, fit in fits.items()}
        row["corrected"] = row["ep"] + second_order_correction(fits["ep"])
        row["truth"] = abs(truth - exact(K, y, NODES - 6))
        rows.append(row)
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def test_orthants_by_a_second_method():
    """The exact evidences are SciPy's orthant probabilities, within the error SciPy admits to."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        K, y = random_problem(rng)
        S = np.outer(y, y) * (K + np.eye(len(y)))
        zero = np.zeros(len(y))
        logs = [
            math.log(
                stats.multivariate_normal.cdf(
                    zero, zero, S, maxpts=40_000, abseps=1e-9, releps=1e-9, rng=seed
                )
            )
            for seed in (np.random.default_rng(s) for s in range(6))
        ]
        error = np.std(logs, ddof=1) / math.sqrt(len(logs))
        # Six standard errors of six repetitions; in low dimension SciPy is exact to 1e-9.
        assert abs(np.mean(logs) - exact(K, y)) <= 6.0 * error + 1e-8


def test_orthants_of_equal_correlations():
    """With all correlations one half the orthant probability is 1/(n + 1)."""
    for n in range(2, 8):
        R = 0.5 * (np.eye(n) + np.ones((n, n)))
        assert orthant(R) == pytest.approx(1.0 / (n + 1), rel=1e-10)


def test_truth_is_accurate():
    """With a third fewer nodes the exact evidence moves by far less than what is tested with it."""
    assert results()["truth"].max() < 1e-7


def test_ep_is_accurate():
    """EP errs by less than a thousandth of a nat in the middle, and rarely by more than 0.03."""
    error = np.abs(results()["ep"])
    assert np.median(error) < 1e-3
    assert np.quantile(error, 0.95) < 0.03


def test_correction_improves_on_ep():
    """Where EP errs by more than 1e-5, its second-order correction is closer, 98 times in 100."""
    ep, corrected = np.abs(results()["ep"]), np.abs(results()["corrected"])
    wrong = ep > 1e-5
    assert wrong.sum() > 0.5 * PROBLEMS
    assert np.mean(corrected[wrong] < ep[wrong]) >= 0.98
    assert np.median(corrected[wrong] / ep[wrong]) < 0.1


@pytest.mark.parametrize("name", ["variational", "ensemble"])
def test_bounds_are_bounds(name):
    """The variational and the ensemble evidence never exceed the truth."""
    excess = results()[name]
    assert np.all(excess <= results()["truth"] + 1e-10)


def test_others_are_as_good_as_known():
    """Laplace, sequential and naive stay within a few tenths of a nat in the middle."""
    for name, bar in (("laplace", 0.1), ("sequential", 0.02), ("naive", 0.2)):
        assert np.median(np.abs(results()[name])) < bar
