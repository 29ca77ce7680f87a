"""Inducing fits: what must not matter to them does not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    NormalizedKernelMixin,
    RationalQuadratic,
    StationaryKernelMixin,
    WhiteKernel,
)

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, learning_curve
from cavity.arrays import NotPositiveDefiniteError
from cavity.likelihoods import REGISTRY
from cavity.rows import MemoryBlocks
from cavity.sites import Rows

N, M = 120, 15
KERNEL = 4.0 * RBF([1.0, 2.0, 1.5])
TIGHT = {"tol": 1e-11, "max_iter_predict": 500}


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=n)


X, TARGET = table()
LABELS = np.where(TARGET > 0.0, "yes", "no")
POINTS, NEW = X[:M], table(30, seed=1)[0]


def classifier(kernel=KERNEL, **options):
    options = {"inducing_points": POINTS, "optimizer": None, **TIGHT, **options}
    return GaussianProcessClassifier(kernel, **options)


def regressor(kernel=KERNEL, **options):
    options = {"inducing_points": POINTS, "optimizer": None, "alpha": 0.2, **options}
    return GaussianProcessRegressor(kernel, **options)


def outputs(model, new=NEW):
    """Return predictions of either kind of estimator, as one array."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(new)
    return np.stack(model.predict(new, return_std=True), axis=1)


def assert_same(one, other, new=NEW, new_of_other=None, atol=1e-9):
    """Two models have the same evidence, up to rounding, and predict the same."""
    values = [m.log_marginal_likelihood_value_ for m in (one, other)]
    assert_allclose(values[1], values[0], rtol=1e-9)
    theirs = outputs(other, new if new_of_other is None else new_of_other)
    assert_allclose(theirs, outputs(one, new), rtol=1e-7, atol=atol)


CASES = [
    pytest.param(classifier(inference="ep"), LABELS, id="ep"),
    pytest.param(classifier(inference="laplace", likelihood="logit"), LABELS, id="laplace"),
    pytest.param(classifier(inference="variational", likelihood="logit"), LABELS, id="variational"),
    pytest.param(classifier(inference="naive"), LABELS, id="naive"),
    pytest.param(classifier(), np.digitize(TARGET, [-1.0, 1.0]), id="three classes"),
    pytest.param(regressor(normalize_y=True), TARGET, id="target"),
    pytest.param(regressor(inference="variational"), TARGET, id="bound"),
    pytest.param(regressor(KERNEL + WhiteKernel(0.1)), TARGET, id="noise"),
]


@pytest.mark.parametrize(("model", "y"), CASES)
def test_order_of_rows(model, y):
    """At fixed points the order of the rows changes nothing, and leave-one-out follows it."""
    order = np.random.default_rng(2).permutation(N)
    one, other = clone(model).fit(X, y), clone(model).fit(X[order], y[order])
    assert_same(one, other)
    name = "loo_proba_" if hasattr(model, "predict_proba") else "loo_std_"
    assert_allclose(getattr(other, name), getattr(one, name)[order], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("model", "y"), CASES)
def test_order_of_columns(model, y):
    """Columns may be in any order, if their length scales are in the same."""
    order, swapped = [2, 0, 1], 4.0 * RBF([1.5, 1.0, 2.0])
    if "k2__noise_level" in model.kernel.get_params():
        swapped = swapped + WhiteKernel(0.1)
    other = clone(model).set_params(kernel=swapped, inducing_points=POINTS[:, order])
    assert_same(clone(model).fit(X, y), other.fit(X[:, order], y), NEW, NEW[:, order])


@pytest.mark.parametrize(("model", "y"), CASES)
def test_units_of_inputs(model, y):
    """Inputs in other units, and length scales in the same, are the same inputs."""
    units = np.array([1e-8, 1.0, 1e8])
    scaled = 4.0 * RBF(np.array([1.0, 2.0, 1.5]) * units, (1e-12, 1e12))
    if "k2__noise_level" in model.kernel.get_params():
        scaled = scaled + WhiteKernel(0.1)
    other = clone(model).set_params(kernel=scaled, inducing_points=POINTS * units)
    assert_same(clone(model).fit(X, y), other.fit(X * units, y), NEW, NEW * units)


@pytest.mark.parametrize(("model", "y"), CASES[:7])
def test_weights_are_copies(model, y):
    """Rows of weight two are rows that occur twice; those of weight zero are not there."""
    weight = np.arange(N) % 3
    copies = np.repeat(np.arange(N), weight)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X[copies], y[copies])
    assert_same(weighted, repeated)
    name = "loo_proba_" if hasattr(model, "predict_proba") else "loo_mean_"
    left_out = getattr(weighted, name)
    assert_allclose(left_out[copies], getattr(repeated, name), rtol=1e-7, atol=1e-9)
    # A row that is not there is predicted by the others.
    absent = weight == 0
    new = weighted.predict_proba if name == "loo_proba_" else weighted.predict
    assert_allclose(left_out[absent], new(X[absent]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("model", [classifier(), regressor()])
def test_fractions_add_up(model):
    """Two copies of a row of weights 0.3 and 0.7 are the row."""
    y = LABELS if hasattr(model, "predict_proba") else TARGET
    twice = np.concatenate([np.arange(N), np.arange(40)])
    weight = np.ones(N + 40)
    weight[:40], weight[N:] = 0.3, 0.7
    assert_same(clone(model).fit(X, y), clone(model).fit(X[twice], y[twice], sample_weight=weight))


def test_noise_of_each_row():
    """Equal rows with different noise are different rows, as they are without points."""
    rows = np.repeat(np.arange(40), 2)
    weight = 1.0 + (np.arange(80) % 3 == 0)
    for sample_weight in (None, weight, weight * (np.arange(80) != 7)):
        alpha = np.tile([0.1, 1.0], 40)
        dense = regressor(alpha=alpha, inducing_points=None)
        dense.fit(X[rows], TARGET[rows], sample_weight)
        model = regressor(alpha=alpha, inducing_points=X[:40])
        model.fit(X[rows], TARGET[rows], sample_weight)
        assert_same(dense, model)
        assert_allclose(model.loo_mean_, dense.loo_mean_, atol=1e-9)
        assert_allclose(model.loo_std_, dense.loo_std_, rtol=1e-8)


def test_noise_of_each_row_on_the_ladder():
    """Each row keeps its own noise on every rung: rows that are nothing but noise do not count."""
    grid, f = table(2000)
    noisy = np.random.default_rng(3).permutation(2000) < 1000
    alpha = np.where(noisy, 1e6, 0.16)
    y = np.where(noisy, f + 1e3, f)
    model = regressor(alpha=alpha, inducing_points=None, n_inducing=30, optimizer="fmin_l_bfgs_b")
    error = model.fit(grid, y).predict(grid[:300]) - f[:300]
    # The noise of the good rows has variance 0.16.
    assert np.mean(error**2) < 0.25
    assert np.median(model.loo_std_[noisy]) > 900.0
    assert np.median(model.loo_std_[~noisy]) < 0.7


def test_names_of_classes():
    """What classes are called changes no probability."""
    yes = TARGET > 0.0
    truth = classifier().fit(X, yes)
    for labels in (LABELS, yes.astype(int), yes * 2.0 - 1.0, LABELS.astype(object)):
        model = classifier().fit(X, labels)
        assert_array_equal(model.predict_proba(NEW), truth.predict_proba(NEW))
        assert_array_equal(model.predict(NEW), model.classes_[truth.predict(NEW).astype(int)])
    three = np.digitize(TARGET, [-1.0, 1.0])
    plain = classifier().fit(X, three)
    renamed = classifier().fit(X, np.array(["c", "a", "b"])[three])
    assert_allclose(renamed.predict_proba(NEW)[:, [2, 0, 1]], plain.predict_proba(NEW), atol=1e-12)


@pytest.mark.parametrize("kind", [int, bool, np.float32])
def test_types_of_targets(kind):
    """Targets of any type of number are these numbers."""
    y = (3.0 * TARGET).astype(kind)
    assert_same(regressor().fit(X, y.astype(float)), regressor().fit(X, y))
    column = regressor().fit(X, y[:, None])
    assert_same(regressor().fit(X, y), column)


def test_several_targets():
    """Targets that share points and kernel are those of fits to one at a time."""
    y = np.column_stack([TARGET, X[:, 0] ** 2, np.full(N, 3.0)])
    both = regressor(normalize_y=True).fit(X, y)
    alone = [regressor(normalize_y=True).fit(X, column) for column in y.T]
    value = sum(m.log_marginal_likelihood_value_ for m in alone)
    assert_allclose(both.log_marginal_likelihood_value_, value, rtol=1e-10)
    mean, cov = both.predict(NEW, return_cov=True)
    for k, model in enumerate(alone):
        own_mean, own_cov = model.predict(NEW, return_cov=True)
        assert_allclose(mean[:, k], own_mean, rtol=1e-9, atol=1e-10)
        assert_allclose(cov[..., k], own_cov, rtol=1e-9, atol=1e-12)
        assert_allclose(both.loo_mean_[:, k], model.loo_mean_, rtol=1e-9, atol=1e-10)
    assert both.sample_y(NEW[:4], 5, random_state=0).shape == (4, 3, 5)


class Lumpy(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """A kernel of a user's own, without hyperparameters: 1 / (1 + |x − x'|²)."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        X = np.atleast_2d(X)
        Y = X if Y is None else np.atleast_2d(Y)
        K = 1.0 / (1.0 + np.sum((X[:, None] - Y[None]) ** 2, axis=-1))
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K


KERNELS = {
    "dot product": DotProduct(1.0),
    "rough": 2.0 * Matern(1.0, nu=0.5),
    "many scales": RationalQuadratic(1.0, 0.5),
    "product": RBF(2.0) * DotProduct(1.0),
    "sum with noise": 2.0 * RBF(1.0) + WhiteKernel(0.2),
    "fixed": ConstantKernel(2.0, "fixed") * RBF(1.0, "fixed"),
    "fixed in part": ConstantKernel(2.0, "fixed") * RBF(1.0) + DotProduct(1.0, "fixed"),
    "constant": ConstantKernel(2.0),
    "constant and noise": ConstantKernel(2.0) + WhiteKernel(0.5),
    "user's own": Lumpy(),
    "user's own in a sum": 2.0 * Lumpy() + DotProduct(1.0),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("task", ["classes", "targets"])
def test_every_kernel(name, task):
    """With every row an inducing point, any kernel's fit is the dense one."""
    make, y = (classifier, LABELS) if task == "classes" else (regressor, TARGET)
    dense = make(KERNELS[name], inducing_points=None).fit(X[:50], y[:50])
    model = make(KERNELS[name], inducing_points=X[:50]).fit(X[:50], y[:50])
    # Points that add nothing beyond rounding are left out.
    assert_same(dense, model, atol=1e-6)
    about = dense.kernel_.theta, True
    if len(dense.kernel_.theta):
        slopes = [m.log_marginal_likelihood(*about)[1] for m in (dense, model)]
        assert_allclose(slopes[1], slopes[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chosen", [{"inducing_points": POINTS}, {"n_inducing": 5}])
def test_nothing_but_noise(chosen):
    """A kernel that is nothing but noise has nothing for points to explain, and is refused."""
    options = {"inducing_points": None} | chosen
    for model, y in ((classifier(**options), LABELS), (regressor(**options), TARGET)):
        with pytest.raises(NotPositiveDefiniteError, match=r"WhiteKernel.*nothing but noise"):
            model.set_params(kernel=WhiteKernel(0.5)).fit(X, y)


def test_periodic_kernel():
    """A periodic kernel of one input needs no more points than it has independent values."""
    x = np.sort(np.random.default_rng(0).uniform(0.0, 30.0, 200))[:, None]
    y = np.sin(2.0 * np.pi * x[:, 0] / 3.0)
    kernel = ExpSineSquared(1.0, 3.0) + WhiteKernel(0.01)
    dense = regressor(kernel, inducing_points=None, alpha=0.01).fit(x, y)
    model = regressor(kernel, inducing_points=None, n_inducing=25, alpha=0.01).fit(x, y)
    assert_allclose(outputs(model, x[::9]), outputs(dense, x[::9]), atol=1e-6)
    assert model.inducing_left_over_ < 1e-6


def test_points_that_occur_twice():
    """Points that repeat others add nothing; as many points as rows, or more, are all rows."""
    once, twice = (classifier(inducing_points=np.repeat(POINTS, k, axis=0)) for k in (1, 2))
    assert_same(once.fit(X, LABELS), twice.fit(X, LABELS))
    everything = classifier(inducing_points=X).fit(X, LABELS)
    for m in (N, 10 * N):
        model = classifier(inducing_points=None, n_inducing=m, random_state=0).fit(X, LABELS)
        assert_same(everything, model, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 12])
@pytest.mark.parametrize("m", [1, 5, 12])
def test_few_rows(n, m):
    """Tables of a dozen rows, and a single point, are fitted and tuned."""
    index = np.argsort(TARGET)[np.linspace(0, N - 1, n).astype(int)]
    options = {"inducing_points": None, "n_inducing": m, "random_state": 0}
    how = {"optimizer": "fmin_l_bfgs_b"}
    # Bounds that two rows do not push against.
    tuned = ConstantKernel(1.0, "fixed") * RBF(1.0, (1e-9, 1e9)) + WhiteKernel(0.1, "fixed")
    models = [
        classifier(KERNEL, **options).fit(X[index], LABELS[index]),
        regressor(KERNEL, **options).fit(X[index], TARGET[index]),
        regressor(tuned, **options | how).fit(X[index], TARGET[index]),
        classifier(tuned, **options | how).fit(X[index], LABELS[index]),
    ]
    for model in models:
        assert np.isfinite(outputs(model)).all()
        assert model.inducing_points_.shape == (min(n, m), 3)
        assert (model.inducing_gain_ is None) == (min(n, m) == 1)
        assert 0.0 <= model.inducing_left_over_ <= 1.0


def test_every_likelihood():
    """Every likelihood for labels goes with points as it goes without."""
    kernel = KERNEL + WhiteKernel(0.3)
    names = [name for name, cls in REGISTRY.items() if cls().support == "signs"]
    assert len(names) >= 3
    for name in names:
        how = {"likelihood": name, "inference": "ep" if REGISTRY[name]().concave else "mixture"}
        dense = classifier(kernel, **how, inducing_points=None).fit(X[:50], LABELS[:50])
        model = classifier(kernel, **how, inducing_points=X[:50])
        assert_same(dense, model.fit(X[:50], LABELS[:50]), atol=1e-6)


def test_curves_of_blocks_are_those_of_arrays():
    """Where blocks end, and whether the table is an array, does not change a learning curve."""
    about = {"train_sizes": [20, 60], "resampling": "subsample", "theory": "cavity"}
    found = []
    for size in (N, 17):
        rows = Rows(LABELS, np.ones(N), X)
        model = classifier().fit(MemoryBlocks(rows, size))
        found.append(learning_curve(model, **about).test_log_loss)
    found.append(learning_curve(classifier().fit(X, LABELS), X, LABELS, **about).test_log_loss)
    for other in found[1:]:
        # The rounds are the same; sums are added up in another order.
        assert_allclose(other, found[0], rtol=1e-9)
