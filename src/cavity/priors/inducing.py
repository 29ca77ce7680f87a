"""A prior that sees its rows through inducing points, and its posterior of m² numbers.

With K_ZZ = L Lᵀ at the m inducing points Z, W = L⁻¹ and P = k(X, Z) Wᵀ, the latent values are
f = P u + e with u ~ N(0, I) and independent e of variance r = k(x, x) − |P_i|². What
the rows add to the posterior of u are two sums, so rows can be visited in blocks, in any order.
"""

from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from cavity.arrays import (
    Array,
    NotPositiveDefiniteError,
    add_to_diagonal,
    cholesky,
    clip,
    column_square_sums,
    gram,
    invert_lower,
    is_numpy_array,
    lower_product,
    matmul,
    mirrored,
    namespace,
    pivots,
    signed_gram,
)
from cavity.priors.base import PRIORS, KernelRule
from cavity.priors.factor import half_log_det
from cavity.sites import Local, Marginals, Rows, Sites, Slope, cavity


class Features(NamedTuple):
    """Some rows as seen from the inducing points."""

    X: Any
    P: Array
    prior: Array
    """k(x, x)."""
    left: Array
    """r, the variance of each row that the inducing points leave; its site acts on it, too."""
    beyond: Array | float = 0.0
    """The rest of it, on which no site acts: all but the kernel's noise, under a bound."""

    def scaled(self, sites: Sites) -> tuple[Array, Sites]:
        """Return e = 1 + τ r and the sites on P u that the rows' own sites are equivalent to."""
        e = 1.0 + sites.tau * self.left
        return e, Sites(sites.tau / e, sites.nu / e)

    def sums(self, sites: Sites) -> "Sums":
        """Return what these rows add to the posterior of u."""
        e, (D, nu) = self.scaled(sites)
        xp = namespace(self.P)
        G = gram(xp.sqrt(D)[:, None] * self.P)
        return Sums(G, matmul(self.P.T, nu), 0.5 * float(xp.sum(xp.log(e))))


class Sums(NamedTuple):
    """All that the posterior of u needs from the rows."""

    gram: Array
    """P' D P; NumPy fills in the lower triangle only."""
    pull: Array
    """P' ν."""
    half_log_e: float


class Whitened(NamedTuple):
    """The posterior N(w, A⁻¹) of u, A = I + P' D P and V = chol(A)⁻¹."""

    V: Array
    w: Array
    half_log_det: Any

    @classmethod
    def of(cls, sums: Sums) -> "Whitened":
        """Return the posterior given what all rows add up to."""
        L = cholesky(add_to_diagonal(1.0 * sums.gram, 1.0))
        log_det = half_log_det(L) + sums.half_log_e
        return cls(invert_lower(L), sums.pull, log_det).under(sums)

    def under(self, sums: Sums) -> "Whitened":
        """Return the posterior with the same precisions and other sources."""
        return self._replace(w=self.solve(sums.pull))

    def solve(self, v: Array) -> Array:
        """Return A⁻¹ v."""
        return lower_product(self.V, lower_product(self.V, v), transpose=True)

    def spread(self, P: Array) -> Array:
        """Return the posterior variance of each row of P u."""
        return column_square_sums(lower_product(self.V, P.T))

    def alpha(self, seen: Features, sites: Sites) -> Array:
        """Return α = ν − τ μ of each row."""
        _, (D, nu) = seen.scaled(sites)
        return nu - D * matmul(seen.P, self.w)

    def local(self, seen: Features, sites: Sites, spread: Array | None = None) -> Local:
        """Return what the posterior says about each row; ``spread`` may be known."""
        e, (D, nu) = seen.scaled(sites)
        m, s = matmul(seen.P, self.w), self.spread(seen.P) if spread is None else spread
        q = Marginals((m + seen.left * sites.nu) / e, seen.left / e + s / e**2)
        eps = float(namespace(s).finfo(s.dtype).eps)
        rest = clip(1.0 - D * s, low=eps) / e
        return Local(q, sites, nu - D * m, rest, seen.prior, seen.beyond)


class InducingPrior(NamedTuple):
    """Latent values f = P u + e, e independent from row to row (FITC).

    With ``whole=False`` the sites act on P u alone, and the rest of the variance is left to the
    method, as in the variational bound.
    """

    rule: KernelRule
    Z: Any
    W: Array
    whole: bool = True
    name: str = ""
    """By which rows can tell that they have seen it."""

    @property
    def dense(self) -> bool:
        """Rows may come in blocks."""
        return False

    @classmethod
    def of(
        cls, rule: KernelRule, Z: Any, *, whole: bool = True, tol: float = 1e-13
    ) -> "InducingPrior":
        """Return the prior of a covariance function with the given inducing points.

        Parameters
        ----------
        rule : KernelRule
        Z : array of shape (m, d)
        whole : bool, default True
        tol : float, default 1e-13
            Points to whose variance the others leave no more than this share are left out: they
            add nothing, and the covariance matrix of all would be singular.
        """
        K = rule.matrix(Z, Z)
        xp = namespace(K)
        if not is_numpy_array(K):
            K = add_to_diagonal(K, tol * xp.linalg.diagonal(K))
            return cls(rule, Z, invert_lower(cholesky(K)), whole, uuid4().hex)
        if not xp.all(xp.isfinite(K)):
            raise NotPositiveDefiniteError("some of its entries are not finite")
        largest = float(xp.max(xp.linalg.diagonal(K), initial=0.0))
        if not largest > 0.0:
            raise NotPositiveDefiniteError("nothing but noise varies at the inducing points")
        L, order = pivots(K, tol * largest)
        return cls(rule, Z[order], invert_lower(L), whole, uuid4().hex)

    def features(self, rows: Rows) -> Features:
        """Return the rows as seen from the inducing points, kept between visits if possible."""
        if rows.memo is None or not self.name:
            return self._features(rows.X)
        return rows.memo.of(self.name, partial(self._features, rows.X))  # type: ignore[no-any-return]

    def _features(self, X: Any) -> Features:
        P, k = self.cross(X), self.rule.diag(X)
        left = left_over(k, P)
        if self.whole:
            return Features(X, P, k, left)
        noise = namespace(k).minimum(self.rule.noise(X), left)
        return Features(X, P, k, noise, left - noise)

    def sums(self, seen: Features, sites: Sites) -> Sums:
        """Return what a block of rows adds to the posterior."""
        return seen.sums(sites)

    def condition(self, sums: Sums | None = None) -> "InducingPosterior":
        """Return the posterior; of nothing, the prior itself."""
        if sums is None:
            zero = namespace(self.W).zeros_like(self.W)
            sums = Sums(zero, zero[0, :], 0.0)
        return InducingPosterior(self, Whitened.of(sums))

    @property
    def points(self) -> Any:
        """The inputs that new ones are compared with."""
        return self.Z

    def cross(self, X: Any) -> Array:
        """Return P = k(X, Z) W', the inputs in the coordinates of u."""
        return lower_product(self.W, self.rule.matrix(X, self.Z).T).T

    def contracted(self, X: Any, H: Array, g: Array, own: Array) -> Array:
        """Return the part of a gradient that comes from the rows' own covariances.

        Half the weights of k(X, Z) are in H, those of k(x, x) in g; M_ii are ``own``.
        """
        theta = self.rule.vjp(X, self.Z, 2.0 * H) + self.rule.vjp_diag(X, g)
        # Under the bound, too, sites act on the kernel's noise.
        return theta if self.whole else theta + self.rule.vjp_noise(X, own - g)


class InducingPosterior(NamedTuple):
    """The posterior of an inducing prior: m² numbers, whatever the number of rows."""

    prior: InducingPrior
    values: Whitened

    @property
    def half_log_det(self) -> Any:
        """½ log det(I + K T)."""
        return self.values.half_log_det

    def local(self, seen: Features, sites: Sites | None) -> Local:
        """Return what the posterior says about each row of a block."""
        return self.values.local(seen, _given(seen, sites))

    def left_out(self, seen: Features, sites: Sites | None, weight: Array) -> Marginals:
        """Return the cavities: one copy of each example is left out.

        Of the variance on which no site acts the other rows know nothing: it is all there.
        """
        local = self.local(seen, sites)
        c = cavity(local, weight)
        return c._replace(variance=c.variance + local.beyond)

    def under(self, sums: Sums) -> "InducingPosterior":
        """Return the posterior with the same precisions and other sources ν."""
        return self._replace(values=self.values.under(sums))

    def at(self, X: Any, variance: Array | None = None) -> Marginals:
        """Return mean and variance at new inputs, whose prior variances may be given."""
        own = self.prior.rule.diag(X) if variance is None else variance
        return self.predict(self.prior.cross(X), own)

    def predicted_mean(self, P: Array) -> Array:
        """Return the posterior mean at new inputs."""
        return matmul(P, self.values.w)

    def predict(self, P: Array, prior_variance: Array) -> Marginals:
        """Return mean and variance at new inputs, given in the coordinates of u."""
        variance = left_over(prior_variance, P) + self.values.spread(P)
        xp = namespace(variance)
        info = xp.finfo(variance.dtype)
        floor = clip(prior_variance * float(info.eps), low=float(info.smallest_normal))
        return Marginals(self.predicted_mean(P), xp.maximum(variance, floor))

    def predict_covariance(self, P: Array, prior: Array) -> Array:
        """Return the posterior covariance among new inputs, given that of the prior."""
        spread = lower_product(self.values.V, P.T)
        return prior - matmul(P, P.T) + matmul(spread.T, spread)

    def explaining(self, P: Array) -> Array:
        """Return W (m, rows): the sites take cross(x) W off the covariances of any x with these."""
        return P.T - self.values.solve(P.T)

    def contract(
        self,
        seen: Features,
        sites: Sites | None,
        slope: Slope,
        other: "InducingPosterior | None" = None,
    ) -> "Shares":
        """Return a block's share of the gradient.

        With C = P W and g the weights of k(x, x), the weights of k(X, Z) are twice
        H = (M − diag g) C, row by row; M is that of d log Z = Σ M_ij dK_ij.
        """
        W, (V, w, _) = self.prior.W, self.values
        P, sites, p = seen.P, _given(seen, sites), slope.precision
        e, (D, _) = seen.scaled(sites)
        a = self.values.alpha(seen, sites)
        v = 0.0 * a if other is None else slope.source / e - D * matmul(P, other.values.w)
        d = 0.0 * a if slope.diagonal is None else slope.diagonal
        U, VW = lower_product(V, P.T), lower_product(V, W)
        R = D - D * D * column_square_sums(U)
        own = 0.5 * a * a - 0.5 * p * R + a * v + d
        g = own if self.prior.whole else -0.5 * sites.tau
        H = lower_product(VW, U, transpose=True).T
        H *= (-0.5 * p * D)[:, None]
        H += (d - g)[:, None] * lower_product(W, P.T, transpose=True).T
        # P'H without what is the same for all blocks.
        outer = 0.0 * W
        pairs = [(a + v, w)] if other is None else [(a + v, w), (a, other.values.w)]
        for left, right in pairs:
            right = matmul(W.T, right)
            H += (0.5 * left)[:, None] * right
            outer += matmul(P.T, 0.5 * left)[:, None] * right
        theta = self.prior.contracted(seen.X, H, g, own)
        return Shares(theta, signed_gram(P, d - g), outer, p)

    def gradient(self, shares: "Shares") -> Array:
        """Return d log Z/d theta from the sum of the shares.

        k(Z, Z) has the weights −C'H = −W'P'H, in which P'DP A⁻¹ = I − A⁻¹.
        """
        rule, Z, W, V = self.prior.rule, self.prior.Z, self.prior.W, self.values.V
        theta, gram, outer, p = shares
        PH = outer + matmul(mirrored(gram), W)
        PH -= 0.5 * p * (W - lower_product(V, lower_product(V, W), transpose=True))
        return theta - rule.vjp(Z, Z, lower_product(W, PH, transpose=True))


class Shares(NamedTuple):
    """What blocks add to the gradient: their own part, and their part of P'H."""

    theta: Array
    gram: Array
    """P' diag(d − g) P; NumPy fills in the lower triangle only."""
    outer: Array
    largest: float
    """The slope's precision p, the same for all blocks."""


def left_over(prior: Array, P: Array) -> Array:
    """Return the prior variances that P does not account for."""
    return clip(prior - column_square_sums(P.T), low=0.0)


def _given(seen: Features, sites: Sites | None) -> Sites:
    """Return the sites, empty ones where a block has none."""
    if sites is not None:
        return sites
    zero = 0.0 * seen.prior
    return Sites(zero, zero)


# Without a choice of points, all inputs are inducing points.
PRIORS["inducing"] = InducingPrior.of
