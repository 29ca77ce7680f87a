"""
Cleaning labels: how many are wrong, and which
==============================================

The sex of 200 crabs, with one label in ten flipped by us. One fit says how many labels are wrong,
which rows to look at for a given precision, and which other rows speak against them.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from cavity import GaussianProcessClassifier, find_suspects
from cavity.datasets import load_crabs

X, y = load_crabs(return_X_y=True)
flipped = np.random.default_rng(3).choice(len(y), 20, replace=False)
given = y.copy()
given[flipped] = 1 - given[flipped]
clf = GaussianProcessClassifier("auto").fit(X, given)

# %%
# The number is an estimate with an interval, not a list of everything that looks odd.

found = find_suspects(clf, precision=0.5)
print(found.about)
print(
    f"{len(found)} rows to look at; {np.isin(flipped, [s.index for s in found]).sum()} are flipped"
)
for suspect in found[:3]:
    against = ", ".join(str(reason.index) for reason in suspect.reasons[:3])
    print(f"row {suspect.index}: {suspect.label}, rather {suspect.suggestion}; see rows {against}")

# %%
# Correct what was confirmed, and fit again: the boundary is sharper, and less is left to doubt.

clean = given.copy()
confirmed = [s.index for s in found if s.index in flipped]  # in life: those that you looked at
clean[confirmed] = y[confirmed]
again = GaussianProcessClassifier("auto").fit(X, clean)
print("after correction:", find_suspects(again).about)
for name, model, labels in (("as given", clf, given), ("corrected", again, clean)):
    own = model.loo_proba_[np.arange(len(y)), labels]
    print(f"{name:9s} log loss of left-out rows {-np.mean(np.log(own)):.3f}")

doubts = np.sort(find_suspects(clf, k=60).to_frame()["wrong"])[::-1]
order = [s.index for s in find_suspects(clf, k=60)]
wrong = np.isin(order, flipped)
figure, ax = plt.subplots(figsize=(8.0, 3.0), layout="constrained")
for which, colour, name in (
    (wrong, "#d1762a", "flipped by us"),
    (~wrong, "#1f5f8b", "as they were"),
):
    ax.bar(np.flatnonzero(which) + 1, doubts[which], color=colour, label=name)
ax.axvline(len(found) + 0.5, color="#6b6b6b", lw=0.8)
ax.annotate("precision one half", (len(found) + 1.0, 0.9), color="#6b6b6b")
ax.set(xlabel="suspects, the worst first", ylabel="probability that the label is wrong")
ax.legend(frameon=False, loc="center right")
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "cleaning_labels.png", dpi=120)
