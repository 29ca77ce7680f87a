"""Thresholds, their costs, and the precision and recall of classes."""

import json

import numpy as np
import pytest
from browser import QUICK, numbers_of, show

from cavity.report.analysis import analyse
from cavity.report.scores import left_out_classes
from cavity.report.sections.thresholds import thresholds
from cavity.report.thresholds import STEPS, thresholds_of
from cavity.tables.output import plain
from cavity.tables.prepare import prepare
from cavity.tables.read import read_table


def predicted(name, seed=0):
    """A table's classes and made-up probabilities, some of which are equal."""
    data, rng = prepare(read_table(name)), np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(len(data.classes)), len(data.y))
    proba = 0.5 * proba + 0.5 * np.eye(len(data.classes))[data.y] * rng.random((len(data.y), 1))
    proba = np.round(proba / proba.sum(axis=1, keepdims=True), 2) + 1e-9
    return data, proba / proba.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["crabs", "wine"])
def test_counts_and_areas_are_those_of_all_pairs_of_rows(name):
    """Counts at each threshold, the ROC area from pairs, and precision at each row found."""
    data, proba = predicted(name)
    found = thresholds_of(data, left_out_classes("leave-one-out", data.y, proba))
    entries = found["classes"]
    assert [e["class"] for e in entries] == [str(c) for c in data.classes][-len(entries) :]
    for k, entry in enumerate(entries, start=len(data.classes) - len(entries)):
        p, is_class = proba[:, k], data.y == k
        called = p >= STEPS[:, None]
        np.testing.assert_array_equal(entry["caught"], (called & is_class).sum(axis=1))
        np.testing.assert_array_equal(entry["alarms"], (called & ~is_class).sum(axis=1))
        apart = p[is_class][:, None] - p[~is_class]
        area = np.mean((apart > 0.0) + 0.5 * (apart == 0.0))
        assert entry["auc"] == pytest.approx(area, rel=1e-12)
        precision = [is_class[p >= x].mean() for x in p[is_class]]
        assert entry["average_precision"] == pytest.approx(np.mean(precision), rel=1e-12)
        assert (entry["roc"]["false"][0], entry["roc"]["true"][-1]) == (0.0, 1.0)
        assert entry["precision_recall"]["recall"][-1] == 1.0


def test_precision_and_recall_of_classes_are_counted():
    """Of the most probable class; a class that is never predicted has no precision."""
    data, proba = predicted("wine")
    proba[:, 2] = 0.0
    unseen = left_out_classes("leave-one-out", data.y, proba)
    found, called = plain(thresholds_of(data, unseen))["per_class"], proba.argmax(axis=1)
    for k, line in enumerate(found):
        right, rows = np.sum((data.y == k) & (called == k)), np.sum(data.y == k)
        assert (line["rows"], line["right"]) == (rows, right)
        assert line["predicted"] == np.sum(called == k)
        assert line["recall"] == pytest.approx(right / rows)
        expected = None if k == 2 else pytest.approx(np.mean(data.y[called == k] == k))
        assert line["precision"] == expected
        assert line["f1"] == pytest.approx(2 * right / (rows + np.sum(called == k)))


def test_quantities_have_no_thresholds():
    """In regression there is no such section, and null in the JSON."""
    analysis = analyse(prepare(read_table("boston"), max_rows=40), QUICK, skip=["baselines"])
    assert analysis.thresholds is None
    assert thresholds(analysis) is None


def choose(driver, **values):
    """Set fields of the form and let it answer."""
    for name, value in values.items():
        driver.execute_script(
            "const field = document.getElementById('decision').elements[arguments[0]];"
            "field.value = arguments[1];"
            "field.dispatchEvent(new Event('input', {bubbles: true}));",
            name,
            str(value),
        )


def shown(driver):
    cells = driver.find_elements("css selector", "#decision [data-count]")
    return {c.get_attribute("data-count"): int(c.text.replace(",", "")) for c in cells}


def counts(entry, k):
    rows = entry["caught"][0] + entry["alarms"][0]
    caught, alarms = entry["caught"][k], entry["alarms"][k]
    missed = entry["rows"] - caught
    return {
        "found": caught,
        "missed": missed,
        "alarms": alarms,
        "passed": rows - entry["rows"] - alarms,
    }


def place_of_ring(driver, chart):
    rings = f"document.querySelector('#{chart} svg g.layer_3_marks path')"
    return driver.execute_script(f"return {rings} && {rings}.getAttribute('transform')")


def test_the_threshold_moves_counts_and_rings(driver, pages):
    """Counts are those of the JSON at each place of the slider, and rings move along the curves."""
    show(driver, pages("pima"))
    found = numbers_of(pages("pima"))["thresholds"]
    [entry], steps = found["classes"], found["steps"]
    half = steps.index(0.5)
    assert shown(driver) == counts(entry, half)
    places = set()
    for k in (half, steps.index(0.2), steps.index(0.8)):
        choose(driver, threshold=k)
        assert shown(driver) == counts(entry, k)
        output = driver.find_element("css selector", "#decision output[name=shown]")
        assert output.text == f"{100 * steps[k]:g} %"
        driver.execute_async_script("setTimeout(arguments[0], 100)")
        places.add(
            (place_of_ring(driver, "chart-roc"), place_of_ring(driver, "chart-precision-recall"))
        )
    assert len(places) == 3
    assert None not in {ring for pair in places for ring in pair}


def test_costs_choose_the_threshold(driver, pages):
    """One button takes the threshold that costs prescribe, one the cheapest on these rows."""
    show(driver, pages("pima"))
    found = numbers_of(pages("pima"))["thresholds"]
    [entry], steps = found["classes"], found["steps"]
    choose(driver, miss=9, alarm=1)
    costs = [9 * counts(entry, k)["missed"] + counts(entry, k)["alarms"] for k in range(len(steps))]
    form = driver.find_element("id", "decision")
    rows = entry["caught"][0] + entry["alarms"][0]
    for button, cost in (("prescribed", costs[steps.index(0.1)]), ("cheapest", min(costs))):
        driver.execute_script(f"document.getElementById('decision').elements.{button}.click()")
        assert float(form.get_attribute("data-cost")) == pytest.approx(cost / rows)
    said = form.find_element("name", "said").text
    assert "prescribe a threshold of 10 %" in said
    assert f"is {100 * min(costs) / rows:.3g} per 100 rows" in said


@pytest.mark.parametrize("costs", [{"miss": -1}, {"miss": ""}, {"miss": 0, "alarm": 0}])
def test_impossible_costs_are_refused(driver, pages, costs):
    """A cost that is missing or below zero gets a sentence, and no threshold is offered."""
    show(driver, pages("pima"))
    choose(driver, **costs)
    form = driver.find_element("id", "decision")
    assert form.find_element("name", "said").text.startswith("Type costs of zero or more")
    assert not form.find_element("name", "cheapest").is_enabled()
    assert driver.get_log("browser") == []


def test_a_class_can_be_chosen(driver, pages):
    """With several classes the counts and curves are those of the chosen one against the others."""
    show(driver, pages("wine"))
    entries = numbers_of(pages("wine"))["thresholds"]["classes"]
    curve = "return document.querySelector('#chart-roc svg g.layer_1_marks path').getAttribute('d')"
    half, curves = int(np.flatnonzero(STEPS == 0.5)[0]), set()
    for k, entry in enumerate(entries):
        choose(driver, event=k)
        assert shown(driver) == counts(entry, half)
        driver.execute_async_script("setTimeout(arguments[0], 100)")
        curves.add(driver.execute_script(curve))
    assert len(curves) > 1


def test_the_form_has_names_for_everything(driver, pages):
    """A screen reader gets a name and a value for each field."""
    show(driver, pages("wine"))
    tree = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {
        (node["role"]["value"], node["name"]["value"])
        for node in tree
        if not node.get("ignored") and "name" in node
    }
    for role, name in (
        ("slider", "Threshold"),
        ("spinbutton", "A missed row costs"),
        ("spinbutton", "A false alarm costs"),
        ("combobox", "class"),
        ("button", "Use the cheapest one on these rows"),
    ):
        assert (role, name) in named, json.dumps(sorted(named))
    slider = driver.find_element("name", "threshold")
    assert slider.get_attribute("aria-valuetext") == "50 %"
