"""Writers that are killed at every system call: the file is the old one or the new one.

``python -m farm.kills [--task model] [--every 1] [--most 200]`` forks a writer again and
again, stops it at its k-th system call (before and after the system has done it) and kills it
there. Linux only.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, OnlineGaussianProcessClassifier
from cavity.estimators import load, save
from cavity.storage import replacing

__all__ = ["TASKS", "kill_all"]

_TRACEME, _SYSCALL = 0, 24
_UNAVAILABLE = 77
"""Exit code of a writer that may not be traced."""


def _data(seed: int) -> tuple[Any, Any]:
    X = np.random.default_rng(seed).normal(size=(20, 2))
    return X, (X[:, 0] > 0).astype(int)


def _model(seed: int) -> Any:
    return GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(*_data(seed))


def _stream(seed: int) -> Any:
    return OnlineGaussianProcessClassifier(RBF(1.0), budget=5).fit(*_data(seed))


def _text(path: Path, text: str) -> None:
    with replacing(path) as beside:
        beside.write_text(text)


Write = Callable[[Path], None]
TASKS: dict[str, Callable[[], tuple[Write, Write, Callable[[Path], Any]]]] = {
    "model": lambda: (*(_saver(_model(seed)) for seed in (0, 1)), load),
    "stream": lambda: (
        *(_model_of_stream(seed) for seed in (0, 1)),
        OnlineGaussianProcessClassifier.load,
    ),
    "text": lambda: (
        lambda path: _text(path, "old"),
        lambda path: _text(path, "new" * 10_000),
        Path.read_text,
    ),
}
"""What is written first, what the killed writer writes, and how it is read."""


def _saver(model: Any) -> Write:
    return lambda path: save(model, path)


def _model_of_stream(seed: int) -> Write:
    stream = _stream(seed)
    return lambda path: stream.save(path)


def kill_all(task: str, every: int = 1, most: int = 10**6) -> dict[str, Any]:
    """Kill a writer at its k-th stop for k = 1, 1 + every, … until it ends before that."""
    write_old, write_new, read = TASKS[task]()
    found = {"kills": 0, "old": 0, "new": 0, "lost": 0, "litter": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write_new(path)
        new = path.read_bytes()
        write_old(path)
        old = path.read_bytes()
        for k in range(1, 1 + most * every, every):
            if not _killed(lambda: write_new(path), k):
                break
            found["kills"] += 1
            found[_state(path, old, new, read)] += 1
            write_old(path)
            found["litter"] += os.listdir(folder) != [path.name]
    return found


def _state(path: Path, old: bytes, new: bytes, read: Callable[[Path], Any]) -> str:
    """Say what the path holds; what it holds can be read."""
    if not path.exists() or (content := path.read_bytes()) not in (old, new):
        return "lost"
    read(path)
    return "new" if content == new else "old"


def _killed(write: Callable[[], None], k: int) -> bool:
    """Run a writer up to its k-th stop and kill it there; return whether it came that far."""
    libc = ctypes.CDLL(None, use_errno=True)
    child = os.fork()
    if not child:
        _traced(libc, write)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        raise OSError(f"processes cannot be traced here (exit code {os.WEXITSTATUS(status)})")
    for _ in range(k):
        libc.ptrace(_SYSCALL, child, None, None)
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
                return False
            raise RuntimeError(f"the writer ended by itself, with status {status}")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _traced(libc: Any, write: Callable[[], None]) -> None:
    """Write in a process that stops at every system call, and end it."""
    code = 1
    try:
        if libc.ptrace(_TRACEME, 0, None, None) < 0:
            code = _UNAVAILABLE
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
            write()
            code = 0
    finally:
        os._exit(code)


def main() -> int:
    """Kill writers of all tasks; the exit code is 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="farm.kills", description=__doc__)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--most", type=int, default=10**6, help="kills of each task")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    try:
        found = {
            task: kill_all(task, options.every, options.most) for task in options.task or TASKS
        }
    except (OSError, AttributeError) as error:
        print(f"cannot trace: {error}", file=sys.stderr)
        return _UNAVAILABLE
    text = json.dumps(found, indent=1)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n", encoding="utf-8")
    return any(one["lost"] or one["litter"] for one in found.values())


if __name__ == "__main__":
    sys.exit(main())
