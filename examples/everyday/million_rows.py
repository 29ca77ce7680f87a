"""
A million rows from a file
==========================

A table of a million rows in a Parquet file, read in batches and never loaded whole. With inducing
points every row counts, in time proportional to their number, and the answers are those of a small
table: leave-one-out, a learning curve, suspects. (The short version has 20,000 rows.)
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, learning_curve
from cavity.rows import ParquetRows

ROWS = 20_000 if "--quick" in sys.argv[1:] else 1_000_000
POINTS = 60 if "--quick" in sys.argv[1:] else 200
rng = np.random.default_rng(0)


def part(n):
    """Return some rows as an Arrow table; one label in fifty is wrong."""
    X = rng.normal(size=(n, 3))
    p = 1.0 / (1.0 + np.exp(-3.0 * (np.sin(2.0 * X[:, 0]) + X[:, 1])))
    label = (rng.uniform(size=n) < p) ^ (rng.uniform(size=n) < 0.02)
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": label})


# %%
# The file is written batch by batch, and read in the same way.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "table.parquet"
    first = part(ROWS // 10)
    with pq.ParquetWriter(path, first.schema) as writer:
        for rows in [first, *(part(ROWS // 10) for _ in range(9))]:
            writer.write_table(rows)
    table = ParquetRows(path, target="label")
    model = GaussianProcessClassifier(1.0 * RBF([1.0] * 3), n_inducing=POINTS, random_state=0)
    model.fit(table)
    print(f"{ROWS:,} rows, {POINTS} inducing points: {model.kernel_}")
    print(f"the last doubling of the points gained {model.inducing_gain_:.0f} nats")
    curve = learning_curve(model)

# %%
# How much of that was needed? The curve says it without another fit.

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.2), layout="constrained")
axes[0].plot(curve.train_sizes, curve.test_log_loss, "o-", color="#1f5f8b")
axes[0].set(xscale="log", xlabel="rows", ylabel="log loss on unseen rows")
at = np.linspace(-2.5, 2.5, 80)
a, b = (part.ravel() for part in np.meshgrid(at, at))
grid = pd.DataFrame({"a": a, "b": b, "c": 0.0})
p = model.predict_proba(grid)[:, 1].reshape(80, 80)
axes[1].contourf(at, at, p, np.linspace(0.0, 1.0, 11), cmap="RdBu_r", alpha=0.7)
axes[1].plot(*model.inducing_points_[:, :2].T, "o", ms=4.0, mfc="#ffd23f", mec="black", mew=0.6)
axes[1].set(xlabel="a", ylabel="b", xlim=(-2.5, 2.5), ylim=(-2.5, 2.5))
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "million_rows.png", dpi=120)
