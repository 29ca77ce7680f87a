"""Plots in scikit-learn's style; matplotlib is imported when the first one is drawn."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.model_selection.curve import LearningCurve
from cavity.model_selection.learning import learning_curve
from cavity.model_selection.simulation import simulate_learning_curve

_LABELS = {
    "test_error": ("held-out error rate", "held-out mean squared error"),
    "test_log_loss": ("held-out log loss", "held-out negative log density"),
    "test_brier": ("held-out Brier score", ""),
    "pool_error": ("error rate on the pool", "mean squared error on the pool"),
    "posterior_variance": ("posterior variance", "posterior variance"),
}
"""The name of each array of a curve, in classification and in regression."""
_NAMES = {name.removeprefix("test_"): name for name in _LABELS}
_DRAWN_BY = ("resampling", "sample_weight")
_LINE = {"color": "#1f5fa8", "linewidth": 1.8}
_POINTS = {"fmt": "o", "color": "#222", "markersize": 4.5, "elinewidth": 1.1, "capsize": 2.5}
_FORECAST_SIZES = 60


@dataclass(repr=False, eq=False)
class LearningCurveDisplay:
    """A drawing of a learning curve: theory as a line, refits as points, a forecast as a band.

    Make one with `from_curve` or `from_estimator`; all parameters are kept as attributes.

    Parameters
    ----------
    curve : LearningCurve
    measure : {"error", "log_loss", "brier", "pool_error", "posterior_variance"}, default "error"
    simulation : LearningCurve, optional
        From `cavity.simulate_learning_curve`.
    forecast : int, optional
        Size up to which the curve is continued.
    level : float, default 0.9
        Coverage of the forecast's interval.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
    errorbar_ : matplotlib ErrorbarContainer or None
        Of the simulation.
    forecast_line_ : matplotlib Line2D or None
    forecast_band_ : matplotlib collection or None

    Examples
    --------
    >>> import matplotlib
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier, LearningCurveDisplay
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> clf = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    >>> matplotlib.use("Agg")
    >>> display = LearningCurveDisplay.from_estimator(clf, X, y, train_sizes=[20, 50, 100])
    >>> display.ax_.get_ylabel()
    'held-out error rate'
    """

    curve: LearningCurve
    _: KW_ONLY
    measure: str = "error"
    simulation: LearningCurve | None = None
    forecast: int | None = None
    level: float = 0.9

    @classmethod
    def from_curve(
        cls,
        curve: LearningCurve,
        *,
        measure: str = "error",
        ax: Any = None,
        simulation: LearningCurve | None = None,
        forecast: int | None = None,
        level: float = 0.9,
        **line_options: Any,
    ) -> "LearningCurveDisplay":
        """Draw an existing learning curve.

        Parameters
        ----------
        curve, measure, simulation, forecast, level
            As for the class.
        ax : matplotlib Axes, optional
        **line_options
            Matplotlib options for the theory's line.

        Returns
        -------
        LearningCurveDisplay
        """
        display = cls(curve, measure=measure, simulation=simulation, forecast=forecast, level=level)
        return display.plot(ax=ax, **line_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        measure: str = "error",
        ax: Any = None,
        n_repeats: int | None = None,
        forecast: int | None = None,
        level: float = 0.9,
        random_state: Any = None,
        n_jobs: int | None = None,
        line_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> "LearningCurveDisplay":
        """Compute a learning curve and draw it.

        Parameters
        ----------
        estimator, X, y
            As in `cavity.learning_curve`.
        measure, forecast, level
            As for the class.
        ax : matplotlib Axes, optional
        n_repeats : int, optional
            Number of refits at each size, drawn with the theory; none by default.
        random_state, n_jobs
            For these refits.
        line_options : dict, optional
            Matplotlib options for the theory's line.
        **options
            ``train_sizes``, ``resampling`` and any other options of `cavity.learning_curve`.

        Returns
        -------
        LearningCurveDisplay
        """
        curve, simulation = learning_curve(estimator, X, y, **options), None
        if n_repeats is not None:
            about = {name: options[name] for name in _DRAWN_BY if name in options}
            about |= {"n_repeats": n_repeats, "random_state": random_state, "n_jobs": n_jobs}
            sizes = curve.train_sizes.astype(int)
            simulation = simulate_learning_curve(estimator, X, y, train_sizes=sizes, **about)
        display = cls(curve, measure=measure, simulation=simulation, forecast=forecast, level=level)
        return display.plot(ax=ax, **(line_options or {}))

    def plot(self, ax: Any = None, **line_options: Any) -> "LearningCurveDisplay":
        """Draw the curve on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **line_options
            Matplotlib options for the theory's line.

        Returns
        -------
        self : LearningCurveDisplay
        """
        values = self._values(self.curve)
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        marker = "o" if len(values) == 1 else None
        style = _LINE | {"marker": marker, "label": _name(self.curve)}
        (self.line_,) = self.ax_.plot(self.curve.train_sizes, values, **(style | line_options))
        self.errorbar_ = self._draw_simulation()
        self.forecast_line_, self.forecast_band_ = self._draw_forecast()
        self._label()
        return self

    def _values(self, curve: LearningCurve) -> Array:
        if self.measure not in _NAMES:
            raise ValueError(f"measure must be one of {list(_NAMES)}; got {self.measure!r}.")
        values = getattr(curve, _NAMES[self.measure])
        if values is None:
            raise ValueError(f"A {curve.task} curve has no measure {self.measure!r}.")
        return np.asarray(values)

    def _draw_simulation(self) -> Any:
        if self.simulation is None:
            return None
        error = self.simulation.standard_error.get(_NAMES[self.measure])
        return self.ax_.errorbar(
            self.simulation.train_sizes,
            self._values(self.simulation),
            yerr=None if error is None else 2.0 * np.asarray(error),
            label=_name(self.simulation) + ", ± 2 standard errors",
            zorder=3,
            **_POINTS,
        )

    def _draw_forecast(self) -> tuple[Any, Any]:
        if self.forecast is None:
            return None, None
        start = float(np.max(self.curve.train_sizes))
        if self.measure not in ("error", "log_loss"):
            raise ValueError(
                f"Only 'error' and 'log_loss' have a forecast; got measure={self.measure!r}."
            )
        if self.forecast <= start:
            raise ValueError(
                f"forecast must be larger than the largest training size {start:.0f}; "
                f"got {self.forecast!r}."
            )
        sizes = np.geomspace(start, self.forecast, _FORECAST_SIZES)
        found = self.curve.forecast(sizes, measure=self.measure, level=self.level)
        label = f"forecast, {100 * self.level:.0f} % interval"
        color = self.line_.get_color()
        band = self.ax_.fill_between(
            sizes, found.low, found.high, color=color, alpha=0.15, linewidth=0.0
        )
        (line,) = self.ax_.plot(sizes, found.value, "--", color=color, linewidth=1.5, label=label)
        return line, band

    def _label(self) -> None:
        self.ax_.set_xlabel("training examples")
        self.ax_.set_ylabel(_LABELS[_NAMES[self.measure]][self.curve.task == "regression"])
        self.ax_.grid(True, color="#dddddd", linewidth=0.6)
        self.ax_.set_axisbelow(True)
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.legend(frameon=False)


def _name(curve: LearningCurve) -> str:
    return "refits" if curve.theory == "simulation" else f"{curve.theory} theory"


def new_axes() -> Any:
    """Return empty axes of the usual size."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Drawing needs matplotlib: install it with `pip install 'cavity[plot]'`."
        ) from error
    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]
