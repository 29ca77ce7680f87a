"""
None, some, marked: classes in an order
=======================================

84 patients with arthritis had a new treatment or a placebo, and improved not at all, some, or
markedly. These classes have an order. With ``likelihood="ordinal"`` there is one function, and the
class says between which of its thresholds it lies, plus noise; so a patient who improved some is
evidence that similar ones did not do badly, either.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cavity import GaussianProcessClassifier
from cavity.datasets import load_arthritis
from cavity.model_selection import loo_losses

data = load_arthritis()
X, y, names = data.data, data.target, data.target_names
scale = np.array([1.0, 1.0, 20.0])
kernel = 1.0 * RBF(2.0, (0.3, 30.0)) + ConstantKernel(1.0, "fixed")

# %%
# The ordinal model beside one of three classes without an order, and the classes' shares. How many
# ranks the middle of a prediction is off counts a marked improvement that was predicted as none
# twice.


def ranks_off(proba):
    """Return by how many ranks the middle of each prediction is off, on average."""
    return np.mean(np.abs(np.argmax(np.cumsum(proba, axis=1) >= 0.5, axis=1) - y))


ordinal = GaussianProcessClassifier(kernel, likelihood="ordinal").fit(X / scale, y)
classes = GaussianProcessClassifier(kernel, multi_class="multinomial").fit(X / scale, y)
for name, clf in (("in an order", ordinal), ("three classes", classes)):
    losses = loo_losses(clf, y)
    print(
        f"{name:14s} leave-one-out: log loss {np.mean(losses.log_loss):.3f}, error "
        f"{np.mean(losses.error):.2f}, ranks off {ranks_off(clf.loo_proba_):.2f}"
    )
shares = np.bincount(y) / len(y)
print(f"shares only    log loss {-np.mean(np.log(shares[y])):.3f}")

# %%
# How likely each outcome is by age, for women and men, treated or not.

age = np.linspace(23.0, 74.0, 60)
figure, axes = plt.subplots(1, 4, figsize=(10.0, 2.8), sharey=True, layout="constrained")
for ax, (treated, male) in zip(axes, [(1, 0), (0, 0), (1, 1), (0, 1)], strict=True):
    rows = np.column_stack([np.full(60, treated), np.full(60, male), age])
    proba = ordinal.predict_proba(rows / scale)
    ax.stackplot(age, proba.T, labels=names, colors=["#d9d9d9", "#8fb3cc", "#1f5f8b"])
    who, what = "men" if male else "women", "treated" if treated else "placebo"
    ax.set(title=f"{who}, {what}", xlabel="age", xlim=(23.0, 74.0), ylim=(0.0, 1.0))
axes[0].set_ylabel("probability")
axes[0].legend(loc="lower left", fontsize=8)
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "arthritis_ranks.png", dpi=120)
