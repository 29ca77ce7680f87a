"""Full disks and killed commands: answers, pages and checkpoints are the old ones or the new."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytest.importorskip("resource", reason="file sizes are limited by a call of Unix")

PREDICT = ["predict", "m", "t.csv", "--quiet", "-o"]
REPORT = ["report", "t.csv", "--target", "t", "--kernel", "rbf", "--quiet"]
REPORT += ["--no-baselines", "--no-comparison", "-o"]
COMMANDS = {
    "answers.csv": PREDICT,
    "answers.tsv": PREDICT,
    "answers.parquet": PREDICT,
    "page.html": REPORT,
}
COMMON = """
    import contextlib, io, json, os, resource, signal, sys
    from pathlib import Path
    import numpy as np
    from sklearn.gaussian_process.kernels import RBF
    from cavity import OnlineGaussianProcessClassifier
    from cavity.cli import main
    import cavity.cli.app
    COMMANDS = json.loads(sys.argv[1])

    def run(name):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = main([*COMMANDS[name], name])
        return code, said.getvalue()
"""
FULL = """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    def checkpoint(name):
        try:
            stream.save(name)
        except OSError as error:
            return 1, f"{error}\\n"
        return 0, ""

    X = np.random.default_rng(0).normal(size=(50, 2))
    stream = OnlineGaussianProcessClassifier(RBF(1.0), budget=20).fit(X, X[:, 0] > 0)
    assert main(["fit", "t.csv", "--target", "t", "--kernel", "rbf", "--quiet", "-o", "m"]) == 0
    for name, write in [*((name, run) for name in COMMANDS), ("stream", checkpoint)]:
        path = Path(name)
        assert write(name) == (0, ""), name
        size = path.stat().st_size
        path.write_text("old")
        before = sorted(os.listdir("."))
        # A page says how long things took: its size varies a little.
        for most in (0, size // 3, 19 * size // 20):
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
            code, said = write(name)
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            assert code == 1, (name, most)
            assert path.read_text() == "old", (name, most)
            assert sorted(os.listdir(".")) == before, (name, most)
            assert "File too large" in said, said
            assert len(said.splitlines()) == 1, said
        assert write(name) == (0, "")
        assert path.stat().st_size >= 0.9 * size
        print(name)
"""
KILLED = """
    def forked(name, event):
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1]

        def watch(found, about):
            if found == event and f".{name}." in str(about[0]):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        os._exit(run(name)[0])

    def fit(name):
        return main(["fit", "t.csv", "--target", "t", "--kernel", "rbf", "--quiet", "-o", name])

    # A process that has used Polars is not forked.
    child = os.fork()
    if not child:
        os._exit(fit("m"))
    os.waitpid(child, 0)
    for name in COMMANDS:
        path = Path(name)
        path.write_text("old")
        before = sorted(os.listdir("."))
        for event in ("open", "os.rename"):
            assert forked(name, event) == signal.SIGKILL, (name, event)
            assert path.read_text() == "old", (name, event)
        assert len(os.listdir(".")) > len(before), (name, os.listdir("."))
        assert forked(name, None) == 0, name
        assert path.stat().st_size > 100
        assert sorted(os.listdir(".")) == before, name
        print(name)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table."""
    x = np.random.default_rng(0).normal(size=60)
    rows = [f"{value:.4f},{'yes' if value > 0 else 'no'}" for value in x]
    (tmp_path / "t.csv").write_text("\n".join(["x,t", *rows]) + "\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / f"{tmp_path.name}-cache"))
    return tmp_path


def python(folder, script):
    """Run a script in the folder; return the words it prints."""
    # A process that may write no files, or is killed, has nowhere to write what it has covered.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    plain |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    text = textwrap.dedent(COMMON) + textwrap.dedent(script)
    command = [sys.executable, "-c", text, json.dumps(COMMANDS)]
    done = subprocess.run(
        command, cwd=folder, env=plain, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_full_disk(folder):
    """Whatever is written: one line, the old file, and no scraps; once there is room, the new."""
    assert python(folder, FULL) == [*COMMANDS, "stream"]


@pytest.mark.skipif(sys.platform != "linux", reason="forks a process that has imported much")
def test_a_killed_command(folder):
    """Killed when its file is made, and before it is moved: the old file, until the next run."""
    assert python(folder, KILLED) == list(COMMANDS)
