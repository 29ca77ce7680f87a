"""Inference methods side by side, at the kernels of a fitted model."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Matern

from cavity import GaussianProcessClassifier, compare_inference
from cavity.model_selection.leave_one_out import loo_class_losses


def three_classes(n=45):
    """Return inputs of three overlapping classes, and their labels."""
    rng = np.random.default_rng(5)
    y = np.arange(n) % 3
    return np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])[y] + rng.normal(size=(n, 2)), y


def test_each_binary_problem_is_compared_at_its_own_kernel():
    """The row of the method of a fitted model has the model's own numbers."""
    X, y = three_classes()
    model = GaussianProcessClassifier(1.0 * RBF([1.0, 1.0], (1e-3, 1e4))).fit(X, y)
    scales = [kernel.k2.length_scale for kernel in model.kernel_.kernels]
    assert np.ptp(scales, axis=0).max() > 0.1
    [row, other] = compare_inference(
        X, y, model.kernel_, inference=["ep", "laplace"], optimizer=None
    )
    # The same equations, solved from different starts to a residual of 1e-6.
    close = {"rel": 1e-5}
    losses = loo_class_losses(model.fixed_kernel_loo_proba_, y)
    assert row.log_evidence == pytest.approx(model.log_marginal_likelihood_value_, **close)
    assert row.loo_log_loss == pytest.approx(np.mean(losses.log_loss), **close)
    assert other.log_evidence != pytest.approx(row.log_evidence, rel=1e-3)


def test_kernels_that_do_not_fit_the_classes_are_refused():
    """One kernel for each class, and all of one form, or an error that says so."""
    X, y = three_classes()
    with pytest.raises(ValueError, match="2 kernels and 3 classes"):
        compare_inference(X, y, CompoundKernel([RBF(1.0)] * 2))
    with pytest.raises(ValueError, match="same hyperparameters"):
        compare_inference(X, y, CompoundKernel([RBF(1.0), RBF(1.0), 2.0 * Matern(1.0)]))
