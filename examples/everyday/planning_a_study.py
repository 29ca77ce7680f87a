"""
Planning a study from a pilot
=============================

A pilot has 100 patients. How many does the study need, so that the predictions' log loss is at most
.50 with probability .8? The plan answers from one fit of the pilot. The 432 patients that were
examined later, which the plan has not seen, show whether it was right.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier, learning_curve, plan
from cavity.datasets import load_pima

X, y = load_pima(subset="all", return_X_y=True)
order = np.random.default_rng(1).permutation(len(y))
pilot, later = order[:100], order[100:]


def model():
    """Return the pilot's model, and the study's."""
    return make_pipeline(StandardScaler(), GaussianProcessClassifier("auto"))


# %%
# A curve from the pilot, and the plan made of it. Besides the goal it lists what clinical sample
# size calculations ask for.

curve = learning_curve(model(), X[pilot], y[pilot])
found = plan(curve, log_loss=0.5)
print(found)

# %%
# What came of it: the study at several sizes, each scored on patients that were in no fit.

sizes, truth = (100, 200, 300), []
for n in sizes:
    study, fresh = order[:n], order[300:]
    p = model().fit(X[study], y[study]).predict_proba(X[fresh])
    truth.append(log_loss(y[fresh], p))
    ahead = curve.forecast(n, measure="log_loss")
    print(
        f"{n} patients: forecast {ahead.value:.3f} ({ahead.low:.3f} to {ahead.high:.3f}), ", end=""
    )
    print(f"was {truth[-1]:.3f}; met with probability {curve.probability(n, log_loss=0.5):.2f}")

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.2), layout="constrained")
at = np.geomspace(len(pilot), 1000, 25)
ahead = [curve.forecast(n, measure="log_loss") for n in at]
band = [point.low for point in ahead], [point.high for point in ahead]
axes[0].fill_between(at, *band, color="#d1762a", alpha=0.2, lw=0)
axes[0].plot(at, [point.value for point in ahead], "--", color="#d1762a", label="forecast, 90 %")
axes[0].plot(curve.train_sizes, curve.test_log_loss, "o-", color="#1f5f8b", label="from the pilot")
axes[0].plot(sizes, truth, "k*", ms=9.0, label="the study, on fresh patients")
axes[0].axhline(0.5, color="#6b6b6b", lw=0.8)
axes[0].set(xscale="log", xlabel="patients", ylabel="log loss")
axes[0].legend(frameon=False)
axes[1].plot(at, [curve.probability(n, log_loss=0.5) for n in at], color="#1f5f8b")
axes[1].axhline(0.8, color="#6b6b6b", lw=0.8)
axes[1].set(xscale="log", ylim=(0.0, 1.0), xlabel="patients", ylabel="probability of the goal")
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "planning_a_study.png", dpi=120)
