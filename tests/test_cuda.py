"""PyTorch on CUDA gives NumPy's numbers; skipped where there is no such device."""

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel

from cavity.arrays import to_numpy
from cavity.evidence import Evidence
from cavity.inference import METHODS, method, second_order_correction
from cavity.kernels import rule
from cavity.likelihoods import REGISTRY
from cavity.testing import targets

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

PAIRS = [
    (m, lik)
    for m, lik in itertools.product(METHODS, REGISTRY)
    if METHODS[m].serves(REGISTRY[lik]())
]
SAME = 1e-8  # what float64 on both sides, converged far below, leaves room for


def answers(convert, name, lik, kernel):
    """Evidence, gradient, leave-one-out and predictions at new inputs, as one vector."""
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(150, 3)), rng.normal(size=(20, 3))
    y = targets(REGISTRY[lik]().support, 150, rng)
    compute = rule(kernel)
    found = Evidence.of(
        compute,
        convert(X),
        [convert(y)],
        REGISTRY[lik](),
        method(name, tol=1e-11),
        convert(np.ones(150)),
    )
    here = found.at(found.theta)
    (fit,) = here.fits
    gradient = here.gradient if fit.method.has_gradient else np.empty(0)
    K_new = compute.matrix(convert(X_new), convert(X))
    new = fit.posterior.predict(K_new, compute.diag(convert(X_new)))
    correction = [second_order_correction(fit)] if name == "ep" else []
    parts = [[fit.log_evidence], gradient, correction, fit.loo_log_prob(), *new]
    return np.concatenate([to_numpy(part) for part in parts])


@pytest.mark.parametrize(
    "kernel",
    [
        1.5 * RBF([1.0, 2.0, 3.0]) + WhiteKernel(0.3),
        Matern([1.0, 2.0, 3.0], nu=1.5) + 0.5 * DotProduct(1.0) + WhiteKernel(0.3),
    ],
    ids=["RBF", "Matern+DotProduct"],
)
@pytest.mark.parametrize(("name", "lik"), PAIRS)
def test_cuda_agrees_with_numpy(name, lik, kernel):
    """Every method and likelihood gives the same numbers on the device."""
    known = answers(np.asarray, name, lik, kernel)
    found = answers(lambda a: torch.tensor(a, device="cuda"), name, lik, kernel)
    np.testing.assert_allclose(found, known, rtol=SAME, atol=SAME)
