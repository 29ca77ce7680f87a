"""Labels turned round, and where they come in the ranking of suspects."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.metrics import roc_auc_score

from benchmarks.curves.tasks import Plan, Task, classifier, say, tasks
from benchmarks.tables import markdown
from cavity import learning_curve

__all__ = ["suspect_auc", "suspects", "suspects_page"]


def suspects(plan: Plan) -> list[dict[str, Any]]:
    """Turn 5 % of the labels round and look where they come in the ranking."""
    linear = classifier(RBF([1.0] * 6))
    linear.steps[-1][1].kernel = 1.0 * RBF([1.0] * 6) + 1.0 * DotProduct()
    some = tasks()
    models = {"Pima": some["Pima"], "crabs": some["crabs"]._replace(model=linear)}
    rows = []
    for name, task in models.items():
        for seed in range(plan.seeds):
            say(f"{name}, seed {seed + 1} of {plan.seeds}")
            rows.append({"set": name, "seed": seed, "auc": suspect_auc(task, seed)})
    return rows


def suspect_auc(task: Task, seed: int, share: float = 0.05) -> float:
    """Return how well the evidence against each label tells wrong labels from right ones."""
    n, (first, second) = len(task.y), np.unique(task.y)
    wrong = np.zeros(n, dtype=bool)
    wrong[np.random.default_rng(seed).choice(n, round(share * n), replace=False)] = True
    y = np.where(wrong, np.where(task.y == first, second, first), task.y)
    curve = learning_curve(clone(task.model), task.X, y, train_sizes=[n])
    return float(roc_auc_score(wrong, curve.point_doubt[-1]))


def suspects_page(rows: list[dict[str, Any]]) -> str:
    """Return the areas under the ROC curve."""
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        auc = np.array([row["auc"] for row in rows if row["set"] == name])
        lines.append([name, str(len(auc)), f"{auc.mean():.3f}", f"{auc.min():.3f}"])
    return "\n\n".join(
        [
            "## Suspects",
            "5 % of the labels are flipped at random and the kernel is tuned on what results; the "
            "examples are ranked by the evidence against their labels.",
            markdown(["set", "seeds", "mean AUC", "least AUC"], lines),
        ]
    )
