"""Gradients in the inputs against differences of what is predicted."""

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.arrays.differences import row_gradients
from cavity.inference import EP
from cavity.kernels import Linear, Precomputed, rule
from cavity.likelihoods import Likelihood, Probit


class Doubled(RBF):
    """A user's own kernel, without a rule."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            K, gradient = super().__call__(X, eval_gradient=True)
            return 2.0 * K, 2.0 * gradient
        return 2.0 * super().__call__(X, Y)

    def diag(self, X):
        return 2.0 * super().diag(X)


KERNELS = {
    "rbf": RBF([0.8, 1.5]),
    "matern 1/2": 2.0 * Matern(1.2, nu=0.5),
    "matern 3/2": Matern([0.9, 1.4], nu=1.5),
    "matern 5/2": Matern(1.1, nu=2.5) + WhiteKernel(0.1),
    "matern 0.8": Matern(1.3, nu=0.8),
    "matern 1": Matern(1.3, nu=1.0),
    "matern 30": Matern(1.3, nu=30.0),
    "rational quadratic": RationalQuadratic(0.9, 1.3),
    "periodic": ExpSineSquared(0.9, 15.0),
    "dot product": DotProduct(0.7) + 0.1 * RBF(1.0),
    "linear": 0.5 * Linear([1.3, 0.7], [0.2, -0.1]) + RBF(2.0),
    "product": RBF(1.2) * DotProduct(0.5) + ConstantKernel(0.4),
    "power": (RBF(1.5) + 0.3 * DotProduct(1.0)) ** 2,
    "own": Doubled(1.1),
    "pairwise": PairwiseKernel(gamma=0.7, metric="rbf"),
}
POSTERIORS = {"dense": {}, "inducing": {"n_inducing": 9}}
TOL = 1e-7
"""Differences of fourth order, times what the kernels' own matrices lose in rounding; well below
the 1e-5 that a user could see."""


def table(n=24, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    f = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, f, np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))


def new_inputs(n=5, seed=7):
    return np.random.default_rng(seed).standard_normal((n, 2))


def differences(function, X):
    """The gradient of each of several columns of predictions, on the axis after the rows."""
    width = function(X).shape[1]
    found = [row_gradients(lambda Z, k=k: function(Z)[:, k], X, 1e-3) for k in range(width)]
    return np.stack(found, axis=1)


def close(found, truth, tol=TOL):
    assert found.shape == truth.shape
    np.testing.assert_allclose(found, truth, rtol=0.0, atol=tol * max(1.0, np.abs(truth).max()))


@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.parametrize("name", KERNELS)
def test_regressor(name, posterior):
    """The gradients of mean and standard deviation are the differences of both, for all kernels."""
    X, y, _ = table()
    options = {"alpha": 0.1, "optimizer": None, **POSTERIORS[posterior]}
    model = GaussianProcessRegressor(KERNELS[name], normalize_y=True, **options).fit(X, 5.0 * y + 3)
    new = new_inputs()
    mean, std = model.predict_gradient(new, return_std=True)
    truth = differences(lambda Z: np.stack(model.predict(Z, return_std=True), axis=1), new)
    close(np.stack([mean, std], axis=1), truth)
    close(model.predict_gradient(new), mean, 1e-14)


@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.parametrize("name", KERNELS)
def test_classifier(name, posterior):
    """The gradients of class probabilities are the differences of predict_proba."""
    X, _, labels = table()
    model = GaussianProcessClassifier(KERNELS[name], optimizer=None, **POSTERIORS[posterior])
    model.fit(X, labels)
    new = new_inputs()
    found = model.predict_gradient(new)
    close(found, differences(model.predict_proba, new))
    close(found.sum(axis=1), np.zeros_like(new), 1e-14)


@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.parametrize("likelihood", ["probit", "logit", Probit(0.3)])
def test_several_classes(likelihood, posterior):
    """One-vs-rest probabilities are differentiated with their normalisation, and their logs."""
    X, _, labels = table(30, classes=3)
    options = {"optimizer": None, "likelihood": likelihood, **POSTERIORS[posterior]}
    model = GaussianProcessClassifier(2.0 * RBF(1.0), **options).fit(X, labels)
    new = new_inputs()
    close(model.predict_gradient(new), differences(model.predict_proba, new))
    log = model.predict_gradient(new, of="log_probability")
    close(log, differences(model.predict_log_proba, new))


@pytest.mark.parametrize("inference", ["ep", EP(power=0.5), "laplace", "variational", "naive"])
def test_latent(inference):
    """The gradients of the latent moments are the differences of these, for every method."""
    X, _, labels = table()
    model = GaussianProcessClassifier(3.0 * RBF(1.0), optimizer=None, inference=inference)
    model.fit(X, labels)
    new = new_inputs()
    found = np.stack(model.predict_gradient(new, of="latent"), axis=1)
    close(found, differences(lambda Z: np.stack(model.latent_mean_and_variance(Z), axis=1), new))


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_latent_of_several_classes(multi_class):
    """Every binary problem has gradients of its own, whether there are probabilities or not."""
    X, _, labels = table(30, classes=3)
    options = {"optimizer": None, "multi_class": multi_class}
    model = GaussianProcessClassifier(2.0 * RBF(1.0), **options).fit(X, labels)
    new = new_inputs()
    mean, variance = model.predict_gradient(new, of="latent")
    for k, process in enumerate(model.base_estimator_.estimators_):
        truth = differences(lambda Z, p=process: np.stack(p.predict(Z)[0], axis=1), new)
        close(np.stack([mean[:, k], variance[:, k]], axis=1), truth)
    if multi_class == "one_vs_one":
        with pytest.raises(ValueError, match="one_vs_rest"):
            model.predict_gradient(new)


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_averaged_over_hyperparameters(posterior):
    """With average_hyperparameters it is the mixture that is differentiated."""
    X, y, labels = table()
    options = {"average_hyperparameters": 3, "random_state": 0, **POSTERIORS[posterior]}
    kernel, new = 1.0 * RBF(1.0), new_inputs()
    reg = GaussianProcessRegressor(kernel, alpha=0.1, **options).fit(X, y)
    found = np.stack(reg.predict_gradient(new, return_std=True), axis=1)
    close(found, differences(lambda Z: np.stack(reg.predict(Z, return_std=True), axis=1), new))
    close(reg.predict_gradient(new), found[:, 0], 1e-14)
    # Without a few labels on the wrong side the evidence would grow with the amplitude for ever.
    labels = np.where(np.arange(len(labels)) % 5 == 0, 1 - labels, labels)
    clf = GaussianProcessClassifier(kernel, **options).fit(X, labels)
    close(clf.predict_gradient(new), differences(clf.predict_proba, new))


@dataclass(frozen=True)
class Graded(Likelihood):
    """A probit with noise that is tuned."""

    noise: float = 3.0
    noise_bounds: tuple[float, float] | str = (0.01, 100.0)

    tunes = ("noise",)

    def log_prob(self, y, f):
        return Probit(self.noise).log_prob(y, f)

    def derivatives(self, y, f):
        return Probit(self.noise).derivatives(y, f)

    def sample(self, f, rng):
        return Probit(self.noise).sample(f, rng)


def test_tuned_likelihood():
    """Probabilities are those of the likelihood as tuned, here by quadrature."""
    X, _, labels = table()
    model = GaussianProcessClassifier(ConstantKernel(2.0, "fixed") * RBF(1.0), likelihood=Graded())
    model.fit(X, np.where(np.arange(len(labels)) % 5 == 0, 1 - labels, labels))
    assert abs(model.base_estimator_.evaluation.likelihood.noise - 3.0) > 0.1
    new = new_inputs()
    close(model.predict_gradient(new), differences(model.predict_proba, new))


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_several_targets(posterior):
    """Each target has its own gradient, in its own units."""
    X, y, _ = table()
    Y = np.stack([y, 100.0 * y**2, X[:, 0]], axis=1)
    options = {"alpha": 0.1, "optimizer": None, "normalize_y": True, **POSTERIORS[posterior]}
    model = GaussianProcessRegressor(RBF(1.0), **options).fit(X, Y)
    new = new_inputs()
    mean, std = model.predict_gradient(new, return_std=True)
    assert mean.shape == std.shape == (5, 2, 3)
    for k in range(3):
        close(mean[:, :, k], row_gradients(lambda Z, k=k: model.predict(Z)[:, k], new))
        close(
            std[:, :, k],
            row_gradients(lambda Z, k=k: model.predict(Z, return_std=True)[1][:, k], new),
        )


def test_chosen_kernel():
    """A kernel that was chosen has gradients as one that was given."""
    X, y, _ = table(40)
    model = GaussianProcessRegressor("auto").fit(10.0 * X, y)
    new = 10.0 * new_inputs()
    close(
        model.predict_gradient(new)[:, None], differences(lambda Z: model.predict(Z)[:, None], new)
    )


def test_blocks_agree(monkeypatch):
    """Many new inputs are worked through in blocks, with the same numbers."""
    X, y, labels = table(classes=3)
    new = new_inputs(11)
    reg = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, y)
    clf = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, labels)
    whole = [*reg.predict_gradient(new, return_std=True), clf.predict_gradient(new)]
    monkeypatch.setattr("cavity.estimators.process._BLOCK_ROWS", 4)
    parts = [*reg.predict_gradient(new, return_std=True), clf.predict_gradient(new)]
    for one, other in zip(whole, parts, strict=True):
        close(other, one, 1e-13)


@pytest.mark.parametrize("nu", [0.3, 0.5, 0.8, 1.0, 1.5])
def test_kinks(nu):
    """At a training input the kink of a rough kernel counts as zero: the mean of both sides."""
    X, r = np.array([[0.0], [2.0]]), rule(Matern(1.0, nu=nu))
    G = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert np.array_equal(r.vjp_inputs(X, X, G), np.zeros((2, 1)))
    sides = r.vjp_inputs(np.array([[-1e-9], [1e-9]]), X, np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert sides[0] > 0.0
    assert np.isclose(sides.sum(), 0.0, atol=1e-6 * sides[0])
    if nu == 0.5:
        np.testing.assert_allclose(sides[:, 0], [1.0, -1.0], rtol=1e-8)  # e^−r, r = 1e-9


@pytest.mark.parametrize("d", [1, 20])
def test_close_pairs_far_from_the_origin(d):
    """Close pairs of a rough kernel keep their digits among far-away inputs."""
    # Distances of powers of two are exact, here between inputs of size 2^10.
    gap = 2.0**-30
    Z = np.random.default_rng(0).standard_normal((3, d))
    Z[:, 0] = [1024.0, -1024.0, 3.0]
    X = Z.copy()
    X[:, 0] += gap
    found = rule(Matern(1.0, nu=0.5)).vjp_inputs(X, Z, np.eye(3))
    np.testing.assert_allclose(found[:, 0], -np.exp(-gap), rtol=1e-12)
    assert np.all(found[:, 1:] == 0.0)


@pytest.mark.parametrize(
    "kernel",
    [RBF(9.0), Matern(9.0, nu=0.5), Matern(9.0, nu=2.5), RationalQuadratic(9.0), DotProduct()],
)
def test_no_tensor(kernel):
    """Contracting takes a few matrices of the size of K at most, whatever the number of columns."""
    rng = np.random.default_rng(0)
    X, G = rng.standard_normal((400, 60)), rng.standard_normal((400, 400))
    r = rule(kernel)
    tracemalloc.start()
    r.vjp_inputs(X, X, G)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * G.nbytes < X.nbytes * 400 / 10


def test_far_digits_and_short_scales():
    """Offsets cost no digits of a gradient, and short length scales no more than of the matrix."""
    rng = np.random.default_rng(0)
    X, Z, G = (rng.standard_normal(shape) for shape in ((8, 2), (6, 2), (8, 6)))
    for kernel in (RBF([0.01, 0.1]), Matern(0.05, nu=1.5), Matern(0.05, nu=0.5)):
        r = rule(kernel)
        # An offset that is a power of two only rounds the inputs, which are then used as they are.
        far = X + 2.0**20, Z + 2.0**20
        near = far[0] - 2.0**20, far[1] - 2.0**20
        size = 1.0 / np.min(kernel.length_scale)
        np.testing.assert_allclose(
            r.vjp_inputs(*far, G), r.vjp_inputs(*near, G), rtol=0.0, atol=1e-11 * size
        )


def test_other_columns_do_not_matter():
    """An input that the kernel hardly sees has hardly a gradient."""
    X, y, _ = table()
    model = GaussianProcessRegressor(RBF([1.0, 1e5]), alpha=0.1, optimizer=None).fit(X, y)
    gradient = model.predict_gradient(new_inputs())
    assert np.abs(gradient[:, 1]).max() < 1e-6 * np.abs(gradient[:, 0]).max()


def test_pandas_names_are_checked():
    """Columns are checked as by predict, and answers do not depend on the kind of table."""
    pd = pytest.importorskip("pandas")
    X, y, _ = table()
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(frame, y)
    new = pd.DataFrame(new_inputs(), columns=["a", "b"])
    plain = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, y)
    close(model.predict_gradient(new), plain.predict_gradient(new_inputs()), 1e-15)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_gradient(new[["b", "a"]])


class Letters(ConstantKernel):
    """A kernel on any objects."""


@pytest.mark.parametrize("cls", [GaussianProcessRegressor, GaussianProcessClassifier])
def test_refusals(cls):
    """What has no gradient is refused in words that say why."""
    X, _, y = table()
    new = new_inputs()
    with pytest.raises(NotFittedError):
        cls(RBF()).predict_gradient(new)
    model = cls(RBF(), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict_gradient(np.ones((2, 3)))
    given = cls("precomputed", optimizer=None).fit(X @ X.T + np.eye(len(X)), y)
    with pytest.raises(ValueError, match="use a kernel object"):
        given.predict_gradient(new @ X.T)
    words = ["a", "b"] * 12
    texts = cls(ConstantKernel(1.0) + WhiteKernel(0.1), optimizer=None).fit(words, y)
    with pytest.raises(ValueError, match="inputs that are vectors"):
        texts.predict_gradient(["a", "b"])


def test_tables_in_blocks_are_refused():
    """A table in blocks has to be an array for this."""
    from cavity.rows import MemoryBlocks
    from cavity.sites import Rows

    X, y, _ = table()
    model = GaussianProcessRegressor(RBF(), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="table in blocks"):
        model.predict_gradient(MemoryBlocks(Rows(y, np.ones(len(y)), X), 8))


def test_unknown_answer_is_refused():
    """`of` has to name one of three answers."""
    X, _, y = table()
    model = GaussianProcessClassifier(RBF(), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="'log_probability' or 'latent'; got 'odds'"):
        model.predict_gradient(X, of="odds")


def test_rules_refuse_objects():
    """Rules without inputs, or on objects that are not vectors, say so."""
    with pytest.raises(ValueError, match="use a kernel object"):
        Precomputed().vjp_inputs(np.eye(2), np.eye(2), np.eye(2))
    for r in (rule(ConstantKernel(1.0)), rule(Letters(1.0))):
        with pytest.raises(ValueError, match="inputs that are vectors"):
            r.vjp_inputs(["a"], ["b"], np.ones((1, 1)))
        with pytest.raises(ValueError, match="inputs that are vectors"):
            r.vjp_diag_inputs(["a"], np.ones(1))


def test_steep_walls_and_tails():
    """Far in the tails the gradient of the log probability is right where that of P is zero."""
    X = np.array([[-1.0], [1.0]])
    model = GaussianProcessClassifier(1e4 * Linear(), optimizer=None, likelihood=Probit(1e-2)).fit(
        X, [0, 1]
    )
    new = np.array([[-60.0], [40.0]])
    found = model.predict_gradient(new, of="log_probability")
    assert np.all(np.isfinite(found))
    assert np.all(np.isfinite(model.predict_gradient(new)))
    close(found, differences(model.predict_log_proba, new), 1e-6)
