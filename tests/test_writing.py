"""What is written where: no device is replaced, no litter stays, no text acts on its reader."""

import csv
import io
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from cavity import storage
from cavity.cli import main
from cavity.estimators.columns import columns, visible
from cavity.storage import StorageError, replacing
from cavity.tables.output import TableError, check_writable, csv_lines, to_json, write_frames

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def pipe(path):
    os.mkfifo(path)


def sock(path):
    with socket.socket(socket.AF_UNIX) as found:
        found.bind(str(path))


def link_to_a_device(path):
    path.symlink_to("/dev/null")


@pytest.mark.parametrize("make", [pipe, sock, link_to_a_device, os.mkdir])
def test_only_regular_files_are_replaced(make, tmp_path, monkeypatch):
    """Pipes, sockets, folders and devices behind links stay what they are, with one sentence."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "p"
    make(place)
    before = os.stat(place).st_mode
    with pytest.raises((StorageError, OSError), match="regular file"):
        storage.write(place, "test", {}, {})
    with pytest.raises((StorageError, TableError), match=r"regular file|is a folder"):
        check_writable(place)
    assert os.stat(place).st_mode == before
    assert os.listdir(tmp_path) == ["p"]


def test_a_dangling_link_is_a_new_name(tmp_path):
    """The file that the link names is made."""
    (tmp_path / "link").symlink_to(tmp_path / "new")
    storage.write(tmp_path / "link", "test", {}, {"x": np.ones(2)})
    assert stat.S_ISREG(os.lstat(tmp_path / "new").st_mode)


WRITER = """
import sys, time
from cavity.storage import replacing
with replacing(sys.argv[1]) as beside:
    beside.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_litter_of_the_dead_is_removed_and_nothing_of_the_living(tmp_path):
    """A killed writer's temporary file goes with the next write; a live writer's stays."""
    target = tmp_path / "model"
    command = [sys.executable, "-c", WRITER, str(target)]
    with replacing(target) as beside:
        beside.write_text("alive")
        with subprocess.Popen(command, stdout=subprocess.PIPE) as killed:
            assert killed.stdout.readline() == b"writing\n"
            check_writable(target)
            assert len(os.listdir(tmp_path)) == 2
            killed.send_signal(signal.SIGKILL)
        assert len(os.listdir(tmp_path)) == 2
        storage.write(target, "test", {}, {})
        assert len(os.listdir(tmp_path)) == 2
    assert target.read_text() == "alive"
    assert os.listdir(tmp_path) == ["model"]


def test_other_files_beside_the_target_stay(tmp_path):
    """Only this target's temporary files are litter."""
    for name in (".model.notes", ".other.1.partial", "model.1.partial"):
        (tmp_path / name).write_text("mine")
    with replacing(tmp_path / "model") as beside:
        beside.write_text("whole")
    names = [".model.notes", ".other.1.partial", "model", "model.1.partial"]
    assert sorted(os.listdir(tmp_path)) == names


FORMULAS = {
    "=1+1": "'=1+1",
    "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
    "-2+3": "'-2+3",
    "@SUM(A1)": "'@SUM(A1)",
    "\tx": "'\tx",
    "\rx": "'\rx",
    "-": "-",
    "+": "+",
    "-1.5": "-1.5",
    "+3e2": "+3e2",
    "a=b": "a=b",
    "": "",
}


def written(frame, folder):
    """Every CSV and TSV text of a table: of files, and of standard output."""
    for name, separator in (("a.csv", ","), ("a.tsv", "\t")):
        write_frames(folder / name, [frame, frame])
        yield (folder / name).read_bytes(), separator
    yield "".join(csv_lines([frame, frame])).encode(), ","


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(list(FORMULAS))])
def test_no_text_is_a_formula(kind, tmp_path):
    """Labels that a spreadsheet would compute get an apostrophe; signs and numbers stay."""
    labels = pl.Series("prediction", list(FORMULAS), dtype=kind)
    frame = pl.DataFrame([labels, pl.Series("n", range(len(FORMULAS)))])
    for content, separator in written(frame, tmp_path):
        found = pl.read_csv(content, separator=separator, infer_schema=False)
        assert found["prediction"].to_list() == 2 * list(FORMULAS.values())
    write_frames(tmp_path / "a.parquet", [frame])
    assert pl.read_parquet(tmp_path / "a.parquet")["prediction"].to_list() == list(FORMULAS)


def test_no_name_is_a_formula(tmp_path):
    """Names of columns are text of the table, too, and stay apart from each other's values."""
    frame = pl.DataFrame({name: [k] for k, name in enumerate([*FORMULAS, "'=1+1", 'a,"b"\n'])})
    truth = [*FORMULAS.values(), "'=1+1", 'a,"b"\n']
    for content, separator in written(frame, tmp_path):
        names, *rows = csv.reader(io.StringIO(content.decode(), newline=""), delimiter=separator)
        assert names == truth
        assert rows == 2 * [[str(k) for k in range(len(truth))]]


def test_carried_names_and_categories_are_no_formulas(tmp_path, capsys, monkeypatch):
    """What a command copies from a table, to a file or to standard output."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=20)
    cells = pl.Series("=1+1", ["=cmd0", "plain"] * 10, dtype=pl.Categorical)
    targets = pl.Series("t", np.where(x > 0, "a", "b"))
    pl.DataFrame([pl.Series("x", x), cells, targets]).write_parquet("t.parquet")
    fit = ["fit", "t.parquet", "--target", "t", "--kernel", "rbf", "-o", "m", "--quiet"]
    assert main(fit) == 0
    capsys.readouterr()
    assert main(["predict", "m", "t.parquet", "--carry", "=1+1"]) == 0
    shown = capsys.readouterr().out
    assert main(["predict", "m", "t.parquet", "--carry", "=1+1", "-o", "a.csv"]) == 0
    assert main(["suggest", "m", "t.parquet", "-k", "3", "-o", "b.csv"]) == 0
    kept = [(tmp_path / name).read_text() for name in ("a.csv", "b.csv")]
    for text in (shown, *kept):
        header, *rows = csv.reader(io.StringIO(text))
        assert "'=1+1" in header
        found = {row[header.index("'=1+1")] for row in rows}
        assert found <= {"'=cmd0", "plain"}


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("a", [["=1+1"]]),
        pl.Series("a", [{"b": "=1+1"}]),
        pl.Series("a", [["=1+1"]], dtype=pl.Array(pl.String, 1)),
        pl.Series("a", [b"=1+1"]),
        pl.Series("a", [timedelta(1)]),
    ],
)
def test_columns_that_csv_cannot_hold_are_refused(column, tmp_path):
    """Lists and bytes have no cells: one line names the column, and nothing is written."""
    frame = pl.DataFrame([column])
    with pytest.raises(TableError, match=r"'a': holds values of type .*; write Parquet"):
        write_frames(tmp_path / "a.csv", [frame])
    with pytest.raises(TableError, match=r"'a': holds values of type"):
        "".join(csv_lines([frame]))
    assert not os.listdir(tmp_path)
    write_frames(tmp_path / "a.parquet", [frame])
    assert pl.read_parquet(tmp_path / "a.parquet").equals(frame)


def test_control_characters_are_shown_and_not_obeyed():
    """Escapes, bells, one-byte control sequences and reversed text, in tables and in JSON."""
    nasty = "a\x1b[2J\x07\x9b31m\u202eb\x7f"
    assert not CONTROL.search(visible(nasty))
    assert "\u202e" not in visible(nasty)
    assert visible("plain\nä€") == "plain\nä€"
    assert not any(map(CONTROL.search, columns([nasty], [[nasty]])))
    assert not CONTROL.search(to_json({nasty: nasty}))
    assert pl.read_json(to_json([{"x": nasty}]).encode())["x"][0] == nasty


def nasty_table(path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    labels = np.where(x + 0.5 * x[::-1] > 0, "\x1b]0;u\x07yes", "no\x9b2J")
    rows = [f"{value:.3f},{label}" for value, label in zip(x, labels, strict=True)]
    path.write_text("\n".join(["x\x1b[31m,t\x07", *rows]) + "\n")


def on_a_terminal(arguments, folder):
    """Return what a command writes when all its output is a terminal."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "cavity", *arguments]
    with subprocess.Popen(words, cwd=folder, stdout=theirs, stderr=theirs, stdin=theirs):
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 2**16)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    return b"".join(parts).decode()


FIT = ["fit", "n.csv", "--target", "t\x07", "--kernel", "rbf", "-o", "m"]
OBEYED = ("\x1b]0;", "\x07", "\x9b", "\x1b[31m,")


def test_predictions_on_a_terminal(tmp_path, monkeypatch, capsys):
    """On a terminal, where a progress line moves the cursor, no label of a model does."""
    monkeypatch.chdir(tmp_path)
    nasty_table(tmp_path / "n.csv")
    assert main(FIT) == 0
    capsys.readouterr()
    predicted = on_a_terminal(["predict", "m", "n.csv"], tmp_path)
    assert "\x1b[" in predicted, "no progress line: was this a terminal?"
    assert "yes" in predicted
    assert not [bad for bad in OBEYED if bad in predicted]


@pytest.mark.slow
def test_commands_show_control_characters_of_tables(tmp_path):
    """On a terminal, no name and no label of a table moves the cursor or rings a bell."""
    nasty_table(tmp_path / "n.csv")
    fit = on_a_terminal(FIT, tmp_path)
    assert (tmp_path / "m").exists(), fit
    report = on_a_terminal(["report", "n.csv", "--target", "t\x07", "-o", "p.html"], tmp_path)
    for text in (fit, report):
        assert not [bad for bad in OBEYED if bad in text]


def test_errors_show_control_characters(tmp_path, capsys, monkeypatch):
    """Names in errors, of options as of columns, are written as escapes."""
    monkeypatch.chdir(tmp_path)
    nasty_table(tmp_path / "n.csv")
    for arguments in (
        ["fit", "n.csv", "--target", "\x1b[2J", "-o", "m"],
        ["fit", "no\x9bfile.csv", "--target", "t", "-o", "m"],
        ["fit", "n.csv", "--target", "x\x1b[31m", "--task", "\x1b]0;", "-o", "m"],
        ["fit", "n.csv", "--\x1b[1m"],
        ["\x07"],
    ):
        assert main(arguments)
        found = capsys.readouterr()
        assert found.err
        assert not CONTROL.search(found.err + found.out)
