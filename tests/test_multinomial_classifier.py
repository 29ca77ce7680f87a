"""The classifier with all classes at once."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import roots_hermitenorm, softmax
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.utils.estimator_checks import check_estimator

from cavity import GaussianProcessClassifier
from cavity.estimators import load, save
from cavity.inference import Problem, SoftmaxLaplace
from cavity.kernels import rule
from cavity.likelihoods.softmax import Softmax, softmax_log_proba
from cavity.priors import ClassLabels, ScorePrior
from cavity.sites import ClassMarginals, Rows, Sites

KERNEL = 1.0 * RBF(1.0)


def table(n=30, seed=0, n_classes=3):
    """Noisy labels of several classes with names, and three inputs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    F = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1], -X[:, 0], X[:, 2]])[:, :n_classes]
    return X, np.array(list("pqrs"))[np.argmax(F + 0.7 * rng.gumbel(size=F.shape), axis=1)]


def multinomial(kernel=KERNEL, **options):
    """The classifier under test."""
    return GaussianProcessClassifier(kernel, multi_class="multinomial", **options)


def softmax_laplace(kernel=KERNEL, **options):
    """The same with the softmax likelihood."""
    return multinomial(kernel, inference="laplace", likelihood="logit", **options)


@pytest.mark.parametrize("make", [multinomial, softmax_laplace])
def test_one_kernel_for_all_classes(make):
    """The evidence is maximal at the one kernel that all classes share."""
    X, y = table(20, n_classes=4)
    model = make().fit(X, y)
    value, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    assert_allclose(value, model.log_marginal_likelihood_value_, rtol=1e-7)
    # Where tuning ends, the evidence may gain 1e-7 of itself.
    assert np.max(np.abs(gradient)) < 0.05
    for shift in 0.2 * np.eye(2):
        assert model.log_marginal_likelihood(model.kernel_.theta + shift) < value
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(np.log(proba), model.predict_log_proba(X))
    assert np.mean(model.predict(X) == y) > 0.7
    mean, variance = model.latent_mean_and_variance(X[:5])
    assert mean.shape == variance.shape == (5, 4)
    assert np.all(variance > 0.0)
    assert np.array_equal(np.argmax(mean, axis=1), np.argmax(proba[:5], axis=1))


def test_two_classes_are_the_binary_problem():
    """With two classes nothing changes, to the last digit."""
    X, y = table(n_classes=2)
    one, other = multinomial().fit(X, y), GaussianProcessClassifier(KERNEL).fit(X, y)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.log_marginal_likelihood_value_ == other.log_marginal_likelihood_value_


def test_leave_one_out_counts_the_tuning():
    """Leave-one-out losses agree with tuning again without the row, better than without that."""
    X, y = table(36, 1)
    kernel, index = 1.0 * RBF(np.ones(3)), np.arange(36)
    model = multinomial(kernel, hyperprior="hierarchical").fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    found, plain = (
        np.log(p[index, codes])[::4] for p in (model.loo_proba_, model.fixed_kernel_loo_proba_)
    )
    truth = []
    for i in index[::4]:
        rest = multinomial(kernel, hyperprior="hierarchical").fit(X[index != i], y[index != i])
        truth.append(rest.predict_log_proba(X[i : i + 1])[0, codes[i]])
    assert model.loo_is_believable_
    assert np.corrcoef(found, truth)[0, 1] > 0.95
    # The first order removes most of what tuning with the row has gained.
    assert abs(np.mean(found - truth)) < 0.6 * abs(np.mean(plain - truth))


@pytest.mark.parametrize("make", [multinomial, softmax_laplace])
def test_weights_are_repeated_rows(make):
    """A weight is a row that comes several times, a weight of zero one that does not come."""
    X, y = table(20, 2)
    weight = np.arange(20) % 3
    rows = np.repeat(np.arange(20), weight)
    one = make(optimizer=None).fit(X, y, sample_weight=weight)
    many = make(optimizer=None).fit(X[rows], y[rows])
    assert_allclose(one.log_marginal_likelihood_value_, many.log_marginal_likelihood_value_)
    assert_allclose(one.predict_proba(X), many.predict_proba(X), rtol=1e-9)
    assert_allclose(one.loo_proba_[rows], many.loo_proba_, rtol=1e-9)
    assert_allclose(one.loo_proba_[0], one.predict_proba(X[:1])[0])
    if make is multinomial:
        assert_allclose(one.evidence_correction_, many.evidence_correction_)


@pytest.mark.parametrize("make", [multinomial, softmax_laplace])
def test_precomputed_covariances(make):
    """A matrix of covariances gives what its kernel gives."""
    X, y = table()
    model = make(optimizer=None).fit(X, y)
    by_matrix = make("precomputed").fit(KERNEL(X), y)
    new = X[:4] + 0.1
    proba = by_matrix.predict_proba(KERNEL(new, X))
    # The kernel's own rule rounds differently.
    assert_allclose(proba, model.predict_proba(new), rtol=1e-8)
    assert_allclose(by_matrix.loo_proba_, model.loo_proba_, rtol=1e-8)


@pytest.mark.parametrize("make", [multinomial, softmax_laplace])
def test_files_and_pickles(make, tmp_path):
    """A stored model predicts what the fitted one does."""
    X, y = table(n_classes=4)
    model = make(optimizer=None).fit(X, y)
    save(model, tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-9)
        assert again.log_marginal_likelihood_value_ == model.log_marginal_likelihood_value_


def test_chosen_kernel_averages_and_restarts():
    """A kernel is chosen for all classes at once; predictions are averaged over its values."""
    X, y = table(18)
    model = multinomial("auto", average_hyperparameters=3, random_state=0).fit(X, y)
    assert model.kernel_comparison_[0].chosen
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(model.loo_proba_.sum(axis=1), 1.0, rtol=1e-12)
    again = multinomial(n_restarts_optimizer=1, random_state=0, warm_start=True).fit(X, y)
    first = again.kernel_.theta
    assert_allclose(again.fit(X, y).kernel_.theta, first, atol=0.05)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"likelihood": "logit"}, "'softmax'|likelihood='logit' and inference 'laplace'"),
        ({"inference": "ensemble"}, "goes with likelihood='probit'"),
        ({"likelihood": "step"}, "goes with likelihood='probit'"),
        ({"n_inducing": 5, "likelihood": "logit", "inference": "laplace"}, "With inducing points"),
    ],
)
def test_combinations_that_do_not_exist(options, match):
    """What there is not is refused, with what there is."""
    with pytest.raises(ValueError, match=match):
        multinomial(**options).fit(*table())


def softmax_fit(X, codes, kernel=KERNEL, theta=None, n_classes=4):
    """Laplace's method on the softmax."""
    here = rule(kernel) if theta is None else rule(kernel).with_theta(theta)
    prior = ScorePrior.of(here, X, ClassLabels.of(codes, n_classes))
    rows = Rows(codes, np.ones(len(codes)))
    return SoftmaxLaplace(tol=1e-10).fit(Problem(Softmax(), prior, rows))


def test_softmax_laplace_by_brute_force():
    """Mode, evidence and gradient are those of all n C latent values taken as one vector."""
    X, y = table(12, 3, 4)
    codes = np.unique(y, return_inverse=True)[1]
    fit = softmax_fit(X, codes)
    f, labels = fit.posterior.marginals.mean, np.eye(4)[codes]
    p = softmax(f, axis=1)
    assert_allclose(fit.posterior.class_alpha, labels - p, atol=1e-9)
    K = np.kron(np.eye(4), rule(KERNEL).matrix(X))
    W = np.diag(p.T.ravel()) - np.vstack([np.diag(c) for c in p.T]) @ np.hstack(
        [np.diag(c) for c in p.T]
    )
    a = (labels - p).T.ravel()
    volume = np.linalg.slogdet(np.eye(48) + K @ W)[1]
    evidence = np.sum(np.log(p[labels > 0.0])) - 0.5 * a @ K @ a - 0.5 * volume
    assert_allclose(fit.log_evidence, evidence, rtol=1e-10)
    S = np.linalg.inv(np.linalg.inv(K + 1e-10 * np.eye(48)) + W).reshape(4, 12, 4, 12)
    blocks = np.einsum("cidi->icd", S)
    # The inverse of K loses digits.
    assert_allclose(fit.posterior.marginals.covariance, blocks, atol=1e-6)
    theta, step = rule(KERNEL).theta, 1e-4
    slope = [
        softmax_fit(X, codes, theta=theta + e).log_evidence
        - softmax_fit(X, codes, theta=theta - e).log_evidence
        for e in step * np.eye(2)
    ]
    # Central differences: the square of the step.
    assert_allclose(fit.gradient(), np.array(slope) / (2.0 * step), rtol=1e-5, atol=1e-7)


def test_softmax_values_without_an_example():
    """Left-out values are those of the posterior of all other sites, two copies or one."""
    X, y = table(9, 3)
    codes = np.unique(y, return_inverse=True)[1]
    fit, weight = softmax_fit(X, codes, n_classes=3), np.where(np.arange(9) == 4, 2.0, 1.0)
    prior, centre = fit.problem.prior, np.eye(3) - 1.0 / 3.0
    prior.labels = prior.labels._replace(copies=weight)
    found = fit.posterior.left_out(fit.problem.rows, fit.posterior.sites, weight)
    for i in range(9):
        left = np.where(np.arange(9) == i, 1.0 - 1.0 / weight, 1.0).repeat(3)
        # A site of weight zero has no direction: a little is left of it.
        sites = Sites(*(np.maximum(left, 1e-9) * part for part in fit.posterior.sites))
        values = prior.condition(sites).marginals
        assert_allclose(found.mean[i], centre @ values.mean[i], rtol=1e-6, atol=1e-7)
        assert_allclose(found.covariance[i], centre @ values.covariance[i] @ centre, atol=1e-7)


@pytest.mark.parametrize("make", [multinomial, softmax_laplace])
def test_variances_of_new_examples(make):
    """With the variances that the kernel would give, said by hand, answers are the same."""
    X, y = table(15)
    model = make(DotProduct(1.0), optimizer=None).fit(X, y)
    by_matrix = make("precomputed").fit(DotProduct(1.0)(X), y)
    new, kernel = X[:4] + 0.5, DotProduct(1.0)
    known = by_matrix.with_prior_variance(kernel.diag(new))
    # The kernel's own rule rounds differently.
    assert_allclose(known.predict_proba(kernel(new, X)), model.predict_proba(new), rtol=1e-8)
    twice = by_matrix.with_prior_variance(2.0 * kernel.diag(new)).predict_proba(kernel(new, X))
    assert np.max(np.abs(twice - model.predict_proba(new))) > 1e-3


def test_softmax_averages():
    """Averages of the softmax agree with Gauss–Hermite quadrature in three dimensions."""
    rng = np.random.default_rng(0)
    R = rng.standard_normal((4, 3, 3))
    q = ClassMarginals(rng.standard_normal((4, 3)), R @ R.swapaxes(1, 2))
    x, w = roots_hermitenorm(40)
    z = np.stack(np.meshgrid(x, x, x), axis=-1).reshape(-1, 3)
    weight = np.prod(np.stack(np.meshgrid(w, w, w), axis=-1).reshape(-1, 3), axis=1)
    values = softmax(q.mean[:, None] + z @ np.linalg.cholesky(q.covariance).swapaxes(1, 2), axis=2)
    truth = np.einsum("p,ipc->ic", weight / weight.sum(), values)
    # Of the lattice.
    assert_allclose(np.exp(softmax_log_proba(q)), truth, atol=2e-3)
    far = ClassMarginals(np.array([[0.0, 500.0, -500.0]]), np.zeros((1, 3, 3)))
    assert_allclose(softmax_log_proba(far), [[-500.0, 0.0, -1000.0]], atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_checks():
    """All of scikit-learn's checks pass."""
    results = check_estimator(multinomial(None), on_skip=None, on_fail=None)
    assert not [r["check_name"] for r in results if r["status"] == "failed"]


@pytest.mark.parametrize("amplitude", [1.0, 1e4, 1e6, 1e8])
def test_softmax_modes_of_wide_priors(amplitude):
    """The mode counts as found where only rounding of the products with K is left."""
    X = np.repeat(np.arange(4.0)[:, None], 3, axis=0)
    # Equal inputs with different labels: weights stay large, and so do the products.
    fit = softmax_fit(X, np.arange(12) % 4, amplitude * RBF(1.0))
    assert fit.report.converged
