r"""
Laplace and EP on a line, beside the exact answer
=================================================

The posterior of a Gaussian process classifier is a Gaussian times one sigmoid per example, and has
no closed form. *Laplace's method* puts a Gaussian at its highest point with the curvature there.
*Expectation propagation* (EP) replaces each sigmoid by a Gaussian site. The site is chosen so that
replacing it by the sigmoid again, with all other sites in place, keeps the mean and variance.
*Assumed-density filtering* does so once per example, in one pass (here ``inference="sequential"``).

Textbooks and lecture notes draw these pictures by hand. Here they are computed, for problems small
enough to have exact answers: by quadrature for one latent value, and for a probit by orthant
probabilities of Gaussians. The notes print no numbers, so the comparison is with the exact ones.
Run as a script it writes ``output/laplace_ep_1d.png``; ``--quick`` computes the exact curves at
fewer points.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier
from cavity.inference import EP, Laplace, Problem
from cavity.likelihoods import Logit
from cavity.priors import DensePrior

QUICK = "--quick" in sys.argv[1:]
INK, LAPLACE, EP_COLOUR = "#222222", "#d1762a", "#1f5f8b"

# %%
# One latent value
# ----------------
# A prior N(0, 9) and one positive example with a logistic likelihood. The posterior is skewed: the
# mode, which Laplace uses, lies left of the mean, and the curvature there is too sharp. With a
# single site EP has the exact mean and variance.

PRIOR_VARIANCE = 9.0


def joint(f):
    """Return the density of f and the positive label."""
    return expit(f) * norm.pdf(f, scale=PRIOR_VARIANCE**0.5)


def integral(g):
    """Return the integral of g times the joint density."""
    return quad(lambda f: g(f) * joint(f), -40.0, 40.0, points=[0.0], epsabs=1e-12, limit=200)[0]


Z = integral(lambda f: 1.0)
mean = integral(lambda f: f) / Z
variance = integral(lambda f: (f - mean) ** 2) / Z
one = Problem.of(Logit(), DensePrior(np.array([[PRIOR_VARIANCE]])), np.ones(1), np.ones(1))
fits = {"Laplace": Laplace().fit(one), "EP": EP().fit(one)}
marginals = {name: fit.posterior.local().q for name, fit in fits.items()}

print("one latent value     mean  variance  log evidence  p(next is +)")
print(f"{'quadrature':15s}{mean:10.4f}{variance:10.4f}{np.log(Z):14.5f}{integral(expit) / Z:14.4f}")
for name, fit in fits.items():
    q = marginals[name]
    again = np.exp(Logit().tilted(np.ones(1), q).log_z[0])
    print(f"{name:15s}{q.mean[0]:10.4f}{q.variance[0]:10.4f}{fit.log_evidence:14.5f}{again:14.4f}")

# %%
# A process on a line
# -------------------
# Ten examples, a smooth prior with a large amplitude, and a probit. A set of labels says in which
# orthant the latent values lie after adding unit noise. The evidence, the probability of a new
# label and the density of each latent value are therefore multivariate normal distribution
# functions or ratios of them, which SciPy computes by quasi-Monte Carlo.

x = np.array([-4.2, -3.4, -2.7, -1.9, -0.8, 0.1, 0.9, 2.2, 3.1, 4.0])
y = np.array([-1, -1, -1, 1, -1, 1, 1, 1, 1, -1])
AMPLITUDE, LENGTH = 16.0, 1.6
kernel = AMPLITUDE * RBF(LENGTH)


def orthant(mean, covariance, labels):
    """Return the probability that noisy latent values have these signs."""
    signs = np.asarray(labels, dtype=float)
    noisy = (covariance + np.eye(len(signs))) * np.outer(signs, signs)
    return multivariate_normal(-signs * mean, noisy, seed=0).cdf(np.zeros(len(signs)))


def exact_proba(place):
    """Return the probability of a positive label at a place: a ratio of two evidences."""
    inputs = np.append(x, place)[:, None]
    return orthant(np.zeros(11), kernel(inputs), np.append(y, 1.0)) / evidence


def exact_density(i, values):
    """Return the posterior density of latent value i on a grid."""
    others = np.arange(len(x)) != i
    K = kernel(x[:, None])
    slope = K[others, i] / K[i, i]
    rest = K[np.ix_(others, others)] - np.outer(slope, K[i, others])
    return [
        norm.pdf(f, scale=K[i, i] ** 0.5)
        * ndtr(y[i] * f)
        * orthant(slope * f, rest, y[others])
        / evidence
        for f in values
    ]


evidence = orthant(np.zeros(10), kernel(x[:, None]), y)
models = {
    name: GaussianProcessClassifier(kernel, optimizer=None, inference=inference).fit(x[:, None], y)
    for name, inference in (("Laplace", "laplace"), ("EP", "ep"), ("one pass", "sequential"))
}

print(f"\nten examples on a line, log evidence\n{'exact':22s}{np.log(evidence):10.4f}")
for name, model in models.items():
    print(f"{name:22s}{model.log_marginal_likelihood_value_:10.4f}")
corrected = models["EP"].log_marginal_likelihood_value_ + models["EP"].evidence_correction_
print(f"{'EP with correction':22s}{corrected:10.4f}")

# %%
# Probabilities of a positive label between the examples, and the error of each approximation. The
# posterior is wide and skewed here. Laplace is therefore too cautious nearly everywhere, by up to
# ten percent; EP is off by about one percent at most.

line = np.linspace(-6.0, 6.0, 241)[:, None]
places = np.linspace(-5.5, 5.5, 12 if QUICK else 34)
exact = np.array([exact_proba(place) for place in places])
print("\nlargest difference from the exact probability of a label")
for name, model in models.items():
    off = np.abs(model.predict_proba(places[:, None])[:, 1] - exact)
    print(f"{name:22s}{off.max():10.4f}")

# %%
# The pictures: one latent value; one of the ten, a positive example among positive ones; the latent
# function with two standard deviations on each side; the probabilities.

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.size": 9})
figure, axes = plt.subplots(2, 2, figsize=(10.0, 6.6), layout="constrained")
(single, marginal), (latent, proba) = axes
COLOURS = {"Laplace": LAPLACE, "EP": EP_COLOUR}

f = np.linspace(-5.0, 11.0, 400)
single.fill_between(f, joint(f) / Z, color="#e4e4e4", label="exact")
single.plot(f, norm.pdf(f, scale=PRIOR_VARIANCE**0.5), ":", color="#888888", label="prior")
for name, q in marginals.items():
    single.plot(f, norm.pdf(f, q.mean[0], q.variance[0] ** 0.5), color=COLOURS[name], label=name)
single.set(title="one latent value, one positive label", xlabel="latent value f")

CHOSEN = 7
values = np.linspace(-3.0, 11.0, 29 if QUICK else 71)
density = np.array(exact_density(CHOSEN, values))
marginal.fill_between(values, density, color="#e4e4e4", label="exact")
f = np.linspace(-3.0, 11.0, 400)
for name, colour in COLOURS.items():
    [m], [v] = models[name].latent_mean_and_variance(x[[CHOSEN], None])
    marginal.plot(f, norm.pdf(f, m, v**0.5), color=colour, label=name)
marginal.set(title=f"latent value of the example at x = {x[CHOSEN]}", xlabel="latent value f")

for name, colour in COLOURS.items():
    m, v = models[name].latent_mean_and_variance(line)
    latent.fill_between(line[:, 0], m - 2 * v**0.5, m + 2 * v**0.5, color=colour, alpha=0.15, lw=0)
    latent.plot(line, m, color=colour, label=name)
    proba.plot(line, models[name].predict_proba(line)[:, 1], color=colour, label=name)
latent.axhline(0.0, color="#999999", linewidth=0.8)
latent.set(title="latent function, ± two standard deviations", xlabel="x")
proba.plot(places, exact, "o", color=INK, markersize=3, label="exact")
proba.plot(x, (y + 1) / 2, "|", color=INK, markersize=12, label="examples")
proba.set(title="probability of a positive label", xlabel="x", ylim=(-0.06, 1.06))
for ax in (single, marginal):
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_ylim(0)
for ax in axes.flat:
    ax.legend(frameon=False)

output = Path(__file__).parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "laplace_ep_1d.png", dpi=150)
