"""Draw the pictures of the documentation: ``make pictures``.

Each function draws one picture, from the data and models of the page that shows it, and has its
name. All, or those named on the command line, are written to docs/pictures/.
"""

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessRegressor,
    feature_effect,
    feature_importance,
    find_suspects,
    learning_curve,
)
from cavity.datasets import load_crabs, load_pima, load_sonar

FOLDER = Path(__file__).resolve().parent / "pictures"
BLUE, ORANGE, GREY, GREEN = "#1f5f8b", "#d1762a", "#6b6b6b", "#3d8056"
STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "figure.dpi": 130,
    "savefig.facecolor": "white",
}
PICTURES: dict[str, Callable[[], Any]] = {}


def picture(draw: Callable[[], Any]) -> Callable[[], Any]:
    """Add a function to the pictures, by its name."""
    PICTURES[draw.__name__] = draw
    return draw


def panels(count: int, height: float = 2.7) -> tuple[Any, Any]:
    """Return a figure as wide as the text, with panels side by side."""
    return plt.subplots(1, count, figsize=(8.4, height), layout="constrained")


def shaded(ax: Any, model: Any, X: np.ndarray, column: int = 1) -> Any:
    """Shade the probability of a class over the range of two inputs."""
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    grid = np.meshgrid(*(np.linspace(a, b, 80) for a, b in zip(low, high, strict=True)))
    p = model.predict_proba(np.stack(grid, axis=-1).reshape(-1, 2))[:, column].reshape(80, 80)
    shade = ax.contourf(*grid, p, np.linspace(0.0, 1.0, 11), cmap="RdBu_r", alpha=0.6)
    ax.contour(*grid, p, [0.5], colors=GREY, linewidths=1.0)
    return shade


def dots(ax: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Draw the rows of two classes."""
    for label, colour in ((0, BLUE), (1, "#b2352b")):
        ax.plot(*X[y == label].T, "o", ms=3.0, color=colour, alpha=0.8)


@picture
def first() -> Any:
    """Draw what one fit of 160 rows says: suspects, what more rows bring, how sure it is."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(160, 2))
    margin = X[:, 1] - np.sin(2.0 * X[:, 0]) + 0.25 * rng.normal(size=160)
    y = (margin > 0.0).astype(int)
    wrong = np.argsort(-np.abs(margin))[[6, 22, 44]]
    y[wrong] = 1 - y[wrong]
    model = GaussianProcessClassifier(4.0 * RBF(1.0)).fit(X, y)
    curve = learning_curve(model, X, y, train_sizes=[20, 30, 45, 70, 100, 158])
    figure, axes = panels(3, 2.9)
    shaded(axes[0], model, X)
    dots(axes[0], X, y)
    suspects = [suspect.index for suspect in curve.suspects(3)]
    axes[0].plot(*X[suspects].T, "o", ms=11.0, mfc="none", mec="black", mew=1.6)
    axes[0].set(title="Which labels look wrong?", xticks=[], yticks=[])
    ahead = [curve.forecast(n) for n in np.geomspace(158, 1000, 12)]
    at = [point.size for point in ahead]
    axes[1].plot(curve.train_sizes, curve.test_error, "o-", color=BLUE, label="from one fit")
    axes[1].plot(at, [point.value for point in ahead], "--", color=ORANGE, label="forecast, 90 %")
    band = [point.low for point in ahead], [point.high for point in ahead]
    axes[1].fill_between(at, *band, color=ORANGE, alpha=0.2, lw=0)
    axes[1].set(title="Would more rows help?", xscale="log", xlabel="rows", ylabel="error")
    axes[1].set_xticks([20, 50, 158, 400, 1000], ["20", "50", "158", "400", "1000"])
    axes[1].minorticks_off()
    axes[1].set_ylim(0.0)
    axes[1].legend(frameon=False)
    reliability(axes[2], model.loo_proba_[:, 1], y)
    axes[2].set_title("How sure may I be?")
    return figure


def reliability(ax: Any, p: np.ndarray, y: np.ndarray, bins: int = 5) -> None:
    """Draw how often the class occurred against the probability that was said."""
    order = np.array_split(np.argsort(p), bins)
    said, seen = (np.array([np.mean(of[part]) for part in order]) for of in (p, y))
    error = np.sqrt(seen * (1.0 - seen) / len(order[0]))
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    ax.errorbar(said, seen, error, fmt="o", color=BLUE, capsize=2.0)
    ax.set(xlabel="leave-one-out probability", ylabel="how often it was so")


@picture
def probabilities() -> Any:
    """Draw leave-one-out probabilities of the Pima data against what happened."""
    X, y = load_pima(return_X_y=True)
    Z = StandardScaler().fit_transform(X)
    p = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(Z, y).loo_proba_[:, 1]
    figure, axes = panels(2)
    reliability(axes[0], p, y)
    axes[0].set_title("said and happened, 200 women")
    bins = np.linspace(0.0, 1.0, 16)
    axes[1].hist([p[y == 0], p[y == 1]], bins, stacked=True, color=[BLUE, ORANGE])
    axes[1].legend(["not diabetic", "diabetic"], frameon=False)
    axes[1].set(xlabel="leave-one-out probability", ylabel="rows", title="how sure it is")
    return figure


@picture
def intervals() -> Any:
    """Draw jackknife+ and the model's own quantiles under noise that is not Gaussian."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3.0, 3.0, 2100)
    y = np.sin(x) + 0.3 * rng.standard_t(2, len(x))
    reg = GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1), normalize_y=True)
    reg.fit(x[:100, None], y[:100])
    at = np.linspace(-3.0, 3.0, 200)[:, None]
    figure, axes = panels(2)
    axes[0].plot(x[:100], y[:100], ".", color=GREY)
    axes[0].fill_between(at[:, 0], *reg.predict_interval(at, 0.8), color=BLUE, alpha=0.3, lw=0)
    for edge in reg.predict_quantiles(at, [0.1, 0.9]).T:
        axes[0].plot(at[:, 0], edge, "--", color=ORANGE)
    axes[0].set(ylim=(-3, 3), title="80 %: jackknife+ (blue), quantiles (dashed)")
    levels = np.linspace(0.1, 0.95, 12)
    new, target = x[100:, None], y[100:]

    def inside(low: np.ndarray, high: np.ndarray) -> float:
        return float(np.mean((low <= target) & (target <= high)))

    plus = [inside(*reg.predict_interval(new, level)) for level in levels]
    sides = [reg.predict_quantiles(new, [0.5 - level / 2, 0.5 + level / 2]).T for level in levels]
    axes[1].plot([0, 1], [0, 1], color=GREY, lw=0.8)
    axes[1].plot(levels, plus, "o-", color=BLUE, label="jackknife+")
    axes[1].plot(levels, [inside(*side) for side in sides], "s--", color=ORANGE, label="quantiles")
    axes[1].set(xlabel="level", ylabel="share of 2,000 fresh targets inside")
    axes[1].legend(frameon=False)
    return figure


@picture
def learning_curves() -> Any:
    """Draw error and log loss of the sonar data at every size, and their forecast."""
    X, y = load_sonar(return_X_y=True)
    kernel = ConstantKernel(100.0, "fixed") * RBF(5.0)
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel)).fit(X, y)
    curve = learning_curve(model, X, y, train_sizes=[15, 25, 40, 65, 100, 150, 205])
    figure, axes = panels(2)
    for ax, (name, title) in zip(axes, (("error", "error"), ("log_loss", "log loss")), strict=True):
        values = getattr(curve, f"test_{name}")
        ahead = [curve.forecast(n, measure=name) for n in np.geomspace(205, 1500, 12)]
        at = [point.size for point in ahead]
        ax.plot(curve.train_sizes, values, "o-", color=BLUE, label="expected on unseen rows")
        ax.plot(at, [point.value for point in ahead], "--", color=ORANGE, label="forecast, 90 %")
        band = [point.low for point in ahead], [point.high for point in ahead]
        ax.fill_between(at, *band, color=ORANGE, alpha=0.2, lw=0)
        ax.set(xscale="log", xlabel="training rows", title=title, ylim=(0.0, 1.15 * values[0]))
        ax.legend(frameon=False)
    return figure


@picture
def suspects() -> Any:
    """Draw how likely the labels of crabs are wrong, twenty of which were flipped."""
    X, y = load_crabs(return_X_y=True)
    flipped = np.random.default_rng(1).choice(len(y), 20, replace=False)
    given = y.copy()
    given[flipped] = 1 - given[flipped]
    found = find_suspects(GaussianProcessClassifier(kernel="auto").fit(X, given), k=60)
    likely = np.array([(s.index, s.wrong) for s in found])
    wrong = np.isin(likely[:, 0], flipped)
    figure, ax = plt.subplots(figsize=(8.4, 2.6), layout="constrained")
    for which, colour, name in ((wrong, ORANGE, "flipped by us"), (~wrong, BLUE, "as they were")):
        ax.bar(np.flatnonzero(which) + 1, likely[which, 1], color=colour, label=name)
    ax.set(xlabel="suspects, the likeliest first", ylabel="probability of a wrong label")
    ax.legend(frameon=False)
    return figure


@picture
def inputs() -> Any:
    """Draw the importance of three inputs, and the effects of two."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 3))
    y = 3 * X[:, 0] + 0.3 * np.sin(4 * X[:, 1]) + 0.1 * rng.standard_normal(150)
    kernel = 1.0 * RBF([1.0] * 3) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    figure, axes = panels(3)
    table = feature_importance(model, X, random_state=0)
    at = np.arange(len(table))[::-1]
    middle = np.array([row.importance for row in table])
    ends = np.array([[row.low, row.high] for row in table]).T
    reach = np.abs(ends - middle)
    axes[0].errorbar(middle, at, xerr=reach, fmt="o", color=BLUE, capsize=3.0)
    axes[0].set_yticks(at, ["abc"[int(str(row.feature).removeprefix("x"))] for row in table])
    axes[0].set_xscale("symlog", linthresh=1e-3)
    axes[0].set_xticks([0.0, 0.001, 0.01, 0.1, 1.0], ["0", "0.1 %", "1 %", "10 %", "100 %"])
    axes[0].set(xlim=(-2e-4, 1.6), xlabel="share of the predictions' variance", title="importance")
    for ax, k in zip(axes[1:], (0, 1), strict=True):
        effect = feature_effect(model, X, k)
        ax.plot(effect.values, effect.mean, color=BLUE)
        ax.fill_between(effect.values, effect.low, effect.high, color=BLUE, alpha=0.25, lw=0)
        ax.set(title=f"effect of {'abc'[k]}", xlabel="abc"[k])
    return figure


@picture
def stream() -> Any:
    """Draw a function learned from a stream, with the basis points that are kept."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-5.0, 5.0, 3000)
    y = np.sin(x) * np.exp(-0.1 * x**2) + 0.2 * rng.standard_normal(3000)
    at = np.linspace(-6.0, 6.0, 200)
    figure, axes = panels(3)
    model = OnlineGaussianProcessRegressor(RBF(1.0), alpha=0.04, budget=15)
    seen = 0
    for ax, rows in zip(axes, (10, 100, 3000), strict=True):
        model.partial_fit(x[seen:rows, None], y[seen:rows])
        seen = rows
        mean, std = model.predict(at[:, None], return_std=True)
        ax.plot(x[:rows], y[:rows], ".", ms=2.0, color=GREY, alpha=0.4)
        ax.plot(at, mean, color=BLUE)
        ax.fill_between(at, mean - 2 * std, mean + 2 * std, color=BLUE, alpha=0.25, lw=0)
        basis = model.basis_points_[:, 0]
        ax.plot(basis, np.full(len(basis), -1.4), "|", color=ORANGE)
        ax.set(title=f"{rows:,} rows, {len(basis)} basis points", ylim=(-1.6, 1.6))
    return figure


@picture
def large() -> Any:
    """Draw what 8 and 50 inducing points make of 20,000 rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.7 * rng.normal(size=20_000) > 0.0).astype(int)
    figure, axes = panels(2, 3.0)
    for ax, count in zip(axes, (8, 50), strict=True):
        model = GaussianProcessClassifier(1.0 * RBF(1.0), n_inducing=count, random_state=0)
        model.fit(X, y)
        shown = X[:1500]
        shaded(ax, model, shown)
        ax.plot(*shown.T, ".", ms=1.2, color=GREY, alpha=0.5)
        ax.plot(*model.inducing_points_.T, "o", ms=5.0, mfc="#ffd23f", mec="black", mew=0.8)
        evidence = model.log_marginal_likelihood_value_
        ax.set(title=f"{count} points, log evidence {evidence:,.0f}", xticks=[], yticks=[])
        ax.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
    return figure


@picture
def best_input() -> Any:
    """Draw the probability of success of recipes, and three ways up to the best one."""
    rng = np.random.default_rng(0)
    X = rng.uniform([150, 0], [250, 10], (150, 2))
    score = 2.5 - ((X[:, 0] - 190) / 20) ** 2 - ((X[:, 1] - 6) / 2) ** 2
    y = (score + rng.standard_normal(150) > 0).astype(int)
    clf = GaussianProcessClassifier(4.0 * RBF([30.0, 3.0])).fit(X, y)
    figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
    shade = shaded(ax, clf, X)
    figure.colorbar(shade, label="probability of success")
    dots(ax, X, y)
    for start in ([215.0, 2.5], [165.0, 9.0], [225.0, 8.0]):
        path = [np.array(start)]
        minimize(
            lambda x: -clf.predict_log_proba([x])[0, 1],
            start,
            jac=lambda x: -clf.predict_gradient([x], of="log_probability")[0, 1],
            bounds=[(150, 250), (0, 10)],
            callback=path.append,
        )
        ax.plot(*np.transpose(path), ".-", color="black", lw=1.4)
    ax.plot(*path[-1], "*", ms=14.0, color="#ffd23f", mec="black")
    ax.set(xlabel="temperature", ylabel="minutes")
    return figure


@picture
def classes() -> Any:
    """Draw three classes of wine on two principal components, and how sure they are."""
    X, y = load_wine(return_X_y=True)
    X = PCA(2, random_state=0).fit_transform(StandardScaler().fit_transform(X))
    model = GaussianProcessClassifier(
        1.0 * RBF(2.0), multi_class="multinomial", hyperprior="hierarchical"
    ).fit(X, y)
    low, high = X.min(axis=0) - 1.0, X.max(axis=0) + 1.0
    grid = np.meshgrid(*(np.linspace(a, b, 120) for a, b in zip(low, high, strict=True)))
    p = model.predict_proba(np.stack(grid, axis=-1).reshape(-1, 2)).reshape(120, 120, 3)
    colours = np.array([matplotlib.colors.to_rgb(c) for c in (BLUE, ORANGE, GREEN)])
    figure, axes = panels(2, 3.0)
    extent = low[0], high[0], low[1], high[1]
    axes[0].imshow(0.35 + 0.65 * p @ colours, origin="lower", extent=extent, aspect="auto")
    for k, colour in enumerate((BLUE, ORANGE, GREEN)):
        axes[0].plot(*X[y == k].T, "o", ms=4.0, color=colour, mec="white", mew=0.6)
    axes[0].set(title="class probabilities as colours", xticks=[], yticks=[])
    sure = axes[1].contourf(*grid, p.max(axis=2), np.linspace(0.3, 1.0, 8), cmap="Greys")
    figure.colorbar(sure, ax=axes[1], label="probability of the most probable class")
    axes[1].set(title="how sure it is", xticks=[], yticks=[])
    return figure


@picture
def report() -> Any:
    """Photograph the beginning of the page about the Pima data; this needs Chromium."""
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        command = [sys.executable, "-m", "cavity", "report", "pima", "--quiet", "-o", str(page)]
        subprocess.run(command, check=True)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        options += ["--disable-background-networking", "--disable-sync", "--hide-scrollbars"]
        options += [f"--user-data-dir={folder}/profile", "--window-size=1100,1340"]
        browser = ["chromium", *options, f"--screenshot={shot}", page.as_uri()]
        subprocess.run(browser, check=True, capture_output=True)
        pixels = plt.imread(shot)
    # Pixel for pixel: what is resampled is blurred, and four times as large.
    figure = plt.figure(figsize=np.array(pixels.shape[1::-1]) / STYLE["figure.dpi"])
    figure.add_axes((0.0, 0.0, 1.0, 1.0)).imshow(pixels, interpolation="nearest")
    figure.axes[0].set_axis_off()
    return figure


def main(names: list[str]) -> None:
    """Draw these pictures, or all."""
    plt.rcParams.update(STYLE)
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    FOLDER.mkdir(exist_ok=True)
    for name in names or PICTURES:
        figure = PICTURES[name]()
        figure.savefig(FOLDER / f"{name}.png", metadata={"Software": None})
        plt.close(figure)
        print(f"docs/pictures/{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
