"""Commands end as they say, reach for nothing outside, and are interrupted in one line."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

ENTRIES = {
    "module": ["-m", "cavity"],
    # What the installed script does.
    "script": ["-c", "import sys; from cavity.cli import main; sys.exit(main())"],
}
INTERRUPTING = """
    import os, signal, sys, threading, time

    # Where tests are spread over processes, these do not listen to Ctrl-C, nor their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    WHEN, WHERE = os.environ["INTERRUPTED"].split()
    MAIN, came = threading.main_thread().ident, []

    def strike():
        if not came:
            came.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    def imported(event, about):
        if event == "import" and about[0] == WHERE:
            strike()

    def running():
        frame = sys._current_frames().get(MAIN)
        while frame is not None:
            if frame.f_code.co_name == WHERE:
                return True
            frame = frame.f_back
        return False

    def watch():
        while not running():
            time.sleep(0.005)
        strike()

    if WHEN == "importing":
        sys.addaudithook(imported)
    else:
        threading.Thread(target=watch, daemon=True).start()
"""


@pytest.fixture
def table(tmp_path):
    """A folder with a table and some room for what a process imports at its start."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, "yes", "no")
    rows = [",".join(map(str, [*x, label])) for x, label in zip(X, labels, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,t", *rows]) + "\n")
    (tmp_path / "start").mkdir()
    return tmp_path


def python(folder, start, *arguments, **environment):
    """Run Python in the folder, with this as the first thing it does."""
    (folder / "start" / "sitecustomize.py").write_text(textwrap.dedent(start))
    path = os.pathsep.join([str(folder / "start"), *filter(None, sys.path)])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path} | environment
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize(
    ("entry", "moment"),
    [
        ("module", "importing cavity.cli.app"),
        ("module", "importing numpy"),
        ("script", "importing sklearn.base"),
        ("script", "importing polars"),
        ("module", "running read_table"),
        ("script", "running fit_model"),
    ],
)
def test_an_interrupted_command_ends_with_130(entry, moment, table):
    """From the first import to the middle of a fit: one line, exit code 130, no file."""
    command = [*ENTRIES[entry], "fit", "t.csv", "--target", "t", "-o", "m"]
    done = python(table, INTERRUPTING, *command, INTERRUPTED=moment)
    # The first line ends that of a terminal's ^C.
    assert (done.returncode, done.stderr) == (130, "\ncavity: interrupted.\n")
    assert not done.stdout
    assert sorted(os.listdir(table)) == ["start", "t.csv"]


def test_the_package_itself_is_imported_in_no_time(table):
    """What takes long is imported by the command, which can say that it was interrupted."""
    about = "import sys, cavity.cli; print({'numpy', 'sklearn', 'scipy'} & set(sys.modules))"
    assert python(table, "", "-c", about).stdout == "set()\n"


WATCHING = """
    import os, sys

    ALARMS = (
        "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo",
        "socket.gethostbyname", "urllib.Request", "http.client.connect", "ftplib.connect",
        "smtplib.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
        "os.spawn", "os.startfile", "os.startfile/2", "pty.spawn", "webbrowser.open",
    )

    def watch(event, about):
        if event in ALARMS:
            # What raises an error here could be caught by who has asked.
            os.write(2, f"ALARM {event} {about!r}\\n".encode())

    sys.addaudithook(watch)
"""
EVERY_COMMAND = """
    import sys
    from cavity.cli import main
    MODEL = ["--target", "t", "--kernel", "rbf"]
    for words in (
        ["datasets"],
        ["fit", "t.csv", *MODEL, "-o", "m"],
        ["predict", "m", "t.csv", "-o", "answers.parquet"],
        ["predict", "m", "t.csv", "--score"],
        ["curve", "t.csv", *MODEL],
        ["compare", "t.csv", *MODEL],
        ["plan", "t.csv", *MODEL, "--goal", "error 0.2"],
        ["suggest", "m", "t.csv", "-k", "2"],
        ["report", "t.csv", *MODEL, "-o", "page.html"],
        ["report", "missing.csv"],
    ):
        print(words[0], main(words), file=sys.stderr)
"""


def test_commands_reach_for_nothing_outside(table):
    """No command opens a connection or starts another program."""
    rows = (table / "t.csv").read_text().splitlines()
    (table / "t.csv").write_text("\n".join(rows[:60]) + "\n")
    # The library that draws charts is put together anew.
    cache = str(table / "cache")
    done = python(table, WATCHING, "-c", textwrap.dedent(EVERY_COMMAND), XDG_CACHE_HOME=cache)
    assert done.returncode == 0, done.stderr
    assert "ALARM" not in done.stderr, done.stderr
    ends = [line.split()[-1] for line in done.stderr.splitlines() if line[-2:] in (" 0", " 1")]
    assert ends == 9 * ["0"] + ["1"], done.stderr
    assert {"m", "answers.parquet", "page.html"} <= set(os.listdir(table))


def test_the_watch_would_give_alarm(table):
    """The check is worth something: a connection and a program are noticed, also if they fail."""
    attempts = """
        import socket, subprocess, sys
        subprocess.run([sys.executable, "-c", ""])
        try:
            socket.create_connection(("127.0.0.1", 9), timeout=1)
        except OSError:
            pass
    """
    found = python(table, WATCHING, "-c", textwrap.dedent(attempts)).stderr
    assert "ALARM subprocess.Popen" in found
    assert "ALARM socket.connect" in found


def test_what_the_package_offers_is_there_on_first_use(table):
    """Its names, its modules, and nothing else."""
    about = """
        import cavity
        assert cavity.datasets.load_pima and cavity.estimators.load
        assert not hasattr(cavity, "nothing") and not hasattr(cavity, "__nothing__")
        namespace = {}
        exec("from cavity import *", namespace)
        assert set(cavity.__all__) <= set(namespace)
        from cavity.estimators import GaussianProcessClassifier
        assert cavity.GaussianProcessClassifier is GaussianProcessClassifier
        print("fine")
    """
    done = python(table, "", "-c", textwrap.dedent(about))
    assert done.stdout == "fine\n", done.stderr
