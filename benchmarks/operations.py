"""How many operations LAPACK and BLAS carry out for a piece of work, without a clock.

    python -m benchmarks.operations [job ...]

The unit is n³/3 operations, one Cholesky factorisation of all n examples. Counts do not depend on
who else is at the machine, so that a test may hold on to them. What is counted goes through
`scipy.linalg.get_lapack_funcs` and `get_blas_funcs`; NumPy's own products and what works element
by element are left out. The jobs run in a process of their own: the two functions have to be
replaced before the library imports them.
"""

import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.gaussian_process.kernels import RBF

__all__ = ["JOBS", "Counter", "measure_all", "run"]

_ROOT = Path(__file__).parents[1]
_LOOSE = 1e-4
"""Tolerance of an inference during tuning."""
_MOVE = 0.05
"""How far a step of tuning leads in each log hyperparameter, for an evaluation after another."""


# Two adapters: the only callers of what is not public, or of what may be worded differently.


def _warm_evaluation(kernel: Any, X: Any, y: Any, count: Callable[[], None]) -> None:
    """Evaluate evidence and gradient by EP from a solution nearby; only this is counted."""
    from cavity.evidence import Evidence
    from cavity.inference import EP
    from cavity.kernels import rule
    from cavity.likelihoods import Probit

    evidence = Evidence.of(rule(kernel), X, [y], Probit(), EP(tol=_LOOSE), np.ones(len(y)))
    starts = evidence.at(kernel.theta).starts
    count()
    theta = kernel.theta + _MOVE
    assert np.all(np.isfinite(evidence.at(theta, starts).gradient))


def _evaluations(printed: str) -> int:
    """Return the number of evaluations that a fit with verbose=1 has spoken of."""
    return sum(map(int, re.findall(r"(\d+) evaluations", printed)))


def _square(A: Any, *_: Any, **__: Any) -> float:
    return len(A) ** 3 / 3.0


def _triangle(A: Any, B: Any, **_: Any) -> float:
    # From the left n² for each of B's columns, from the right for each of its rows.
    return float(len(A) * np.size(B))


def _gemm(_: float, A: Any, B: Any, trans_a: int = 0, **__: Any) -> float:
    m, k = A.shape[::-1] if trans_a else A.shape
    return 2.0 * m * k * (B.size / k if k else 0.0)


def _syrk(_: float, A: Any, trans: int = 0, **__: Any) -> float:
    n, k = A.shape[::-1] if trans else A.shape
    return float(n * n * k)


OPERATIONS: dict[str, Callable[..., float]] = {
    "potrf": _square,
    "trtri": _square,
    "lauum": _square,
    "trtrs": _triangle,
    "trmv": _triangle,
    "trmm": lambda _, A, B, **options: _triangle(A, B),
    "gemm": _gemm,
    "syrk": _syrk,
    "gemv": lambda _, A, *args, **options: 2.0 * A.size,
    "symv": lambda _, A, *args, **options: 2.0 * A.size,
    "ger": lambda _, x, y, **options: 2.0 * len(x) * len(y),
    "dot": lambda x, y, **options: 2.0 * len(x),
}
"""What a call of each routine costs, from its arguments."""


def _pivoted(A: Any, rank: int) -> float:
    """Return what a factorisation with pivots costs that stops at a rank."""
    return float(len(A) * rank**2 - 2.0 * rank**3 / 3.0)


class Counter:
    """The operations asked for since the last reset.

    Attributes
    ----------
    total : float
    """

    def __init__(self) -> None:
        self.total = 0.0

    def install(self) -> None:
        """Count in all that `scipy.linalg` hands out from now on."""
        if any(name.split(".")[0] == "cavity" for name in sys.modules):
            raise RuntimeError("operations are counted only if the library is not imported yet")
        for get in ("get_lapack_funcs", "get_blas_funcs"):
            setattr(scipy.linalg, get, self._watching(getattr(scipy.linalg, get)))
        from cavity.arrays import unlocked

        for name in ("trmm", "syrk", "gemm"):
            setattr(unlocked, name, self._counting(name, getattr(unlocked, name)))

    def reset(self) -> None:
        """Begin again at zero."""
        self.total = 0.0

    def _watching(self, get: Callable[..., Any]) -> Callable[..., Any]:
        def watched(names: Any, *args: Any, **options: Any) -> Any:
            found = get(names, *args, **options)
            if isinstance(names, str):
                return self._counting(names, found)
            return [self._counting(*pair) for pair in zip(names, found, strict=True)]

        return watched

    def counted(self, name: str) -> Callable[..., Any]:
        """Return a routine for double precision whose operations are counted."""
        where = scipy.linalg.blas if hasattr(scipy.linalg.blas, f"d{name}") else scipy.linalg.lapack
        return self._counting(name, getattr(where, f"d{name}"))

    def _counting(self, name: str, routine: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **options: Any) -> Any:
            found = routine(*args, **options)
            # A routine without an entry is an error, so that nothing goes uncounted.
            if name == "pstrf":
                self.total += _pivoted(args[0], int(found[2]))
            else:
                self.total += OPERATIONS[name](*args, **options)
            return found

        return counting


def _data(n: int, d: int = 6) -> tuple[Any, Any]:
    """Return inputs and labels ±1 that depend on half of the inputs."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    f = 2.0 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(n)
    return X, np.where(f > 0.0, 1.0, -1.0)


def _kernel(scale: float = 1.0, d: int = 6) -> Any:
    return 1.0 * RBF(np.full(d, scale))


def _evaluated(counter: Counter, method: str, n: int) -> dict[str, float]:
    """Evidence and gradient from nothing; the peak of memory is that beyond what was there."""
    from cavity import GaussianProcessClassifier

    kernel = _kernel(2.0)
    model = GaussianProcessClassifier(kernel, optimizer=None, inference=method, tol=_LOOSE)
    model.fit(*_data(n))
    counter.reset()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    model.log_marginal_likelihood(kernel.theta + _MOVE, eval_gradient=True)
    peak = (tracemalloc.get_traced_memory()[1] - before) / (8.0 * n**2)
    if tracemalloc.is_tracing():
        return {"matrices": peak}
    return {"operations": 3.0 * counter.total / n**3}


def _classes(n: int, n_classes: int) -> tuple[Any, Any]:
    """Return inputs and classes of equal size, in the order of a function."""
    X = _data(n)[0]
    return X, np.argsort(np.argsort(np.sin(2.0 * X[:, 0]) + X[:, 1])) * n_classes // n


def _memory_of_classes(counter: Counter, n_classes: int, n: int) -> dict[str, float]:
    """Evaluate all classes at once, with the gradient; return the peak of memory."""
    from functools import partial

    from cavity.evidence import Evidence
    from cavity.inference import EP
    from cavity.kernels import rule
    from cavity.likelihoods import Probit
    from cavity.priors import ClassLabels, ClassPrior

    X, codes = _classes(n, n_classes)
    labels, kernel = ClassLabels.of(codes, n_classes), rule(_kernel(2.0))
    couple = partial(ClassPrior.of, X=X, labels=labels)
    evidence = Evidence(kernel, [labels.rows()], Probit(), EP(tol=_LOOSE), couple)
    tracemalloc.start()
    assert np.all(np.isfinite(evidence.at(evidence.theta).gradient))
    return {"matrices": tracemalloc.get_traced_memory()[1] / (8.0 * n**2)}


def _of_classes(counter: Counter, way: str, n_classes: int, n: int) -> dict[str, float]:
    """Evidence and gradient of several classes from nothing, with one kernel for all."""
    from cavity import GaussianProcessClassifier

    (X, y), kernel = _classes(n, n_classes), _kernel(2.0)
    model = GaussianProcessClassifier(kernel, optimizer=None, multi_class=way, tol=_LOOSE)
    model.fit(X, y)
    counter.reset()
    model.log_marginal_likelihood(kernel.theta + _MOVE, eval_gradient=True)
    return {"operations": 3.0 * counter.total / n**3}


def _warm(counter: Counter, n: int) -> dict[str, float]:
    _warm_evaluation(_kernel(2.0), *_data(n), counter.reset)
    return {"operations": 3.0 * counter.total / n**3}


def _memory(counter: Counter, n: int) -> dict[str, float]:
    tracemalloc.start()
    return _evaluated(counter, "ep", n)


def _fitted(counter: Counter, method: str, n: int) -> dict[str, float]:
    """Tune one relevance for each input."""
    from cavity import GaussianProcessClassifier

    with redirect_stdout(StringIO()) as printed:
        GaussianProcessClassifier(_kernel(), inference=method, verbose=1).fit(*_data(n))
    evaluations = _evaluations(printed.getvalue())
    return {"operations": 3.0 * counter.total / n**3, "evaluations": evaluations}


def _pool(name: str) -> tuple[Any, Any]:
    from sklearn.preprocessing import StandardScaler

    from cavity import datasets

    if name == "synthetic":
        return _data(500)
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], y[:200]


def _curve(counter: Counter, name: str, theory: str = "cavity") -> dict[str, float]:
    """Learn a curve of ten sizes from a fit that is there already."""
    from cavity import GaussianProcessClassifier, GaussianProcessRegressor, learning_curve

    X, y = _pool(name)
    kernel = 4.0 * _kernel(3.0, X.shape[1])
    model = GaussianProcessClassifier(kernel, optimizer=None)
    if name == "boston":
        model = GaussianProcessRegressor(kernel, alpha=0.1, normalize_y=True, optimizer=None)
    model.fit(X, y)
    counter.reset()
    learning_curve(model, X, y, train_sizes=np.linspace(0.1, 1.0, 10), theory=theory)
    return {"operations": 3.0 * counter.total / len(y) ** 3}


JOBS: dict[str, tuple[Callable[..., dict[str, float]], tuple[Any, ...]]] = {
    "EP cold 800": (_evaluated, ("ep", 800)),
    "EP cold 1600": (_evaluated, ("ep", 1600)),
    "EP warm 800": (_warm, (800,)),
    "EP warm 1600": (_warm, (1600,)),
    "Laplace cold 1600": (_evaluated, ("laplace", 1600)),
    "EP memory 1500": (_memory, (1500,)),
    "EP fit 500": (_fitted, ("ep", 500)),
    "EP fit 1000": (_fitted, ("ep", 1000)),
    "EP fit 1600": (_fitted, ("ep", 1600)),
    "Laplace fit 500": (_fitted, ("laplace", 500)),
    "Laplace fit 1000": (_fitted, ("laplace", 1000)),
    "Laplace fit 1600": (_fitted, ("laplace", 1600)),
    "3 classes cold 500": (_of_classes, ("multinomial", 3, 500)),
    "3 classes against the rest cold 500": (_of_classes, ("one_vs_rest", 3, 500)),
    "5 classes cold 500": (_of_classes, ("multinomial", 5, 500)),
    "10 classes memory 1000": (_memory_of_classes, (10, 1000)),
    "curve pima": (_curve, ("pima",)),
    "curve crabs": (_curve, ("crabs",)),
    "curve synthetic": (_curve, ("synthetic",)),
    "curve boston": (_curve, ("boston",)),
    "curve boston, pairs": (_curve, ("boston", "pairs")),
}
"""Every job by its name."""


def run(*jobs: str) -> dict[str, dict[str, float]]:
    """Do jobs one after the other in a process of their own, with one thread; say what they took.

    A job that measures memory makes all after it slow, and has to have a process for itself.
    """
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.operations", *jobs]
    done = subprocess.run(
        command, cwd=_ROOT, env=os.environ | one_thread, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{', '.join(jobs)} failed:\n{done.stderr}")
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def measure_all() -> dict[str, dict[str, float]]:
    """Do every job, each in a process of its own."""
    return {job: run(job)[job] for job in JOBS}


def main(wanted: list[str]) -> None:
    """Print what each job took, as JSON."""
    found = {}
    counter = Counter()
    counter.install()
    for job in wanted or JOBS:
        counter.reset()
        work, args = JOBS[job]
        found[job] = work(counter, *args)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
