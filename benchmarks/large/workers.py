"""Rows on Dask's workers: two processes of one thread each, which make their rows themselves."""

from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.large.costs import Given, evaluate, rule_near
from benchmarks.large.sets import D, made_up_rows
from benchmarks.measure import peak_bytes
from cavity.evidence import Evidence
from cavity.inference import EP
from cavity.likelihoods import Probit
from cavity.priors import InducingPrior, choose_points

__all__ = ["workers"]

_CHUNK = 20_000
_MIB = 2.0**20


def workers(n: int, m: int) -> dict[str, Any]:
    """Time two evidences with gradient, cold, and return the peak memory of each worker."""
    try:
        from cavity.rows.dask import DaskBlocks
    except ImportError as error:
        return {"skipped": f"no rows on Dask's workers: {error}"}
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        begin = perf_counter()
        blocks = DaskBlocks(*_generated(n), client=client)
        loaded = perf_counter() - begin
        before = max(client.run(peak_bytes).values())
        kernel, X = rule_near(), made_up_rows(_CHUNK // 2, 1)[0]
        Z = choose_points(kernel, X, m, np.random.default_rng(0)).Z
        couple = partial(InducingPrior.of, Z=Z)
        here = Given(Evidence(kernel, [blocks], Probit(), EP(), couple), kernel.theta)
        begin = perf_counter()
        found = evaluate(here)
        seconds = perf_counter() - begin
        peak = max(client.run(peak_bytes).values())
    return {
        "load_seconds": loaded,
        "seconds": seconds,
        "rounds": found.fits[0].report.n_iter,
        "microseconds_per_row": 1e6 * seconds / n,
        "worker_MiB": peak / _MIB,
        "worker_before_MiB": before / _MIB,
    }


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
    return X, 2.0 * y - 1.0
