"""The benchmark of suggestions: races are fair, and its page says what was measured."""

import numpy as np
import pytest

# The benchmarks are not part of the source distribution.
pytest.importorskip("benchmarks.suggestions")
from benchmarks.suggestions.page import counts, signs, table
from benchmarks.suggestions.races import measure, scaled
from benchmarks.suggestions.sets import CHOSEN_ON, REPORTED, race
from benchmarks.suggestions.strategies import at_random, suggested, uncertain


@pytest.mark.parametrize("name", ["ring", "iris", "Pima"])
def test_races_begin_alike(name):
    """A seed has the same rows for every strategy, all classes at first, and no row twice."""
    load = (CHOSEN_ON | REPORTED)[name]
    one, two = race(load, 3, 20), race(load, 3, 20)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.first, two.first)
    assert len(np.unique(one.first)) == 20
    assert set(one.y[one.first]) == set(one.y)
    both = np.vstack([one.X, one.X_fresh])
    if name != "iris":  # It has equal flowers.
        assert len(np.unique(both, axis=0)) == len(both)
    assert np.abs(scaled(one).X.mean(axis=0)).max() < 1e-9


def test_no_set_is_chosen_on_and_reported():
    """The rule was not chosen on what is reported."""
    assert not CHOSEN_ON.keys() & REPORTED.keys()
    assert len(REPORTED) == 6


class Leaning:
    """A model that is surer the larger the input."""

    def predict_proba(self, X):
        p = 0.5 + 0.5 * X[:, 0]
        return np.stack([p, 1.0 - p], axis=1)


def test_strategies_name_different_rows():
    """Ten different rows; the uncertain ones are those nearest to one half."""
    pool = np.random.default_rng(0).uniform(0.0, 1.0, (40, 1))
    chosen, _ = uncertain(Leaning(), None, None, pool, 10, 0)
    np.testing.assert_array_equal(np.sort(chosen), np.sort(np.argsort(pool[:, 0])[:10]))
    assert len(set(at_random(None, None, None, pool, 10, 0)[0])) == 10


def test_a_race_is_repeatable():
    """A race depends on its seed alone, and says what was expected."""
    one = measure("iris", "suggest, information", 1)
    assert len(one["losses"]) == 6
    assert one["losses"][-1] < one["losses"][0]
    assert set(one["said"][0]) == {"stop", "fall", "loss"}
    assert suggested("error") is not suggested("error")


def test_the_page_says_what_was_measured():
    """Means, paired differences, counts and stop signs are those of the races."""
    said = [{"stop": False, "fall": 0.1, "loss": 1.0}, {"stop": True, "fall": 0.001, "loss": 0.5}]
    ends = {"random": (0.5, 0.7), "uncertainty": (0.4, 0.6), "suggest": (0.3, 0.6)}
    races = [
        {
            "set": "ring",
            "strategy": name,
            "seed": seed,
            "losses": [1.0, 0.5, loss],
            "said": said if name == "suggest" else [{}, {}],
        }
        for name, losses in ends.items()
        for seed, loss in enumerate(losses)
    ]
    shown = table(races, ["ring", "sonar"])
    assert "| ring | 2     | 1.000    |" in shown
    assert "0.450 (-0.050 ± 0.050)" in shown
    assert "sonar" not in shown
    assert "on 1 of 1 sets, and lower than that of random rows on 1" in counts(
        races, ["ring"], "suggest"
    )
    assert "| yes       | 2     | 0.2 %         | 10.0 %             |" in signs(races)
