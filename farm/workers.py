"""Workers that are killed while they tune: the fit fails or ends, and nothing is lost."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

__all__ = ["available", "kill_workers"]

_PROGRAM = """
    import numpy as np
    from sklearn.gaussian_process.kernels import RBF
    from cavity import GaussianProcessRegressor
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)); y = np.sin(X[:, 0])
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X[:40], y[:40])
    before = model.predict(X[:5])
    model.set_params(optimizer="fmin_l_bfgs_b", n_restarts_optimizer=30, n_jobs=2, random_state=0)
    names = sorted(vars(model))
    print("begin", flush=True)
    try:
        model.fit(X, y)
        print("ended")
    except Exception as error:
        same = sorted(vars(model)) == names and np.array_equal(model.predict(X[:5]), before)
        print("as before" if same else "changed")
"""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def available() -> bool:
    """Whether processes can be looked at here."""
    return Path("/proc/self/task").exists()


def kill_workers(times: int) -> dict[str, int]:
    """Kill a worker of a tuning in two processes, some times; count how the fits end."""
    found = {"kills": 0, "as before": 0, "ended": 0, "changed": 0}
    for _ in range(times):
        killed, end = _once()
        found["kills"] += killed
        found[end] += 1
    return found


def _once() -> tuple[bool, str]:
    environment = os.environ | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", textwrap.dedent(_PROGRAM)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        killed = _kill_one(parent)
        words = parent.stdout.read().strip().splitlines()
    return killed, words[-1] if words else "changed"


def _kill_one(parent: "subprocess.Popen[str]") -> bool:
    """Kill the first of joblib's workers that appears; return whether there was one."""
    end = time.monotonic() + 60.0
    while time.monotonic() < end and parent.poll() is None:
        for pid in _children(parent.pid):
            if "popen_loky" in Path(f"/proc/{pid}/cmdline").read_text():
                time.sleep(0.5)
                os.kill(pid, signal.SIGKILL)
                return True
        time.sleep(0.01)
    return False


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]
