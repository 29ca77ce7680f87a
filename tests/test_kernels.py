"""Kernel rules: agreement with scikit-learn, gradients, extremes, other array libraries."""

import tracemalloc
from inspect import signature

import mpmath
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    GenericKernelMixin,
    Hyperparameter,
    Kernel,
    Matern,
    PairwiseKernel,
    Product,
    RationalQuadratic,
    StationaryKernelMixin,
    Sum,
    WhiteKernel,
)

from cavity.kernels import RULES, Precomputed, Rule, bessel, length_scales, rule
from cavity.kernels.distances import centre, contract, elementwise, tiles, tiles_of
from cavity.kernels.scaled import ScaledRule
from cavity.testing import check_kernel

FREE = (1e-5, 1e5)
EPS = np.finfo(float).eps


def inputs(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def weights(n, seed=1):
    G = np.random.default_rng(seed).normal(size=(n, n))
    return G + G.T


def exact_gradient(kernel, X, G):
    return np.einsum("ij,ijp->p", G, kernel(X, eval_gradient=True)[1])


def leaves(d, bounds):
    ell = list(np.linspace(0.6, 1.4, d))
    return [
        RBF(0.8, bounds),
        RBF([1.3], bounds),
        RBF(ell, bounds),
        *(Matern(ell, bounds, nu=nu) for nu in (0.5, 1.5, 2.5, np.inf)),
        *(Matern(0.7, bounds, nu=nu) for nu in (0.5, 1.5, 2.5, np.inf)),
        RationalQuadratic(0.8, 1.7, bounds, bounds),
        RationalQuadratic(0.8, 1.7, "fixed", bounds),
        RationalQuadratic(0.8, 1.7, bounds, "fixed"),
        # Over Euclidean distances in several dimensions it is a covariance only for long periods.
        ExpSineSquared(0.4, 1.7 if d == 1 else 20.0, bounds, bounds),
        ExpSineSquared(0.4, 20.0, "fixed", bounds),
        ExpSineSquared(0.4, 20.0, bounds, "fixed"),
        DotProduct(0.7, bounds),
        ConstantKernel(2.0, bounds),
        WhiteKernel(0.3, bounds),
    ]


class Halved(RBF):
    """A subclass that computes something else than its parent."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if not eval_gradient:
            return 0.5 * super().__call__(X, Y)
        K, gradient = super().__call__(X, eval_gradient=True)
        return 0.5 * K, 0.5 * gradient

    def diag(self, X):
        return 0.5 * super().diag(X)


class SharedLetters(StationaryKernelMixin, GenericKernelMixin, Kernel):
    """A kernel on strings: a scale times the number of letters in common."""

    def __init__(self, scale=1.0, scale_bounds=FREE):
        self.scale = scale
        self.scale_bounds = scale_bounds

    @property
    def hyperparameter_scale(self):
        return Hyperparameter("scale", "numeric", self.scale_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        shared = [[float(len(set(x) & set(y))) for y in (X if Y is None else Y)] for x in X]
        K = self.scale * np.array(shared)
        return (K, K[:, :, None].copy()) if eval_gradient else K

    def diag(self, X):
        return self.scale * np.array([float(len(set(x))) for x in X])


def composites(d):
    ell = [0.9] * d
    return [
        2.0 * RBF(ell) + WhiteKernel(0.2),
        WhiteKernel(0.2) + RBF(ell) * ConstantKernel(3.0),
        ConstantKernel(2.0, "fixed") * RBF(ell) + WhiteKernel(0.1, "fixed"),
        RBF(ell, "fixed") * Matern(ell, nu=1.5) + ConstantKernel(0.5),
        ConstantKernel(2.0) * ConstantKernel(0.5) + ConstantKernel(0.1),
        WhiteKernel(0.2) + WhiteKernel(0.3),
        RBF(0.9) * WhiteKernel(0.4) + DotProduct(1.1),
        (DotProduct(0.6) + 0.5 * RBF(ell)) ** 2,
        (RBF(ell) * RationalQuadratic(1.2, 0.8)) ** 0.5 + WhiteKernel(),
        (RBF(0.9, "fixed") + WhiteKernel(0.1, "fixed")) ** 3,
        DotProduct(0.5) ** 1,
        2.0 * (RBF(0.5) + 3.0 * Matern(ell, nu=2.5) * DotProduct() ** 2) + 0.1 * Halved(0.9),
    ]


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("bounds", [FREE, "fixed"])
@pytest.mark.parametrize("index", range(len(leaves(1, FREE))))
def test_leaf_contract(index, bounds, d):
    """Every simple kernel agrees with scikit-learn's own numbers and with differences."""
    check_kernel(leaves(d, bounds)[index], inputs(9, d))


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("index", range(len(composites(1))))
def test_composite_contract(index, d):
    """Sums, products and powers of any depth agree with scikit-learn's and with differences."""
    check_kernel(composites(d)[index], inputs(9, d))


@pytest.mark.parametrize("base_bounds", [FREE, "fixed"])
@pytest.mark.parametrize("white_bounds", [FREE, "fixed"])
@pytest.mark.parametrize("constant_bounds", [FREE, "fixed"])
@pytest.mark.parametrize("base", [RBF, Matern, Halved])
def test_scaled_contract(base, constant_bounds, white_bounds, base_bounds):
    """c·base + white in every order agrees with scikit-learn's, whatever is fixed."""
    c, white = ConstantKernel(2.5, constant_bounds), WhiteKernel(0.3, white_bounds)
    k, X = base([0.7, 1.2], base_bounds), inputs(9, 2)
    for kernel in (c * k, k * c, k + white, white + k):
        assert type(rule(kernel)) is ScaledRule
        check_kernel(kernel, X)
    for kernel in (c * k + white, k * c + white, white + c * k, white + k * c):
        assert type(rule(kernel)) is ScaledRule
        check_kernel(kernel, X)
        check_kernel(kernel + DotProduct(0.6) ** 2, X)
        check_kernel(Matern(0.8, nu=1.5) * kernel, X)
        check_kernel(1.5 * (kernel + white) + white, X)


def test_scaled_reads_the_matrix():
    """With K given an RBF's distances are not computed again, nor is K's diagonal used."""
    X, G = inputs(200, 3), weights(200)
    r = rule(2.0 * RBF([0.7, 1.2, 0.9]) + WhiteKernel(0.3))
    K = r.matrix(X)
    truth = r.vjp(X, None, G)
    K[np.ix_([0, 1], [0, 1])] += 1.0
    change = r.vjp(X, None, G, K) - r.vjp(X, None, G)
    difference = (X[0] - X[1]) ** 2 / np.array([0.7, 1.2, 0.9]) ** 2
    expected = np.array([G[:2, :2].sum(), *(2.0 * G[0, 1] * difference), 0.0])
    # Rounding of 200² terms of size 1.
    np.testing.assert_allclose(change, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(r.vjp(X, None, G), truth, rtol=0, atol=0)


def needs_no_arguments(cls):
    return not [p for p in signature(cls).parameters.values() if p.default is p.empty]


@pytest.mark.parametrize(
    "cls", [cls for cls in RULES if needs_no_arguments(cls)], ids=lambda cls: cls.__name__
)
def test_contract(cls):
    """Every registered kernel keeps the public contract as it comes, and as part of a sum."""
    # Periodic over distances in one dimension only.
    check_kernel(cls(), inputs(9, 1))
    check_kernel(1.7 * cls() + WhiteKernel(0.2), inputs(9, 1))


def test_every_rule_is_covered():
    """The contract tests above reach every registered class."""
    covered = {type(k) for k in leaves(3, FREE)} | {Sum, Product, Exponentiation}
    assert covered <= set(RULES)
    assert all(needs_no_arguments(cls) for cls in set(RULES) - covered)


@pytest.mark.parametrize("nu", [0.3, 0.8, 1.0, 1.2, 3.7, 12.0])
@pytest.mark.parametrize("ell", [0.7, [0.7, 1.1]])
def test_matern_of_any_order_contract(nu, ell):
    """Matérn kernels of other orders agree with scikit-learn's as far as these are exact."""
    # scikit-learn puts eps for zero distances, an error of eps^(2 nu) = 4e-10 at nu = 0.3, and
    # differentiates with steps of 1e-10, an error of about 1e-6 of the matrix.
    check_kernel(Matern(ell, nu=nu), inputs(9, 2), rtol=1e-9, gradient_rtol=1e-4)


@pytest.mark.parametrize("nu", [0.05, 0.3, 1.0, 1.5, 2.2, 24.9, 25.0, 26.3, 80.0, 1e4])
def test_matern_function_against_mpmath(nu):
    """The Matérn function and its slope are right from tiny to large arguments and orders."""
    t = np.array([1e-8, 1e-3, 0.1, 1.0, 3.0, 10.0, 40.0, 200.0])
    with mpmath.workdps(60):
        order = mpmath.mpf(nu)
        c = 2 ** (1 - order) / mpmath.gamma(order)
        value = [float(c * x**order * mpmath.besselk(order, x)) for x in map(mpmath.mpf, t)]
        slope = [
            float(2 * order * c * x ** (order - 1) * mpmath.besselk(order - 1, x))
            for x in map(mpmath.mpf, t)
        ]
    # Exponents up to 200 multiply rounding errors of 1e-16 by that much.
    np.testing.assert_allclose(bessel.matern(nu, t), value, rtol=2e-12, atol=1e-300)
    np.testing.assert_allclose(bessel.matern_slope(nu, t), slope, rtol=2e-12, atol=1e-300)


def test_matern_function_at_zero_and_far_away():
    """The Matérn function is 1 at zero and 0 at enormous distances for every order."""
    for nu in (0.1, 1.0, 7.3, 24.9, 300.0):
        np.testing.assert_allclose(bessel.matern(nu, np.array([0.0, 1e-90, 1e130])), [1, 1, 0])
        assert np.all(np.isfinite(bessel.matern_slope(nu, np.array([0.0, 1e-90, 1e130]))))


@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("length", [1e-3, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("nu", [0.5, 1.5, np.inf])
def test_offsets_and_length_scales(nu, length, offset, d):
    """Far-away inputs and short length scales cost no digits, close neighbours included."""
    X = inputs(40, d)
    X = offset + np.vstack([X, X + 0.3 * length * inputs(40, d, seed=3) / np.sqrt(d), X[:3]])
    kernel = Matern([length] * d, nu=nu)
    G = weights(len(X))
    np.testing.assert_allclose(rule(kernel).matrix(X), kernel(X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(rule(kernel).matrix(X, X[:9]), kernel(X, X[:9]), rtol=0, atol=1e-10)
    # The promise is 1e-10 of the sum of absolute terms; the scaled inputs themselves are rounded.
    tolerance = 1e-10 + 4.0 * EPS * offset / length
    terms = np.abs(G[:, :, None] * kernel(X, eval_gradient=True)[1]).sum(axis=(0, 1))
    for Z in (None, X):
        error = np.abs(rule(kernel).vjp(X, Z, G) - exact_gradient(kernel, X, G))
        assert np.all(error <= tolerance * (terms + np.abs(G).mean()))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("rough", [False, True])
def test_both_contractions_agree(rough, symmetric):
    """The product formula and the exact one give the same; close pairs choose the exact one."""
    U = inputs(150, 3)
    U[1] = U[0] + 1e-9
    D = ((U[:, None] - U[None]) ** 2).sum(-1)
    G, w = weights(150), np.exp(-D)
    if rough:
        w /= np.sqrt(D + np.eye(150))
        w[0, 1] = w[1, 0] = 1e9
    truth = np.einsum("ij,ijd->d", G * w, (U[:, None] - U[None]) ** 2)
    U = U - centre(U)
    ours = contract(G, U, None if symmetric else U, tiles_of(w, symmetric))
    # Rounding of 150² terms of size 1.
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("size", [1e100, 1e300, 1.7e308])
def test_an_enormous_input_spoils_no_other(size):
    """Absurd inputs leave the covariances and gradients of the others as they are."""
    X, Z, G = inputs(15, 2), inputs(4, 2), weights(15)
    X[4], X[5] = size, -size
    others = ~np.isin(np.arange(15), [4, 5])
    for kernel in (*(Matern([0.8, 1.2], nu=nu) for nu in (0.5, 0.8, 1.5, np.inf)), RBF(1e-5)):
        r, block = rule(kernel), np.ix_(others, others)
        np.testing.assert_allclose(r.matrix(X)[block], r.matrix(X[others]), rtol=1e-12)
        np.testing.assert_array_equal(r.matrix(X)[4:6], np.eye(15)[4:6])
        np.testing.assert_array_equal(r.matrix(X, Z)[others], r.matrix(X[others], Z))
        # Rounding of about 200 terms of size 1.
        gradient = r.vjp(X[others], None, G[block])
        np.testing.assert_allclose(r.vjp(X, None, G), gradient, rtol=0, atol=1e-12)
        there = r.vjp_inputs(X, Z, G[:, :4])
        alone = r.vjp_inputs(X[others], Z, G[others, :4])
        np.testing.assert_allclose(there[others], alone, rtol=0, atol=1e-11)
        np.testing.assert_array_equal(there[4:6], 0.0)


@pytest.mark.parametrize("factor", [1e-150, 1e-30, 1e30, 1e150, 1e200, 5e307])
def test_inputs_of_any_size(factor):
    """Enormous or tiny inputs give finite matrices and gradients, and no warnings."""
    X = factor * inputs(12, 2)
    G = weights(12)
    kernels = [
        RBF(1.0),
        *(Matern([1.0, 2.0], nu=nu) for nu in (0.3, 0.5, 1.5, 2.5, np.inf, 4.2, 40.0)),
        RationalQuadratic(),
        ExpSineSquared(),
        (RBF() * RationalQuadratic()) ** 0.5,
        2.0 * RBF([1.0, 2.0]) + WhiteKernel(),
    ]
    for kernel in kernels:
        K, gradient = rule(kernel).matrix(X), rule(kernel).vjp(X, None, G)
        assert np.all(np.isfinite(rule(kernel).vjp(X, X[:4], G[:, :4]))), kernel
        assert np.all(np.isfinite(K)), kernel
        assert np.all(np.isfinite(rule(kernel).matrix(X, X[:4]))), kernel
        assert np.all(np.isfinite(gradient)), kernel


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.5, 2.5, np.inf, 40.0])
@pytest.mark.parametrize("length", [1e-300, 1e-30, 1e30, 1e300])
def test_length_scales_of_any_size(length, nu):
    """Vanishing length scales give the identity, endless ones the constant; gradients vanish."""
    X, r = inputs(8, 3), rule(Matern([length] * 3, nu=nu))
    limit = np.eye(8) if length < 1 else np.ones((8, 8))
    # At nu = 0.3 the constant is approached as length^-0.6 = 1e-18; its logarithms round at 1e-14.
    np.testing.assert_allclose(r.matrix(X), limit, rtol=0, atol=1e-14)
    np.testing.assert_allclose(r.vjp(X, None, weights(8)), 0.0, rtol=0, atol=1e-15)


def test_other_extreme_hyperparameters():
    """The periodic and rational quadratic kernels survive the ends of their ranges."""
    X, G = inputs(8, 1), weights(8)
    for a in (1e-200, 1e-5, 1e5, 1e100):
        for kernel in (
            ExpSineSquared(a, 1.0),
            RationalQuadratic(a, 1.0),
            RationalQuadratic(1.0, a),
        ):
            assert np.all(np.isfinite(rule(kernel).matrix(X)))
            assert np.all(np.isfinite(rule(kernel).vjp(X, None, G)))


def test_duplicates_are_perfectly_correlated():
    """Equal inputs have covariance exactly 1, and the diagonal is exactly 1."""
    X = np.repeat(inputs(5, 30), 2, axis=0) + 1e3
    for kernel in (RBF(3.0), Matern(3.0, nu=0.5), Matern(3.0, nu=0.7), RationalQuadratic(3.0)):
        K = rule(kernel).matrix(X)
        assert np.all(np.diag(K) == 1.0)
        # The product formula may leave rounding of the squared norm, 30 eps.
        np.testing.assert_allclose(np.diag(K, 1)[::2], 1.0, rtol=1e-13)


def test_subclass_takes_the_slow_path():
    """A subclass is computed by its own __call__, alone and inside other kernels."""
    X, kernel = inputs(7, 2), Halved([0.8, 1.2])
    assert type(rule(kernel)) is Rule
    np.testing.assert_allclose(rule(2.0 * kernel).matrix(X), RBF([0.8, 1.2])(X), rtol=1e-12)
    check_kernel(kernel, X)
    check_kernel(3.0 * kernel + WhiteKernel(), X)


@pytest.mark.parametrize("metric", ["linear", "rbf", "polynomial"])
def test_pairwise_kernel(metric):
    """scikit-learn's wrapper of pairwise kernels works as far as its difference quotients go."""
    # Forward differences with steps of 1e-10 err by about 1e-6 of the matrix.
    kernel = PairwiseKernel(0.4, metric=metric)
    X = inputs(7, 2)
    r = rule(kernel)
    np.testing.assert_allclose(r.matrix(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(r.diag(X), kernel.diag(X), rtol=1e-12)
    np.testing.assert_allclose(r.vjp(X, None, weights(7)), exact_gradient(kernel, X, weights(7)))
    assert not np.any(r.noise(X))
    np.testing.assert_allclose(rule(kernel + WhiteKernel(0.3)).noise(X), 0.3, rtol=1e-10)


def test_compound_kernel_is_refused():
    """A kernel with several matrices is refused in words, matrix and gradient alike."""
    r = rule(CompoundKernel([RBF(), Matern()]))
    with pytest.raises(ValueError, match="CompoundKernel one at a time"):
        r.matrix(inputs(4, 2))
    with pytest.raises(ValueError, match="CompoundKernel one at a time"):
        r.vjp(inputs(4, 2), None, weights(4))


def test_wrong_number_of_length_scales_is_refused():
    """Length scales that do not match the columns are refused instead of broadcast."""
    with pytest.raises(ValueError, match=r"one per column \(1 columns\)"):
        rule(RBF([1.0, 2.0])).matrix(inputs(4, 1))


def test_kernels_on_objects():
    """Kernels on things that are not vectors work, with noise and constants around them."""
    words = ["cavity", "field", "replica", "spin", "glass"]
    check_kernel(SharedLetters(0.5), words)
    check_kernel(2.0 * SharedLetters(0.5) + WhiteKernel(), words)
    check_kernel(SharedLetters(0.5) ** 2 * ConstantKernel(3.0), np.array(words, dtype=object))


def test_slow_path_in_blocks(monkeypatch):
    """Contraction by pairs of blocks equals contraction of the whole tensor, noise included."""
    X = inputs(50, 3)
    kernel = Halved([0.8, 1.2, 2.0])
    whole = Rule(kernel + WhiteKernel(0.3))
    truth = exact_gradient(whole.kernel, X, weights(50))
    words = [f"word{i}" for i in range(50)]
    of_words = exact_gradient(SharedLetters(), words, weights(50))
    rectangle = np.ascontiguousarray(weights(50)[:, :23])
    of_two = Rule(whole.kernel).vjp(X, X[:23], rectangle)
    monkeypatch.setattr("cavity.kernels.base._BUDGET", 4 * 8 * 4 * (2 * 7) ** 2)
    np.testing.assert_allclose(whole.vjp(X, X[:23], rectangle), of_two, rtol=1e-10)
    np.testing.assert_allclose(whole.vjp(X, None, weights(50)), truth, rtol=1e-10)
    np.testing.assert_allclose(
        rule(SharedLetters()).vjp(words, None, weights(50)), of_words, rtol=1e-10
    )


def test_slow_path_memory():
    """The slow path never holds the n×n×p tensor."""
    n, p = 1200, 16
    X, G = inputs(n, p), weights(n)
    kernel = Halved([3.0] * p)
    tracemalloc.start()
    try:
        gradient = rule(kernel).vjp(X, None, G)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The budget is 64 MiB in all, the tensor alone 176 MiB.
    assert peak < 0.45 * n * n * p * 8
    np.testing.assert_allclose(gradient, 0.5 * rule(RBF([3.0] * p)).vjp(X, None, G), rtol=1e-9)


def test_fast_path_memory():
    """A contraction needs a few n×n matrices, however many length scales there are."""
    n, d = 500, 40
    X, G = inputs(n, d), weights(n)
    for kernel in (RBF([6.0] * d), Matern([6.0] * d, nu=1.5), 2.0 * RBF([6.0] * d) + WhiteKernel()):
        tracemalloc.start()
        try:
            rule(kernel).vjp(X, None, G)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 5 * n * n * 8


def test_names_and_bounds():
    """Names and bounds follow theta, fixed hyperparameters left out."""
    kernel = ConstantKernel(1.0, "fixed") * RBF([1.0, 2.0]) + WhiteKernel(0.1, (1e-3, 10.0))
    r = rule(kernel)
    assert r.names == ["k1__k2__length_scale[0]", "k1__k2__length_scale[1]", "k2__noise_level"]
    np.testing.assert_allclose(r.bounds[2], np.log([1e-3, 10.0]))
    assert rule(ConstantKernel(1.0, "fixed")).bounds.shape == (0, 2)
    assert rule(RationalQuadratic()).names == ["alpha", "length_scale"]


def test_length_scales_are_told_by_name():
    """Length scales are found at any depth, in names of hyperparameters and of parameters."""
    kernel = 2.0 * RBF([1.0, 2.0]) + ExpSineSquared()
    assert list(length_scales(rule(kernel).names)) == [False, True, True, True, False]
    parameters = list(kernel.get_params())
    found = [
        p for p, is_length in zip(parameters, length_scales(parameters), strict=True) if is_length
    ]
    assert sorted(found) == ["k1__k2__length_scale", "k2__length_scale"]
    assert length_scales([]).shape == (0,)


def test_noise_is_found():
    """Noise is what the training matrix has more on its diagonal than K(X, X)."""
    X = inputs(100, 1)
    variance = X[:, 0] ** 2 + 0.49
    for kernel, noise in (
        (RBF() + WhiteKernel(0.3), 0.3),
        ((RBF() + WhiteKernel(0.3)) ** 2, 0.69),
        (2.0 * (RBF() + WhiteKernel(0.3)) + WhiteKernel(0.1), 0.7),
        (WhiteKernel(0.3) * (DotProduct(0.7) + WhiteKernel(0.2)), 0.3 * (variance + 0.2)),
        (RBF() + DotProduct() * Matern(), 0.0),
        (RBF(), 0.0),
    ):
        np.testing.assert_allclose(rule(kernel).noise(X), noise, rtol=1e-13)
        # Without a rule, a difference of two diagonals.
        np.testing.assert_allclose(Rule(kernel).noise(X), noise, rtol=1e-10)
    assert not np.any(rule(RBF() + DotProduct() * Matern()).noise(X))
    assert not np.any(Rule(RBF()).noise(X))


def test_precomputed():
    """A precomputed matrix passes through; its test rows have no known prior variances."""
    K = RBF()(inputs(6, 2))
    r = Precomputed()
    assert r.matrix(K) is K
    assert r.matrix(K[:2], K) is not K
    np.testing.assert_array_equal(r.diag(K), np.ones(6))
    assert r.vjp(K, None, weights(6)).shape == (0,)
    assert r.theta.shape == (0,)
    assert r.bounds.shape == (0, 2)
    assert r.names == []
    assert r.with_theta(np.empty(0)) is r
    np.testing.assert_array_equal(r.noise(K), np.zeros(6))
    assert r.vjp_diag(K, np.ones(6)).shape == (0,)
    with pytest.raises(ValueError, match="prior variances of test points"):
        r.diag(K[:2])


def other_namespace(name):
    if name == "torch":
        torch = pytest.importorskip("torch")
        return lambda A: torch.asarray(A, dtype=torch.float64)
    return pytest.importorskip("array_api_strict").asarray


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("d", [1, 3])
def test_other_array_libraries(library, d):
    """Every kernel gives the same numbers for arrays of other libraries, and keeps their kind."""
    convert = other_namespace(library)
    X, Z = inputs(9, d), inputs(4, d, seed=5)
    X[1] = X[0]
    G, F = weights(9), np.random.default_rng(2).normal(size=(9, 4))
    general = [Matern(0.7, nu=0.3), Matern([0.7] * d, nu=30.0), Halved(0.8)]
    for kernel in leaves(d, FREE) + composites(d) + general:
        r, A, B = rule(kernel), convert(X), convert(Z)
        for ours, truth in (
            (r.matrix(A), r.matrix(X)),
            (r.matrix(A, B), r.matrix(X, Z)),
            (r.diag(A), r.diag(X)),
            (r.noise(A), r.noise(X)),
        ):
            assert type(ours) is type(A)
            np.testing.assert_allclose(np.asarray(ours), truth, rtol=0, atol=1e-10)
        K = r.matrix(A)
        for gradient in (r.vjp(A, None, convert(G)), r.vjp(A, None, convert(G), K)):
            assert isinstance(gradient, np.ndarray)
            # 81 terms of size 10 with rounding errors of 1e-14 each.
            np.testing.assert_allclose(gradient, r.vjp(X, None, G), rtol=1e-10, atol=1e-10)
        for gradient in (r.vjp(A, B, convert(F)), r.vjp(A, B, convert(F), r.matrix(A, B))):
            np.testing.assert_allclose(gradient, r.vjp(X, Z, F), rtol=1e-10, atol=1e-10)
        for ours, truth in (
            (r.vjp_inputs(A, B, convert(F)), r.vjp_inputs(X, Z, F)),
            (r.vjp_diag_inputs(A, convert(F[:, 0])), r.vjp_diag_inputs(X, F[:, 0])),
        ):
            assert type(ours) is type(A)
            np.testing.assert_allclose(np.asarray(ours), truth, rtol=0, atol=1e-10)
        on_diagonal = r.vjp_diag(A, convert(F[:, 0]))
        np.testing.assert_allclose(on_diagonal, r.vjp_diag(X, F[:, 0]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_array_libraries_keep_digits(library):
    """Offsets and short length scales cost no digits in other libraries either."""
    convert = other_namespace(library)
    X = inputs(30, 2)
    X = np.vstack([X, X + 1e-4 * inputs(30, 2, seed=3)]) + 1e4
    G = weights(60)
    for kernel in (RBF([1e-4, 1e-3]), Matern(1e-3, nu=0.5), RBF(2.0), Matern(2.0, nu=0.5)):
        r, A = rule(kernel), convert(X)
        np.testing.assert_allclose(np.asarray(r.matrix(A)), kernel(X), rtol=0, atol=1e-10)
        truth = exact_gradient(kernel, X, G)
        # Scaled inputs of 1e4 over the length scale are rounded, the shortest by 2e-8.
        tolerance = 1e-10 + 10.0 * EPS * 1e4 / np.min(kernel.length_scale)
        np.testing.assert_allclose(r.vjp(A, None, convert(G)), truth, rtol=0, atol=tolerance)


def test_distances_have_an_exact_zero_diagonal():
    """A point is at distance exactly zero from itself, also by the product formula."""
    strict = other_namespace("array_api_strict")
    U = inputs(20, 3) / 3.0 + 0.7
    [whole] = tiles(np.asarray, strict(U))
    D = whole.values
    assert np.all(np.diag(D) == 0.0)
    np.testing.assert_allclose(D, ((U[:, None] - U[None]) ** 2).sum(-1), rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [1, 3, 64, 65, 128, 333])
@pytest.mark.parametrize("d", [2, 30])
def test_tiles_fill_the_matrix(n, d):
    """Tiles make up the whole matrix, of a training set an exactly symmetric one."""
    U, V = inputs(n, d), inputs(70, d, seed=3)
    K = elementwise(np.sqrt, U, exact=True)
    np.testing.assert_array_equal(K, np.sqrt(cdist(U, U, "sqeuclidean")))
    rectangle = elementwise(np.sqrt, U, V, exact=True)
    np.testing.assert_array_equal(rectangle, np.sqrt(cdist(U, V, "sqeuclidean")))
    K = elementwise(np.negative, U)
    np.testing.assert_array_equal(K, K.T)
    assert np.all(np.diag(K) == 0.0)
    # The product formula keeps the digits of the largest distances, about 100.
    np.testing.assert_allclose(K, -cdist(U, U, "sqeuclidean"), rtol=0, atol=1e-12)
