"""The report page, opened in a real browser."""

import re

import numpy as np
import polars as pl
import pytest
from browser import (
    NAMES,
    NASTY,
    QUICK,
    ROWS,
    WIDTHS,
    check_whole,
    keep,
    numbers_of,
    show,
)
from sklearn.gaussian_process.kernels import RBF, CompoundKernel

from cavity import learning_curve
from cavity.report.analysis import analyse, compare_methods
from cavity.report.parts import calibration, kernel_text
from cavity.report.sections.inputs import inputs
from cavity.report.sections.model import _between
from cavity.report.summary import summarise
from cavity.report.words import capitalised, count, in_hundred, join, number, percent
from cavity.tables.model import Settings, fit_model
from cavity.tables.output import plain
from cavity.tables.prepare import prepare
from cavity.tables.read import Table, read_table


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pima_is_drawn(driver, pages, request, scheme, width):
    """Light or dark, wide or narrow: all charts, no complaint, no request, no sideways scroll."""
    check_whole(driver, pages("pima"), scheme=scheme, width=width)
    keep(driver, request, f"pima-{scheme}-{width}")


@pytest.mark.parametrize("name", NAMES)
def test_other_tables_are_drawn(driver, pages, request, name):
    """Many inputs, three classes, a quantity, twenty rows and hostile names: all are drawn."""
    check_whole(driver, pages(name), width="phone")
    keep(driver, request, name)


def test_theme_button(driver, pages):
    """The button turns the page and its charts dark and says so."""
    show(driver, pages("pima"))
    look = (
        "const dot = document.querySelector('.chart .mark-symbol path');"
        "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(dot).fill]"
    )
    before = driver.execute_script(look)
    button = driver.find_element("id", "theme")
    button.click()
    after = driver.execute_script(look)
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert button.get_attribute("aria-pressed") == "true"


def test_tables_sort(driver, pages):
    """A click on a head sorts by value, a second one the other way, and aria-sort tells."""
    show(driver, pages("pima"))
    values = (
        "return [...document.querySelectorAll('#table-methods-table tbody tr')]"
        ".map(r => Number(r.cells[1].dataset.value))"
    )
    head = driver.find_element("css selector", "#table-methods-table th:nth-child(2)")
    for order, sign in (("ascending", 1), ("descending", -1)):
        driver.execute_script("arguments[0].querySelector('button').click()", head)
        found = driver.execute_script(values)
        assert found == sorted(found, key=lambda x: sign * x)
        assert head.get_attribute("aria-sort") == order


@pytest.mark.parametrize("name", ["pima", "boston"])
def test_target_box_answers(driver, pages, name):
    """What the box answers is the size that the curve's own forecast needs."""
    is_pima = name == "pima"
    data = prepare(read_table(name), **({} if is_pima else {"max_rows": ROWS}))
    model, _ = fit_model(data, Settings() if is_pima else QUICK)
    curve = learning_curve(model, data.X, data.y)
    n = len(data.y)
    show(driver, pages(name))
    target = curve.forecast(2 * n, "log_loss").value
    box = driver.find_element("id", "box-log_loss")
    box.clear()
    box.send_keys(repr(target))
    form = driver.find_element("id", "goal-log_loss")
    # Between the tabulated sizes, a fifth apart, the page draws straight lines.
    assert float(form.get_attribute("data-size")) == pytest.approx(
        curve.size_for(log_loss=target), rel=0.05
    )
    assert "more than now" in form.find_element("tag name", "output").text
    box.clear()
    box.send_keys("-100")
    assert "no number of rows" in form.find_element("tag name", "output").text


def test_numbers_are_those_of_the_estimator(pages):
    """The page's numbers are the estimator's attributes to the last digit."""
    data = prepare(read_table("pima"))
    model, _ = fit_model(data, Settings())
    found = numbers_of(pages("pima"))
    assert found["model"]["log_evidence"] == model.log_marginal_likelihood_value_
    np.testing.assert_array_equal(found["points"]["probability"], model.loo_proba_.max(axis=1))
    wrong = np.mean(model.predict(data.X_test) != data.y_test)
    assert found["held_out"]["error"] == pytest.approx(wrong, rel=1e-12)
    assert f'dd class="value">{100 * wrong:.1f} %' in pages("pima").read_text("utf-8")


@pytest.mark.parametrize("name", ["pima", *NAMES])
def test_page_is_small_and_alone(pages, name):
    """A page has at most a megabyte and a half and refers to nothing outside itself."""
    text = pages(name).read_text("utf-8")
    assert len(text.encode()) < 1_500_000
    assert not re.search(r"<(?:link|img|iframe)\b|<script[^>]*\bsrc=|@import|url\(", text[:30_000])


def test_a_number_stays_with_its_percent_sign(driver, pages):
    """In a headline no line begins with a percent sign."""
    show(driver, pages("pima"))
    headlines = [
        e.get_property("textContent") for e in driver.find_elements("class name", "headline")
    ]
    shares = [text for text in headlines if "%" in text]
    assert shares
    assert not any(" %" in text for text in shares)


def test_hostile_names_are_text(driver, pages):
    """Column names and labels stay text, in the page, in its charts and in its numbers."""
    show(driver, pages("nasty"))
    assert "owned" not in driver.title.replace(NASTY, "")
    assert driver.title.endswith("· cavity")
    assert NASTY in driver.find_element("css selector", "#table-suspects").text
    assert numbers_of(pages("nasty"))["data"]["feature_names"][0] == NASTY
    scripts = "return document.querySelectorAll('script:not([type])').length"
    assert driver.execute_script(scripts) == 2


@pytest.mark.parametrize(
    ("write", "written"),
    [
        (number, {0.46674: "0.467", 12345.6: "12,346", None: "–", 2.0: "2.00"}),
        (lambda x: number(x, 2), {0.9996: "1.0", 1.004: "1.0", 99.96: "100", 0.0999: "0.10"}),
        (capitalised, {"probability of Yes": "Probability of Yes", "": ""}),
        (percent, {0.213: "21 %", 0.0004: "under 1 %", 0.9999: "over 99 %"}),
        (in_hundred, {0.213: "21 times in 100", 0.013: "13 times in 1,000", 0.0: "never"}),
        (lambda n: count(n, "row"), {1: "1 row", 1200: "1,200 rows"}),
        (join, {("a",): "a", ("a", "b"): "a and b", ("a", "b", "c"): "a, b and c"}),
    ],
)
def test_numbers_are_written_for_people(write, written):
    """Rare things are never 0 %, a missing number is a dash, and one row is not one rows."""
    assert {value: write(value) for value in written} == written


def test_parts_of_an_analysis():
    """A group's share is counted, and each class has its kernel."""
    [group] = calibration(np.full(4, 0.75), np.array([True, True, True, False]))
    assert (group["predicted"], group["observed"], group["count"]) == (0.75, 0.75, 4)
    text = kernel_text(CompoundKernel([RBF(1.0), RBF(2.0)]), ["a", "b"])
    assert text == "a: RBF(length_scale=1); b: RBF(length_scale=2)"


def wave_table(strength):
    """A strong input, a category, and an input that does nothing."""
    rng = np.random.default_rng(3)
    a, idle = rng.uniform(10.0, 20.0, (2, 60))
    colour = rng.choice(["red", "green", "blue"], 60)
    y = strength * (a + 5.0 * (colour == "red")) + rng.standard_normal(60)
    return Table(pl.DataFrame({"a": a, "colour": colour, "idle": idle, "y": y}), "wave.csv", "y")


def test_inputs_are_the_columns_of_the_table():
    """Categories are one column, effects are in the table's units, and the headline is cautious."""
    found = analyse(prepare(wave_table(1.0)), QUICK)
    lines = {line["feature"]: line for line in found.importance}
    assert [*lines] == ["a", "colour", "idle"]
    assert min(lines["a"]["low"], lines["colour"]["low"]) > lines["idle"]["low"] == 0.0
    # The idle one has no effect to show.
    number_, category = found.effects
    assert 10.0 < number_["values"][0] < 11.0 < 19.0 < number_["values"][-1] < 20.0
    # The slope of the line behind the data is one.
    [curve] = number_["curves"]
    rise = (curve["mean"][-1] - curve["mean"][0]) / (number_["values"][-1] - number_["values"][0])
    assert rise == pytest.approx(1.0, rel=0.15)
    assert category["values"] == ["blue", "green", "red"]
    assert np.argmax(category["curves"][0]["mean"]) == 2
    headline = inputs(found).headline
    assert headline.startswith("a matters most")
    assert headline.endswith("idle may do nothing.")
    assert any("idle" in line and "0.0%" in line for line in summarise(found))


def test_without_a_clear_input_none_is_named():
    """If the target is noise, the headline says that no interval is above zero."""
    found = analyse(prepare(wave_table(0.0)), QUICK)
    assert inputs(found).headline.startswith("None that these rows can show")


def test_numbers_that_are_not_finite_are_null():
    """What is printed is strict JSON."""
    assert plain({"x": np.float64("nan"), "y": (np.int64(2),)}) == {"x": None, "y": [2]}


@pytest.mark.parametrize(("now", "best"), [(0.245, 0.238), (16.0024, 15.96), (0.349645, 0.3488)])
def test_first_goal_lies_ahead(now, best):
    """The number in a box at first is below the present one and above the best, as it is read."""
    assert best < float(_between(now, best)) < now
    assert _between(now, now) == f"{now:.3g}"


def test_text_and_page_have_the_same_baseline():
    """On terminal and page, what a guess without inputs scores is measured on the same rows."""
    found = analyse(prepare(read_table("pima")), QUICK)
    [line] = [line for line in summarise(found) if "without any inputs" in line]
    assert f"error {found.best_scores['baseline_error']:.3f}" in line


def test_a_table_with_as_many_classes_as_rows_does_not_warn():
    """Odd targets are worth no message of a library below; warnings are errors here."""
    n = 24
    columns = {"x": np.linspace(0.0, 1.0, n), "y": [f"class {i // 2 + i % 2}" for i in range(n)]}
    data = prepare(Table(pl.DataFrame(columns), "odd.csv", "y"))
    assert compare_methods(data, 1.0 * RBF(1.0), QUICK)
