"""Learning curves of the automatic model against refits that tune again."""

from typing import Any

import numpy as np

from benchmarks.tables import markdown
from benchmarks.trust.models import auto
from benchmarks.trust.plan import Plan, spread
from benchmarks.trust.scores import mean_and_error, on_rows
from benchmarks.trust.sets import SETS, available
from cavity import learning_curve

__all__ = ["measure", "names", "page", "refit"]

_SETS = (
    "Pima sonar crabs Boston additive Friedman "
    "breast_cancer Mroz Swiss_labour turnout one_of_thirty ring linear "
    "abalone diabetes house_prices computer_prices wages"
)
_MEASURES = {"error": "error", "log_loss": "log loss"}


def names(plan: Plan) -> list[str]:
    """Return the sets to do."""
    listed = [name.replace("_", " ") for name in _SETS.split()]
    some = [name for name in listed if name in available()]
    return [some[0], "Friedman"] if plan.quick else some


def measure(name: str, plan: Plan, jobs: int) -> list[dict[str, Any]]:
    """Compare a curve with refits at a quarter, a half and all but one of a pool."""
    kind = SETS[name].kind
    X, y = SETS[name].table(0, plan.pool)
    n = len(y)
    sizes = (n // 4, n // 2, n)
    (curve,) = spread(_curve, [(kind, X, y, sizes)], 1)
    cells = []
    for size in sizes:
        calls = [(kind, X, y, rows) for rows in _training_sets(n, size, plan)]
        found = spread(refit, calls, jobs)
        for what in _MEASURES:
            truth, error = mean_and_error([means[what] for means in found])
            cell = {"set": name, "size": size, "refits": len(found), "measure": what}
            cells.append({**cell, "curve": curve[what][size], "truth": truth, "se": error})
    return cells


def refit(kind: str, X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    """Fit and tune on some rows, and score all others."""
    rest = np.setdiff1d(np.arange(len(y)), rows)
    return on_rows(kind, auto(kind).fit(X[rows], y[rows]), X[rest], y[rest]).means()


def _curve(kind: str, X: np.ndarray, y: np.ndarray, sizes: tuple[int, ...]) -> dict[str, Any]:
    curve = learning_curve(auto(kind).fit(X, y), X, y, train_sizes=list(sizes))
    return {
        what: dict(zip(sizes, map(float, getattr(curve, f"test_{what}")), strict=True))
        for what in _MEASURES
    }


def _training_sets(n: int, size: int, plan: Plan) -> list[np.ndarray]:
    """Draw training sets; a size of n leaves out one row at a time."""
    rng = np.random.default_rng([size, 1])
    if size < n:
        return [rng.permutation(n)[:size] for _ in range(plan.refits)]
    left = rng.permutation(n)[: plan.left_out]
    return [np.delete(np.arange(n), row) for row in left]


def page(cells: list[dict[str, Any]]) -> str:
    """Return every cell, and the share that is near."""
    places = dict.fromkeys((c["set"], c["size"], c["refits"]) for c in cells)
    found = {(c["set"], c["size"], c["measure"]): c for c in cells}
    lines = [
        [*map(str, (name, m, k)), *(_cell(found[name, m, what]) for what in _MEASURES)]
        for name, m, k in places
    ]
    counts = [
        f"{title} {_count([c for c in cells if c['measure'] == what])}"
        for what, title in _MEASURES.items()
    ]
    return "\n\n".join(
        [
            "## Learning curves against refits that tune again",
            f"Cells within two standard errors or 5 % of the refits: {_count(cells)} "
            f"({', '.join(counts)}). A cell is curve / refits ± standard error; **bold** cells are "
            "misses. The last size of each set is leave-one-out.",
            markdown(["set", "size", "refits", *_MEASURES.values()], lines),
        ]
    )


def _is_near(cell: dict[str, Any]) -> bool:
    return abs(cell["curve"] - cell["truth"]) <= max(2.0 * cell["se"], 0.05 * abs(cell["truth"]))


def _cell(cell: dict[str, Any]) -> str:
    text = f"{cell['curve']:.4g} / {cell['truth']:.4g} ± {cell['se']:.1g}"
    return text if _is_near(cell) else f"**{text}**"


def _count(cells: list[dict[str, Any]]) -> str:
    near = sum(map(_is_near, cells))
    return f"{near} of {len(cells)}, {100.0 * near / len(cells):.0f} %"
