"""Plans: how many rows a goal needs, and what is missing where rows are not."""

import json
import re
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    learning_curve,
    plan,
    simulate_learning_curve,
)
from cavity.cli import main
from cavity.model_selection.contested import contested_of
from cavity.model_selection.criteria import criteria_of, rows_where, spread_of
from cavity.model_selection.goals import goal_of

CLF = GaussianProcessClassifier(4.0 * RBF(1.5), optimizer=None)
REG = GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1), optimizer=None)


def labelled(n=80, seed=0, wrong=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * rng.standard_normal(n) > 0.3).astype(int)
    y[:wrong] = 1 - y[:wrong]
    return X, y


def measured(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, 10.0 * (np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n))


def quietly(*about, **options):
    """A curve at all rows only, without what it says about tuning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learning_curve(*about, train_sizes=[1.0], **options)


@pytest.fixture(scope="module")
def curve():
    return quietly(CLF, *labelled())


@pytest.fixture(scope="module")
def of_targets():
    return quietly(REG, *measured())


def test_plan_is_what_the_curve_says(curve):
    """Forecasts, probabilities, floor and size of a plan are those of the curve."""
    found = plan(curve, error=0.2, probability=0.7)
    assert [o.rows for o in found.outlook] == [80, 160, 320]
    for o in found.outlook:
        ahead = curve.forecast(o.rows)
        assert (o.value, o.low, o.high) == pytest.approx((ahead.value, ahead.low, ahead.high))
        assert o.probability == pytest.approx(curve.probability(o.rows, error=0.2))
    assert found.criteria[0].rows == curve.size_for(error=0.2, probability=0.7)
    assert found.floor.value <= found.outlook[-1].value
    assert found.floor.low <= found.floor.value <= found.floor.high
    assert found.instability.shape == (3, 80)


def test_plan_of_a_model_is_that_of_its_curve(curve):
    """A model and its table make the same plan as their curve."""
    assert plan(CLF, *labelled(), log_loss=0.4).to_dict() == plan(curve, log_loss=0.4).to_dict()


def test_units_of_goals(of_targets):
    """An RMSE is the root of the error, and R² one minus the error's share of the variance."""
    y = measured()[1]
    same = (("error", 9.0), ("rmse", 3.0), ("r2", 1.0 - 9.0 / y.var()))
    each = [goal_of(of_targets, **{name: value}) for name, value in same]
    assert {goal.measure for goal in each} == {"error"}
    assert_allclose([goal.value for goal in each], 9.0, rtol=1e-12)
    ahead = of_targets.forecast([100, 200])
    error, rmse, r2 = (goal.shown(ahead) for goal in each)
    assert_allclose(error[1:], ahead[1:])
    assert_allclose(np.square(rmse[1:]), ahead[1:])
    assert_allclose(
        1.0 - np.array(r2[1:]), np.array([ahead.value, ahead.high, ahead.low]) / y.var()
    )
    assert "R² of at least" in repr(plan(of_targets, r2=0.5))


@pytest.mark.parametrize("classes", [True, False])
def test_instability_is_that_of_refits(classes):
    """By theory, rows vary as they do over refits to bootstrap samples with the same kernel."""
    X, y = labelled(60) if classes else measured(60)
    model = (CLF if classes else REG).fit(X, y)
    theory = quietly(model, X, y).source.instability(np.array([60.0]))[0]
    rng, seen = np.random.default_rng(1), np.full((150, 60), np.nan)
    for row in seen:
        drawn = rng.integers(60, size=60)
        refit, out = clone(model).fit(X[drawn], y[drawn]), np.setdiff1d(np.arange(60), drawn)
        if classes:
            row[out] = refit.predict_proba(X[out])[np.arange(len(out)), y[out]]
        else:
            row[out] = refit.predict(X[out])
    refits = np.nanmean(np.abs(seen - np.nanmean(seen, axis=0)), axis=0)
    # The theory is one of averages: over all rows it is within a tenth, and it knows which vary.
    assert theory.mean() == pytest.approx(refits.mean(), rel=0.1)
    assert np.corrcoef(theory, refits)[0, 1] > 0.85


def test_instability_of_a_gaussian(of_targets):
    """A target's prediction is Gaussian over training sets: √(2/π) standard deviations."""
    source = of_targets.source
    sizes = np.array([80.0, 160.0])
    [pool] = source.inputs.pools
    V = np.stack([s.held_out.V for s in source.solve(pool, sizes, "bootstrap")])
    expected = np.sqrt(2.0 / np.pi * V) * source.inputs.scores.scale
    # 256 draws stand for the Gaussian.
    assert_allclose(source.instability(sizes), expected, rtol=0.01)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "multinomial"])
def test_several_classes(multi_class):
    """With three classes predictions vary less with more rows, and one criterion is the shares."""
    X, y = load_iris(return_X_y=True)
    model = GaussianProcessClassifier(20.0 * RBF(3.0), optimizer=None, multi_class=multi_class)
    found = plan(model, X[::5], y[::5], error=0.2, retune=False)
    assert found.verdict == "enough"
    assert np.all(np.diff(found.instability.mean(axis=1)) < 0.0)
    assert np.all((found.instability >= 0.0) & (found.instability <= 0.5))
    share = np.bincount(y[::5]) / 30
    expected = norm.ppf(0.975) ** 2 * np.max(share * (1.0 - share)) / 0.05**2
    assert found.criteria[1].rows == int(np.ceil(expected))


def test_rows_in_blocks():
    """A model with inducing points has a plan, and its rows vary as those of the full model."""
    X, y = labelled(120)
    full = quietly(CLF.fit(X, y), X, y)
    sparse = GaussianProcessClassifier(4.0 * RBF(1.5), optimizer=None, n_inducing=100)
    found = plan(sparse.set_params(random_state=0).fit(X, y), error=0.2)
    expected = full.source.instability(np.array([120.0, 240.0, 480.0]))
    # A hundred points stand for 120 rows.
    assert_allclose(found.instability.mean(axis=1), expected.mean(axis=1), rtol=0.05)


def test_share_of_classes_is_known_well_enough(curve):
    """With the rows that are asked for, 19 in 20 samples have the share within 0.05."""
    criterion = plan(curve, error=0.2).criteria[1]
    p, n = np.mean(labelled()[1]), criterion.rows
    inside = binom.cdf(np.floor((p + 0.05) * n), n, p) - binom.cdf(
        np.ceil((p - 0.05) * n) - 1, n, p
    )
    # A count is whole.
    assert inside == pytest.approx(0.95, abs=0.01)


def test_spread_of_residuals_is_known_well_enough(of_targets):
    """The rows are the 234 of Riley and others, for an interval from 1/1.1 to 1.1."""
    assert plan(of_targets, r2=0.5).criteria[1].rows == pytest.approx(235, abs=2)


def test_largest_criterion_wins(curve):
    """The plan's rows meet all criteria, and there are none where one is out of reach."""
    found = plan(curve, error=0.25)
    assert found.rows == max(criterion.rows for criterion in found.criteria)
    assert plan(curve, error=1e-3).rows is None
    assert list(found.to_frame()["rows"]) == [criterion.rows for criterion in found.criteria]
    assert f"{found.rows:,} rows" in repr(found)


def test_sizes_follow_lines_in_logarithms():
    """A power law is inverted exactly inside and beyond the sizes; what never falls has no size."""
    sizes = np.array([100.0, 200.0, 400.0])
    values = 2.0 * sizes**-0.5
    for n in (30.0, 150.0, 400.0, 9000.0):
        assert rows_where(sizes, values, 2.0 * n**-0.5) == pytest.approx(n, rel=1e-9)
    assert rows_where(sizes, np.ones(3), 0.5) == np.inf
    assert rows_where(sizes, np.zeros(3), 0.5) == 1.0


def test_weights_count_as_rows():
    """A row of weight two counts as two rows for the spread over rows."""
    X, y = labelled(20)
    weight = np.r_[np.full(10, 2.0), np.full(10, 1.0)]
    weighted = learning_curve(CLF, X, y, train_sizes=[10], sample_weight=weight)
    values = np.arange(20.0)[None]
    doubled = np.sort(np.r_[np.repeat(np.arange(10.0), 2), np.arange(10.0, 20.0)])
    assert spread_of(weighted, values) == doubled[int(np.ceil(0.9 * 30)) - 1]
    found = plan(CLF, X, y, error=0.4, sample_weight=weight)
    assert found.outlook[0].value == pytest.approx(weighted.forecast(20).value)


@pytest.mark.parametrize(
    ("model", "goal"),
    [
        (GaussianProcessClassifier(1.0 * RBF(1.0)), {"error": 0.2}),
        (GaussianProcessClassifier(1.0 * RBF(1.0), multi_class="multinomial"), {"error": 0.3}),
        (GaussianProcessRegressor("auto"), {"r2": 0.5, "n_kernels": 4}),
    ],
)
def test_rows_of_weight_zero_are_not_there(model, goal):
    """A plan is that of the rows that have a weight, with what tuning on them costs."""
    X, y = labelled(70)
    if "r2" in goal:
        y = measured(70)[1]
    elif model.multi_class == "multinomial":
        y = y + (X[:, 1] > 1.0)
    weight = np.random.default_rng(2).permutation(np.r_[np.ones(36), np.zeros(34)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = plan(model, X, y, sample_weight=weight, **goal).to_dict()
        alone = plan(model, X[weight > 0.0], y[weight > 0.0], **goal).to_dict()
    assert found["outlook"][0]["rows"] == 36
    assert found["verdict"] == alone["verdict"]
    for some, other in zip(found["outlook"], alone["outlook"], strict=True):
        # The theory's equations are solved to 3e-4.
        assert some == pytest.approx(other, rel=2e-3, abs=1e-4)
    for some, other in zip(found["criteria"], alone["criteria"], strict=True):
        assert some["now"] == pytest.approx(other["now"], rel=2e-3)
        assert some["rows"] == pytest.approx(other["rows"], rel=1e-2, abs=1)


@pytest.mark.parametrize("model", [CLF, REG])
@pytest.mark.parametrize("n", [2, 3])
def test_very_few_rows(model, n):
    """Two rows have a curve but no shape, which is said in a sentence; three have a plan."""
    X, y = labelled(80)
    rows = np.r_[np.flatnonzero(y == 0)[:1], np.flatnonzero(y == 1)[: n - 1]]
    if n == 3:
        assert plan(model, X[rows], y[rows], error=0.2).outlook[0].rows == 3
        return
    with pytest.raises(ValueError, match=r"at least 3 rows .* at most 2 here: gather more rows"):
        plan(model, X[rows], y[rows], error=0.2)
    found = learning_curve(model, X[rows], y[rows], train_sizes=[1])
    with pytest.raises(ValueError, match="at least 3 rows"):
        found.forecast(2)


@pytest.mark.parametrize("goal", [{"rmse": 0.1}, {"r2": 0.5}, {"error": 0.1}, {"log_loss": 1.0}])
def test_targets_that_do_not_differ(goal):
    """For a constant target there is nothing to plan, whatever the goal."""
    X, _ = measured(24)
    with pytest.raises(ValueError, match="targets that differ; all 24 are 3 here"):
        plan(REG, X, np.full(24, 3.0), **goal)


def test_a_floor_below_the_goal_is_not_called_too_high():
    """A goal that the curve ends below, but not surely enough, is not called beyond its end."""
    found = plan(
        GaussianProcessClassifier(1.0 * RBF(1.0)),
        np.random.default_rng(0).standard_normal((3, 2)),
        [0, 1, 0],
        error=0.2,
    )
    assert found.floor.value < 0.2
    assert found.rows is None
    assert "No number of rows meets it with probability 0.8" in found.advice.reason
    assert "will do" not in found.advice.reason


def test_verdicts(curve):
    """What is reached is enough, what is near takes more rows, the impossible better inputs."""
    now = curve.forecast(80, "log_loss")
    assert plan(curve, log_loss=now.high).verdict == "enough"
    wanted = float(curve.forecast(400, "log_loss", level=0.6).high)
    more = plan(curve, log_loss=wanted)
    assert more.verdict == "more rows"
    assert 80 < more.criteria[0].rows <= 800
    unclear = plan(curve, log_loss=curve.forecast(800, "log_loss").value, probability=0.95)
    assert unclear.verdict == "more rows"
    assert "too small to tell" in unclear.advice.reason
    never = plan(curve, log_loss=0.01)
    assert never.verdict == "better inputs"
    assert "No number of rows will do" in never.advice.reason
    assert "tell nothing" not in never.advice.reason


@pytest.mark.parametrize("seed", range(3))
def test_nothing_to_learn(seed):
    """From coin flips and from noise no number of rows leads anywhere."""
    rng = np.random.default_rng(seed)
    X, coins, noise = rng.standard_normal((100, 3)), rng.integers(2, size=100), rng.normal(size=100)
    auto = {"retune": False}
    flips = plan(GaussianProcessClassifier(kernel="auto"), X, coins, error=0.3, **auto)
    static = plan(GaussianProcessRegressor(kernel="auto"), X, noise, r2=0.5, **auto)
    assert "tell nothing about the target" in flips.advice.reason
    for found in (flips, static):
        assert found.rows is None
        assert found.verdict == "better inputs"
        # The curve of a few flips may end below the goal, but that is not sure.
        assert re.search("No number of rows (will do|meets it)", found.advice.reason)


def test_wrong_labels_are_named():
    """Labels changed by hand where predictions are sure: clean them, and the goal is met."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-3.0, 0.6, (60, 2)), rng.normal(3.0, 0.6, (60, 2))]
    clean = np.repeat([0, 1], 60)
    y = clean.copy()
    y[:5] = 1
    y[60:64] = 0
    model = GaussianProcessClassifier(4.0 * RBF(3.0), optimizer=None)
    found = plan(model, X, y, error=0.03)
    assert found.verdict == "cleaner labels"
    assert "labels are wrong" in found.advice.reason
    assert plan(model, X, clean, error=0.03).verdict == "enough"


def test_overlap_is_no_wrong_label(curve):
    """Where classes overlap, contradicted labels may all be right."""
    assert not contested_of(curve, "error").certain


def test_targets_far_off_are_named():
    """Targets typed in ten times too large: clean them, and the goal is met."""
    X, y = measured(120)
    wrong = y.copy()
    wrong[:4] += 80.0
    model = GaussianProcessRegressor(kernel="auto")
    found = plan(model, X, wrong, rmse=8.0, retune=False)
    assert found.verdict == "cleaner labels"
    assert "4 targets are more than 3 standard deviations off" in found.advice.reason
    assert plan(model, X, y, rmse=8.0, retune=False).verdict == "enough"


def test_criteria_say_what_is_reached(curve):
    """What is reached now meets exactly the criteria that ask for no more rows than there are."""
    goal = goal_of(curve, error=0.25)
    sizes = np.array([80.0, 160.0, 320.0])
    spread = spread_of(curve, curve.source.instability(sizes))
    first, overall, optimism, stable = criteria_of(curve, goal, 0.8, sizes, spread)
    assert first.met_with(80) == (first.now >= 0.8)
    assert overall.met_with(80) == (overall.now <= 0.05)
    assert optimism.met_with(80) == (optimism.now <= 0.05)
    assert stable.met_with(80) == (stable.now <= 0.05)


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ({}, "one target"),
        ({"error": 0.1, "log_loss": 0.3}, "one target"),
        ({"error": 0.0}, "above zero"),
        ({"error": 1.5}, "below 1"),
        ({"log_loss": -1.0}, "above zero"),
        ({"rmse": 1.0}, "real targets"),
        ({"error": np.nan}, "finite"),
        ({"error": 0.1, "probability": 0.0}, "between 0 and 1"),
        ({"error": 0.1, "n_kernels": 3}, "own table and options"),
    ],
)
def test_bad_goals(curve, goal, message):
    """What cannot be planned is refused in words."""
    with pytest.raises(ValueError, match=message):
        plan(curve, **goal)


def test_bad_goals_of_targets(of_targets):
    """R² stays below one, errors above zero; a log loss may be negative."""
    with pytest.raises(ValueError, match="below 1"):
        plan(of_targets, r2=1.0)
    with pytest.raises(ValueError, match="above zero"):
        plan(of_targets, rmse=0.0)
    assert goal_of(of_targets, log_loss=-2.0).value == -2.0


def test_simulations_have_no_plan():
    """A simulated curve knows its own sizes only, and says so."""
    refits = simulate_learning_curve(
        CLF, *labelled(), train_sizes=[10, 20, 40], n_repeats=5, random_state=0
    )
    with pytest.raises(ValueError, match="use learning_curve"):
        plan(refits, error=0.2)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = labelled()
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": y, "q": X[:, 0] * 1.5}).write_csv("good.csv")
    return ["good.csv", "--target", "t", "--drop", "q", "--kernel", "rbf"]


def test_command_prints_the_plan(table, capsys):
    """`cavity plan` has the table and the verdict, and its JSON has the numbers."""
    assert main(["plan", *table, "--goal", "error <= 0.25", "--probability", "0.7"]) == 0
    text = capsys.readouterr().out
    assert "error rate of at most 0.25, with probability 0.7" in text
    assert "stable predictions" in text
    assert main(["plan", *table, "--goal", "Log Loss 0.01", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [o["rows"] for o in found["outlook"]] == [80, 160, 320]
    assert found["verdict"] == "better inputs"
    assert found["rows"] is None
    assert found["criteria"][0]["rows"] is None


def test_help_teaches_by_example(capsys):
    """The command's help has examples."""
    assert main(["plan", "--help"]) == 0
    assert "  cavity plan pima" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("goal", "code", "message"),
    [
        ("accuracy 0.9", 2, "such as"),
        ("error much", 2, "such as"),
        ("error 1.5", 1, "below 1"),
        ("r2 0.5", 1, "real targets"),
    ],
)
def test_command_refuses_in_one_line(table, capsys, goal, code, message):
    """A goal that nobody can read is a wrong command line; one that makes no sense is bad data."""
    assert main(["plan", *table, "--goal", goal]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
