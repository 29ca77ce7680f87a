"""Which rows speak against a label: the leave-one-out prediction of a row, taken apart.

Without row i, the mean of its latent value is a sum over the other rows' sites,
m_i = Σ_j G_ij ν_j with G_ij = Σ_ij/(1 − τ_i Σ_ii): each row pulls with its own source, as strongly
as the two rows' latent values are correlated given all the rest.
"""

from typing import Any

import numpy as np

from cavity.arrays import Array, threads_for, to_numpy
from cavity.estimators.fitted import FittedModel
from cavity.estimators.process import FittedProcess
from cavity.inference import Fit


def can_be_taken_apart(fitted: FittedModel) -> bool:
    """Whether a model's leave-one-out predictions are known as sums over rows."""
    several = fitted.coding is not None and fitted.coding.several
    return not several and all(p.evaluation.prior.dense for p in fitted.processes)


def gains(fit: Fit, places: Array) -> Array:
    """Return G_ij for some rows i and all rows j, of shape (len(places), n).

    Other copies of a row that counts w times pull like other rows: G_ii has w − 1 of them.
    """
    posterior, weight = fit.posterior, to_numpy(fit.targets.weight)[places]
    local = posterior.local()
    rest, variance = to_numpy(local.rest)[places], to_numpy(local.q.variance)[places]
    copies = np.maximum(weight, 1.0)
    # 1 − τΣ/w, in the form that is accurate where the row's own site dominates.
    left = (1.0 - 1.0 / copies) + rest / copies
    with threads_for(posterior.prior.size):
        found = _between(fit, places)
    found[np.arange(len(places)), places] = variance * (1.0 - 1.0 / copies)
    return np.asarray(found / left[:, None])


def _between(fit: Fit, places: Array) -> Array:
    """Return the posterior covariances of some rows with all rows."""
    posterior, s = fit.posterior, np.sqrt(to_numpy(fit.posterior.sites.tau))
    if not fit.problem.likelihood.quadratic:
        return np.array(to_numpy(posterior.cross_covariance(posterior.prior.K[places])).T)
    # Σ_ij = −[B⁻¹]_ij/(s_i s_j): with little noise the other form is a difference of large numbers.
    columns = to_numpy(posterior.solve(np.eye(len(s))[:, places]))
    return np.asarray(-columns.T / s[places, None] / s)


def pulls(process: FittedProcess, places: Array) -> Array:
    """Return how far each row moves the prediction of some others, given all the rest."""
    fit = process.fits[0]
    return gains(fit, places) * to_numpy(fit.posterior.sites.nu)


def against_labels(fitted: FittedModel, places: Array, codes: Array, others: Array) -> Array:
    """Return how strongly each row speaks against the labels of some rows, (len(places), n).

    Of two or of ordered classes that is how far it moves the latent value away from the label.
    Where each class has a function, it is how far it moves that of the other class above it.

    Parameters
    ----------
    places : array of shape (m,)
        Training rows.
    codes, others : arrays of shape (m,)
        The classes of their labels, and those that the other rows predict.
    """
    processes = fitted.processes
    if len(processes) == 1:
        [process] = processes
        fit = process.fits[0]
        away = fit.problem.likelihood.tilted(fit.targets.y, process.cavities()[0]).d1
        return -np.sign(to_numpy(away)[places])[:, None] * pulls(process, places)
    found = np.zeros((len(places), len(fitted.rows.index)))
    for k, process in enumerate(processes):
        sign = (others == k).astype(float) - (codes == k)
        here = np.flatnonzero(sign)
        if len(here):
            found[here] += sign[here, None] * pulls(process, places[here])
    return found


def shares_of_targets(fitted: FittedModel, places: Array) -> Array:
    """Return the weights of all rows in the predictions of some targets, (len(places), n)."""
    fit = fitted.processes[0].fits[0]
    return np.abs(gains(fit, places) * to_numpy(fit.posterior.sites.tau))


def strongest(values: Array, k: int) -> list[tuple[Array, Any]]:
    """Return, for each row of values, the places of its k largest and their shares of the sum.

    What is not positive has no share.
    """
    positive = np.maximum(values, 0.0)
    shares = positive / np.maximum(positive.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    order = np.argsort(-shares, axis=1, kind="stable")[:, :k]
    return [
        (some[each[some] > 0.0], each[some][each[some] > 0.0])
        for some, each in zip(order, shares, strict=True)
    ]
