"""What the target of a table is: how that is decided, and models of counts, ranks and outliers."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import poisson
from sklearn.base import clone as cloned
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessRegressor, compare_inference
from cavity.cli import main
from cavity.datasets import load_outliers
from cavity.likelihoods import Poisson
from cavity.model_selection.predictive import (
    Predictive,
    cross_val_predictive,
    left_out_predictive,
    new_predictive,
)
from cavity.report.analysis import analyse
from cavity.report.outliers import outliers_of, threshold
from cavity.report.page import render
from cavity.report.scores import left_out_of, verdict_of
from cavity.report.sections import strip
from cavity.report.sections.model import record
from cavity.report.sections.predictions import quality
from cavity.report.summary import summarise
from cavity.tables.fitting import Settings, fit_model
from cavity.tables.model import load_model, save_model
from cavity.tables.offsets import Offset
from cavity.tables.output import TableError
from cavity.tables.prepare import prepare
from cavity.tables.read import Table, read_table
from cavity.tables.task import decided

N = 90
# One length scale is tuned in a tenth of the time that thirty take.
QUICK = Settings("rbf")
ANSWERS = ["low", "middle", "high"]


def frame(seed=0, n=N, shape=2.0):
    """A wave seen as counts (of an exposure), as ranks, and with outliers."""
    rng = np.random.default_rng(seed)
    x, exposure = rng.uniform(0.0, 6.0, n), rng.uniform(0.5, 4.0, n)
    rate = exposure * np.exp(1.0 + np.sin(x))
    rank = np.digitize(2.0 * np.sin(x) + 0.5 * rng.standard_normal(n), [-1.0, 1.0])
    value = np.sin(x) + 0.1 * rng.standard_normal(n)
    return pl.DataFrame(
        {
            "x": x,
            "time": exposure,
            "visits": rng.negative_binomial(shape, shape / (shape + rate)),
            "plain": rng.poisson(rate),
            "answer": np.array(ANSWERS)[rank],
            "value": np.where(np.arange(n) % 30 == 0, value + 4.0, value),
        }
    )


def prepared(target, task=None, seed=0, n=N, **options):
    others = [name for name in frame(seed).columns[1:] if name != target]
    given = options.get("offset")
    options["drop"] = [name for name in others if given is None or name != given.column]
    return prepare(Table(frame(seed, n), "made.csv"), target, task, **options)


TIME = Offset("time", is_exposure=True)
MADE = {
    "counts": lambda **given: prepared("visits", "counts", offset=TIME, **given),
    "ordinal": lambda **given: prepared("answer", "ordinal", order=ANSWERS, **given),
    "robust": lambda **given: prepared("value", "robust", **given),
}


@pytest.fixture(scope="module")
def fits():
    """Return the prepared data and the fit of each task, fitted once."""
    found = {}

    def fit(task):
        if task not in found:
            data = MADE[task]()
            found[task] = data, fit_model(data, QUICK)[0]
        return found[task]

    return fit


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b", "c"], "classification"),
        ([0, 1, 1], "classification"),
        ([0.5, 1.0], "regression"),
        ([1, 2, 3, 1], "classification"),
        ([3, 4, 5, 6, 7, 8, 6, 6], "ordinal"),
        ([1, 2, 3, 5, 6, 7], "regression"),
        ([-2, -1, 0, 1, 2], "ordinal"),
        ([0, 0, 0, 1, 1, 2, 3, 9], "counts"),
        ([0, 0, 0, 1, 1, 2, 3, 9000], "regression"),
        (list(range(100)), "regression"),
    ],
)
def test_the_rules_decide(values, task):
    """Small whole numbers are no ten classes, and the sentence names the other ways."""
    found = decided(pl.Series("y", values))
    assert found.task == task
    sure = not isinstance(values[0], int) or len(set(values)) <= 2 or len(set(values)) > 20
    assert (found.note == "") == sure
    if found.note:
        assert found.note.count("--task") == 4


def test_counts_of_any_kind_are_seen_as_counts():
    """Poisson and negative binomial columns are taken as counts in 98 of 100 draws."""
    rng = np.random.default_rng(0)
    drawn = [rng.poisson(rng.gamma(1.5, 1.0, 200)) for _ in range(50)]
    drawn += [rng.poisson(1.5, 200) for _ in range(50)]
    tasks = [decided(pl.Series("y", y)).task for y in drawn]
    assert tasks.count("counts") >= 98


def test_classes_in_an_order():
    """Text needs --order, which must name each value once; numbers and Enum columns have one."""
    assert prepared("answer", "ordinal", order=ANSWERS).classes == tuple(ANSWERS)
    with pytest.raises(TableError, match=r'say --order "high,low,middle", lowest first'):
        prepared("answer", "ordinal")
    for order in (["low", "high"], [*ANSWERS, "top"], [*ANSWERS, "low"]):
        with pytest.raises(TableError, match="must name each of its values once"):
            prepared("answer", "ordinal", order=order)
    ranks = frame().with_columns(pl.col("answer").cast(pl.Enum(ANSWERS)))
    drop = ["time", "visits", "plain", "value"]
    assert prepare(Table(ranks, "a"), "answer", "ordinal", drop=drop).classes == tuple(ANSWERS)
    whole = frame().with_columns(answer=pl.Series([2.0, 10.0, 1.0] * (N // 3)))
    assert prepare(Table(whole, "a"), "answer", "ordinal", drop=drop).classes == (1.0, 2.0, 10.0)
    turned = prepare(Table(whole, "a"), "answer", "ordinal", drop=drop, order=["10", "2", "1"])
    assert turned.classes == (10.0, 2.0, 1.0)


def test_a_count_must_be_one():
    """What is no count, and exposures that are not positive, are refused by row."""
    with pytest.raises(TableError, match=r"column 'value', row 1: .* is not a count"):
        prepared("value", "counts")
    for wrong in (0.0, None):
        time = frame()["time"].to_list()
        time[4] = wrong
        table = Table(frame().with_columns(time=pl.Series(time)), "a.csv")
        with pytest.raises(TableError, match=r"'time', row 5: an exposure must be a positive"):
            prepare(table, "visits", "counts", offset=TIME)
    with pytest.raises(TableError, match="'hours': there is no such column"):
        prepare(Table(frame(), "a.csv"), "visits", "counts", offset=Offset("hours", True))


def test_the_evidence_chooses_the_likelihood_of_counts():
    """Scattered counts are negative binomial, plain ones Poisson, and a note says so."""
    for target, name in (("visits", "negative_binomial"), ("plain", "poisson")):
        data = prepared(target, "counts", seed=1, offset=TIME)
        fitted, _ = fit_model(data, QUICK)
        assert fitted.likelihood == name
        assert f"modelled as {'Poisson' if name == 'poisson' else 'negative'}" in data.notes[-1]


def test_an_exposure_is_an_offset(fits):
    """The exposure is no input, and predictions are in proportion to it."""
    data, fitted = fits("counts")
    assert data.feature_names == ["x"]
    np.testing.assert_allclose(data.offset, np.log(frame()["time"]))
    double = fitted.predict(data.X[:3], offset=data.offset[:3] + np.log(2.0))
    np.testing.assert_allclose(double, 2.0 * fitted.predict(data.X[:3], offset=data.offset[:3]))


@pytest.mark.parametrize("task", MADE)
def test_a_file_remembers_the_task(fits, tmp_path, task):
    """A model that went through a file predicts what it predicted before, and wants its columns."""
    data, fitted = fits(task)
    save_model(tmp_path / "m", data, fitted, QUICK)
    model = load_model(tmp_path / "m")
    assert model.task == task
    new = frame(seed=1)
    found, X = model.predict(Table(new, "new.csv")), data.encoder.transform(new, "new.csv")
    if task == "ordinal":
        proba = np.stack([found[f"probability_of_{name}"] for name in ANSWERS], axis=1)
        # The fixed point is stored, and kernels as numbers rather than their logarithms.
        np.testing.assert_allclose(proba, fitted.predict_proba(X), rtol=1e-6)
        return
    added = {"offset": np.log(new["time"])} if task == "counts" else {}
    np.testing.assert_allclose(found["prediction"], fitted.predict(X, **added), rtol=1e-6)
    low, high = fitted.predict_quantiles(X, [0.025, 0.975], **added).T
    np.testing.assert_allclose(found["lower"], low, rtol=1e-6)
    np.testing.assert_allclose(found["upper"], high, rtol=1e-6)
    assert not found["std"].is_infinite().any()
    if task == "counts":
        with pytest.raises(TableError, match="'time': the model needs this column"):
            model.predict(Table(new.drop("time"), "new.csv"))


def test_shares_inside_intervals_are_right_for_counts():
    """Of counts drawn from what is predicted, a share of exactly the level is inside."""
    rng, n = np.random.default_rng(0), 20_000
    rate = rng.gamma(2.0, 1.0, n)
    y = rng.poisson(rate)
    found = Predictive(rate, rate, rate, poisson.cdf(y - 1, rate), poisson.cdf(y, rate), rate)
    for level in (0.1, 0.5, 0.9):
        # Four standard errors.
        assert abs(found.inside(level).mean() - level) < 4.0 * np.sqrt(level * (1 - level) / n)


@pytest.mark.parametrize("task", ["counts", "robust"])
def test_predictions_of_unseen_rows(fits, task):
    """Density, distribution function and deviations agree with each other and the estimator."""
    data, fitted = fits(task)
    found = left_out_predictive(fitted, data.y)
    np.testing.assert_allclose(found.mean, fitted.loo_mean_, rtol=1e-12)
    np.testing.assert_allclose(found.log_prob, fitted.loo_log_prob_, rtol=1e-12)
    np.testing.assert_allclose(np.abs(found.z), fitted.outlier_score_, atol=1e-6)
    atom = np.exp(found.log_prob) if task == "counts" else 0.0
    np.testing.assert_allclose(found.upto - found.below, atom, atol=1e-12)
    new = new_predictive(fitted, data.X, data.y, data.offset)
    low, high = fitted.predict_quantiles(data.X, [0.05, 0.95], **_added(data)).T
    # What lies well beyond the quantiles is outside the interval, and well inside them inside.
    beyond, within = (data.y < low) | (data.y > high), (data.y > low) & (data.y < high)
    assert np.all(new.inside(0.9)[beyond] == 0.0)
    assert np.all(new.inside(0.9)[within] == 1.0)


def _added(data):
    return {} if data.offset is None else {"offset": data.offset}


def test_new_counts_have_the_probability_of_an_average():
    """The log probability of a new count is that of an average over the latent value."""
    data = prepared("plain", "counts", seed=1, offset=TIME)
    fitted, _ = fit_model(data, QUICK)
    found = new_predictive(fitted, data.X[:4], data.y[:4], data.offset[:4])
    q = fitted._model.latents(data.X[:4], None, data.offset[:4])[0]
    f = q.mean + np.sqrt(q.variance) * np.random.default_rng(0).standard_normal((200_000, 1))
    log_p = np.log(np.mean(np.exp(Poisson().log_prob(data.y[:4], f)), axis=0))
    # Two hundred thousand draws.
    np.testing.assert_allclose(found.log_prob, log_p, atol=0.02)


def test_folds_of_counts_are_tuned_without_the_fold():
    """Predictions by folds differ from leave-one-out a little, and use the rows' offsets."""
    data = MADE["counts"](n=40)
    fitted, _ = fit_model(data, QUICK)
    folds = cross_val_predictive(fitted, data.X, data.y, data.offset, cv=4)
    assert (
        np.corrcoef(np.log(folds.mean), np.log(left_out_predictive(fitted, data.y).mean))[0, 1]
        > 0.9
    )


@pytest.mark.parametrize("task", MADE)
def test_a_page_of_each_task(task):
    """Scores are those of the estimator, and the page and the summary are whole."""
    data = MADE[task](test_size=20)
    found = analyse(data, QUICK)
    fitted, _ = fit_model(data, QUICK)
    text = "\n".join(summarise(found))
    page = render(found)
    assert "How good is it?" in text
    assert "How good is the model?" in page
    best = found.held_out
    if task == "ordinal":
        middle = np.argmax(np.cumsum(fitted.predict_proba(data.X_test), axis=1) >= 0.5, axis=1)
        assert best["ranks_off"] == pytest.approx(np.mean(np.abs(middle - data.y_test)))
        assert best["ranks_off"] < best["baseline_ranks_off"]
        assert "ranks off" in text
        return
    assert found.left_out["log_loss"] == pytest.approx(-np.mean(fitted.loo_log_prob_))
    assert best["log_loss"] < best["baseline_log_loss"]
    assert ("d2" in best) == (task == "counts")
    assert found.verdict["helps"]
    if task == "robust":
        # Every thirtieth row, of those that were not held out.
        wrong = [row for row in data.rows.tolist() if row % 30 == 1]
        assert {point["row"] for point in found.suspects[: len(wrong)]} == set(wrong)


def test_a_guess_without_inputs_has_the_exposure():
    """Where nothing but the exposure matters, the inputs are not said to help."""
    rng = np.random.default_rng(3)
    time = rng.uniform(0.5, 20.0, 80)
    table = pl.DataFrame({"x": rng.normal(size=80), "time": time, "k": rng.poisson(2.0 * time)})
    data = prepare(Table(table, "made.csv"), "k", "counts", offset=TIME)
    unseen = left_out_of(data, fit_model(data, QUICK)[0])
    np.testing.assert_allclose(unseen.guess.mean, 2.0 * time, rtol=0.1)
    assert unseen.losses.log_loss.mean() >= -unseen.guess.log_prob.mean() - 0.02


def test_three_classes_are_one_model_unless_they_are_too_many():
    """Wine's classes share one model; with a method that has none for them, a note says so."""
    data = prepare(read_table("wine"))
    assert fit_model(data, QUICK)[0].multi_class == "multinomial"
    before = len(data.notes)
    other, _ = fit_model(data, Settings("rbf", inference="ensemble"))
    assert other.multi_class == "one_vs_rest"
    assert "has a model of its own" in data.notes[-1]
    fit_model(data, Settings("rbf", inference="ensemble"))
    assert len(data.notes) == before + 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--order", "a,b", "--task", "counts"], "--order is for --task ordinal"),
        (["--exposure", "time", "--task", "robust"], "--exposure is for --task counts"),
        (["--exposure", "time", "--offset", "x"], "not both"),
        (["--offset", "x", "--task", "ordinal"], "--offset is not for --task ordinal"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, capsys, words, problem):
    """Code 2 and one line."""
    path = tmp_path / "t.csv"
    frame().write_csv(path)
    assert main(["report", str(path), "--target", "visits", *words]) == 2
    assert problem in capsys.readouterr().err


def test_the_command_line_says_what_it_decided(tmp_path, capsys):
    """Fit, predict and compare of counts, and the decision on the terminal and in JSON."""
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "m")
    frame().drop("plain", "answer", "value").write_csv(table)
    assert main(["fit", table, "--target", "visits", "--kernel", "rbf", "-o", model]) == 0
    assert "taken as counts (--task counts)" in capsys.readouterr().out
    words = ["--target", "visits", "--exposure", "time", "--kernel", "rbf", "--json"]
    assert main(["compare", table, *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"ep", "laplace"} <= {row["inference"] for row in found["comparison"]}
    assert any("exposure" in note for note in found["notes"])
    assert main(["predict", model, table, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)[0]) == {"prediction", "std", "lower", "upper"}
    assert main(["compare", table, "--target", "x", "--task", "robust"]) == 1


def test_methods_are_compared_at_the_tuned_likelihood(fits):
    """EP's line of a comparison is the fit itself, in the units of the targets."""
    data, fitted = fits("counts")
    rows = compare_inference(
        data.X,
        data.y,
        fitted.kernel_,
        likelihood=fitted.likelihood_,
        inference=["ep", "laplace"],
        optimizer=None,
        offset=data.offset,
        normalize_y=True,
    )
    assert rows[0].log_evidence == pytest.approx(fitted.log_marginal_likelihood_value_, rel=1e-6)
    assert rows[1].log_evidence == pytest.approx(rows[0].log_evidence, abs=1.0)


def test_methods_for_all_classes_at_once_are_compared():
    """For one model of all classes, those methods that have a form for it."""
    data = prepare(read_table("wine"), max_rows=40)
    table = compare_inference(
        data.X, data.y, 1.0 * RBF(3.0), optimizer=None, multi_class="multinomial"
    )
    assert {row.inference for row in table} == {"ep", "laplace", "naive", "variational"}
    softmax = compare_inference(
        data.X,
        data.y,
        1.0 * RBF(3.0),
        likelihood="logit",
        optimizer=None,
        multi_class="multinomial",
    )
    assert [row.inference for row in softmax] == ["laplace"]


def test_a_method_that_needs_an_inverse_is_marked():
    """A kernel without an inverse makes a line without numbers, not an error."""
    X = np.linspace(0.0, 1.0, 60)[:, None]
    y = np.random.default_rng(0).poisson(3.0, 60)
    table = compare_inference(X, y, RBF(0.5), optimizer=None, likelihood="poisson")
    found = {row.inference: row for row in table}
    assert np.isfinite(found["ep"].log_evidence)
    assert np.isnan(found["ensemble"].log_evidence)
    assert not found["ensemble"].converged


def test_an_offset_of_a_quantity(tmp_path):
    """--offset of a regression is subtracted from the target and added to predictions."""
    table = frame().with_columns(more=pl.col("value") + 10.0 * pl.col("time"))
    drop = ["visits", "plain", "answer", "value"]
    offset = Offset("tens", is_exposure=False)
    made = Table(table.with_columns(tens=10.0 * pl.col("time")), "made.csv")
    data = prepare(made, "more", "robust", drop=[*drop, "time"], offset=offset)
    fitted, _ = fit_model(data, QUICK)
    alone = MADE["robust"]()
    plain, _ = fit_model(alone, QUICK)
    # Two searches that end within their tolerance of each other.
    expected = plain.predict(alone.X) + data.offset
    np.testing.assert_allclose(fitted.predict(data.X, offset=data.offset), expected, atol=0.02)
    save_model(tmp_path / "m", data, fitted, QUICK)
    again = load_model(tmp_path / "m").predict(made)["prediction"]
    np.testing.assert_allclose(again, expected, atol=0.02)


def test_what_the_page_says_of_each_task():
    """Words on the page follow the task: ranks, deviance, absolute errors."""
    said = {}
    for task, make in MADE.items():
        found = analyse(make(n=60), QUICK, skip=["comparison", "baselines"])
        parts = [big.label for big in strip(found)] + [quality(found).headline]
        said[task] = " ".join([*parts, dict(record(found).blocks[0].facts)["Target"]])
    assert "of the deviance explained" in said["counts"]
    assert "visits, as counts" in said["counts"]
    assert "ranks off on average" in said["ordinal"]
    assert "average absolute error" in said["robust"]


def quantity(n=60, seed=0, wrong=0):
    """A wave with Gaussian noise, in which some targets are off by twenty deviations."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3.0, 3.0, n)
    y = np.sin(1.5 * x) + 0.1 * rng.standard_normal(n)
    y[:wrong] += 2.0 * rng.choice([-1.0, 1.0], wrong)
    return prepare(Table(pl.DataFrame({"x": x, "y": y}), "made.csv"), "y")


def outliers_in(data):
    fitted, _ = fit_model(data, QUICK)
    return outliers_of(data, left_out_of(data, fitted), QUICK)


def test_clean_tables_have_no_outliers():
    """In 60 tables with Gaussian noise at most three have a row beyond the threshold."""
    # One in a hundred is expected to; more than three of 60 would have a probability of 0.003.
    found = [outliers_in(quantity(n, seed)) for n in (25, 40, 80) for seed in range(20)]
    assert sum(bool(one["rows"]) for one in found) <= 3


@pytest.mark.parametrize("wrong", [2, 6])
def test_outliers_lead_to_a_robust_model(wrong):
    """The model with heavy tails is tried, is better, and names every wrong row and no other."""
    found = outliers_in(quantity(wrong=wrong))
    robust = found["robust"]
    assert found["rows"]
    assert robust["verdict"] == "better"
    assert set(robust["rows"]) == set(range(1, wrong + 1))
    assert robust["gain"] > 2.0 * robust["gain_se"]
    clean = quantity(wrong=0)
    mae = left_out_of(clean, fit_model(clean, QUICK)[0])
    # Off by two, each wrong target adds that to the sum of absolute errors.
    expected = np.mean(np.abs(mae.y - mae.mean)) + 2.0 * wrong / len(clean.y)
    assert robust["scores"]["mae"] == pytest.approx(expected, rel=0.1)


def test_the_threshold_is_that_of_gaussian_noise():
    """Among many rows of known deviation, one in a hundred tables has one beyond it."""
    rng = np.random.default_rng(0)
    far = np.abs(rng.standard_normal((2000, 500))).max(axis=1) > threshold(500)
    # Four standard errors.
    assert abs(far.mean() - 0.01) < 4.0 * np.sqrt(0.01 / 2000)
    assert threshold(10) > threshold(30)


def test_the_page_tells_of_outliers():
    """Page and terminal name the rows, both scores, and what to say to use the other model."""
    found = analyse(quantity(wrong=4), QUICK, skip=["comparison", "baselines"])
    text = "\n".join(summarise(found))
    assert "--task robust) predicts better" in text
    assert "4 rows are outliers (" in text
    page = render(found)
    assert "heavy tails (--task robust)" in page
    clean = analyse(quantity(), QUICK, skip=["comparison", "baselines"])
    assert clean.outliers["robust"] is None
    assert "No row is an outlier" in "\n".join(summarise(clean))
    assert outliers_of(MADE["robust"](n=20), None, QUICK) is None


def test_outliers_do_not_hide_that_the_inputs_help():
    """The losses of a few rows are so large that only the model with heavy tails can tell."""
    data = prepare(read_table("outliers"), max_rows=80)
    fitted, _ = fit_model(data, QUICK)
    assert not verdict_of(left_out_of(data, fitted))["helps"]
    found = analyse(data, QUICK, skip=["comparison", "baselines"])
    assert found.verdict["helps"]


def test_the_shipped_outliers_are_found():
    """All nine rows that the table says are wrong, and no other."""
    data, wrong = prepare(read_table("outliers")), load_outliers().wrong
    found = outliers_in(data)
    assert set(found["robust"]["rows"]) == set(np.flatnonzero(wrong) + 1)


def test_two_in_a_hundred_wrong_targets_do_no_harm():
    """On clean rows the error is that of a fit without them, and they lead the suspects."""
    rng, n = np.random.default_rng(0), 300
    X, new = rng.uniform(-3.0, 3.0, (2, n, 2))
    y, clean = (np.sin(1.5 * Z[:, 0]) + 0.2 * rng.standard_normal(n) for Z in (X, new))
    wrong = np.arange(n) % 50 == 7
    moved = y + wrong * rng.uniform(2.0, 6.0, n) * rng.choice([-1.0, 1.0], n)
    model = GaussianProcessRegressor(1.0 * RBF(1.0), likelihood="student_t", normalize_y=True)
    without = cloned(model).fit(X[~wrong], y[~wrong])
    model.fit(X, moved)
    errors = [np.sqrt(np.mean((m.predict(new) - clean) ** 2)) for m in (model, without)]
    assert errors[0] < 1.1 * errors[1]
    first = np.argsort(-model.outlier_score_)[: wrong.sum()]
    assert wrong[first].mean() >= 0.9
