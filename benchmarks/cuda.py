"""EP evidence with its gradient on a CUDA device, in double precision.

``python benchmarks/cuda.py --out cuda.json`` on a machine with PyTorch and a CUDA device prints
time and peak memory at each size, and the agreement with NumPy at a small one. ``--device cpu`` and
``--sizes 500`` try the script itself where there is no such device.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.gaussian_process.kernels import RBF

from cavity.evidence import Evidence, maximise
from cavity.inference import EP
from cavity.kernels import rule
from cavity.likelihoods import Probit

_INPUTS = 10
_AGREEMENT = 1e-8
_SMALL = 500


def main() -> None:
    """Measure, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 40_000])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fit", type=int, default=20_000, help="size of a whole fit; 0 for none")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    agreement = _agreement(options.device)
    print(f"device {_name(options.device)}, PyTorch {torch.__version__}, d = {_INPUTS}")
    print(f"agreement with NumPy at n = {_SMALL}: {agreement:.1e} (bar {_AGREEMENT:.0e})")
    print(f"{'n':>7} {'seconds':>9} {'x potrf':>8} {'n² doubles':>11} {'log evidence':>15}")
    # The first call loads the device's libraries.
    _measure(_SMALL, options.device, 1)
    rows = [_shown(_measure(n, options.device, options.repeats)) for n in options.sizes]
    about = {"device": _name(options.device), "torch": torch.__version__, "agreement": agreement}
    result: dict[str, Any] = {**about, "rows": rows}
    if options.fit:
        result["fit"] = _fit(options.fit, options.device)
        print("whole fit: " + ", ".join(f"{key} {value}" for key, value in result["fit"].items()))
    options.out.write_text(json.dumps(result, indent=1) + "\n")


def _fit(n: int, device: str) -> dict[str, Any]:
    """Tune one length scale per input and the amplitude, from ones; infer at the optimum."""
    evidence, theta = _evidence(*_on(device, *_data(n)))
    before = _reset(device)
    begin = time.perf_counter()
    best = maximise(evidence, np.zeros_like(theta), np.log([[1e-5, 1e5]] * len(theta)))
    (fit,) = evidence.at(best.theta).fits
    _synchronize(device)
    return {
        "n": n,
        "seconds": time.perf_counter() - begin,
        "evaluations": best.n_evaluations,
        "evidence": fit.log_evidence,
        "converged": fit.report.converged,
        "memory": (_peak(device) - before) / (8.0 * n * n),
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    line = "{n:7d} {seconds:9.3f} {floors:8.1f} {memory:11.2f} {evidence:15.4f}"
    print(line.format(**row), flush=True)
    return row


def _measure(n: int, device: str, repeats: int) -> dict[str, Any]:
    """Return medians of time, and the peak memory above the inputs in units of n² doubles."""
    evidence, theta = _evidence(*_on(device, *_data(n)))
    seconds, peaks, value = [], [], 0.0
    for _ in range(repeats):
        before = _reset(device)
        begin = time.perf_counter()
        found = evidence.at(theta)
        value, _ = found.value, found.gradient
        _synchronize(device)
        seconds.append(time.perf_counter() - begin)
        peaks.append(_peak(device) - before)
    median = float(np.median(seconds))
    return {
        "n": n,
        "seconds": median,
        "floors": median / _potrf(n, device),
        "memory": max(peaks) / (8.0 * n * n),
        "evidence": float(value),
    }


def _agreement(device: str) -> float:
    """Return the largest relative difference of evidence and gradient from NumPy's."""
    X, y = _data(_SMALL)
    # Iterated further than usual: the two take different ways to the same solution.
    here, theta = _evidence(X, y, tol=1e-10)
    there, _ = _evidence(*_on(device, X, y), tol=1e-10)
    a, b = (np.r_[e.value, e.gradient] for e in (here.at(theta), there.at(theta)))
    return float(np.max(np.abs(a - b)) / np.max(np.abs(a)))


def _evidence(X: Any, y: Any, tol: float = EP.tol) -> tuple[Evidence, np.ndarray]:
    kernel = rule(1.0 * RBF(np.ones(_INPUTS)))
    theta = np.r_[1.0, np.full(_INPUTS, np.log(3.0))]
    return Evidence.of(kernel, X, [y], Probit(), EP(tol), 0.0 * y + 1.0), theta


def _on(device: str, *arrays: np.ndarray) -> list[Any]:
    return [torch.as_tensor(array, device=device) for array in arrays]


def _data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, _INPUTS))
    f = 2.0 * np.sin(X[:, 0]) + 0.7 * X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    return X, np.where(f + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


def _potrf(n: int, device: str) -> float:
    """Return the seconds of one Cholesky factorisation."""
    A = torch.eye(n, dtype=torch.float64, device=device).mul_(2.0)
    _synchronize(device)
    begin = time.perf_counter()
    torch.linalg.cholesky_ex(A)
    _synchronize(device)
    return time.perf_counter() - begin


def _synchronize(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def _reset(device: str) -> int:
    """Return the bytes in use, and count the peak from here."""
    _synchronize(device)
    if device == "cpu":
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _peak(device: str) -> int:
    return 0 if device == "cpu" else torch.cuda.max_memory_allocated()


def _name(device: str) -> str:
    return device if device == "cpu" else torch.cuda.get_device_name()


if __name__ == "__main__":
    main()
