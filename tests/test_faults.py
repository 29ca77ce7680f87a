"""Killed writers, full disks, folders that are not ours, interrupts: nothing saved is lost."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from farm import interrupts
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.estimators import load, save

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
UNAVAILABLE = 77


def data(seed=0, d=2, n=30):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, (X[:, 0] > 0).astype(int)


def model(seed=0):
    return GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(*data(seed))


def python(*arguments, **more):
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, **more
    )


@pytest.mark.parametrize("task", ["model", "stream", "text"])
def test_writers_killed_at_system_calls(task):
    """Killed before or after any of a dozen system calls, the file is the old or the new one."""
    done = python("-m", "farm.kills", "--task", task, "--every", "17", cwd=os.getcwd())
    if done.returncode == UNAVAILABLE:
        pytest.skip(f"needs Linux and the right to trace processes: {done.stderr}")
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)[task]
    assert found["kills"] >= 4
    assert found["old"] > 0
    assert found["lost"] == found["litter"] == 0


FULL = """
    import resource, signal, sys, os
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    from pathlib import Path
    from cavity.estimators import load, save
    path = Path(sys.argv[1])
    first, second = load(path), load(path.with_name("second"))
    whole = path.read_bytes()
    failures = 0
    for most in range(0, len(whole) + 4096, 997):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        try:
            save(second, path)
        except OSError:
            failures += 1
            assert path.read_bytes() == whole, most
            assert sorted(os.listdir(path.parent)) == ["model", "second"], most
    assert path.read_bytes() == path.with_name("second").read_bytes()
    print(failures)
"""


def test_a_disk_that_is_full_after_any_number_of_bytes(tmp_path):
    """As long as there is no room the old file stays, without scraps; then the new one is whole."""
    pytest.importorskip("resource", reason="file sizes are limited by a call of Unix")
    save(model(0), tmp_path / "model")
    save(model(1), tmp_path / "second")
    done = python("-c", textwrap.dedent(FULL), str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 3


READ_ONLY = """
    import os, sys
    from pathlib import Path
    folder = Path(sys.argv[1])
    if os.getuid() == 0:
        os.setgid(65534), os.setuid(65534)
    os.chdir(folder)
    from cavity.cli import main
    from cavity.estimators import load, save
    assert not os.access(folder, os.W_OK)
    model = load("model")
    try:
        save(model, "other")
    except PermissionError as error:
        print(error)
    sys.exit(main(["fit", "t.csv", "--target", "t", "--kernel", "rbf", "-o", "new"]))
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions of folders are those of Unix")
def test_a_folder_that_may_only_be_read(tmp_path):
    """An ordinary user gets one sentence, from Python and from the command line, and no file."""
    save(model(), tmp_path / "model")
    rows = [f"{k},{'yes' if k % 3 else 'no'}" for k in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["x,t", *rows]) + "\n")
    # The folders above are the owner's own.
    for above in tmp_path.parents:
        if above.stat().st_uid == os.getuid() and above.name.startswith("pytest"):
            above.chmod(0o755)
    for file in tmp_path.iterdir():
        file.chmod(0o644)
    tmp_path.chmod(0o555)
    try:
        done = python("-c", textwrap.dedent(READ_ONLY), str(tmp_path))
    finally:
        tmp_path.chmod(0o755)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip("another user may not read this Python")
    assert "Permission denied" in done.stdout, done.stderr
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["cavity: new: cannot be written: permission denied."]
    assert sorted(os.listdir(tmp_path)) == ["model", "t.csv"]


# In a generator that is thrown away Python reports an interrupt, and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", interrupts.TASKS)
def test_interrupts_at_random_moments(name):
    """Interrupted at any moment, an object or a file is the one before or the one after."""
    found = interrupts.moments(interrupts.TASKS[name], 12)
    assert found["moments"] >= 8
    assert found["between"] == []


def test_interrupts_are_raised_as_they_are(tmp_path):
    """Saving that is interrupted says so, and does not complain of a half-written member."""
    one, path = model(), tmp_path / "model"
    _, calls = interrupts.interrupt(lambda: save(one, path), 0)
    step = max(1, calls // 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(1, calls, step):
            told, _ = interrupts.interrupt(lambda: save(one, path), k)
            assert told, k
            load(path)


def test_the_moments_would_show_a_mixture():
    """The check is worth something: an object that is changed in two steps is found between."""

    class Pair(list):
        def first(self):
            self[0] += 1

        def second(self):
            self[1] += 1

    def act(pair):
        pair.first()
        pair.second()

    task = interrupts.Task(lambda _: Pair([0, 0]), act, list)
    assert interrupts.moments(task, 40)["between"]


KILLED = """
    import numpy as np, os, sys, pickle
    from sklearn.gaussian_process.kernels import RBF
    from cavity import GaussianProcessRegressor
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)); y = np.sin(X[:, 0])
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X[:40], y[:40])
    before, names = model.predict(X[:5]), sorted(vars(model))
    model.set_params(optimizer="fmin_l_bfgs_b", n_restarts_optimizer=30, n_jobs=2, random_state=0)
    names = sorted(vars(model))
    print("begin", flush=True)
    try:
        model.fit(X, y)
        print("finished")
    except Exception as error:
        print(type(error).__name__)
        assert sorted(vars(model)) == names
        assert np.array_equal(model.predict(X[:5]), before)
        print("as before")
"""


def children(pid):
    """Return the processes that a process has started, of which one does the work."""
    try:
        return [int(k) for k in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's /proc")
def test_a_killed_worker_leaves_the_model_as_it_was():
    """When a process that tunes one of the starts is killed, the fit fails and changes nothing."""
    command = [sys.executable, "-c", textwrap.dedent(KILLED)]
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout.readline() == "begin\n"
        killed = kill_a_worker(parent)
        out = parent.stdout.read()
    if not killed:
        pytest.skip("the workers were done before one could be killed")
    assert parent.returncode == 0
    assert "as before" in out or "finished" in out


def kill_a_worker(parent):
    """Kill the first worker of joblib that appears; return whether there was one."""
    end = time.monotonic() + 60.0
    while time.monotonic() < end and parent.poll() is None:
        for pid in children(parent.pid):
            words = Path(f"/proc/{pid}/cmdline").read_text()
            if "popen_loky" in words:
                time.sleep(0.5)
                os.kill(pid, signal.SIGKILL)
                return True
        time.sleep(0.01)
    return False


def test_an_interrupt_by_signal():
    """Ctrl-C in the middle of a long fit comes through, and the model is as before."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals arrive in the main thread only")
    X, y = data(n=400)
    reg = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X[:30], y[:30])
    before = reg.predict(X[:5])
    reg.set_params(optimizer="fmin_l_bfgs_b", n_restarts_optimizer=50, random_state=0)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        reg.fit(X, y)
    timer.join()
    np.testing.assert_array_equal(reg.predict(X[:5]), before)
