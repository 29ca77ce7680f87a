"""Commands on hostile tables: exit codes, errors of one line, and nothing written on failure."""

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from farm.draw import Spec, inputs_of, labels_of, rng_of, targets_of
from farm.ledger import LONGEST, Ledger

_NAMES = ("a", "x y", "=1+1", "<b>", "a,b", 'q"q', "é", "1", "\x1b[31m", " ", "id", "nan")
_MISSING = ("", "NA", "n.k.", "?", "-")


def check(ledger: Ledger, spec: Spec) -> None:
    """Fit a table and predict another with the command line; then do it wrongly."""
    try:
        import polars  # noqa: F401
    except ImportError:
        # The tables need the extra [report].
        ledger.counts["commands left out"] += 1
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        names = _tables(spec, place)
        target = f"--target={names[-1]}"
        size = "--kernel=rbf"
        _command(ledger, place, ["fit", "t.csv", target, size, "-o", "model"], "model")
        if (place / "model").exists():
            code = _command(
                ledger, place, ["predict", "model", "new.csv", "-o", "out.csv"], "out.csv"
            )
            if code == 0:
                _answers(ledger, place)
        _command(ledger, place, ["curve", "t.csv", target, size, "--json"], None)
        _command(ledger, place, ["fit", "t.csv", "--target=nothing", "-o", "no"], "no", {1, 2})
        _command(ledger, place, ["predict", "t.csv", "new.csv", "-o", "no.csv"], None, {1})
        _command(ledger, place, ["fit", "t.csv", target, "-o", "no/where"], "no", {1})
        _command(ledger, place, ["fit", "t.csv", target, "--kernel=\x1b[2J", "-o", "no"], "no", {2})


def _tables(spec: Spec, place: Path) -> list[str]:
    """Write a table and one of new rows; return the names of the columns, the target's last."""
    rng = rng_of(spec, 13)
    X = inputs_of(spec)
    names = [str(name) for name in rng.permutation(_NAMES)[: X.shape[1] + 2]]
    y: Any = labels_of(spec, X) if rng.random() < 0.6 else targets_of(spec, X)
    category = rng.choice(["u", "v", "=w", "\x07"], len(X))
    columns = [*(list(map(repr, map(float, column))) for column in X.T), list(category)]
    for column in columns[:-1]:
        if rng.random() < 0.2:
            column[int(rng.integers(len(column)))] = str(rng.choice(_MISSING))
    _write(place / "t.csv", names, [*columns, [str(value) for value in y.tolist()]])
    _write(place / "new.csv", names[:-1], [column[::2] for column in columns])
    return names


def _write(path: Path, names: list[str], columns: list[list[str]]) -> None:
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*columns, strict=True))


def _command(
    ledger: Ledger,
    place: Path,
    words: list[str],
    written: str | None,
    expected: set[int] | None = None,
) -> int:
    """Run a command in the folder, as a program would be run."""
    from cavity.cli import main

    of, before = words[0], set(os.listdir(place))
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(place),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code, _ = ledger.run(of, lambda: main(words), may_refuse=False)
    ledger.counts["commands"] += 1
    text = err.getvalue()
    ledger.require(code in (expected or {0, 1, 2}), "exit code", of, f"{words}: {code} {text}")
    if code:
        last = text.strip("\n").splitlines()[-1:] or [""]
        short = len(last[0]) <= 2 * LONGEST and last[0].startswith("cavity: ")
        ledger.require(short and text.count("cavity: ") == 1, "an error of one line", of, text)
        new = set(os.listdir(place)) - before
        ledger.require(not new, "something is written on failure", of, new)
        ledger.counts["commands refused"] += 1
    elif written is not None:
        ledger.require(written in os.listdir(place), "nothing is written", of, words)
    controls = {c for c in text + out.getvalue() if ord(c) < 32 and c not in "\n"}
    ledger.require(not controls, "control characters", of, controls)
    return int(code or 0)


def _answers(ledger: Ledger, place: Path) -> None:
    """There is one answer for each row, and probabilities are probabilities."""
    import polars as pl

    found = pl.read_csv(place / "out.csv", infer_schema_length=None)
    rows = pl.read_csv(place / "new.csv", infer_schema=False).height
    ledger.require(found.height == rows, "an answer for each row", "predict", found.height)
    for name in found.columns:
        if name.startswith(("p(", "probability")):
            column = np.asarray(found[name].to_list(), dtype=float)
            good = np.all((column >= 0.0) & (column <= 1.0))
            ledger.require(good, "within [0, 1]", "predict", name)
