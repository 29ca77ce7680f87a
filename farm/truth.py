"""Exact evidences of small problems, and EP in plain loops."""

from typing import Any

import numpy as np
from scipy.stats import norm

__all__ = ["EP_ERROR", "ep", "orthant"]

EP_ERROR = 0.19
"""Nats by which EP misses the evidence of three rows of a probit at most: log 2 − 0.8806 = −0.1874
for three equal rows under a prior that grows without bound, which are one row for the truth."""
_ROUNDS, _STILL = 5000, 1e-11


def orthant(K: Any, y: Any) -> float:
    """Return the log evidence of a probit with two or three rows (Sheppard's formula)."""
    S = np.outer(y, y) * (K + np.eye(len(y)))
    sd = np.sqrt(np.diag(S))
    R = np.clip(S / np.outer(sd, sd), -1.0, 1.0)
    angles = np.arcsin(R[np.triu_indices(len(y), 1)])
    share = {2: 0.5, 3: 0.25}[len(y)] / np.pi
    with np.errstate(divide="ignore"):
        return float(np.log(max(0.5 ** len(y) + share * float(angles.sum()), 0.0)))


def ep(K: Any, y: Any) -> float | None:
    """Return EP's log evidence of a probit, one site after the other; None if it does not settle.

    As in Rasmussen and Williams, section 3.6, with the scale of a site in a form that holds for
    sites of no weight.
    """
    n = len(y)
    tau, nu = np.zeros(n), np.zeros(n)
    for _ in range(_ROUNDS):
        before = tau.copy()
        for i in range(n):
            m, c = (part[i] for part in _cavities(K, tau, nu))
            z = y[i] * m / np.sqrt(1.0 + c)
            hazard = np.exp(norm.logpdf(z) - norm.logcdf(z))
            # Slope and curvature of log Z in the cavity's mean.
            slope, bend = y[i] * hazard / np.sqrt(1.0 + c), hazard * (z + hazard) / (1.0 + c)
            tau[i] = bend / (1.0 - c * bend)
            nu[i] = (slope + m * bend) / (1.0 - c * bend)
        if np.max(np.abs(tau - before)) <= _STILL * np.max(tau):
            return _ep_evidence(K, y, tau, nu)
    return None


def _cavities(K: Any, tau: Any, nu: Any) -> tuple[Any, Any]:
    S = np.linalg.solve(np.eye(len(tau)) + K * tau, K)
    variance, mean = np.diag(S), S @ nu
    rest = 1.0 - tau * variance
    return (mean - variance * nu) / rest, variance / rest


def _ep_evidence(K: Any, y: Any, tau: Any, nu: Any) -> float:
    m, c = _cavities(K, tau, nu)
    S = np.linalg.solve(np.eye(len(tau)) + K * tau, K)
    own = norm.logcdf(y * m / np.sqrt(1.0 + c)) + 0.5 * np.log1p(tau * c)
    own -= 0.5 * (2.0 * m * nu + c * nu**2 - tau * m**2) / (1.0 + tau * c)
    log_det = np.linalg.slogdet(np.eye(len(tau)) + K * tau)[1]
    return float(own.sum() - 0.5 * log_det + 0.5 * nu @ S @ nu)
