"""Tables with something wrong in them: one clear error that names the place."""

import os

import numpy as np
import pytest

from cavity.rows import BatchRows, ParquetRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3))
Y = np.where(X[:, 0] > 0.0, 1.0, -1.0)


@pytest.fixture
def pa():
    """Return pyarrow, with what is needed to write files."""
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("pyarrow.dataset")
    return pyarrow


def columns(**others):
    return {"a": X[:, 0], "b": X[:, 1], "label": Y} | others


def write(pa, file, **others):
    pa.parquet.write_table(pa.table(columns(**others)), file, row_group_size=30)
    return file


def visit(rows, kept, shared):
    return rows.y, len(rows.weight)


def read(engine):
    return engine.reduce(visit, None, "read")


def with_value(column, row, value):
    column = np.array(column, dtype=object if value is None else None)
    column[row] = value
    return column


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("b", np.nan, "missing value .* in column 'b'"),
        ("b", -np.inf, "infinite value in column 'b'"),
        ("b", None, "missing value .* in column 'b'"),
        ("label", None, "target is missing"),
        ("label", np.nan, "target is missing"),
        ("times", -1.0, "weight is -1"),
        ("times", None, "weight is nan"),
        ("times", np.inf, "weight is inf"),
    ],
)
def test_a_value_that_cannot_be_used(pa, tmp_path, name, value, says):
    """The message has the row of the table, the file and the row there, and the column."""
    write(pa, tmp_path / "1.parquet", times=np.ones(100))
    column = {"b": X[:, 1], "label": Y, "times": np.ones(100)}[name]
    bad = {"times": np.ones(100), name: with_value(column, 67, value)}
    write(pa, tmp_path / "2.parquet", **bad)
    engine = ParquetRows(tmp_path, "label", weight="times", batch_rows=40)
    with pytest.raises(
        ValueError, match=rf"{says}.* row 167 of the table.* row 67 of .*2\.parquet"
    ):
        read(engine)
    # What is not looked at cannot be wrong.
    if name == "b":
        assert read(ParquetRows(tmp_path, "label", features=["a"])) == 200


def test_a_column_that_was_not_read_before(pa, tmp_path):
    """Other targets of a table that was checked are checked as well."""
    file = write(pa, tmp_path / "t.parquet", other=with_value(Y, 50, np.nan))
    table = ParquetRows(file, "label", features=["a"])
    assert read(table) == 100
    with pytest.raises(ValueError, match="target is missing"):
        read(table.with_targets("other"))


def test_labels_missing_among_text(pa, tmp_path):
    """A label that is missing among texts is found, too."""
    text = with_value(np.where(Y > 0.0, "yes", "no").astype(object), 31, None)
    for values in (text, pa.array(text).dictionary_encode()):
        file = write(pa, tmp_path / "t.parquet", label=values)
        with pytest.raises(ValueError, match=r"target is missing.* row 31 of the table"):
            read(ParquetRows(file, "label", batch_rows=40))


@pytest.mark.parametrize("kind", ["text", "category", "date"])
def test_features_that_are_no_numbers(pa, tmp_path, kind):
    """A feature of another type is refused before anything is read; the message says what to do."""
    text = pa.array(["red", "green"] * 50)
    values = {
        "text": text,
        "category": text.dictionary_encode(),
        "date": pa.array(np.arange(100).astype("datetime64[s]")),
    }[kind]
    file = write(pa, tmp_path / "t.parquet", colour=values)
    with pytest.raises(ValueError, match=r"'colour' of .*t\.parquet is .*not a number\. Encode"):
        read(ParquetRows(file, "label"))
    assert read(ParquetRows(file, "label", features=["a", "b"])) == 100


def test_files_that_disagree(pa, tmp_path):
    """A column that is missing in one file, or of another type there, is found at once."""
    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    write(pa, one)
    pa.parquet.write_table(pa.table({"a": X[:, 0], "label": Y}), two)
    with pytest.raises(ValueError, match=r"2\.parquet has no column 'b'"):
        read(ParquetRows(tmp_path, "label"))
    write(pa, two, b=["high"] * 100)
    with pytest.raises(ValueError, match=r"'b' of .*2\.parquet is string"):
        read(ParquetRows(tmp_path, "label"))
    write(pa, two, label=["yes"] * 100)
    with pytest.raises(ValueError, match=r"'label' is string in .*2\.parquet and double in .*1\."):
        read(ParquetRows(tmp_path, "label"))
    # Whole numbers in one file and others in the next are all numbers.
    write(pa, two, b=np.arange(100), label=Y.astype(int))
    assert read(ParquetRows(tmp_path, "label")) == 200


def test_columns_that_are_not_there(pa, tmp_path):
    """A wrong name comes with those that are right; a column has one purpose."""
    file = write(pa, tmp_path / "t.parquet")
    for given in ({"target": "lable"}, {"weight": "lable"}, {"features": ["a", "lable"]}):
        with pytest.raises(ValueError, match=r"no column 'lable'\. It has 'a', 'b', 'label'"):
            ParquetRows(file, **given)
    with pytest.raises(ValueError, match="'label' is target or weight and cannot be a feature"):
        ParquetRows(file, "label", features=["a", "label"])
    with pytest.raises(ValueError, match="no columns that could be features"):
        ParquetRows(file, ["a", "b", "label"])
    twice = pa.table([X[:, 0], X[:, 1], Y], names=["a", "a", "label"])
    pa.parquet.write_table(twice, file)
    with pytest.raises(ValueError, match="duplicate"):
        ParquetRows(file, "label")


@pytest.mark.parametrize("how", ["changed", "shrunk", "gone", "other rows", "cut off"])
def test_a_file_that_changes_between_passes(pa, tmp_path, how):
    """What was learned from a file is never mixed with what another has."""
    file = write(pa, tmp_path / "t.parquet")
    engine = ParquetRows(file, "label", batch_rows=40)
    assert read(engine) == 100
    stamp = file.stat()
    if how == "gone":
        file.unlink()
    elif how == "cut off":
        file.write_bytes(file.read_bytes()[:900])
    elif how == "shrunk":
        pa.parquet.write_table(pa.table(columns()).slice(0, 90), file)
    else:
        write(pa, file, b=X[::-1, 1])
    if how == "other rows":
        # Not even its size and time tell.
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        assert file.stat().st_size == stamp.st_size
    says = {"gone": "is gone", "other rows": "Rows 0 to 39 are not the same"}
    with pytest.raises(ValueError, match=says.get(how, "has changed") + "(.|\n)*open"):
        read(engine)


@pytest.mark.parametrize("content", [b"", b"not a table at all", None], ids=str)
def test_a_file_that_cannot_be_read(pa, tmp_path, content):
    """A damaged file is named, whether it is found out on opening or in the middle."""
    write(pa, tmp_path / "1.parquet")
    two = write(pa, tmp_path / "2.parquet")
    if content is None:
        # Damaged pages between an intact head and foot.
        good = two.read_bytes()
        content = good[:200] + b"\xff" * 1500 + good[1700:]
    two.write_bytes(content)
    with pytest.raises(ValueError, match=r"2\.parquet cannot be read"):
        read(ParquetRows(tmp_path, "label"))


def varint(n):
    """Return an integer as Thrift writes it."""
    n, found = 2 * n if n >= 0 else -2 * n - 1, bytearray()
    while n > 127:
        found.append(128 | n & 127)
        n >>= 7
    return bytes([*found, n])


@pytest.mark.parametrize("declared", [-9, 10**15])
def test_files_that_declare_other_numbers_of_rows(pa, tmp_path, declared):
    """A count below zero, or one for which the bookkeeping alone would fill the memory."""
    file = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table(columns()), file)
    whole = file.read_bytes()
    # The number of rows of the file stands before the list of its row groups.
    footer = whole[-8 - int.from_bytes(whole[-8:-4], "little") : -8]
    before = b"\x16" + varint(100) + b"\x19"
    assert footer.count(before) == 1
    changed = footer.replace(before, b"\x16" + varint(declared) + b"\x19")
    file.write_bytes(
        whole[: -8 - len(footer)] + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    )
    with pytest.raises(ValueError, match=r"no rows|rows and now has 100|cannot be read"):
        read(ParquetRows(file, "label", features=["a"], batch_rows=10))


def test_no_rows(pa, tmp_path):
    """A table without rows, a folder without files and a wrong path are different things."""
    file = tmp_path / "empty.parquet"
    pa.parquet.write_table(pa.table(columns()).slice(0, 0), file)
    with pytest.raises(ValueError, match="no rows"):
        read(ParquetRows(file, "label"))
    with pytest.raises(ValueError, match="no rows"):
        read(BatchRows(lambda: iter([])))
    with pytest.raises(ValueError, match="no rows"):
        _ = BatchRows(lambda: iter([])).n_features
    (tmp_path / "sub").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no file \*\.parquet.* in .*sub"):
        ParquetRows(tmp_path / "sub")
    with pytest.raises(FileNotFoundError, match=r"no file .*nowhere"):
        ParquetRows(tmp_path / "nowhere" / "*.parquet")
    with pytest.raises(ValueError, match="empty list"):
        ParquetRows([])
    with pytest.raises(TypeError, match="not int"):
        ParquetRows(3)
    (tmp_path / "other.arrow").touch()
    with pytest.raises(ValueError, match="different formats"):
        ParquetRows(tmp_path)


def test_an_iterator_is_not_enough():
    """Rows are read many times: what can be read once is refused, or found out in time."""
    batches = [(X[:50], Y[:50]), (X[50:], Y[50:])]
    with pytest.raises(TypeError, match="Expected a function, but got list_iterator"):
        BatchRows(iter(batches))
    with pytest.raises(TypeError, match="returned int"):
        read(BatchRows(lambda: 3))
    once = iter(batches)
    same = BatchRows(lambda: once)
    assert read(same) == 100
    with pytest.raises(ValueError, match="same iterator twice"):
        read(same)
    again = iter(batches)
    wrapped = BatchRows(lambda: map(tuple, again))
    assert read(wrapped) == 100
    with pytest.raises(ValueError, match="now yields none"):
        read(wrapped)
    third = iter(batches)
    peeked = BatchRows(lambda: map(tuple, third))
    assert peeked.n_features == 3
    with pytest.raises(ValueError, match="begins with another row"):
        read(peeked)


def test_batches_in_another_order():
    """Rows that come in another order, or in another number, are not taken for the same."""
    rng = np.random.default_rng(1)
    shuffled = BatchRows(lambda: iter([X[:10], X[10:][rng.permutation(90)]]), batch_rows=40)
    assert read(shuffled) == 100
    with pytest.raises(ValueError, match=r"Rows 0 to 39 are not the same.*without shuffling"):
        read(shuffled)
    sizes = iter([80, 40])
    shorter = BatchRows(lambda: iter([X[: next(sizes)]]), batch_rows=40)
    assert read(shorter) == 80
    with pytest.raises(ValueError, match="has had 80 rows and now has 40"):
        read(shorter)


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (X[:5, :2], "batch 1 has 2 columns and batch 0 has 3"),
        ((X[:5, :2], Y[:5]), "batch 1 has 2 columns and batch 0 has 3"),
        (X[:5], "batch 1 has no targets, but batch 0 has"),
        ((X[:5], Y[:4]), r"batch 1 has 5 rows, but targets of shape \(4,\)"),
        ((X[:5], Y[:5], 1.0), r"batch 1 has 5 rows, but weights of shape \(\)"),
        ((X[:5], Y[:5, None]), r"batch 1 has targets of shape \(1,\)"),
        ((X[:5], ["a"] * 5), "targets of batch 1 are labels, and those of batch 0 numbers"),
        (
            (X[:5], Y[:5], 0.0 * Y[:5] - 1.0),
            "weight is -1.* row 20 of the table.* row 0 of batch 1",
        ),
        ((X[:5, 0], Y[:5]), r"batch 1 has inputs of shape \(5,\)"),
        ((X[:5], Y[:5], Y[:5], Y[:5]), "batch 1 has 4 parts"),
        ((X[:5].astype(str), Y[:5]), r"input of batch 1 is <U\d+, not a number. Encode"),
        (
            (X[:5].astype(object) + "a", Y[:5]) if False else ([["a"] * 3] * 5, Y[:5]),
            "not a number",
        ),
        ((np.full((5, 3), np.nan), Y[:5]), "missing value .* column 0, row 20 of the table"),
    ],
)
def test_batches_that_do_not_fit(batch, says):
    """A batch unlike the first is named."""
    engine = BatchRows(lambda: iter([(X[:20], Y[:20]), batch]))
    with pytest.raises(ValueError, match=says):
        read(engine)


def test_arguments():
    """Wrong sizes of blocks and lists of names are refused."""
    for size in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="batch_rows must be a whole number"):
            BatchRows(lambda: iter([X]), batch_rows=size)
    with pytest.raises(ValueError, match="2 feature_names for 3 columns"):
        read(BatchRows(lambda: iter([X]), feature_names=["a", "b"]))
    named = BatchRows(lambda: iter([with_value(X, (3, 1), np.nan)]), feature_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="in column 'b', row 3"):
        read(named)
