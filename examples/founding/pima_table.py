r"""
The Pima table: two mean field theories tune a kernel
=====================================================

Csató, Fokoué, Opper, Schottky and Winther, "Efficient approaches to Gaussian process
classification" (NIPS 12, 2000), tune the relevance w\ :sub:`l` of each of the seven inputs of the
Pima diabetes data, and the variance v of the noise, by two approximate free energies (minus the log
evidence). That of the *ensemble* mean field theory is an upper bound. That of the *naive* theory is
not, but needs no matrix inverse. Their kernel is

    k(x, x') = exp(−½ Σ\ :sub:`l` w\ :sub:`l` (x\ :sub:`l` − x'\ :sub:`l`)²) + v [x = x']

with a noise-free step likelihood. Their table evaluates each of the two tuned kernels with both
theories. This script prints it beside ours and adds expectation propagation, which was published a
year later. Run as a script it writes ``output/pima_table.png``; ``--quick`` skips the second start.
"""

import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.metrics import log_loss

from cavity import GaussianProcessClassifier
from cavity.datasets import load_pima

QUICK = "--quick" in sys.argv[1:]
THEORIES = ("ensemble", "naive")
COLOURS = {"ensemble": "#1f5f8b", "naive": "#d1762a", "ep": "#5a5a5a"}

# %%
# The data: 200 women for training and 332 for testing, with inputs standardised on the former. The
# relevance w of an input is expressed by a length scale 1/√w, bounded by 90 (log w ≥ −9). Inputs
# that do not matter reach this bound, and the warning about it is expected.

pima = load_pima()
X, y, names = pima.data, pima.target, list(pima.feature_names)
X_test, y_test = load_pima(subset="test", return_X_y=True)
mean, deviation = X.mean(axis=0), X.std(axis=0, ddof=1)
X, X_test = (X - mean) / deviation, (X_test - mean) / deviation
warnings.filterwarnings("ignore", message="The optimal value found", category=ConvergenceWarning)


def start(relevance):
    """Return the paper's kernel, with the same relevance for all inputs and v = 1."""
    return RBF([relevance**-0.5] * 7, (0.01, np.exp(4.5))) + WhiteKernel(1.0)


def errors(model):
    """Return the number of test errors."""
    return int(np.sum(model.predict(X_test) != y_test))


def free_energy(model):
    """Return minus the approximate log evidence."""
    return -model.log_marginal_likelihood_value_


# %%
# Tuning. Our own optimiser records the path for the picture below.


def tune(theory, kernel):
    """Return the kernel with the lowest free energy under a theory, and the steps to it."""
    path = []

    def optimizer(objective, theta, bounds):
        path.append(theta.copy())
        found = minimize(objective, theta, jac=True, bounds=bounds, callback=path.append)
        return found.x, found.fun

    model = GaussianProcessClassifier(
        kernel, optimizer=optimizer, inference=theory, likelihood="step"
    ).fit(X, y)
    return model.kernel_, path


def judge(theory, kernel):
    """Return a theory's free energy and test errors with a kernel as it is."""
    model = GaussianProcessClassifier(
        kernel, optimizer=None, inference=theory, likelihood="step"
    ).fit(X, y)
    return free_energy(model), errors(model)


tuned = {
    "ensemble": tune("ensemble", start(0.05)),
    "naive": tune("naive", start(1.0 / 7.0)),
}
found = {by: {theory: judge(theory, tuned[by][0]) for theory in THEORIES} for by in THEORIES}

# %%
# The table. The free energy is flat around its minimum, and a few test examples lie close to the
# decision boundary, so the last digit and an error or two depend on where the optimiser stops.

PUBLISHED = {
    "ensemble": {"ensemble": (100.6, 72), "naive": (183.2, 70)},
    "naive": {"ensemble": (107.0, 62), "naive": (110.9, 62)},
}
print("                     judged by ensemble theory        judged by naive theory")
print("tuned by             free energy     test errors      free energy     test errors")
for by in THEORIES:
    for who, table in (("published", PUBLISHED), ("cavity", found)):
        (F1, e1), (F2, e2) = (table[by][theory] for theory in THEORIES)
        digits = 1 if who == "published" else 2
        print(f"{by:10s}{who:>10s} {F1:11.{digits}f} {e1:15d} {F2:16.{digits}f} {e2:15d}")

# %%
# The ensemble free energy has a second minimum. Its value is the same to a hundredth, but it makes
# six errors fewer. As the authors warn, one data set cannot show which theory tunes better.

if not QUICK:
    kernel, _ = tune("ensemble", start(1.0 / 7.0))
    F, wrong = judge("ensemble", kernel)
    print(f"ensemble, started from w = 1/7: F = {F:.2f}, {wrong} errors")

# %%
# Expectation propagation, whose fixed points are those of the TAP equations, with the probit
# likelihood and a free amplitude: the same model with other parameters. Several other programs
# reach 99.58, 71 errors and a test log loss of 0.440.

ep = GaussianProcessClassifier(1.0 * RBF([1.0] * 7)).fit(X, y)
loss = log_loss(y_test, ep.predict_proba(X_test))
print(
    f"EP: F = {free_energy(ep):.2f}, its second-order correction {-ep.evidence_correction_:+.3f},"
)
print(f"    {errors(ep)} test errors, test log loss {loss:.4f}")

# %%
# The paper's figure shows the naive free energy and the test errors during tuning, starting from
# uniform relevances. Our L-BFGS takes fewer and longer steps than their gradient descent. On the
# right are the tuned relevances, with each theory's largest set to one. All agree that blood
# pressure and skin fold do not matter and that glucose, age and pedigree do. They differ on body
# mass index and the number of pregnancies.

start_kernel, path = start(1.0 / 7.0), tuned["naive"][1]
steps = [judge("naive", start_kernel.clone_with_theta(theta)) for theta in path]
relevances = {by: tuned[by][0].k1.length_scale ** -2.0 for by in THEORIES}
relevances["ep"] = ep.kernel_.k2.length_scale**-2.0

plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.size": 9})
figure = plt.figure(figsize=(10.5, 4.0), layout="constrained")
grid = figure.add_gridspec(1, 3, width_ratios=[1, 1, 1.5])
energy, count, bars = (figure.add_subplot(cell) for cell in grid)
for ax, column, published, text, title in (
    (energy, 0, 110.9, (-3, 5), "naive free energy"),
    (count, 1, 62, (-3, -12), "test errors of 332"),
):
    values = [step[column] for step in steps]
    ax.plot(values, "o-", color=COLOURS["naive"], markersize=3, linewidth=1.2)
    ax.axhline(published, color="#999999", linewidth=0.9, linestyle=(0, (4, 3)))
    ax.annotate(
        f"published {published}",
        (len(values) - 1, published),
        xytext=text,
        textcoords="offset points",
        ha="right",
        color="#777777",
    )
    ax.set(title=title, xlabel="step of the tuning")
    ax.margins(y=0.1)

labels = {"ensemble": "ensemble", "naive": "naive", "ep": "EP"}
for k, (by, w) in enumerate(relevances.items()):
    place = np.arange(7) + 0.26 * (k - 1)
    bars.barh(place, w / w.max(), 0.24, color=COLOURS[by], label=f"tuned by {labels[by]}")
bars.set_yticks(np.arange(7), names)
bars.invert_yaxis()
bars.tick_params(axis="y", length=0)
bars.set(title="relevance of each input", xlabel="$w_l$ / largest $w_l$")
bars.legend(frameon=False, loc="center right")

output = Path(__file__).parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "pima_table.png", dpi=150)
