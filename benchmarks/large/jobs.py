"""What a fresh process can be asked to do: ``python -m benchmarks.large.jobs JOB ANSWER``.

See `benchmarks.jobs`. A job whose code is not there answers with the reason under "skipped".
"""

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jobs
from benchmarks.contestants.common import timed
from benchmarks.large import costs, workers
from benchmarks.large.peers import PEERS
from benchmarks.large.scores import scores
from benchmarks.large.sets import SETS, made_up_rows
from benchmarks.measure import cpu_seconds, peak_bytes

_MIB = 2.0**20
_SMALL = 300
"""Rows of the fit that goes before the measured one: imports, thread pools, compilation."""
_CHUNK = 100_000


def peer(name: str, table: str, n: int, m: int) -> dict[str, Any]:
    """Fit a contestant and score it on the test rows."""
    who = PEERS[name]
    if name == "cavity" and (reason := _without_points()):
        return {"skipped": reason}
    module, data = who.load(), SETS[table](n)
    module.fit(data.X[:_SMALL], data.y[:_SMALL], 10, **who.options)
    before = peak_bytes()
    fit_seconds, model = timed(lambda: module.fit(data.X, data.y, m, **who.options))
    predict_seconds, p = timed(lambda: np.asarray(model.proba(data.X_test)))
    return {
        **scores(p, data.y_test, data.p_test),
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "peak_MiB": peak_bytes() / _MIB,
        "before_MiB": before / _MIB,
        "note": model.note,
    }


def write(path: str, n: int) -> dict[str, Any]:
    """Write made-up rows to a Parquet file, part by part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for i, begin in enumerate(range(0, n, _CHUNK)):
        X, y, _ = made_up_rows(min(_CHUNK, n - begin), 100 + i)
        columns = {f"x{k}": X[:, k] for k in range(X.shape[1])}
        table = pa.table({**columns, "label": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return {"MiB": Path(path).stat().st_size / _MIB}


def file(path: str, n: int, m: int) -> dict[str, Any]:
    """Fit a Parquet file without reading it as a whole."""
    from benchmarks.large.peers.ours import kernel
    from cavity import GaussianProcessClassifier, rows

    if not hasattr(rows, "ParquetRows"):
        return {"skipped": "cavity.rows has no ParquetRows yet"}
    if reason := _without_points():
        return {"skipped": reason}
    table = rows.ParquetRows(path, "label")
    model = GaussianProcessClassifier(kernel(table.n_features), n_inducing=m, random_state=0)
    before, used = peak_bytes(), cpu_seconds()
    seconds, _ = timed(lambda: model.fit(table))
    used = cpu_seconds() - used
    X, y, truth = made_up_rows(20_000, 1)
    return {
        **scores(model.predict_proba(X)[:, 1], y, truth),
        "fit_seconds": seconds,
        "cpu_seconds": used,
        "peak_MiB": peak_bytes() / _MIB,
        "before_MiB": before / _MIB,
    }


def curve(n: int, m: int) -> dict[str, Any]:
    """Time learning curves of eight sizes, and one evaluation of the same evidence."""
    from benchmarks.large.peers.ours import kernel
    from cavity import GaussianProcessClassifier
    from cavity.model_selection import learning_curve

    if reason := _without_points():
        return {"skipped": reason}
    X, y, _ = made_up_rows(n, 0)
    model = GaussianProcessClassifier(kernel(X.shape[1]), n_inducing=m, random_state=0)
    fit_seconds, _ = timed(lambda: model.fit(X, y))
    sizes = np.unique(np.geomspace(min(100, n // 8), n, 8).astype(int))
    given = costs.given(n, m)
    used = {"evaluation_cpu": _used(lambda: costs.evaluate(given))}
    for law in ("subsample", "bootstrap"):
        ask = {"train_sizes": sizes, "resampling": law}
        used[f"{law}_cpu"] = _used(lambda: learning_curve(model, X, y, **ask))  # noqa: B023
        used[f"{law}_ratio"] = used[f"{law}_cpu"] / len(sizes) / used["evaluation_cpu"]
    return {"fit_seconds": fit_seconds, **used, "sizes": [int(size) for size in sizes]}


def _used(call: Any) -> float:
    """Return the processor time of a call: the machine may be busy with other work."""
    before = cpu_seconds()
    call()
    return cpu_seconds() - before


def _without_points() -> str:
    """Return why a fit with inducing points is not possible, if it is not."""
    from cavity import GaussianProcessClassifier

    known = "n_inducing" in signature(GaussianProcessClassifier).parameters
    return "" if known else "GaussianProcessClassifier has no n_inducing yet"


JOBS = {job.__name__: job for job in (peer, write, file, curve)}
JOBS |= {"passes": costs.passes, "memory": costs.memory}
JOBS |= {"workers": workers.workers, "beside": workers.beside}

if __name__ == "__main__":
    jobs.main(JOBS)
