"""Every gradient of every evidence, through every kernel family, against finite differences."""

import numpy as np
import pytest
from common import covering, served
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cavity.evidence import Evidence, maximise
from cavity.inference import EP, METHODS, method
from cavity.kernels import rule
from cavity.likelihoods import Probit, likelihood
from cavity.testing import targets

N = 12


class Doubled(RBF):
    """A user's own subclass, served through its own methods."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if not eval_gradient:
            return 2.0 * super().__call__(X, Y)
        K, gradient = super().__call__(X, eval_gradient=True)
        return 2.0 * K, 2.0 * gradient

    def diag(self, X):
        return 2.0 * super().diag(X)


KERNELS = {
    "rbf": RBF(0.9),
    "rbf ard": RBF([0.9, 1.4]),
    "matern 1/2": Matern(1.1, nu=0.5),
    "matern 3/2 ard": Matern([1.1, 0.8], nu=1.5),
    "matern 5/2": Matern(1.1, nu=2.5),
    "rational quadratic": RationalQuadratic(0.8, 1.7),
    # Over distances in the plane it is a covariance only for long periods.
    "periodic": ExpSineSquared(0.9, 20.0),
    "dot product": DotProduct(0.7),
    "constant": ConstantKernel(1.3),
    "sum of products": 1.5 * RBF(0.9) + 0.7 * DotProduct(0.4) * Matern(1.2, nu=1.5),
    "power": Exponentiation(DotProduct(0.7), 2),
    "subclass": Doubled(0.8),
}

PAIRS = served(name for name in METHODS if METHODS[name].has_gradient)


def data(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y


def evidence(kernel, how, lik, copies=None, columns=1):
    X, _ = data()
    ys = [targets(likelihood(lik).support, N, np.random.default_rng(k)) for k in range(columns)]
    # Noise in the kernel makes K invertible for the methods that need it, and is tested as well.
    return Evidence.of(
        rule(kernel + WhiteKernel(0.4)),
        X,
        ys,
        likelihood(lik),
        how,
        np.ones(N) if copies is None else copies,
    )


def differences(value, theta, h=1e-4):
    steps = h * np.eye(len(theta))
    return np.array([(value(theta + s) - value(theta - s)) / (2.0 * h) for s in steps])


def check(ev):
    theta = ev.theta
    here = ev.at(theta)
    value, gradient = here.value, here.gradient
    assert value == pytest.approx(ev.at(theta).value, rel=1e-12)
    truth = differences(lambda t: ev.at(t).value, theta)
    # Central differences err by h² times the third derivative, and by rounding over h: 1e-8.
    np.testing.assert_allclose(gradient, truth, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "lik", "kernel"),
    covering(((*pair, kernel) for pair in PAIRS for kernel in KERNELS), [(0, 1), (0, 2)]),
)
def test_gradient(name, lik, kernel):
    """The gradient in every log hyperparameter, the likelihood's too, is that of the evidence."""
    check(evidence(KERNELS[kernel], method(name, tol=1e-11), lik))


@pytest.mark.parametrize(("name", "lik"), PAIRS)
def test_gradient_with_copies(name, lik):
    """The gradient stays right where examples count several times, or by halves."""
    if name == "ensemble" and lik != "probit":
        pytest.skip("equal examples without noise of their own")
    copies = 0.5 + 0.5 * (1.0 + np.arange(N) % 4)
    check(evidence(KERNELS["rbf"], method(name, tol=1e-11), lik, copies))


@pytest.mark.parametrize("power", [0.5, 2.0 / 3.0])
def test_gradient_of_power_ep(power):
    """Power EP's evidence is stationary in the sites, too."""
    check(evidence(KERNELS["rbf"], EP(tol=1e-11, power=power), "logit"))


def test_gradient_of_several_targets():
    """Targets that share a kernel add up their evidences and gradients."""
    check(evidence(KERNELS["rbf"], EP(tol=1e-11), "probit", columns=3))


@pytest.mark.parametrize("name", [m for m in METHODS if not METHODS[m].has_gradient])
def test_methods_without_gradient(name):
    """A method without a gradient of its own gets one by differences."""
    check(evidence(KERNELS["rbf ard"], method(name), "probit"))


def test_fixed_hyperparameters_have_no_gradient():
    """A kernel with nothing free gives an empty gradient and its evidence."""
    kernel = RBF(0.9, length_scale_bounds="fixed")
    X, y = data()
    ev = Evidence.of(rule(kernel), X, [y], Probit(), EP(), np.ones(N))
    here = ev.at(ev.rule.theta)
    value, gradient = here.value, here.gradient
    assert np.isfinite(value)
    assert gradient.shape == (0,)


def test_maximum_is_stationary():
    """At the hyperparameters found, inside the bounds, the gradient vanishes."""
    ev = evidence(KERNELS["rbf"], EP(), "probit")
    bounds = np.array([[-3.0, 3.0], [-3.0, 3.0]])
    best = maximise(ev, ev.rule.theta, bounds)
    here = ev.at(best.theta)
    value, gradient = here.value, here.gradient
    assert value == pytest.approx(best.value, rel=1e-8)
    inside = (best.theta > bounds[:, 0]) & (best.theta < bounds[:, 1])
    # L-BFGS-B stops at a projected gradient of 1e-5 or a relative change of 2e-9.
    assert np.all(np.abs(gradient[inside]) < 1e-2)
    assert value >= ev.at(ev.rule.theta).value


def test_restarts_are_drawn_inside_the_bounds():
    """More starts never find less, and they need a generator and finite bounds."""
    ev = evidence(KERNELS["rbf"], EP(), "probit")
    bounds = np.array([[-2.0, 2.0], [-2.0, 2.0]])
    once = maximise(ev, np.array([-2.0, 2.0]), bounds)
    more = maximise(ev, np.array([-2.0, 2.0]), bounds, n_restarts=3, rng=np.random.default_rng(0))
    assert more.value >= once.value
    assert np.all((more.theta >= -2.0) & (more.theta <= 2.0))
    with pytest.raises(ValueError, match="finite"):
        maximise(ev, ev.rule.theta, bounds, n_restarts=1)


def test_search_steps_around_a_singular_kernel():
    """Where K has entries that are not finite the search backs off and still climbs."""

    class Fragile(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            answer = super().__call__(X, Y, eval_gradient)
            if self.length_scale < 2.0:
                return answer
            return (np.nan * answer[0], answer[1]) if eval_gradient else np.nan * answer

    X, y = data()
    ev = Evidence.of(rule(Fragile(1.0)), X, [y], Probit(), EP(), np.ones(N))
    best = maximise(ev, np.zeros(1), np.array([[-3.0, 3.0]]))
    assert best.value >= ev.at(np.zeros(1)).value
    assert best.theta[0] < np.log(2.0)
