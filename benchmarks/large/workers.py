"""Rows on Dask's workers, two processes of one thread each, beside a file and two threads."""

import os
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.large.costs import Given, evaluate, rule_near
from benchmarks.large.sets import D, made_up_rows
from benchmarks.measure import cpu_seconds, peak_bytes
from cavity.evidence import Evidence
from cavity.inference import EP
from cavity.likelihoods import Probit
from cavity.priors import InducingPrior, choose_points
from cavity.rows import Coded, ParquetRows

__all__ = ["beside", "workers"]

_CHUNK = 20_000
_MIB = 2.0**20
_ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def workers(n: int, m: int, kept: float | None) -> dict[str, Any]:
    """Time evidences with gradient on workers that make their rows themselves.

    At most ``kept`` bytes of features are kept between visits, or as many as by default.
    """
    try:
        from cavity.rows.dask import DaskBlocks
    except ImportError as error:
        return {"skipped": f"no rows on Dask's workers: {error}"}
    import dask
    from dask.distributed import Client, LocalCluster

    # Before NumPy is imported, for which LocalCluster's own argument comes too late; and without
    # Dask's MALLOC_TRIM_THRESHOLD_, which makes visits take twice as long.
    os.environ.update(_ONE)
    dask.config.set({"distributed.nanny.pre-spawn-environ": _ONE})
    # The limit is that of a machine with 4 GB for each worker: it decides what may be kept.
    how: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "4GB"}
    with LocalCluster(**how, dashboard_address=None) as cluster, Client(cluster) as client:

        def used() -> float:
            return sum(client.run(cpu_seconds).values()) + cpu_seconds()

        begin = perf_counter()
        blocks = DaskBlocks(*_generated(n), client=client, kept=kept)
        loaded = perf_counter() - begin
        before = max(client.run(peak_bytes).values())
        found = _evaluations(blocks, n, m, used)
        peak = max(client.run(peak_bytes).values())
    return {
        **found,
        "load_seconds": loaded,
        "peak_MiB": peak / _MIB,
        "before_MiB": before / _MIB,
    }


def beside(path: str, n: int, m: int, kept: float | None) -> dict[str, Any]:
    """Time the same from a Parquet file of made-up rows, with the threads of this process."""
    before, limit = peak_bytes(), {} if kept is None else {"kept": kept}
    table = Coded(ParquetRows(path, "label", **limit), _signs)
    found = _evaluations(table, n, m, cpu_seconds)
    return {**found, "peak_MiB": peak_bytes() / _MIB, "before_MiB": before / _MIB}


def _evaluations(blocks: Any, n: int, m: int, used: Callable[[], float]) -> dict[str, Any]:
    """Time one evidence with gradient, cold, and one nearby, warm."""
    kernel, X = rule_near(), made_up_rows(_CHUNK // 2, 1)[0]
    Z = choose_points(kernel, X, m, np.random.default_rng(0)).Z
    couple = partial(InducingPrior.of, Z=Z)
    here = Given(Evidence(kernel, [blocks], Probit(), EP(), couple), kernel.theta)
    starts, answer = None, {}
    for name in ("cold", "warm"):
        begin, cpu = perf_counter(), used()
        found = evaluate(here, starts)
        starts, cpu = found.starts, used() - cpu
        answer |= {
            f"{name}_seconds": perf_counter() - begin,
            f"{name}_rounds": found.fits[0].report.n_iter,
            f"{name}_microseconds": 1e6 * cpu / n,
        }
    return answer


def _generated(n: int) -> tuple[Any, Any]:
    """Return dask arrays of inputs and labels ±1 whose chunks are made where they are kept."""
    import dask.array as da
    from dask import delayed

    X, y = [], []
    for i, begin in enumerate(range(0, n, _CHUNK)):
        size = min(_CHUNK, n - begin)
        inputs, labels = delayed(_chunk, nout=2)(size, 200 + i)
        X.append(da.from_delayed(inputs, (size, D), dtype=float))
        y.append(da.from_delayed(labels, (size,), dtype=float))
    return da.concatenate(X), da.concatenate(y)


def _chunk(n: int, seed: int) -> tuple[Any, Any]:
    X, y, _ = made_up_rows(n, seed)
    return X, _signs(y)


def _signs(y: Any) -> Any:
    return 2.0 * y - 1.0
