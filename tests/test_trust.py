"""The benchmark of trust: its sets load, its scores are right and its tables can be read."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

# The benchmarks are not part of the source distribution.
pytest.importorskip("benchmarks.trust")
from benchmarks.trust import coins, cost, forecasts, honesty, predictions, refits
from benchmarks.trust.models import auto
from benchmarks.trust.scores import left_out, on_rows
from benchmarks.trust.sets import SETS


@pytest.mark.parametrize("name", SETS)
def test_set_loads(name):
    """A split is finite, has training rows of every class and fresh rows, and repeats by seed."""
    some = SETS[name]
    if some.extra:
        pytest.importorskip(some.extra)
    split, again = some.split(0), some.split(0)
    assert split.X.shape[0] == len(split.y) == some.train
    assert np.isfinite(np.r_[split.X, split.X_fresh]).all()
    assert len(split.y_fresh) >= 75
    assert all(np.array_equal(a, b) for a, b in zip(split, again, strict=True))
    if some.kind == "classes":
        assert set(split.y_fresh) <= set(split.y) == set(range(max(split.y) + 1))


def test_there_are_enough_sets():
    """At least ten sets of classes and five of targets."""
    kinds = [some.kind for some in SETS.values()]
    assert kinds.count("classes") >= 10
    assert kinds.count("target") >= 5


def test_scores():
    """Log losses agree with scikit-learn's, and leave-one-out has one score for each row."""
    split = SETS["ring"].split(0, 40)
    model = auto("classes").fit(split.X, split.y)
    found = on_rows("classes", model, split.X_fresh, split.y_fresh)
    theirs = log_loss(split.y_fresh, model.predict_proba(split.X_fresh))
    # Both add the same logarithms, in another order.
    assert found.log_loss.mean() == pytest.approx(theirs, rel=1e-12)
    assert found.error.mean() == pytest.approx(1.0 - model.score(split.X_fresh, split.y_fresh))
    assert len(left_out("classes", model, split.y).error) == 40


def _fit_rows():
    losses = {"auto": 0.5, "isotropic": 0.4, "relevances": 0.6}
    about = {"set": "Pima", "kind": "classes", "n": 200}
    for split in range(2):
        for who, loss in losses.items():
            scores = {"error": 0.2, "log_loss": loss + 0.01 * split}
            reported = {"error": 0.2, "log_loss": loss - 0.1}
            row = {"split": split, "model": who, "fresh": scores, "reported": reported}
            yield {**about, **row}
    yield {**about, "split": 0, "model": "SVC", "failed": "ValueError: no"}


def test_tables_show_losses_and_failures():
    """A loss beyond the slack, a failed fit and a dishonest report are named."""
    rows = list(_fit_rows())
    page = predictions.page(rows)
    assert "on 0 of 1 sets" in page
    assert "Pima (+0.100)" in page
    assert "SVC on Pima, split 0" in page
    assert "**0.405 ± 0.005**" in page
    assert "**-0.105 ± 0.005**" in honesty.page(rows)


def test_other_pages():
    """Hits, misses and ratios are counted."""
    coin = {"set": "coins", "model": "auto", "error": 0.5, "log_loss": 0.69, "no_help": True}
    low, high = coins.wilson(0.5, 100)
    assert "1 of 1" in coins.page([{**coin, "low": low, "high": high}])
    cell = {"set": "Pima", "size": 50, "refits": 40, "truth": 0.2, "se": 0.001}
    cells = [
        {**cell, "measure": "error", "curve": 0.3},
        {**cell, "measure": "log_loss", "curve": 0.2},
    ]
    assert "refits: 1 of 2, 50 %" in refits.page(cells)
    row = {"set": "Pima", "from": 100, "part": 0, "truth": 0.2, "se": 0.01, "value": 0.25}
    both = [{**row, "measure": m, "low": 0.21, "high": 0.3} for m in ("error", "log_loss")]
    assert "error 0 %, log loss 0 %" in forecasts.page(both)
    times = {"auto": 3.0, "relevances": 1.0}
    shown = cost.page([{"set": "Pima", "model": w, "seconds": s} for w, s in times.items()])
    assert "3.0 x" in shown
