"""The benchmark of wrong labels: what it turns wrong, what it keeps, and what its tables say."""

import numpy as np
import pytest

# The benchmarks are not part of the source distribution.
pytest.importorskip("benchmarks.suspects")
from benchmarks.suspects.fits import OURS, PEERS, Case, Seen, cases
from benchmarks.suspects.noise import KINDS, turned
from benchmarks.suspects.page import page
from benchmarks.suspects.scores import scores
from benchmarks.suspects.tables import TABLES, table


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_labels_are_wrong_as_asked_for(kind):
    """A tenth of the labels differs from the right ones, and these are marked."""
    X, y = table("iris")
    given, wrong = turned(kind, X, y, 0.1, np.random.default_rng(0))
    assert wrong.sum() == 15
    np.testing.assert_array_equal(given != y, wrong)
    assert set(given) <= set(y)


def test_kinds_of_wrong_labels():
    """One class is called another; and what lies near the boundary is turned more often."""
    X, y = table("iris")
    given, wrong = turned("one class into another", X, y, 0.1, np.random.default_rng(1))
    assert len(set(y[wrong])) == len(set(given[wrong])) == 1
    rngs = map(np.random.default_rng, range(20))
    counts = sum(turned("near the boundary", X, y, 0.1, rng)[1] for rng in rngs)
    # The first species is far from the other two, which overlap.
    assert counts[y == 0].mean() < 0.5 * counts[y == 1].mean()


def test_tables():
    """Eight tables of a few hundred rows, with classes numbered from zero."""
    assert len(TABLES) == 8
    for name in TABLES:
        X, y = table(name)
        assert len(X) == len(y) <= 300
        assert np.all(np.isfinite(X))
        assert set(y) == set(range(y.max() + 1))


def test_page_of_made_up_probabilities():
    """Probabilities that know the truth win, and the page says who lost where."""
    pytest.importorskip("cleanlab")
    rng, rows = np.random.default_rng(0), []
    for case in [Case("rings", kind, 0.1, 0) for kind in KINDS]:
        y, wrong = rng.integers(0, 2, 200), np.zeros(200, dtype=bool)
        wrong[:20] = True
        sure = np.where(np.eye(2)[y] > 0.0, 0.9, 0.1)
        guess = rng.uniform(0.3, 0.7, 200)
        proba = {name: np.stack([guess, 1.0 - guess], axis=1) for name in PEERS}
        given = np.where(wrong, 1 - y, y)
        seconds = dict.fromkeys([OURS, *PEERS], 1.0)
        rows += scores(case, Seen(given, wrong, {OURS: sure, **proba}, seconds))
    ours = [row for row in rows if row["model"] == OURS]
    assert all(row["ap"] == row["auc"] == 1.0 for row in ours)
    assert all(row["low"] <= 20 <= row["high"] for row in ours)
    text = page(rows)
    assert "| uniform                | 1 of 1" in text
    assert "Promised" not in text.split("\n")[0]


def test_quick_cases_are_some_of_all():
    """A quick run is one share, once; every case has a file of its own."""
    every, quick = list(cases(False, 3)), list(cases(True, 3))
    assert len(every) == 8 * 3 * 3 * 3
    assert len(quick) == 9
    assert set(quick) < set(every)
    assert len({case.file for case in every}) == len(every)
