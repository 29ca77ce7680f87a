"""What the page on reliability is made of: long streams, counts and a page."""

import json

import numpy as np
import pytest
from benchmarks.mutants import page as of_mutants
from farm import coverage, streams
from farm.page import page
from farm.record import Record, summary

from cavity.online.block import Block


@pytest.mark.parametrize("name", streams.STREAMS)
def test_streams_do_not_drift(name):
    """After as many updates as a test has time for, the posterior is the exact one."""
    found = streams.drift(name, 64_000)
    # The page has ten million: errors grow with the square root of the number at most.
    assert max(found["mean"], found["deviation"]) < 1e-8
    assert min(found["mean"], found["deviation"]) > 0.0


def test_a_stream_that_drifts_would_be_seen(monkeypatch):
    """The check is worth something: rows that count a little too much are found out."""
    learn = streams._Exact.learn
    more = lambda self, places, y: learn(self, places, 1.0001 * y)  # noqa: E731
    monkeypatch.setattr(streams._Exact, "learn", more)
    assert streams.drift("numbers", 64_000)["mean"] > 1e-6


@pytest.mark.parametrize("part", ["mean", "cov"])
def test_a_stream_of_labels_that_drifts_would_be_seen(monkeypatch, part):
    """A hundred-millionth with every block, in means or covariances, is found out."""
    learn = Block.learn

    def drifting(self, posterior, count):
        found = learn(self, posterior, count)
        return found._replace(**{part: getattr(found, part) * (1.0 + 1e-8)})

    monkeypatch.setattr(Block, "learn", drifting)
    found = streams.drift("labels", 64_000)
    assert found["mean" if part == "mean" else "deviation"] > 1e-6


def test_the_page_has_what_was_measured(tmp_path):
    """Sections of what there is, with the numbers of the results."""
    counts = {"fits": 8, "converged": 6, "warned": 1, "silent": 1, "peer fits": 3, "peer errors": 2}
    record = Record(0, "classes", 0.5, counts, {}, [])
    for name in ("problems", "again"):
        (tmp_path / f"{name}.json").write_text(json.dumps(summary([record])))
    stream = {"updates": 10, "mean": 2e-9, "deviation": 3e-10, "seconds": 1.0}
    (tmp_path / "streams.json").write_text(json.dumps({"numbers": stream}))
    (tmp_path / "coverage.json").write_text(json.dumps({"lines": 98.04, "branches": 94.0}))
    faults = of_mutants.counts({"0": {"a": {"noticed": True}, "b": {"noticed": False}}})
    (tmp_path / "mutants.json").write_text(json.dumps(faults))
    text = page(tmp_path)
    assert "98.0 % of the lines and 94.0 % of the branches" in text
    assert "| 0 | 2 | 1 | 50.0% |" in text
    assert "| classes | 1 | 8 | 6 | 1 | 1 | 0 | 0 | 0 |" in text
    assert text.count("87.500 % converged or warned") == 2
    assert "1 of these problems, from the first on" in text
    assert "| raised an error | 2 |" in text
    assert "| numbers | 10 | 2.0e-09 | 3.0e-10 | 1 |" in text
    assert "Strange input" not in text


def test_shares_of_coverage():
    """Lines and branches are counted apart."""
    totals = {"covered_lines": 97, "num_statements": 100, "covered_branches": 9, "num_branches": 10}
    assert coverage.shares(totals) == pytest.approx({"lines": 97.0, "branches": 90.0})
    assert np.all(np.array(list(coverage.LEAST.values())) > 90.0)
