"""
A medical table: probabilities to act on
========================================

Who is diabetic? 200 women of the Pima study were examined; 332 others come later. The questions of
a clinic are not "which class?" but "how probable, how sure, and from which probability on do we
act?" One fit answers them before the 332 arrive. They are used only to see whether it was right.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier, feature_effect, feature_importance
from cavity.datasets import load_pima

# %%
# ``kernel="auto"`` chooses the kernel and cannot be fooled by many inputs. Leave-one-out
# probabilities, tuning included, come with the fit.

X, y = load_pima(return_X_y=True, as_frame=True)
X_new, y_new = load_pima(subset="test", return_X_y=True, as_frame=True)
model = make_pipeline(
    StandardScaler().set_output(transform="pandas"), GaussianProcessClassifier("auto")
)
model.fit(X, y)
expected = model[-1].loo_proba_
print(f"log loss expected of new women {log_loss(y, expected):.3f}")
print(f"log loss of the 332            {log_loss(y_new, model.predict_proba(X_new)):.3f}")

# %%
# **From which probability on do we act?** If to miss a case costs five times a needless
# examination, act from 1/6 on. The leave-one-out probabilities say what that will cost.

ratios = np.array([1.0, 2.0, 5.0, 10.0])
for ratio in ratios:
    act = 1.0 / (1.0 + ratio)
    said, found = ((p[:, 1] >= act) for p in (expected, model.predict_proba(X_new)))
    cost = [
        np.mean(ratio * (~choice & (truth == 1)) + (choice & (truth == 0)))
        for choice, truth in ((said, y), (found, y_new))
    ]
    print(f"a miss costs {ratio:2.0f}: act from {act:.2f}; ", end="")
    print(f"expected {cost[0]:.2f}, was {cost[1]:.2f}")

# %%
# **Which measurements matter**, and how the probability changes with the most important one.

table = feature_importance(model, X, random_state=0)
print(table)
effect = feature_effect(model, X, table[0].feature)

figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.0), layout="constrained")
order = np.array_split(np.argsort(expected[:, 1]), 6)
said = [np.mean(expected[part, 1]) for part in order]
seen = [np.mean(y.to_numpy()[part]) for part in order]
axes[0].plot([0, 1], [0, 1], color="#6b6b6b", lw=0.8)
axes[0].plot(said, seen, "o", color="#1f5f8b")
axes[0].set(xlabel="leave-one-out probability", ylabel="share of diabetics", title="calibration")
names, middle = [row.feature for row in table][::-1], [row.importance for row in table][::-1]
ends = np.array([[row.importance - row.low, row.high - row.importance] for row in table])[::-1].T
axes[1].errorbar(middle, names, xerr=np.maximum(ends, 0.0), fmt="o", color="#1f5f8b", capsize=3.0)
axes[1].set(xlabel="share of the predictions' variance", title="what matters")
axes[2].plot(effect.values, effect.mean, color="#1f5f8b")
axes[2].fill_between(effect.values, effect.low, effect.high, color="#1f5f8b", alpha=0.25, lw=0)
axes[2].set(xlabel=table[0].feature, title="average probability")
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "medical_table.png", dpi=120)
