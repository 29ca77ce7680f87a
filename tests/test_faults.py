"""Killed writers, full disks, folders that are not ours, interrupts: nothing saved is lost."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from farm import interrupts, workers
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
    # An ordinary user, or a process that is killed, has nowhere to write what it has covered.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    environment = plain | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(sys.path)}
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
    FIT = ["fit", "t.csv", "--target", "t", "--kernel", "rbf", "-o"]
    from pathlib import Path
    from cavity.cli import main
    from cavity.estimators import load, save
    folder = Path(sys.argv[1])
    os.chdir(folder)
    # All that is imported on the way is imported now: another user may not read this Python.
    assert main([*FIT, str(folder.parent / "elsewhere"), "--quiet"]) == 0
    model = load("model")
    if os.getuid() == 0:
        os.setgid(65534), os.setuid(65534)
    assert not os.access(folder, os.W_OK)
    try:
        save(model, "other")
    except PermissionError as error:
        print(error)
    sys.exit(main([*FIT, "new"]))
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions of folders are those of Unix")
def test_a_folder_that_may_only_be_read():
    """An ordinary user gets one sentence, from Python and from the command line, and no file."""
    # The temporary folders of pytest are closed to other users.
    with tempfile.TemporaryDirectory() as above:
        place = Path(above) / "place"
        place.mkdir()
        save(model(), place / "model")
        rows = [f"{np.sin(k):.3f},{'yes' if k % 3 else 'no'}" for k in range(20)]
        (place / "t.csv").write_text("\n".join(["x,t", *rows]) + "\n")
        for path, mode in ((Path(above), 0o755), (place / "model", 0o644), (place, 0o555)):
            path.chmod(mode)
        done = python("-c", textwrap.dedent(READ_ONLY), str(place))
        found = sorted(os.listdir(place))
        place.chmod(0o755)
    assert "Permission denied" in done.stdout, done.stderr
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["cavity: new: cannot be written: permission denied."]
    assert found == ["model", "t.csv"]


# In a generator that is thrown away Python reports an interrupt, and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", interrupts.TASKS)
def test_interrupts_at_random_moments(name):
    """Interrupted at any moment, an object or a file is the one before or the one after."""
    found = interrupts.moments(interrupts.TASKS[name], 12)
    assert found["moments"] >= 8
    assert found["between"] == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_around_the_temporary_file(tmp_path):
    """From before it is made until it is in place, no interrupt leaves it behind."""
    task = interrupts.TASKS["save"]
    before = task.state(task.make(tmp_path))
    names = []

    def watch(frame, event, arg):
        if event == "call":
            names.append(frame.f_code.co_name)

    one = task.make(tmp_path)
    sys.setprofile(watch)
    try:
        task.act(one)
    finally:
        sys.setprofile(None)
    begin = names.index("_temporary") + 1
    for k in [*range(begin, begin + 12), *range(len(names) - 12, len(names) + 1)]:
        state, _, _ = interrupts._tried(task, tmp_path, k)
        assert state[0] == before[0], (k, names[k - 1], state[0])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_are_raised_as_they_are(tmp_path):
    """Saving that is interrupted says so, and does not complain of a half-written member."""
    one, path = model(), tmp_path / "model"
    _, calls = interrupts.interrupt(lambda: save(one, path), 0)
    moments = range(1, calls, max(1, calls // 60))
    told = []
    for k in moments:
        told.append(interrupts.interrupt(lambda: save(one, path), k)[0])
        load(path)
    # What comes while Python throws a zip file away is swallowed by Python.
    assert sum(told) >= len(moments) - 2


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


@pytest.mark.skipif(not workers.available(), reason="needs Linux's /proc")
def test_a_killed_worker_leaves_the_model_as_it_was():
    """When a process that tunes one of the starts is killed, the fit fails and changes nothing."""
    found = workers.kill_workers(1)
    if not found["kills"]:
        pytest.skip("the workers were done before one could be killed")
    assert found["changed"] == 0


def test_an_interrupt_by_signal():
    """Ctrl-C in the middle of a long fit comes through, and the model is as before."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals arrive in the main thread only")
    X, y = data(n=400)
    reg = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X[:30], y[:30])
    before = reg.predict(X[:5])
    reg.set_params(optimizer="fmin_l_bfgs_b", n_restarts_optimizer=50, random_state=0)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    # Where tests are spread over processes, these do not listen to Ctrl-C.
    before_test = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            reg.fit(X, y)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before_test)
    np.testing.assert_array_equal(reg.predict(X[:5]), before)
