"""Other methods beside ours on a report's page."""

import numpy as np
import polars as pl
import pytest
from browser import QUICK, numbers_of, show
from sklearn.linear_model import RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold

from cavity.cli import main
from cavity.report.analysis import analyse
from cavity.report.baselines import BOOSTED, NONE, baselines_of, skipped
from cavity.report.scores import held_out_of, left_out_classes, left_out_of
from cavity.report.sections.baselines import answer, baselines
from cavity.report.summary import summarise
from cavity.tables.model import fit_model
from cavity.tables.prepare import prepare
from cavity.tables.read import Table

# No curve: nothing to interpolate, and what fewer rows cost is nothing.
FLAT = {"rows": 100, "sizes": [50, 100], "error": [0.3, 0.3], "log_loss": [0.5, 0.5]}


def table(name, y, **inputs):
    return Table(pl.DataFrame({**inputs, "y": y}), f"{name}.csv", "y")


def straight(n=120, seed=0):
    """Classes that a straight line separates but for noise."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    y = np.where(a + b + 0.7 * rng.standard_normal(n) > 0, "yes", "no")
    return table("straight", y, a=a, b=b)


def rings(n=150, seed=0):
    """A class inside a ring of the other, which no straight line separates."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1.0, 1.0, (2, n))
    return table("rings", np.where(a**2 + b**2 < 0.5, "in", "out"), a=a, b=b)


def noise(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return table("noise", rng.standard_normal(n), a=rng.standard_normal(n))


def steps(n=300, seed=1):
    """Numbers that jump at many places: trees find the jumps, a smooth function does not."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.0, 1.0, (2, n))
    y = 3.0 * (np.floor(13.0 * a) % 2) + 0.1 * rng.standard_normal(n)
    return table("steps", y, a=a, b=b)


def found(made, **options):
    return analyse(prepare(made, **options), QUICK, skip=["comparison"])


def verdicts(analysis):
    return {m["name"]: m["verdict"] for m in analysis.baselines["methods"]}


def test_a_straight_line_is_as_good_as_a_model_of_curves():
    """Where a simpler model does as well, the page and the terminal say so."""
    analysis = found(straight())
    assert verdicts(analysis)[NONE] == "worse"
    assert verdicts(analysis)["logistic regression"] == "as good"
    assert answer(analysis).startswith("Yes: as far as these rows tell, logistic regression does")
    assert any(answer(analysis) in line for line in summarise(analysis))


def test_a_ring_takes_more_than_a_straight_line():
    """Where no simpler model does, the sentence says no."""
    analysis = found(rings())
    assert verdicts(analysis)["logistic regression"] == "worse"
    assert answer(analysis).startswith("No")


def test_noise_takes_no_model():
    """If the inputs say nothing, a guess without them is named."""
    analysis = found(noise())
    assert verdicts(analysis)[NONE] == "as good"
    assert "a guess without any inputs does as well" in answer(analysis)


def test_boosting_may_win():
    """A method that predicts better is named, also if it is not simpler."""
    analysis = found(steps())
    assert verdicts(analysis)[BOOSTED] == "better"
    assert answer(analysis).startswith("HistGradientBoosting predicts better")


@pytest.mark.parametrize("test_size", [0.0, 0.4])
def test_class_scores_are_those_of_folds_made_by_hand(test_size):
    """Left-out probabilities of the guess are each fold's shares; held-out ones those of all."""
    data = prepare(straight(), test_size=test_size)
    model, _ = fit_model(data, QUICK)
    left_out, held_out = left_out_of(data, model), held_out_of(data, model)
    scores = baselines_of(data, left_out, held_out, FLAT, seed=5)["methods"][0]
    share = np.empty(len(data.y))
    for train, test in StratifiedKFold(10, shuffle=True, random_state=5).split(data.X, data.y):
        share[test] = data.y[train].mean()
    assert scores["left_out"]["log_loss"] == pytest.approx(log_loss(data.y, share), rel=1e-12)
    if test_size:
        shares = np.full(len(data.y_test), data.y.mean())
        assert scores["held_out"]["log_loss"] == pytest.approx(log_loss(data.y_test, shares))
    ours = (held_out or left_out).losses.log_loss.mean()
    theirs = (scores["held_out"] or scores["left_out"])["log_loss"]
    assert scores["excess"] == pytest.approx(theirs - ours, rel=1e-9)


def test_ridge_scores_are_those_of_folds_made_by_hand():
    """Errors and log losses in regression, with the deviation of the other folds' errors."""
    data = prepare(steps(100))
    model, _ = fit_model(data, QUICK)
    ridge = baselines_of(data, left_out_of(data, model), None, FLAT, seed=0)["methods"][1]
    folds = list(KFold(10, shuffle=True, random_state=0).split(data.X))
    mean, std = np.empty(100), np.empty(100)
    for train, test in folds:
        fitted = RidgeCV(np.logspace(-3.0, 3.0, 13)).fit(data.X[train], data.y[train])
        mean[test] = fitted.predict(data.X[test])
    for train, test in folds:
        std[test] = np.sqrt(np.mean((data.y - mean)[train] ** 2))
    losses = np.log(std) + 0.5 * np.log(2.0 * np.pi) + 0.5 * ((data.y - mean) / std) ** 2
    assert ridge["left_out"]["rmse"] == pytest.approx(np.sqrt(np.mean((data.y - mean) ** 2)))
    assert ridge["left_out"]["log_loss"] == pytest.approx(losses.mean(), rel=1e-9)


def test_what_fewer_rows_cost_is_taken_off():
    """Folds of nine tenths cost our model what its curve says; held-out rows cost it nothing."""
    falling = {**FLAT, "log_loss": [0.9, 0.5]}
    # Between 50 and 100 rows, 90 is ln(90/50)/ln(2) of the way.
    cost = 0.4 * (1.0 - np.log(90 / 50) / np.log(2))

    for test_size, less in ((0.0, cost), (0.4, 0.0)):
        data = prepare(straight(), test_size=test_size)
        model, _ = fit_model(data, QUICK)
        unseen = left_out_of(data, model), held_out_of(data, model)
        flat, steep = (baselines_of(data, *unseen, curve, 0) for curve in (FLAT, falling))
        for m, other in zip(flat["methods"], steep["methods"], strict=True):
            assert m["excess"] - other["excess"] == pytest.approx(less, abs=1e-12)


@pytest.mark.parametrize("counts", [(20, 3, 1), (1, 1, 1, 1, 1, 1), (23, 1), (2, 2, 2)])
def test_rare_classes_are_no_trouble(counts):
    """Classes of one row, which some folds lack, give finite scores and no warning."""
    y = np.repeat([f"c{k}" for k in range(len(counts))], counts)
    x = np.random.default_rng(0).standard_normal(len(y))
    data = prepare(table("rare", y, x=x))
    proba = np.tile(np.bincount(data.y) / len(y), (len(y), 1))
    ours = left_out_classes("leave-one-out", data.y, proba)
    for m in baselines_of(data, ours, None, FLAT, seed=0)["methods"]:
        assert np.isfinite([m["excess"], m["left_out"]["log_loss"], m["left_out"]["error"]]).all()


def test_large_tables_have_no_baselines():
    """Ten fits of boosting to a large table would take longer than the report."""
    data = prepare(noise(20_001))
    assert "up to 20,000 rows" in baselines_of(data, None, None, FLAT, 0)["skipped"]


def test_switches_leave_out_fits_and_say_so(tmp_path, capsys):
    """The switches skip methods and baselines, and the page says so."""
    path = tmp_path / "short.html"
    arguments = ["report", "crabs", "--kernel", "rbf", "--no-comparison", "--no-baselines"]
    assert main([*arguments, "-o", str(path)]) == 0
    assert "--no-baselines" in capsys.readouterr().out
    numbers = numbers_of(path)
    assert numbers["comparison"] == []
    assert numbers["baselines"] == skipped("It was made with --no-baselines.")
    text = path.read_text("utf-8")
    assert "as --no-comparison says" in text
    assert "--no-comparison --no-baselines" in numbers["command"]


def test_the_table_is_on_the_page(driver, pages):
    """Each method has a line for left-out and one for held-out rows, and our own are marked."""
    show(driver, pages("pima"))
    lines = driver.find_elements("css selector", "#table-baselines tbody tr")
    cells = [[c.text for c in line.find_elements("tag name", "td")] for line in lines]
    assert [line[0] for line in cells].count("this model") == 3
    assert [line[0] for line in cells].count("logistic regression") == 2
    assert {line[1] for line in cells} >= {"learning curve", "10-fold cross-validation"}
    methods = numbers_of(pages("pima"))["baselines"]["methods"]
    held_out = {m["name"]: f"{m['held_out']['log_loss']:.3f}" for m in methods}
    shown = {line[0]: line[4] for line in cells if line[1] == "held-out rows"}
    assert all(shown[name].startswith(value) for name, value in held_out.items())


def test_a_page_of_a_quantity_names_ridge_regression(driver, pages):
    """In regression the linear method is ridge regression."""
    show(driver, pages("boston"))
    assert "ridge regression" in driver.find_element("id", "table-baselines").text


def test_skipped_baselines_are_a_sentence():
    """A section without numbers is one sentence."""
    analysis = analyse(prepare(noise(30)), QUICK, skip=["baselines"])
    assert baselines(analysis).blocks == ()
    assert "--no-baselines" in baselines(analysis).headline
