"""Amounts and dates written as text: read, refused if unclear, and remembered by model files."""

import datetime as dt
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import cavity
from cavity.cli import main
from cavity.tables import large, table
from cavity.tables.encoding import Encoder
from cavity.tables.output import TableError
from cavity.tables.prepare import prepare
from cavity.tables.read import read_table

N = 40


@pytest.fixture(params=["memory", "batches", "parquet"])
def read(request, tmp_path, monkeypatch):
    """What reads columns of text as a table, in memory or not, from text or from Parquet."""
    if request.param != "memory":
        monkeypatch.setattr(table, "IN_MEMORY", 0)
        monkeypatch.setattr(table, "_FEWEST", 7)
        monkeypatch.setattr(table, "_MOST", 7)
        monkeypatch.setattr(large, "_CHUNK", 200)
        monkeypatch.setattr(large, "_ROWS", 7)

    def reading(**columns):
        path, frame = tmp_path / "table", pl.DataFrame(columns)
        frame.write_parquet(path) if request.param == "parquet" else frame.write_csv(path)
        return read_table(path)

    return reading


def values(found, name="c"):
    return found.column(name).to_list()


AMOUNTS = [
    (["12%", "3.5 %", "-4%"], "% point", [12.0, 3.5, -4.0]),
    (["12 %", "3,5 %"], "% comma", [12.0, 3.5]),
    (["7%", "12%"], "% whole", [7.0, 12.0]),
    (["$1,200.50", "$3", "-$5", "$-6"], "$ point", [1200.5, 3.0, -5.0, -6.0]),
    (["$1,200", "$950"], "$ point", [1200.0, 950.0]),
    (["$3.459", "$3.5"], "$ point", [3.459, 3.5]),
    (["€ 3.5", "€12"], "€ point", [3.5, 12.0]),
    (["1.200,50 €", "7 €"], "€ comma", [1200.5, 7.0]),
    (["1.200 €", "7,5 €"], "€ comma", [1200.0, 7.5]),
    (["1.200.000 €", "7 €"], "€ comma", [1.2e6, 7.0]),
    (["1 200 €", "7 €"], "€ point", [1200.0, 7.0]),
    (["£5", "£6"], "£ whole", [5.0, 6.0]),
    (["CHF 1'200.50", "CHF 7"], "CHF point", [1200.5, 7.0]),
    (["12 EUR", "13 EUR"], "EUR whole", [12.0, 13.0]),
]


@pytest.mark.parametrize(
    ("texts", "notation", "numbers"), AMOUNTS, ids=[" ".join(a[0]) for a in AMOUNTS]
)
def test_amounts_become_numbers(read, texts, notation, numbers):
    """Percentages and currencies are numbers, in the only way that all values can be read."""
    found = read(c=[*texts * 5, None], x=list(range(len(texts) * 5 + 1)))
    assert " ".join(found.notations["c"]) == notation
    assert values(found) == [*numbers * 5, None]


UNCLEAR = [
    ["1.200 €", "950 €"],
    ["€ 1,200", "€ 7"],
    ["$5", "5 €"],
    ["$5", "5"],
    ["5%", "0.05"],
    ["1.200,5 €", "1,200.5 €"],
]


@pytest.mark.parametrize("texts", UNCLEAR, ids=" ".join)
def test_unclear_amounts_are_refused(read, texts):
    """Two currencies, a missing sign, or two ways to read them: the message says what to do."""
    found = read(c=texts * 10, x=np.arange(20.0) ** 2, t=["a", "b"] * 10)
    message = (
        "column 'c': holds amounts with different signs, or that can be read in more.*--drop c"
    )
    with pytest.raises(TableError, match=message):
        prepare(found, "t")
    with pytest.raises(TableError, match="column 'c': holds amounts"):
        prepare(found, "c")
    assert prepare(found, "t", drop=["c"]).feature_names == ["x"]


def test_one_word_among_amounts_is_pointed_at(read):
    """A stray word in a column of amounts, or of dates, is named with its row."""
    amounts = [f"${i},{i:03d}.5" for i in range(1, N + 1)]
    dates = [f"2020-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(N)]
    words = (amounts, "n.k."), (dates, "2020-02-31"), (dates, "later"), (dates, "2020-02-30 25:00")
    for texts, word in words:
        spoilt = [*texts[:29], word, *texts[30:]]
        found = read(c=spoilt, x=np.arange(float(N)) ** 2, t=["a", "b"] * (N // 2))
        with pytest.raises(TableError, match=f"column 'c', row 30: '{word}' is not a"):
            prepare(found, "t")


def test_whole_amounts_may_be_classes(read):
    """Two whole percentages are two classes, named by their numbers."""
    found = read(c=["5%", "10 %"] * 10, x=np.arange(20.0) ** 2)
    assert prepare(found, "c").classes == (5, 10)


def test_dates_are_no_target(read):
    """What cannot be predicted is refused in words."""
    found = read(c=["2020-01-31", "2020-02-01"] * 10, x=np.arange(20.0) ** 2)
    with pytest.raises(TableError, match="column 'c': holds dates or times; a target must be"):
        prepare(found, "c")


def test_ordinary_text_stays_text(read):
    """Versions, ranges, phone numbers and labels with a sign are no amounts."""
    texts = ["1.2.3", "5-10%", "555 123 456", "$ per day"]
    found = read(c=texts * 10, x=np.arange(float(N)) ** 2, t=["a", "b"] * (N // 2))
    assert values(found) == texts * 10
    assert len(prepare(found, "t").feature_names) == 5


DATES = [
    (["2020-03-01", "2021-12-31"], "%Y-%m-%d", [(2020, 3, 1), (2021, 12, 31)]),
    (["1.3.2020", "31.12.2021"], "%d.%m.%Y", [(2020, 3, 1), (2021, 12, 31)]),
    (["01/03/2020", "31/12/2021"], "%d/%m/%Y", [(2020, 3, 1), (2021, 12, 31)]),
    (["03/01/2020", "12/31/2021"], "%m/%d/%Y", [(2020, 3, 1), (2021, 12, 31)]),
    (["05/05/2020", "06/06/2021"], "%d/%m/%Y", [(2020, 5, 5), (2021, 6, 6)]),
    (["2020/03/01", "2021/12/31"], "%Y/%m/%d", [(2020, 3, 1), (2021, 12, 31)]),
    (
        ["2020-03-01T06:30:15.5Z", "2021-12-31 23:59"],
        "%Y-%m-%d",
        [(2020, 3, 1, 6, 30, 15, 500_000), (2021, 12, 31, 23, 59)],
    ),
]


@pytest.mark.parametrize(("texts", "style", "wanted"), DATES, ids=[d[0][1] for d in DATES])
def test_dates_are_read(read, texts, style, wanted):
    """Dates with or without a time are read if there is only one way to do so."""
    found = read(c=[*texts * 5, None], x=list(range(11)))
    assert found.notations["c"].style == style
    assert values(found) == [*(dt.datetime(*parts) for parts in wanted * 5), None]


@pytest.mark.parametrize(
    "texts",
    [
        ["03/04/2020", "05/06/2021"],
        ["12:30", "13:45"],
        ["1/2/20", "3/4/21"],
        ["2020-01-01", "01.02.2020"],
        ["2020-02-30", "2020-02-28"],
        ["2020-01-01 25:00", "2020-01-02 10:00"],
    ],
    ids=" ".join,
)
def test_unclear_dates_are_refused(read, texts):
    """Day or month first, no date, no such day: refused with a way out."""
    found = read(c=texts * 10, x=np.arange(20.0) ** 2, t=["a", "b"] * 10)
    with pytest.raises(TableError, match=r"column 'c': holds dates or times.*--drop c"):
        prepare(found, "t")


def days_since(first, dates):
    return [(day - first).total_seconds() / 86400 for day in dates]


def test_dates_become_year_month_weekday_and_days(read):
    """The inputs are those of Python's own calendar; what does not vary is left out."""
    rng = np.random.default_rng(0)
    first = dt.datetime(1965, 5, 17)
    dates = [first + dt.timedelta(days=int(k)) for k in rng.permutation(9000)[:N]]
    dates[3] = first
    texts = [f"{day:%d.%m.%Y}" for day in dates]
    x = rng.standard_normal(N)
    found = read(c=[*texts[:-1], None], x=x, t=["a", "b"] * (N // 2))
    data = prepare(found, "t")
    assert data.feature_names == ["c (year)", "c (month)", "c (weekday)", "c (days)", "x"]
    known = dates[:-1]
    # The median of an odd number of days is one of them.
    filled = [*known, sorted(known)[len(known) // 2]]
    columns = [
        [d.year for d in filled],
        [d.month for d in filled],
        [d.isoweekday() for d in filled],
    ]
    wanted = np.column_stack([*columns, days_since(first, filled), x])
    wanted = (wanted - wanted.mean(axis=0)) / wanted.std(axis=0)
    X = data.X if isinstance(data.X, np.ndarray) else np.concatenate([X for X, _ in data.stored()])
    # Two orders of summation.
    np.testing.assert_allclose(X, wanted, atol=1e-9)
    note = "Column 'c': dates (read as day.month.year) became year, month, weekday, days since "
    assert f"{note}1965-05-17." in data.notes
    assert "Column 'c': 1 missing values became the median date of the training rows." in data.notes
    assert data.encoder.decode(X[0])["c"] == f"{dates[0]:%Y-%m-%d}"
    shown, inputs = data.encoder.values(X, 0, 5)
    assert [len(shown), len(inputs)] == [5, 5]
    assert shown[0] == "1965-05-17"
    again = Encoder.from_json(json.loads(json.dumps(asdict(data.encoder))))
    assert again == data.encoder


def test_dates_within_a_month_have_no_year(read):
    """Parts that are the same in all training rows are no inputs; a single date is no column."""
    dates = [f"2020-03-{i % 28 + 1:02d}" for i in range(N)]
    made = {"x": np.arange(float(N)) ** 2, "t": ["a", "b"] * (N // 2)}
    assert prepare(read(c=dates, **made), "t").feature_names == ["c (weekday)", "c (days)", "x"]
    data = prepare(read(c=["2020-03-01"] * N, **made), "t")
    assert data.feature_names == ["x"]
    assert "Column 'c' is not used: it has the same value in every row." in data.notes
    assert prepare(read(c=[None] * N, **made), "t").feature_names == ["x"]


def made(seed=0, date="%d/%m/%Y", n=N):
    """A table in which a date, a share and a price matter."""
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 700, n)
    dates = [dt.date(2019, 1, 1) + dt.timedelta(days=int(k)) for k in days]
    share, price = rng.uniform(0, 100, n).round(1), rng.uniform(500, 5000, n).round(2)
    y = days / 200 + share / 30 + price / 1500
    return pl.DataFrame(
        {
            "visit": [f"{day:{date}}" for day in dates],
            "share": [f"{s} %" for s in share],
            "price": [f"${p:,.2f}" for p in price],
            "cost": [f"€ {v:,.2f}" for v in 1000 * y],
        }
    )


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table and the model of it."""
    folder = tmp_path_factory.mktemp("notation")
    made().write_csv(folder / "t.csv")
    words = ["fit", str(folder / "t.csv"), "--target", "cost", "--kernel", "rbf"]
    assert main([*words, "-o", str(folder / "m.model"), "--quiet"]) == 0
    return folder


def test_a_model_file_remembers(folder, monkeypatch, capsys):
    """New rows are read as the training rows were, also where they alone would be unclear."""
    monkeypatch.chdir(folder)
    new = made(1)
    new.write_csv("new.csv")
    code, out, _ = run(capsys, "predict", "m.model", "new.csv", "--score", "--json")
    assert code == 0
    assert json.loads(out)["scores"]["rows"] == N
    assert json.loads(out)["scores"]["r2"] > 0.9
    rows = json.loads(run(capsys, "predict", "m.model", "new.csv", "--json")[1])
    # One at a time, 03/04/2020 could be in March or in April.
    day = next(i for i in range(N) if max(map(int, new["visit"][i].split("/")[:2])) <= 12)
    new[day : day + 1].write_csv("one.csv")
    [one] = json.loads(run(capsys, "predict", "m.model", "one.csv", "--json")[1])
    # Sums over other blocks round differently.
    assert one["prediction"] == pytest.approx(rows[day]["prediction"], rel=1e-9)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (
            "share",
            0.5,
            "column 'share': holds plain numbers, where the model was fitted to percent",
        ),
        (
            "price",
            "€ 5",
            "column 'price', row 1: '€ 5' is not what the model was fitted to: amounts",
        ),
        (
            "visit",
            "12/31/2020",
            "row 1: '12/31/2020' is not what the model was fitted to: day/month",
        ),
        (
            "visit",
            "2020-12-31",
            "row 1: '2020-12-31' is not what the model was fitted to: day/month",
        ),
    ],
)
def test_other_notations_are_refused(folder, monkeypatch, capsys, column, value, message):
    """A share of 0.5 is not half a percent: what is written in another way is refused."""
    monkeypatch.chdir(folder)
    made(1).with_columns(pl.lit(value).alias(column)).write_csv("other.csv")
    code, out, err = run(capsys, "predict", "m.model", "other.csv")
    assert (code, out) == (1, "")
    assert message in err


def test_one_wrong_value_among_many_is_named(folder, monkeypatch, capsys):
    """The row of the first value that cannot be read is in the message."""
    monkeypatch.chdir(folder)
    for column, word in (("share", "much"), ("visit", "32/01/2020"), ("price", "£7")):
        frame = made(1)
        frame[30, column] = word
        frame.write_csv("wrong.csv")
        code, _, err = run(capsys, "predict", "m.model", "wrong.csv")
        assert code == 1
        assert f"column '{column}', row 31: '{word}' is not what the model was fitted to" in err


def test_the_report_shows_dates_and_says_what_was_read(folder, monkeypatch, capsys):
    """Notes name every column that was read; a date's effect is shown by dates."""
    monkeypatch.chdir(folder)
    words = ["report", "t.csv", "--target", "cost", "--kernel", "rbf", "--json", "-o", "r.html"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    found = json.loads(out)
    notes = " ".join(found["data"]["notes"])
    assert (
        "Column 'visit': dates (read as day/month/year) became year, month, weekday, days" in notes
    )
    assert "Column 'share': percentages were read as numbers (12 % as 12)." in notes
    assert "Column 'price': amounts in $ were read as numbers (1,234.5 as 1234.5)." in notes
    assert "Column 'cost': amounts in € were read as numbers" in notes
    [effect] = [e for e in found["effects"] if e["feature"] == "visit"]
    assert all(dt.date.fromisoformat(day) for day in effect["values"])
    assert effect["values"] == sorted(effect["values"])


def test_the_documentation_shows_these_notes(read):
    """The notes in docs/cli.md are those of a table like the one here."""
    page = Path(cavity.__file__).parents[2] / "docs" / "cli.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    lines = [line.strip() for line in page.read_text("utf-8").splitlines()]
    shown = [line for line in lines if line.startswith("Column '") and "read as" in line]
    assert len(shown) == 3
    assert set(shown) <= set(prepare(read(**made().to_dict(as_series=False)), "cost").notes)


def test_files_without_notations_open(folder):
    """A header from before notations were stored gives columns without one."""
    old = {
        "columns": [{"name": "x", "median": 1.0}, {"name": "c", "levels": ["u", "v"]}],
        "mean": [0.0, 0.5],
        "scale": [1.0, 0.5],
    }
    encoder = Encoder.from_json(old)
    assert [column.name for column in encoder.columns] == ["x", "c"]
    assert encoder.columns[0].notation is None
    with pytest.raises(ValueError, match="notation"):
        Encoder.from_json(old | {"columns": [{"name": "x", "median": 1.0, "notation": ["?", "!"]}]})


@pytest.mark.parametrize("where", ["memory", "batches"])
def test_carried_columns_keep_their_signs(folder, monkeypatch, capsys, where):
    """A date, a share and a price that the model reads go into the output as they were written."""
    monkeypatch.chdir(folder)
    new = made(1).with_row_index("number", offset=7)
    new.write_csv("new.csv")
    if where == "batches":
        monkeypatch.setattr(table, "IN_MEMORY", 0)
        monkeypatch.setattr(table, "_FEWEST", 7)
        monkeypatch.setattr(table, "_MOST", 7)
    rows = json.loads(run(capsys, "predict", "m.model", "new.csv", "--carry", "all", "--json")[1])
    assert list(rows[0]) == [*new.columns, "prediction", "std", "lower", "upper"]
    for name in ("visit", "share", "price", "cost"):
        assert [row[name] for row in rows] == new[name].to_list()
    words = ["suggest", "m.model", "new.csv", "-k", "3", "-o", "chosen.csv", "--quiet"]
    assert run(capsys, *words) == (0, "", "")
    chosen = pl.read_csv("chosen.csv", infer_schema=False)
    places = [int(row) - 1 for row in chosen["suggested_row"]]
    assert chosen["visit"].to_list() == [new["visit"][place] for place in places]
    assert chosen["price"].to_list() == [new["price"][place] for place in places]
