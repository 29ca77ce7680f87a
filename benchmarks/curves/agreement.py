"""The theory against refits, cell by cell: set, law, size and measure."""

from collections.abc import Iterator
from typing import Any

from sklearn.base import clone

from benchmarks.curves.tasks import Plan, Task, class_tasks, say, tasks
from benchmarks.tables import markdown
from cavity import learning_curve, simulate_learning_curve

__all__ = ["classes", "classes_page", "table", "table_page"]

_FRACTIONS = {"subsample": (0.1, 0.25, 0.5, 0.75, 0.9), "bootstrap": (0.1, 0.25, 0.5, 1.0, 2.0)}
_MEASURES = {
    "test_error": "error",
    "test_log_loss": "log loss",
    "test_brier": "Brier",
    "pool_error": "pool error",
    "posterior_variance": "variance",
}


def table(plan: Plan) -> list[dict[str, Any]]:
    """Compare theory with refits in every cell: set, law, size and measure."""
    return _compared(tasks(), plan)


def classes(plan: Plan) -> list[dict[str, Any]]:
    """Compare them for models of three classes at once."""
    return _compared(class_tasks(), plan)


def _compared(some: dict[str, Task], plan: Plan) -> list[dict[str, Any]]:
    cells = []
    for name, task in some.items():
        model = clone(task.model).fit(task.X, task.y)
        for law, fractions in _FRACTIONS.items():
            say(f"{name}, {law}")
            about = {"train_sizes": fractions, "resampling": law, "retune": False}
            refits = simulate_learning_curve(
                model, task.X, task.y, n_repeats=plan.repeats, random_state=0, **about
            )
            # What pairs of examples add is there for regression only.
            for theory in ("cavity", "pairs")[: 1 + (refits.task == "regression")]:
                curve = learning_curve(model, task.X, task.y, theory=theory, **about)
                front = {"set": name, "law": law, "by": theory}
                cells += [{**front, **cell} for cell in _cells(curve, refits)]
    return cells


def _cells(theory: Any, refits: Any) -> Iterator[dict[str, Any]]:
    for measure in _MEASURES:
        if getattr(theory, measure) is None:
            continue
        error = refits.standard_error[measure]
        columns = (theory.train_sizes, getattr(theory, measure), getattr(refits, measure), error)
        for size, ours, truth, se in zip(*columns, strict=True):
            near = abs(ours - truth) <= max(2.0 * se, 0.05 * abs(truth))
            yield {
                "size": int(size),
                "measure": measure,
                "theory": float(ours),
                "refits": float(truth),
                "standard_error": float(se),
                "near": bool(near),
            }


def table_page(cells: list[dict[str, Any]]) -> str:
    """Return one row per set, law, size and theory, and how many cells are near."""
    with_pairs = {cell["set"] for cell in cells if cell["by"] == "pairs"}
    plain = [cell for cell in cells if cell["by"] == "cavity"]
    better = [c for c in cells if c["by"] == ("pairs" if c["set"] in with_pairs else "cavity")]
    return "\n\n".join(
        [
            "## Agreement with refits",
            "Cells within two standard errors or 5 % of the refits:",
            f'- `theory="auto"`, the default, with pairs for the real targets: {_counts(better)}.\n'
            f'- `theory="cavity"`, without pairs: {_counts(plain)}.',
            "A cell is theory / refits ± standard error; **bold** cells are misses.",
            _table_of(cells),
        ]
    )


def classes_page(cells: list[dict[str, Any]]) -> str:
    """Return the same for models of three classes at once."""
    main = [cell for cell in cells if cell["measure"] in ("test_error", "test_log_loss")]
    return "\n\n".join(
        [
            "## Three classes at once",
            'With `multi_class="multinomial"`, cells within two standard errors or 5 % of the '
            f"refits:\n\n- all measures: {_counts(cells)}.\n- error and log loss: {_counts(main)}.",
            _table_of(cells),
        ]
    )


def _table_of(cells: list[dict[str, Any]]) -> str:
    places = dict.fromkeys((cell["set"], cell["law"], cell["size"], cell["by"]) for cell in cells)
    found = {(c["set"], c["law"], c["size"], c["by"], c["measure"]): c for c in cells}
    rows = [
        [*map(str, place), *(_cell(found.get((*place, measure))) for measure in _MEASURES)]
        for place in sorted(places, key=lambda place: list(places).index((*place[:3], "cavity")))
    ]
    return markdown(["set", "law", "m", "theory", *_MEASURES.values()], rows)


def _counts(cells: list[dict[str, Any]]) -> str:
    near = sum(cell["near"] for cell in cells)
    sets = dict.fromkeys(cell["set"] for cell in cells)
    each = [f"{name} {_count([c for c in cells if c['set'] == name])}" for name in sets]
    return f"{near} of {len(cells)} ({100.0 * near / len(cells):.1f} %; {', '.join(each)})"


def _count(cells: list[dict[str, Any]]) -> str:
    return f"{sum(cell['near'] for cell in cells)}/{len(cells)}"


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    text = f"{cell['theory']:.4g} / {cell['refits']:.4g} ± {cell['standard_error']:.1g}"
    return text if cell["near"] else f"**{text}**"
