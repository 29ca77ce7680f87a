"""
A credit table: categories, gaps and a price for every mistake
==============================================================

A made-up table of loans with what such tables have: numbers on different scales, categories, empty
cells, and classes of which one is rare. The table goes through scikit-learn's own preprocessing;
the model tells which applications to look at by hand.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cavity import GaussianProcessClassifier

rng = np.random.default_rng(0)


def applications(n):
    """Return loans and whether they failed: by debt, and by youth if self-employed."""
    table = pd.DataFrame(
        {
            "income": np.exp(rng.normal(10.3, 0.5, n)),
            "debt": np.exp(rng.normal(8.5, 1.0, n)),
            "age": rng.integers(19, 75, n).astype(float),
            "work": rng.choice(["employed", "self-employed", "retired"], n, p=[0.6, 0.3, 0.1]),
        }
    )
    young = (table["work"] == "self-employed") * (table["age"] < 30)
    risk = -2.2 + 0.9 * np.log(table["debt"] / table["income"] + 0.05) + 1.6 * young
    fails = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-(risk + 1.6)))
    table.loc[rng.uniform(size=n) < 0.08, "income"] = np.nan
    return table, np.where(fails, "failed", "paid back")


X, y = applications(600)
X_new, y_new = applications(4000)
print(
    f"{np.mean(y == 'failed'):.0%} of 600 loans failed; {X['income'].isna().sum()} have no income"
)

# %%
# Logarithms of amounts, an indicator for what is missing, a column for each category.

amounts = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
columns = make_column_transformer(
    (amounts, ["income", "debt", "age"]), (OneHotEncoder(), ["work"]), sparse_threshold=0.0
)
logs = {name: lambda t, name=name: np.log(t[name]) for name in ("income", "debt")}
model = make_pipeline(columns, GaussianProcessClassifier("auto"))
model.fit(X.assign(**logs), y)
clf, proba = model[-1], model.predict_proba(X_new.assign(**logs))
print(f"log loss expected {log_loss(y, clf.loo_proba_):.3f}")
print(f"of 4,000 new ones {log_loss(y_new, proba):.3f}")
print(f"area under ROC of 4,000 new ones: {roc_auc_score(y_new == 'paid back', proba[:, 1]):.2f}")

# %%
# Sets of classes at a level that holds on any table: where both classes are in the set, somebody
# should look; the rest may be decided by the machine.

sets = clf.predict_set(columns.transform(X_new.assign(**logs)), level=0.9)
alone = sets.sum(axis=1) == 1
right = sets[np.arange(len(y_new)), np.searchsorted(clf.classes_, y_new)]
print(f"decided by the machine: {alone.mean():.0%}, of these right: {right[alone].mean():.0%}")
print(f"class in the set, of all: {right.mean():.0%}")

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.2), layout="constrained")
failed = proba[:, 0]
bins = np.linspace(0.0, 1.0, 26)
colours = ["#d1762a", "#1f5f8b"]
axes[0].hist([failed[y_new == c] for c in clf.classes_], bins, stacked=True, color=colours)
axes[0].legend(clf.classes_, frameon=False)
axes[0].set(xlabel="probability of failure", ylabel="new loans", yscale="log")
rows, _ = np.histogram(failed, bins)
both, _ = np.histogram(failed[~alone], bins)
axes[1].bar(bins[:-1] + 0.02, both / np.maximum(rows, 1), 0.035, color="#6b6b6b")
axes[1].set(xlabel="probability of failure", ylabel="share to look at by hand")
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "credit_table.png", dpi=120)
