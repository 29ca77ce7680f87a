"""Every rule about columns, targets and rows, on tables made for it."""

import datetime as dt
import io
import json
from dataclasses import asdict

import numpy as np
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler

from cavity.datasets import load_abalone, load_crabs, load_pima
from cavity.tables.encoding import Encoder
from cavity.tables.output import TableError
from cavity.tables.prepare import choose_rows, prepare
from cavity.tables.read import SHIPPED, Table, read_table, read_text

N = 40
LABELS = ["no", "yes"] * (N // 2)


def table(**columns):
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal(N), **columns}
    return Table(pl.DataFrame({"t": LABELS, **given}, strict=False), "made.csv")


def csv(frame):
    return read_text(frame.write_csv().encode(), "made.csv")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_data_sets_need_no_options(name):
    """A shipped data set knows its target and task, and nothing in it is missing or refused."""
    data = prepare(read_table(name))
    assert data.task == SHIPPED[name].task
    assert np.all(np.isfinite(data.X))
    assert data.counts["missing_values"] == 0


def test_pima_is_the_loaders_pima():
    """Labels, split and standardised inputs are the loader's."""
    data, loaded = prepare(read_table("pima")), load_pima(subset="all")
    scaler = StandardScaler().fit(loaded.data[loaded.train])
    # Two orders of summation.
    np.testing.assert_allclose(data.X, scaler.transform(loaded.data[loaded.train]), atol=1e-12)
    np.testing.assert_allclose(data.X_test, scaler.transform(loaded.data[loaded.test]), atol=1e-12)
    np.testing.assert_array_equal(data.y, loaded.target[loaded.train])
    np.testing.assert_array_equal(data.test_rows, loaded.test + 1)
    assert list(data.classes) == list(loaded.target_names)


def test_categories_are_the_loaders_indicators():
    """One-hot columns of abalone and crabs are, standardised, the loaders' own 0/1 features."""
    for name, load in (("abalone", load_abalone), ("crabs", load_crabs)):
        data, loaded = prepare(read_table(name), max_rows=5000), load()
        wanted = StandardScaler().fit_transform(loaded.data)
        ours = [n.replace("=", "_") for n in data.feature_names]
        columns = [ours.index(feature) for feature in loaded.feature_names]
        # Two orders of summation.
        np.testing.assert_allclose(data.X[:, columns], wanted, atol=1e-10)


def test_inputs_are_standardised_by_training_rows_alone():
    """Training inputs have mean zero and variance one; held-out rows do not move them."""
    made = table()
    data = prepare(made, "t", test_size=10)
    # Rounding.
    np.testing.assert_allclose(data.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), 1.0, atol=1e-12)
    wild = made.frame.with_row_index("r").with_columns(
        x=pl.when(pl.col("r").is_in((data.test_rows - 1).tolist())).then(1e6).otherwise("x")
    )
    again = prepare(Table(wild.drop("r"), "made.csv"), "t", test_size=10)
    np.testing.assert_array_equal(again.X, data.X)


def test_missing_numbers_take_the_median_and_are_counted():
    """A missing or infinite number becomes the training median; the note counts them."""
    x = np.arange(N, dtype=float) ** 1.5
    values = [None, *x[1:-1], float("inf")]
    data = prepare(table(x=values), "t")
    raw = data.X[:, 0] * data.encoder.scale[0] + data.encoder.mean[0]
    # Undoing the standardising rounds.
    assert raw[[0, -1]] == pytest.approx(np.median(x[1:-1]), rel=1e-12)
    assert data.counts["missing_values"] == 2
    assert any("2 missing values" in note and "'x'" in note for note in data.notes)


def test_missing_categories_are_a_category():
    """A missing category is a level of its own."""
    data = prepare(table(c=["a", "b", None, "a"] * 10), "t")
    assert data.feature_names == ["x", "c=a", "c=b", "c=missing"]


def test_booleans_and_two_levels_are_one_input():
    """Two levels need one 0/1 input, whatever their type."""
    data = prepare(table(flag=[True, False] * 20, c=["u", "v", "v", "u"] * 10), "t")
    assert data.feature_names == ["x", "flag=true", "c=v"]


def test_unseen_categories_stand_at_the_average():
    """A category that training never showed is encoded as zeros, and counted."""
    data = prepare(table(c=["a", "b", "c", "a"] * 10), "t")
    new = pl.DataFrame({"x": [0.0, 0.0], "c": ["z", "a"]})
    X = data.encoder.transform(new, "new.csv")
    assert not np.any(X[0, 1:])
    assert np.any(X[1, 1:])
    assert data.encoder.unseen(new) == {"c": 1}


def test_the_encoder_survives_json():
    """An encoder written as JSON encodes to the same bits."""
    data = prepare(table(c=["a", "b", None, "a"] * 10), "t")
    again = Encoder.from_json(json.loads(json.dumps(asdict(data.encoder))))
    frame = table(c=["b", "q", None, "a"] * 10).frame
    np.testing.assert_array_equal(
        again.transform(frame, "new"), data.encoder.transform(frame, "new")
    )


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ({"k": [7] * N}, "same value"),
        ({"k": [None] * N}, "empty"),
        ({"k": list(range(3, N + 3))}, "identifier"),
        ({"patient_id": [(7 * i) % 41 for i in range(N)]}, "identifier"),
        ({"patientID": [(7 * i) % 41 for i in range(N)]}, "identifier"),
        ({"k": [f"a comment, the {i}th" for i in range(N)]}, "free-form text"),
    ],
)
def test_useless_columns_are_dropped_with_a_note(column, reason):
    """Constant, empty, identifier and text columns are left out, named, with the reason."""
    data = prepare(table(**column), "t")
    assert data.feature_names == ["x"]
    [name] = column
    assert any(f"'{name}'" in note and reason in note for note in data.notes)


def test_keep_and_drop():
    """What a rule would drop can be kept, and what it would keep can be dropped."""
    made = table(k=list(range(N)), z=np.random.default_rng(1).standard_normal(N))
    assert prepare(made, "t", keep=["k"], drop=["z"]).feature_names == ["x", "k"]


@pytest.mark.parametrize(
    "values",
    [
        [f"{i % 12 + 1}/11/2020 12:30" for i in range(N)],
        [f"{i % 24:02d}:15" for i in range(N)],
        [dt.time(i % 24) for i in range(N)],
    ],
)
def test_times_are_refused_with_a_way_out(values):
    """What has no date, or two, is refused; the message names --drop."""
    with pytest.raises(TableError, match=r"column 'k': holds dates or times.*--drop k"):
        prepare(table(k=values), "t")
    assert prepare(table(k=values), "t", drop=["k"]).feature_names == ["x"]


def test_a_stray_word_among_numbers_is_pointed_at():
    """One word in a column of numbers is an error that names file, column and row."""
    values = [f"{i / 7:.3f}" for i in range(N)]
    values[16] = "n.a."
    labels = [None, *LABELS[1:]]
    with pytest.raises(TableError, match=r"^made.csv: column 'k', row 17: 'n.a.' is not a number"):
        prepare(Table(csv(table(k=values, t=labels).frame), "made.csv"), "t")


@pytest.mark.parametrize(
    ("values", "task"),
    [
        ([0.5, 1.0] * 20, "regression"),
        (list(range(N)), "regression"),
        ([float(i % 20) for i in range(N)], "regression"),
        ([i % 7 for i in range(N)], "ordinal"),
        ([0, 0, 1, 0, 5, 1, 2, 3] * 5, "counts"),
        ([i % 2 for i in range(N)], "classification"),
        ([i % 3 for i in range(N)], "classification"),
        ([True, False] * 20, "classification"),
        (["b", "a"] * 20, "classification"),
    ],
)
def test_the_task_follows_from_the_target(values, task):
    """Fractions and many numbers are a quantity; what whole numbers are taken as, a note says."""
    made = table(y=values)
    data = prepare(made, "y", drop=["t"])
    assert data.task == task
    guessed = 2 < len(set(values)) <= 20 and not isinstance(values[0], str)
    assert any(f"--task {task}" in note for note in data.notes) == guessed
    if task == "classification":
        assert data.classes == tuple(sorted(set(values)))
        assert [data.classes[code] for code in data.y] == values


def test_the_task_can_be_asked_for():
    """--task overrides the rule, and is refused where the target cannot be that."""
    made = table(y=[i % 3 for i in range(N)])
    assert prepare(made, "y", "regression", drop=["t"]).task == "regression"
    with pytest.raises(TableError, match="column 't', row 1: 'no' is not a number"):
        prepare(made, "t", "regression")
    many = pl.DataFrame({"y": np.arange(60) / 7, "x": np.sin(np.arange(60))})
    with pytest.raises(TableError, match="column 'y': has 60 different values"):
        prepare(Table(many, "made.csv"), "y", "classification")


def test_rows_without_target_are_left_out_and_counted():
    """A row whose target is missing is not used; row numbers remain those of the table."""
    labels = [None, "a", "b", *LABELS[3:]]
    data = prepare(table(t=labels), "t")
    assert data.counts["rows_without_target"] == 1
    assert data.rows[0] == 2
    assert data.notes[0].startswith("1 row without a value of 't'")


def test_large_tables_are_drawn_from_in_proportion():
    """Beyond max_rows a seeded draw keeps class shares; the rest is held out, and it says so."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"x": rng.standard_normal(5000), "t": np.where(rng.random(5000) < 0.1, "rare", "usual")}
    )
    data = prepare(Table(frame, "made.csv"), "t", max_rows=500)
    share = (frame["t"] == "rare").mean()
    # Quotas round to whole rows.
    assert abs(np.sum(data.y == 0) - 500 * share) <= 1
    assert len(data.y_test) == 4500
    assert not set(data.rows) & set(data.test_rows)
    assert "5,000 rows" in data.notes[-1]
    assert "seed 0" in data.notes[-1]
    again, other = (
        prepare(Table(frame, "made.csv"), "t", max_rows=500, seed=seed) for seed in (0, 1)
    )
    np.testing.assert_array_equal(again.rows, data.rows)
    assert not np.array_equal(other.rows, data.rows)


def test_every_class_keeps_a_training_row():
    """However small its share, a class is not lost to the held-out rows."""
    strata = np.r_[np.zeros(1000, int), 1]
    train, test, _ = choose_rows(strata, max_rows=50, seed=3)
    assert 1000 in train
    assert len(train) == 50
    assert len(test) == 951


@pytest.mark.parametrize(("size", "held_out"), [(0.25, 10), (7, 7)])
def test_test_size_is_a_share_or_a_number(size, held_out):
    """A test size below one is a share of the rows, otherwise their number."""
    data = prepare(table(), "t", test_size=size)
    assert len(data.y_test) == held_out
    assert len(data.y) == N - held_out


@pytest.mark.parametrize("size", [N - 4, 10 * N])
def test_too_few_rows_to_learn_from_are_refused(size):
    """Holding out nearly everything, or more than there is, is refused with the numbers."""
    with pytest.raises(TableError, match=r"made.csv: 40 rows.*at least 5"):
        prepare(table(), "t", test_size=size)


def test_text_formats():
    """Separators, byte-order marks, line ends, quotes and decimal commas make no difference."""
    wanted = pl.DataFrame({"a": [1.5, -2.5], "b": ["x", "y, z"]})
    plain = 'a,b\n1.5,x\n-2.5,"y, z"\n'
    for text in (
        plain,
        "\ufeff" + plain,
        plain.replace("\n", "\r\n"),
        'a;b\n1,5;x\n-2,5;"y, z"\n',
        "a\tb\n1.5\tx\n-2.5\ty, z",
    ):
        assert read_text(text.encode(), "made").equals(wanted)


def test_parquet_is_csv(tmp_path):
    """The same table through Parquet and through CSV prepares to the same bits."""
    frame = table(c=["a", "b", None, "a"] * 10, k=[1, 2, None, 9] * 10).frame
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    one, other = (prepare(read_table(tmp_path / name), "t") for name in ("t.parquet", "t.csv"))
    np.testing.assert_array_equal(one.X, other.X)
    assert one.feature_names == other.feature_names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,a\n1,2\n", "column 'a': two columns have this name"),
        (b"1,2\n3,4\n", "line 1 holds numbers"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 fields where the header has 2"),
        (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 fields"),
        (b'a,b\n"1",2\n"3"\n', "line 3 has 1 fields"),
        (b'a,b\n1,2\n"3,4\n', "line 3 has 1 fields"),
        (b"a,b\n1,2\n\xe9,4\n", "line 3 is not UTF-8"),
        (b"a,b\n1,\x00\n", "is binary"),
        (b"PK\x03\x04a,b\n1,2\n", "is a zip archive"),
    ],
)
def test_improper_text_is_refused(tmp_path, text, message):
    """Each way for a text table to be broken has its own one-line message."""
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_damaged_parquet_is_refused_quietly(tmp_path, capfd):
    """Random damage to a Parquet file gives a table or a TableError, and prints nothing."""
    rng = np.random.default_rng(0)
    whole = io.BytesIO()
    table(c=["a", "b", None, "a"] * 10).frame.write_parquet(whole)
    path = tmp_path / "t.parquet"
    refused = []
    for _ in range(40):
        data = bytearray(whole.getvalue())
        for place in rng.integers(len(data), size=8):
            data[place] = rng.integers(256)
        path.write_bytes(data)
        try:
            read_table(path)
        except TableError as error:
            refused.append(str(error))
    assert refused
    assert not any("\n" in message for message in refused)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_two_million_rows(tmp_path):
    """Two million rows of CSV are read and prepared in a minute and two gigabytes."""
    resource = pytest.importorskip("resource")
    rng = np.random.default_rng(0)
    n = 2_000_000
    X = rng.standard_normal((n, 8)).round(4)
    frame = pl.DataFrame({f"x{i}": X[:, i] for i in range(8)})
    frame.with_columns(t=pl.Series(np.where(X[:, 0] > 0, "yes", "no"))).write_csv(
        tmp_path / "big.csv"
    )
    before = resource.getrusage(resource.RUSAGE_SELF)
    data = prepare(read_table(tmp_path / "big.csv"), "t", max_rows=2000)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert data.counts["rows"] == n
    assert len(data.y) == 2000
    # A slow shared core; the peak is in kilobytes.
    assert after.ru_utime - before.ru_utime < 60
    assert after.ru_maxrss - before.ru_maxrss < 2e6


@pytest.mark.parametrize("value", ["1e308", "-1e101"])
def test_numbers_too_large_to_compute_with_are_refused(value):
    """A sentinel of 1e308 would make every standardised number zero: it is pointed at instead."""
    text = "x,z,t\n" + "".join(
        f"{i % 7}.5,{value if i == 3 else i * 0.3},{i % 2}\n" for i in range(20)
    )
    made = Table(read_text(text.encode(), "made.csv"), "made.csv")
    with pytest.raises(TableError, match=r"column 'z', row 4: .*is beyond ±1e\+100"):
        prepare(made, "t")
    with pytest.raises(TableError, match=r"column 'z', row 4: .*is beyond"):
        prepare(made, "z")
