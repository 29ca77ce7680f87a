"""The results as a page of Markdown that also reads well on a terminal."""

from collections.abc import Sequence
from typing import Any

from benchmarks.contestants import CONTESTANTS
from benchmarks.cost import Series
from benchmarks.cost import table as cost_table
from benchmarks.rows import Row, verdict

__all__ = ["markdown", "page"]

_METHOD = """
Every figure is the median over interleaved rounds, each measurement in a fresh process; what takes
longer than 45 s is measured once. Times in units of dpotrf(n), LAPACK's Cholesky factorisation, are
against one measured in the same process just before and after. Before each the
machine is given time to become quiet, and what others disturb is measured again. Evidence with
gradient is from a cold start for 1.0 * RBF(ones(10)), at "start" (amplitude e, length scales 3) and
at "tuned" (amplitude 30, length scales 2.5, 3.5, 3.5, 8 and 100 for the six inputs that do not
matter); the worse of the two is judged. GPBoost's is the cost of an iteration of its gradient
descent, which starts from the last mode. Fits tune that kernel from ones; scikit-learn is compared
with our Laplace under the logit likelihood, GPBoost with our Laplace under the probit, GPy with our
EP. Memory is the growth of the peak resident memory, in units of n² doubles.
""".strip()

_FIT_HEADER = "data, contestant, method, time (s), x dpotrf(n), memory (n² doubles), log evidence"
_FIT_HEADER += ", test error, test log loss, note"
_QUICK = "Quick run: smaller data, one round, one point; the bars are meant for the full run.\n"


def page(
    about: dict[str, Any], rows: Sequence[Row], fits: list[dict[str, Any]], series: Series
) -> str:
    """Return the whole page."""
    bars = markdown(
        ["work", "our time (s)", "x dpotrf(n)", "against", "measured", "bar", ""],
        [_bar_cells(row) for row in rows],
    )
    fitted = markdown(
        _FIT_HEADER.split(", "),
        [_fit_cells(fit) for fit in fits],
    )
    return "\n\n".join(
        [
            "# Benchmarks",
            _introduction(about),
            _METHOD,
            "## Bars",
            bars,
            "## Fits",
            fitted,
            "## Cost against n",
            markdown(*cost_table(series)),
            "![cost against n](cost.png)\n",
        ]
    )


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with aligned columns."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    rule = ["-" * width for width in widths]
    lines = [header, rule, *rows]
    return "\n".join(
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def _introduction(about: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    states = {name: p.get("version") or p["reason"] for name, p in about["peers"].items()}
    peers = "; ".join(f"{name} {state}" for name, state in states.items())
    return (
        f"{_QUICK if about['quick'] else ''}{about['processor']}, {about['threads']} threads for "
        f"everyone (OMP_NUM_THREADS); Python {about['python']}, {versions}. Peers: {peers}. "
        f"The run took {about['seconds']} s; others kept {about['others']:.2f} cores busy during "
        f"the median measurement, {about['most_others']:.2f} during the worst."
    )


def _bar_cells(row: Row) -> list[str]:
    numbers = [_number(row.seconds), _number(row.floors)]
    return [row.work, *numbers, row.peer, row.measured, row.bar, verdict(row.met)]


def _fit_cells(fit: dict[str, Any]) -> list[str]:
    who = fit["contestant"]
    front = [fit["data"], who, CONTESTANTS[who].method]
    if "failed" in fit:
        return [*front, *[""] * 6, fit["failed"]]
    return [
        *front,
        _number(fit["seconds"]),
        _number(fit["seconds"] / fit["dpotrf"]),
        _number(fit["memory"]),
        f"{fit['evidence']:.3f}",
        f"{fit['test_error']:.4f}",
        f"{fit['test_log_loss']:.4f}",
        fit["note"],
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"
