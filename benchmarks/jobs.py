"""What a fresh process can be asked to measure: ``python -m benchmarks.jobs JOB ANSWER``.

JOB is a JSON object with the name of one of the functions below and its arguments; its result is
written to the file ANSWER as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.metrics import log_loss

from benchmarks.contestants import CONTESTANTS, Contestant
from benchmarks.contestants.common import timed
from benchmarks.data import Data, load, theta
from benchmarks.instruments import Counts, counted
from benchmarks.measure import dpotrf, median, peak_bytes

_SMALL = 40
"""Examples of the call that goes before the measured one: imports, thread pools, caches."""


def evaluate(contestant: str, data: str, at: str, how: str = "evaluate") -> dict[str, Any]:
    """One evidence with its gradient, between two measurements of dpotrf(n)."""
    X, y, _, _ = load(data)
    who = CONTESTANTS[contestant]
    call, point = getattr(who.load(), how), theta(at, X.shape[1])
    call(X[:_SMALL], y[:_SMALL], point, **who.options)
    floor = dpotrf(len(y))
    seconds, evidence = call(X, y, point, **who.options)
    return {"seconds": seconds, "evidence": evidence, "dpotrf": median(floor + dpotrf(len(y)))}


def fit(contestant: str, data: str, deadline: float) -> dict[str, Any]:
    """Tune a model; peak memory counts from the data loaded and everything imported."""
    given, who = load(data), CONTESTANTS[contestant]
    module = who.load()
    module.fit(given.X[:_SMALL], given.y[:_SMALL], deadline, **who.options)
    before = peak_bytes()
    seconds, model = timed(lambda: module.fit(given.X, given.y, deadline, **who.options))
    memory = peak_bytes() - before
    n = len(given.y)
    return {
        "seconds": seconds,
        "memory": memory / (8.0 * n * n),
        "evidence": model.evidence,
        "note": model.note,
        "dpotrf": median(dpotrf(n)),
        **_quality(given, model.proba(given.X_test)),
    }


def _quality(given: Data, p: Any) -> dict[str, float]:
    truth = given.y_test > 0.0
    return {
        "test_error": float(np.mean((p > 0.5) != truth)),
        "test_log_loss": float(log_loss(truth, p)),
    }


def memory(data: str, evaluations: int) -> dict[str, Any]:
    """Peak memory of our EP fit with few steps of tuning."""
    from sklearn.gaussian_process.kernels import RBF

    from cavity import GaussianProcessClassifier

    def few(objective: Any, start: Any, bounds: Any) -> Any:
        options = {"maxfun": evaluations, "maxiter": evaluations}
        found = optimize.minimize(
            objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options
        )
        return found.x, found.fun

    X, y, _, _ = load(data)
    model = GaussianProcessClassifier(np.e * RBF(np.full(X.shape[1], 3.0)), optimizer=few)
    model.fit(X[:_SMALL], y[:_SMALL])
    before = peak_bytes()
    seconds, _ = timed(lambda: model.fit(X, y))
    peak = peak_bytes() - before
    return {
        "seconds": seconds,
        "memory": peak / (8.0 * len(y) ** 2),
        "dpotrf": median(dpotrf(len(y))),
    }


def share(data: str, at: str) -> dict[str, Any]:
    """Our EP evidence with its gradient: the time spent inside LAPACK and BLAS."""
    return _instrumented("cavity EP", data, at)


def naive(data: str, at: str) -> dict[str, Any]:
    """Our naive mean field evidence with its gradient: products with K and factorisations."""
    return _instrumented("cavity naive", data, at)


def _instrumented(contestant: str, data: str, at: str) -> dict[str, Any]:
    X, y, _, _ = load(data)
    who: Contestant = CONTESTANTS[contestant]
    point = theta(at, X.shape[1])
    evidence = who.load().evidence_of(X, y, **who.options)
    who.load().evaluate(X[:_SMALL], y[:_SMALL], point, **who.options)
    floor = dpotrf(len(y))
    counts: Counts = counted(evidence, point)
    return {**counts._asdict(), "dpotrf": median(floor + dpotrf(len(y)))}


def version(contestant: str) -> dict[str, Any]:
    """Import a library and return its version."""
    who = CONTESTANTS[contestant]
    who.load()
    return {"version": getattr(sys.modules[who.library], "__version__", "unknown")}


JOBS = {job.__name__: job for job in (evaluate, fit, memory, share, naive, version)}


def main(jobs: dict[str, Any]) -> None:
    """Do the job on the command line."""
    order = json.loads(sys.argv[1])
    result = jobs[order.pop("job")](**order)
    Path(sys.argv[2]).write_text(json.dumps(result))


if __name__ == "__main__":
    main(JOBS)
