"""Published numbers, and numbers recomputed by two independent programs."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cavity.datasets import load_pima
from cavity.evidence import Evidence
from cavity.inference import EP, Problem, method, second_order_correction
from cavity.kernels import rule
from cavity.likelihoods import Probit, Step
from cavity.priors import DensePrior

# Five points whose evidence is an orthant probability of five dimensions.
X = np.array(
    [
        [-1.07932, -1.83544],
        [1.15768, 2.91702],
        [3.26631, -3.85663],
        [1.79009, 0.11949],
        [-3.66051, 1.75159],
    ]
)
Y = np.array([-1.0, 1.0, 1.0, 1.0, -1.0])
R2 = np.sum((X[:, None] - X[None]) ** 2, axis=2)

WEAK = 1.5**2 * np.exp(-R2 / 8.0) + np.eye(5)
STRONG = 10.0 * np.exp(-R2 / 50.0) + 0.1 * np.eye(5)


def fit(name, lik, K, y=Y):
    found = method(name, tol=1e-10).fit(Problem.of(lik, DensePrior(K), y, np.ones(len(y))))
    assert found.report.converged
    return found


# −log Z with the step likelihood; recomputed by two independent programs.
@pytest.mark.parametrize(
    ("K", "name", "value"),
    [
        (WEAK, "ep", 3.383595),
        (WEAK, "ensemble", 3.390932),
        (WEAK, "naive", 3.402277),
        (WEAK, "sequential", 3.383217),
        (STRONG, "ep", 3.564027),
        (STRONG, "naive", 4.439081),
        (STRONG, "ensemble", 3.989033),
        (STRONG, "sequential", 3.618100),
    ],
)
def test_evidence_of_five_points(K, name, value):
    """Every method's evidence has the digits published."""
    # Half a unit of the last digit shown, and the rounding of the inputs.
    assert -fit(name, Step(), K).log_evidence == pytest.approx(value, abs=2e-6)


# Weights y α with the step likelihood; recomputed by two independent programs.
@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("ensemble", [0.480956, 0.390853, 0.435040, 0.405673, 0.434995]),
        ("naive", [0.483188, 0.394291, 0.435230, 0.411237, 0.435304]),
    ],
)
def test_weights_of_five_points(name, weights):
    """The mean field solutions have the digits published."""
    np.testing.assert_allclose(Y * fit(name, Step(), WEAK).posterior.alpha, weights, atol=2e-6)


def test_ep_with_probit():
    """EP's evidence and weights for the probit likelihood are those of two other programs."""
    found = fit("ep", Probit(), WEAK - np.eye(5))
    assert -found.log_evidence == pytest.approx(3.38359489, abs=2e-8)
    weights = [-0.48181, 0.39221, 0.43511, 0.40781, -0.43511]
    np.testing.assert_allclose(found.posterior.alpha, weights, atol=1e-5)


def test_ep_gradient():
    """The slopes of EP's −log Z in log length scale and log amplitude; published digits."""
    kernel = ConstantKernel(1.5**2) * RBF(2.0)
    evidence = Evidence.of(rule(kernel), X, [Y], Probit(), EP(tol=1e-10), np.ones(5))
    here = evidence.at(kernel.theta)
    _, gradient = here.value, here.gradient
    # The first hyperparameter is the amplitude's square.
    assert -2.0 * gradient[0] == pytest.approx(-0.0536, abs=1e-3)
    assert -gradient[1] == pytest.approx(-0.0552, abs=1e-3)


# −log of the orthant probability; recomputed by two independent programs.
@pytest.mark.parametrize(
    ("K", "exact", "bar"), [(WEAK, 3.383470, 1e-5), (STRONG, 3.546969, 1.1e-3)]
)
def test_correction_of_ep(K, exact, bar):
    """EP's evidence with its second-order correction is close to the exact one."""
    found = fit("ep", Step(), K)
    plain = -found.log_evidence
    corrected = plain - second_order_correction(found)
    assert abs(corrected - exact) <= bar
    assert abs(corrected - exact) < 0.1 * abs(plain - exact)


@pytest.mark.parametrize("name", ["ep", "ensemble", "naive", "sequential"])
@pytest.mark.parametrize("c", [1e-3, 1e4])
def test_scale_of_a_step_is_free(name, c):
    """With the step likelihood the evidence and every prediction's sign ignore the scale of K."""
    here, there = fit(name, Step(), STRONG), fit(name, Step(), c * STRONG)
    assert here.log_evidence == pytest.approx(there.log_evidence, abs=1e-8)
    np.testing.assert_array_equal(np.sign(here.posterior.mean), np.sign(there.posterior.mean))


@pytest.mark.parametrize("name", ["ep", "laplace", "variational", "ensemble", "naive"])
def test_nothing_learned_is_a_coin(name):
    """As the amplitude or the length scale vanishes the evidence becomes that of five coins."""
    for K in (1e-12 * WEAK, np.exp(-R2 / 1e-4) * 1e-10):
        # A slope of order one in √K.
        value = fit(name, Probit(), K).log_evidence
        assert value == pytest.approx(-5.0 * math.log(2.0), abs=1e-4)


@pytest.fixture(scope="module")
def pima():
    X, y = load_pima(return_X_y=True)
    X_test, y_test = load_pima(subset="test", return_X_y=True)
    classes = np.unique(y)
    mean, sd = X.mean(axis=0), X.std(axis=0, ddof=1)
    sign = [np.where(labels == classes[1], 1.0, -1.0) for labels in (y, y_test)]
    return (X - mean) / sd, sign[0], (X_test - mean) / sd, sign[1]


# Free energies F at w = 1/7, v = 1 and errors among 332 tests, the setting of Opper & Winther,
# Neural Computation 12 (2000), and of Csató et al., NIPS 12 (2000); recomputed by two programs.
@pytest.mark.parametrize(("name", "free_energy"), [("naive", 124.76), ("ensemble", 105.19)])
def test_pima_at_uniform_weights(pima, name, free_energy):
    """Free energies and test errors on Pima with equal weights of the inputs are as published."""
    X, y, X_test, y_test = pima
    kernel = RBF(math.sqrt(7.0))
    found = fit(name, Step(), kernel(X) + np.eye(len(y)), y)
    assert -found.log_evidence == pytest.approx(free_energy, abs=0.006)
    assert np.sum(y_test * (kernel(X_test, X) @ found.posterior.alpha) <= 0.0) == 74
