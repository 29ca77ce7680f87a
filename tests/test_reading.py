"""Where a text table may come from: gzip, standard input, other encodings; in memory or not."""

import gzip
import io
import json
import os
import sys

import polars as pl
import pytest

from cavity.cli import main
from cavity.tables import large, plain, table
from cavity.tables.output import TableError, near_miss
from cavity.tables.prepare import prepare
from cavity.tables.read import read_table
from cavity.tables.table import StoredTable


def packed(data):
    """Gzip without the time in it, which would make a name of a test differ from run to run."""
    return gzip.compress(data, mtime=0)


TEXT = "größe,naïve,t\n" + "".join(f"{i / 7:.3f},{'äé'[i % 2]}{i % 3},{i % 2}\n" for i in range(60))


@pytest.fixture(params=["memory", "disk"])
def where(request, monkeypatch, tmp_path):
    """Whether tables are small enough for memory; no temporary file outlives a test."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    if request.param == "disk":
        monkeypatch.setattr(table, "IN_MEMORY", 0)
        monkeypatch.setattr(large, "_CHUNK", 50)
        monkeypatch.setattr(plain, "_CHUNK", 7)
    yield request.param
    assert os.listdir(scratch) == []


def whole(found):
    return pl.concat(found.batches())


def stdin_of(data):
    """Standard input from which these bytes come."""
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("name", "data", "encoding"),
    [
        ("t.csv", TEXT.encode(), None),
        ("t.csv", TEXT.encode(), "utf-8"),
        ("t.csv", TEXT.encode("utf-8-sig"), None),
        ("t.csv", TEXT.encode("utf-16"), None),
        ("t.csv", b"\xfe\xff" + TEXT.encode("utf-16-be"), None),
        ("t.csv", TEXT.encode("utf-32"), None),
        ("t.csv", TEXT.encode("latin-1"), "latin-1"),
        ("t.csv", TEXT.encode("cp1252"), "cp1252"),
        ("t.csv", TEXT.encode("utf-16-le"), "utf-16-le"),
        ("t.csv.gz", packed(TEXT.encode()), None),
        ("t.csv.gz", packed(TEXT[:80].encode()) + packed(TEXT[80:].encode()), None),
        ("t.gz", packed(TEXT.encode("utf-16")), None),
        ("t.tsv.gz", packed(TEXT.replace(",", "\t").encode("latin-1")), "latin-1"),
    ],
)
@pytest.mark.parametrize("piped", [False, True])
def test_the_way_in_makes_no_difference(tmp_path, monkeypatch, where, name, data, encoding, piped):
    """Packed, in any encoding, from a file or a pipe: the table is the same."""
    path = tmp_path / name
    path.write_bytes(data)
    monkeypatch.setattr(sys, "stdin", stdin_of(data))
    found = read_table("-" if piped else path, encoding=encoding)
    assert isinstance(found, StoredTable) == (where == "disk")
    assert found.source == ("standard input" if piped else str(path))
    wanted = pl.read_csv(TEXT.encode())
    assert whole(found).equals(wanted)
    assert prepare(found, "t", "classification").counts["rows"] == 60


BROKEN = [
    (b"", None, "is empty"),
    (packed(b""), None, "is empty"),
    (packed(TEXT.encode())[:-9], None, "is an incomplete gzip file"),
    (packed(TEXT.encode())[:40], None, "is an incomplete gzip file"),
    (b"\x1f\x8b\x08\x00junk" * 9, None, "is a damaged gzip file"),
    (b"a,t\n1,\xe9\n", None, r"line 2 is not UTF-8 \(byte 0xe9 at position 6\).*--encoding cp1252"),
    (b"\xef\xbb\xbfa,t\n1,\xe9\n", None, r"byte 0xe9 at position 9"),
    (b"a,t\n1,\x81\n", None, r"line 2 is not UTF-8 \(byte 0x81 .*--encoding latin-1"),
    (b"a,t\n1,\xe9\n", "utf-8", r"byte 0xe9 at position 6 is not utf-8: name"),
    ("a,é\n1,2\n".encode(), "ascii", r"byte 0xc3 at position 2 is not ascii"),
    (TEXT.encode("utf-16")[:-1], None, r"at position \d+ is not utf-16"),
    (TEXT.encode("utf-16-le"), None, "is binary|is not UTF-8"),
    (b"PAR1" + TEXT.encode(), "utf-8", "is Parquet"),
]


@pytest.mark.parametrize(("data", "encoding", "message"), BROKEN)
def test_what_cannot_be_read_is_one_line(tmp_path, monkeypatch, where, data, encoding, message):
    """A truncated archive, a wrong encoding and empty input say what they are, and where."""
    monkeypatch.setattr(sys, "stdin", stdin_of(data))
    with pytest.raises(TableError, match=f"^standard input: {message}|{message}") as caught:
        read_table("-", encoding=encoding)
    assert "\n" not in str(caught.value)


def test_a_full_disk_is_one_line(tmp_path, monkeypatch, where):
    """If an unpacked table has no room, the message says where, and nothing stays."""
    if where == "memory":
        pytest.skip("nothing is written")

    class Full(plain.Scratch):
        def __init__(self):
            super().__init__()
            self.path = self.path / "gone"

    monkeypatch.setattr(plain, "Scratch", Full)
    with pytest.raises(TableError, match="TMPDIR"):
        plain.plain_text(io.BytesIO(TEXT.encode()), "t.csv", None)


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, *capsys.readouterr()


COMMANDS = {
    "report": ["report", "-", "--target", "t"],
    "compare": ["compare", "-", "--target", "t"],
    "curve": ["curve", "-", "--target", "t", "--sizes", "20"],
    "fit": ["fit", "-", "--target", "t", "-o", "m.model"],
    "predict": ["predict", "m.model", "-"],
}


def test_every_command_reads_standard_input(tmp_path, monkeypatch, capsys):
    """What comes by a pipe, packed or in another encoding, gets the answers of a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TEXT, encoding="utf-8")
    fit = ["fit", "t.csv", "--target", "t", "-o", "m.model", "--kernel", "rbf"]
    assert run(capsys, *fit)[0] == 0
    for data, more in ((packed(TEXT.encode()), []), (TEXT.encode("cp1252"), ["cp1252"])):
        for name, words in COMMANDS.items():
            kernel = [] if name == "predict" else ["--kernel", "rbf"]
            words = [*words, "--json", *kernel, *(["--encoding", *more] if more else [])]
            monkeypatch.setattr(sys, "stdin", stdin_of(data))
            piped = run(capsys, *words)
            assert (piped[0], piped[2]) == (0, ""), name
            if name in ("curve", "predict"):
                plain_words = ["t.csv" if word == "-" else word for word in words[:-2]]
                plain_words = plain_words if more else ["t.csv" if w == "-" else w for w in words]
                assert json.loads(run(capsys, *plain_words)[1]) == json.loads(piped[1])


def test_an_unknown_encoding_is_wrong_use(capsys):
    """A name that is no text encoding is refused before anything is read."""
    for name in ("klingon", "hex"):
        code, out, err = run(capsys, "report", "t.csv", "--target", "t", "--encoding", name)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "cp1252" in err


def test_near_misses():
    """A name with a slip, in other letter case or with spaces is recognised; others are not."""
    names = ["outcome", "Age", "blood pressure"]
    assert near_miss("ouctome", names) == "; did you mean 'outcome'?"
    assert near_miss("age", names) == "; did you mean 'Age'?"
    assert near_miss("Blood_Pressure", names) == "; did you mean 'blood pressure'?"
    assert near_miss("price", names) == ""


def test_every_command_suggests_a_column(tmp_path, monkeypatch, capsys):
    """A misspelt target or column, here or in the table for a model, is suggested by its name."""
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"Age": [i % 7 for i in range(30)], "outcome": ["a", "b"] * 15})
    frame.write_csv("t.csv")
    for name, words in COMMANDS.items():
        if name != "predict":
            words = [
                "t.csv" if word == "-" else "ouctome" if word == "t" else word for word in words
            ]
            code, out, err = run(capsys, *words)
            assert (code, out) == (1, "")
            assert "column 'ouctome': there is no such column; did you mean 'outcome'?" in err
    code, _, err = run(capsys, "report", "t.csv", "--target", "outcome", "--drop", "age")
    assert code == 1
    assert "column 'age': there is no such column; did you mean 'Age'?" in err
    fit = ["fit", "t.csv", "--target", "outcome", "-o", "m.model", "--kernel", "rbf"]
    assert run(capsys, *fit)[0] == 0
    frame.rename({"Age": "age"}).write_csv("new.csv")
    code, _, err = run(capsys, "predict", "m.model", "new.csv")
    assert code == 1
    assert "the table does not have it; did you mean 'age'?" in err
    code, _, err = run(capsys, "report", "tt.csv", "--target", "outcome")
    assert code == 1
    assert "there is no such file or data set; did you mean 't.csv'?" in err
    assert "did you mean 'pima'?" in run(capsys, "report", "pimaa")[2]
