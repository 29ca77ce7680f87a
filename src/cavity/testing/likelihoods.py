"""What has to hold for a likelihood before an inference method can trust it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.testing import assert_allclose
from scipy import integrate

from cavity.arrays import Array
from cavity.arrays.differences import bend
from cavity.likelihoods import Likelihood, numerical
from cavity.likelihoods.targets import SUPPORTS
from cavity.sites import Marginals, Moments
from cavity.testing.tools import slope, targets

_MEANS = np.array([-3.0, -0.5, 0.0, 0.7, 4.0])
_VARIANCES = np.array([0.2, 1.0, 30.0])
_STEP = 1e-3


def check_likelihood(
    lik: Likelihood, ys: Sequence[float] | None = None, *, draws: int = 20_000
) -> None:
    """Check that a likelihood is what it says, on some targets.

    Derivatives are those of the log density, which is concave if it says so; moments agree with
    quadrature, with their own derivatives and with the numerical defaults; the bound of a
    mixture is one; samples follow the density, its support and its distribution function; the
    response agrees with quadrature; parameters have bounds and derivatives; the first power
    changes nothing; what is not offered is refused.

    Parameters
    ----------
    lik : Likelihood
        The likelihood to check.
    ys : sequence of float, optional
        Targets to check it on; if not given, a few of its support.
    draws : int, default 20000
        How many samples to draw.

    Examples
    --------
    >>> from cavity.likelihoods import Probit
    >>> from cavity.testing import check_likelihood
    >>> check_likelihood(Probit(0.3))
    """
    ys = _a_few(lik.support) if ys is None else ys
    _check_offers(lik, ys[0])
    lik.check_targets(np.asarray(ys))
    for y in ys:
        _check_tilted(lik, y)
        _check_power(lik, y)
        if "derivatives" in lik.offers:
            _check_derivatives(lik, y)
            _check_parameters(lik, y)
        if "derivatives" in lik.offers and lik.concave:
            _check_defaults(lik, y)
        if "mixture" in lik.offers:
            _check_mixture(lik, y)
        if "expected" in lik.offers:
            _check_expected(lik, y)
    _check_samples(lik, ys, draws)
    if _is_given(lambda: lik.mean(_MEANS)):
        _check_response(lik, draws)


def _a_few(support: str) -> Array:
    found = np.unique(targets(support, 32, np.random.default_rng(0)))
    return found[:: max(1, len(found) // 3)]


def _grid() -> Marginals:
    m, v = np.meshgrid(_MEANS, _VARIANCES)
    return Marginals(m.ravel(), v.ravel())


def _slope(function: Callable[[Array], Array], x: Array) -> Array:
    return slope(lambda h: function(x + h), _STEP)


def _close(got: Array, truth: Array, rtol: float, what: str) -> None:
    """Compare to a share of each number, or of the largest where some are tiny."""
    scale = np.max(np.abs(truth), initial=0.0)
    assert_allclose(got, truth, rtol=rtol, atol=1e-3 * rtol * scale, err_msg=what)


def _check_offers(lik: Likelihood, y: float) -> None:
    known: dict[str, Callable[[], Any]] = {
        "tilted": lambda: lik.tilted(y, _grid()),
        "derivatives": lambda: lik.derivatives(y, _MEANS),
        "expected": lambda: lik.expected(y, _grid()),
        "mixture": lambda: lik.mixture(y, _grid()),
    }
    assert "tilted" in lik.offers, "a likelihood must offer tilted moments"
    assert lik.offers <= known.keys(), f"offers may contain only {sorted(known)}"
    if lik.quadratic:
        _, d2, d3 = lik.derivatives(y, _MEANS)
        assert not np.any(d3), "log p is not quadratic"
        assert np.all(d2 == d2[0]), "the curvature of log p is not constant"
    for name in known.keys() - lik.offers:
        assert not _is_given(known[name]), f"{name} is not offered, but does not raise an error"


def _is_given(what: Callable[[], Any]) -> bool:
    """Whether something comes back, and not an error that says why it does not."""
    try:
        what()
    except ValueError:
        return False
    return True


def _check_derivatives(lik: Likelihood, y: float) -> None:
    f = np.linspace(-6.0, 6.0, 25)
    d1, d2, d3 = lik.derivatives(y, f)
    functions: list[Callable[[Array], Array]] = [
        lambda x: lik.log_prob(y, x),
        lambda x: lik.derivatives(y, x)[0],
        lambda x: lik.derivatives(y, x)[1],
    ]
    for k, (function, d) in enumerate(zip(functions, (d1, d2, d3), strict=True)):
        # Rounding of the function over the step, 1e-13, and the fourth-order error, 1e-12.
        size = 1.0 + np.max(np.abs(function(f)))
        message = f"derivatives(y, f)[{k}] is not the derivative of what comes before it"
        assert_allclose(d, _slope(function, f), rtol=1e-8, atol=1e-9 * size, err_msg=message)
    assert np.all(d2 <= 0.0) or not lik.concave, "log p(y|f) is not concave in f"


def _check_parameters(lik: Likelihood, y: float) -> None:
    theta, (low, high) = lik.theta, lik.bounds.T
    assert len(lik.names) == len(theta), "names and theta differ in length"
    assert np.all((low <= theta) & (theta <= high)), "theta is not within its bounds"
    f = np.linspace(-2.0, 2.0, 5)
    again = lik.with_theta(theta).log_prob(y, f)
    assert_allclose(again, lik.log_prob(y, f), rtol=1e-10, err_msg="with_theta(theta)")
    slopes = lik.in_theta(lambda other: other.log_prob(y, f))
    for k, e in enumerate(1e-4 * np.eye(len(theta))):
        ends = [lik.with_theta(theta + h * e).log_prob(y, f) for h in (-1.0, 1.0)]
        message = f"in_theta is not the derivative in {lik.names[k]}"
        # Second-order differences: 1e-8 of the third derivative.
        assert_allclose(
            slopes[k], (ends[1] - ends[0]) / 2e-4, rtol=1e-5, atol=1e-6, err_msg=message
        )


def _check_mixture(lik: Likelihood, y: float) -> None:
    q = _grid()
    bound, d1, d2 = lik.mixture(y, q)
    truth = _quad(lambda f: lik.log_prob(y, f), q)
    assert np.all(bound <= truth + 1e-9 * np.abs(truth)), "mixture: not a lower bound of E log p"
    assert np.all(bound <= lik.tilted(y, q).log_z), "mixture: not a lower bound of log E p"
    assert np.all(d2 <= 0.0), "mixture: a site has a negative precision"

    def at(h: float) -> Array:
        return lik.mixture(y, Marginals(q.mean, q.variance * np.exp(h))).log_z

    along = _slope(lambda m: lik.mixture(y, Marginals(m, q.variance)).log_z, q.mean)
    # Differences of fourth order keep about ten digits.
    assert_allclose(d1, along, rtol=1e-7, atol=1e-8, err_msg="mixture: d1 is not its slope")
    got, message = 0.5 * d2 * q.variance, "mixture: d2 is not twice its slope in the variance"
    assert_allclose(got, slope(at, _STEP), rtol=1e-7, atol=1e-8, err_msg=message)


def _check_tilted(lik: Likelihood, y: float) -> None:
    c = _grid()
    moments = lik.tilted(y, c)
    truth = np.log(_quad(lambda f: np.exp(lik.log_prob(y, f)), c))
    _close(moments.log_z, truth, 1e-8, "tilted: log_z is not log E p(y|f)")
    _check_slopes("tilted", lik, lambda m: lik.tilted(y, Marginals(m, c.variance)), c.mean)
    v = c.variance
    c3, c4 = lik.cumulants(y, c)
    # Differences of d2 lose nine digits at second order, on cumulants measured in units of v.
    third = _slope(lambda m: lik.tilted(y, Marginals(m, v)).d2, c.mean)
    assert_allclose(c3 / v**1.5, v**1.5 * third, atol=1e-6, err_msg="cumulants: the third")
    sd = np.sqrt(v)
    fourth = bend(lambda h: lik.tilted(y, Marginals(c.mean + h * sd, v)).d2, 0.02) / v
    assert_allclose(c4 / v**2, v**2 * fourth, atol=1e-5, err_msg="cumulants: the fourth")


def _check_slopes(
    name: str, lik: Likelihood, moments: Callable[[Array], Moments], m: Array
) -> None:
    _, d1, d2 = moments(m)
    # Difference quotients keep about ten digits, of numbers of order one.
    for got, k in ((d1, 0), (d2, 1)):
        slope = _slope(lambda x, k=k: moments(x)[k], m)  # type: ignore[misc]
        message = f"{name}: d{k + 1} is not the derivative of what comes before it"
        assert_allclose(got, slope, rtol=1e-7, atol=1e-8, err_msg=message)
    assert np.all(d2 <= 0.0) or not lik.concave, f"{name}: d2 > 0 for a log-concave likelihood"


def _check_expected(lik: Likelihood, y: float) -> None:
    q = _grid()
    truth = _quad(lambda f: lik.log_prob(y, f), q)
    _close(lik.expected(y, q).log_z, truth, 1e-8, "expected: not E log p(y|f)")
    _check_slopes("expected", lik, lambda m: lik.expected(y, Marginals(m, q.variance)), q.mean)


def _check_defaults(lik: Likelihood, y: float) -> None:
    """Compare the closed forms with the numerical defaults, over a wide range."""
    m, v = np.meshgrid([-30.1, -1.3, 0.17, 29.0], [1e-6, 1e-2, 1.0, 1e2, 1e6])
    c = Marginals(m.ravel(), v.ravel())
    pairs = [("tilted", lik.tilted(y, c), numerical.tilted(lik, y, c))]
    pairs += [("expected", lik.expected(y, c), numerical.expected(lik, y, c))]
    for name, got, truth in pairs:
        # The expectation of a rate e^f overflows for the largest variances.
        fine = np.isfinite(truth[0])
        for k in range(3):
            message = f"{name}[{k}] and its numerical default disagree"
            # Sums that cancel to zero are left with the rounding of their terms.
            atol = 1e-14 * np.max(np.abs(truth[k][fine]))
            assert_allclose(got[k][fine], truth[k][fine], rtol=1e-9, atol=atol, err_msg=message)
    for k, *pair in zip((3, 4), lik.cumulants(y, c), numerical.cumulants(lik, y, c), strict=True):
        got, truth = (cumulant / np.sqrt(c.variance) ** k for cumulant in pair)
        message = f"cumulant {k} and its numerical default disagree"
        assert_allclose(got, truth, rtol=1e-9, atol=1e-9, err_msg=message)


def _check_power(lik: Likelihood, y: float) -> None:
    first = lik.power(1.0)
    f = np.linspace(-3.0, 3.0, 7)
    message = "power(1.0) changes the likelihood"
    assert_allclose(first.log_prob(y, f), lik.log_prob(y, f), rtol=1e-12, err_msg=message)
    if "tilted" not in first.offers:
        return
    for got, truth in zip(first.tilted(y, _grid()), lik.tilted(y, _grid()), strict=True):
        _close(got, truth, 1e-8, message)


def _check_samples(lik: Likelihood, ys: Sequence[float], draws: int) -> None:
    rng = np.random.default_rng(0)
    for f in (-0.8, 0.3, 1.5):
        sample = lik.sample(np.full(draws, f), rng)
        assert np.all(SUPPORTS[lik.support](sample)), f"samples are not {lik.support}"
        for y in ys:
            p, below = _distribution(lik, y, f)
            share = np.mean(sample <= y if below else sample == y)
            # Five standard errors: a false alarm in a million.
            tolerance = 5.0 * np.sqrt(max(p * (1.0 - p), 0.0) / draws) + 1e-9
            message = f"samples at f = {f} do not follow exp(log_prob) at y = {y}"
            assert abs(share - p) <= tolerance, message
        if "derivatives" in lik.offers and lik.support != "signs":
            _check_scores(lik, sample, f)


def _check_scores(lik: Likelihood, sample: Array, f: float) -> None:
    """Compare with two averages that vanish for every density: of ∂log p, and of (∂²p)/p."""
    d1, d2, _ = lik.derivatives(sample, np.full(len(sample), f))
    for what in (d1, d2 + d1**2):
        error = np.std(what) / np.sqrt(len(sample))
        message = f"samples at f = {f} do not follow exp(log_prob)"
        assert abs(np.mean(what)) <= 6.0 * error, message


def _distribution(lik: Likelihood, y: float, f: float) -> tuple[float, bool]:
    """Return P(Y ≤ y) and True, or P(Y = y) and False, after comparing the two where they exist."""
    at = np.array([f])
    if lik.support == "signs":
        return _probability(lik, y, f), False
    if not _is_given(lambda: lik.cdf(y, at)):
        if lik.support in {"counts", "codes"}:
            return _probability(lik, y, f), False
        start = 0.0 if lik.support == "positive" else -np.inf
        return float(integrate.quad(lambda t: _probability(lik, t, f), start, y)[0]), True

    def below(t: float) -> float:
        return float(lik.cdf(t, at)[0])

    if lik.support in {"counts", "codes"}:
        jump = below(y) - below(y - 1.0)
    else:
        jump = float(slope(lambda h: np.asarray(below(y + h)), _STEP * min(1.0, abs(y))))
    p, message = _probability(lik, y, f), f"cdf at y = {y} does not belong to log_prob"
    # Where the distribution function is flat no target can be: a limit stands for all beyond it.
    assert jump == 0.0 or abs(jump - p) <= 1e-7 * (1.0 + p), message
    return below(y), True


def _probability(lik: Likelihood, y: float, f: float) -> float:
    return float(np.exp(lik.log_prob(y, np.array([f])))[0])


def _check_response(lik: Likelihood, draws: int) -> None:
    """Compare with averages over the Gaussian, and the averages with samples."""
    rng, f = np.random.default_rng(1), np.array([-0.8, 0.3, 1.5])
    sample = lik.sample(np.repeat(f[:, None], draws, axis=1), rng)
    mean, variance = lik.mean(f), lik.variance(f)
    # What is too rare to be drawn counts up to ten times.
    error = np.std(sample, axis=1) / np.sqrt(draws) + 2.0 / draws
    assert np.all(np.abs(np.mean(sample, axis=1) - mean) <= 6.0 * error), "mean(f) of samples"
    square = (sample - mean[:, None]) ** 2
    error = np.std(square, axis=1) / np.sqrt(draws) + 2.0 / draws
    # A variance that is infinite, or is known badly since squares hardly have one, tells nothing.
    known = np.isfinite(variance) & (error < 0.05 * variance)
    gap = np.abs(np.mean(square, axis=1) - variance)
    assert np.all((gap <= 6.0 * error) | ~known), "variance(f) is not that of samples"
    q = Marginals(*(x.ravel() for x in np.meshgrid([-3.0, 0.2, 2.0], [0.01, 1.0, 4.0])))
    got, (m, v) = lik.response(q), numerical.response(lik, q)
    _close(got.mean, m, 1e-8, "response: the mean")
    _close(got.variance, v, 1e-8, "response: the variance")
    if lik.support in {"counts", "positive"}:
        for log, part, power in zip(lik.log_response(q), got, (1.0, 0.5), strict=True):
            _close(np.exp(log), part**power, 1e-8, "log_response")


def _quad(function: Callable[[Array], Array], q: Marginals) -> Array:
    """Return averages under Gaussians, by panels broken where p may bend."""
    return np.array([_quad_one(function, m, v) for m, v in zip(*q, strict=True)])


def _quad_one(function: Callable[[Array], Array], m: float, v: float) -> float:
    """Halve all panels until the average does not change any more."""
    sd = np.sqrt(v)
    # A target that contradicts the Gaussian counts up to twenty standard deviations away.
    ends = {m + k * sd for k in (-20.0, -12.0, -6.0, -3.0, 0.0, 3.0, 6.0, 12.0, 20.0)}
    edges = sorted(ends | {x for x in (-4.0, 0.0, 4.0) if abs(x - m) < 20.0 * sd})
    x, w = np.polynomial.legendre.leggauss(16)
    last = np.inf
    for pieces in 2 ** np.arange(2, 12):
        places = np.arange(pieces * (len(edges) - 1) + 1) / pieces
        cuts = np.interp(places, np.arange(len(edges)), edges)[:, None]
        half = 0.5 * np.diff(cuts, axis=0)
        f = cuts[:-1] + half * (1.0 + x)
        terms = half * w * function(f) * np.exp(-0.5 * (f - m) ** 2 / v)
        total = float(np.sum(terms))
        if abs(total - last) <= 1e-11 * np.sum(np.abs(terms)):
            return float(total / (sd * np.sqrt(2.0 * np.pi)))
        last = total
    raise AssertionError(f"p(y|f) is too rough between {edges[0]:.3g} and {edges[-1]:.3g}")
