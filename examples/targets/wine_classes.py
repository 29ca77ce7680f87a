"""
Three wines, one model
======================

178 wines of three cultivars, and thirteen chemical measurements (scikit-learn's). One model of all
classes has a function for each of them, all with the same kernel, and the wine is of the class
whose function is largest. Its class probabilities sum to one without mending.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier
from cavity.model_selection import loo_losses

wine = load_wine()
X, y = StandardScaler().fit_transform(wine.data), wine.target

# %%
# One model of all classes beside three of one class against the rest: each wine is predicted from
# all others.

for way in ("multinomial", "one_vs_rest"):
    clf = GaussianProcessClassifier(1.0 * RBF(3.0), multi_class=way, hyperprior="hierarchical")
    losses = loo_losses(clf.fit(X, y), y)
    print(
        f"{way:12s} leave-one-out: {np.sum(losses.error):.0f} of {len(y)} wrong, log loss "
        f"{np.mean(losses.log_loss):.3f}"
    )

# %%
# In a plane the classes overlap a little more, and the map can be drawn: the colour is the mixture
# of the three probabilities.

flat = PCA(2).fit_transform(X)
clf = GaussianProcessClassifier(1.0 * RBF(2.0), multi_class="multinomial").fit(flat, y)
a, b = np.meshgrid(np.linspace(-5.0, 5.0, 120), np.linspace(-4.5, 4.5, 100))
proba = clf.predict_proba(np.column_stack([a.ravel(), b.ravel()]))
colours = np.array([[0.12, 0.37, 0.55], [0.82, 0.46, 0.16], [0.35, 0.60, 0.35]])
figure, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
mixed = 1.0 - 0.6 * (proba @ (1.0 - colours))
ax.imshow(mixed.reshape(*a.shape, 3), origin="lower", extent=(-5.0, 5.0, -4.5, 4.5), aspect="auto")
for k, colour in enumerate(colours):
    ax.scatter(*flat[y == k].T, s=16, color=colour, edgecolor="white", lw=0.5)
ax.set(xlabel="first principal component", ylabel="second")
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "wine_classes.png", dpi=120)
