"""What the work costs, counted in operations: no change of the code may make it dearer."""

from functools import cache

import numpy as np
import pytest
from frozen import load

# The benchmarks are not part of the source distribution.
operations = pytest.importorskip("benchmarks.operations")

FROZEN = load("operations")
SLACK = 1.05
"""An iteration more or less, where rounding decides."""
MATRICES = 5.0
"""The most n × n matrices that an evaluation with its gradient may hold at a time."""
MOST_MATRICES = {"10 classes memory 1000": 15.5}
"""Class by class: K, one for each class, their sum, the slope, and what the kernel needs."""
LESS = 0.99
"""What counts as cheaper."""
SLOW = {"EP fit 1000", "EP fit 1600", "Laplace fit 1000", "Laplace fit 1600"}
SLOW |= {"3 classes against the rest cold 500", "5 classes cold 500", "10 classes memory 1000"}
CHEAPER = ["EP fit 500", "Laplace fit 500"]
"""These have to stay below their frozen counts, which is more than not to exceed them."""
JOBS = [
    pytest.param(job, marks=pytest.mark.slow if job in SLOW else ())
    for job in FROZEN
    if job not in CHEAPER
]
TOGETHER = [job for job in FROZEN if job not in SLOW and "matrices" not in FROZEN[job]]


@cache
def counted():
    """What the quick jobs took that count operations, all in one process: most of the time of a
    process for each would be spent on imports."""
    return operations.run(*TOGETHER)


def taken(job):
    """What one job took."""
    return counted()[job] if job in TOGETHER else operations.run(job)[job]


def test_nothing_is_left_out():
    """Every job has its frozen count."""
    assert operations.JOBS.keys() == FROZEN.keys()


@pytest.mark.parametrize(
    ("name", "args", "options", "count"),
    [
        ("potrf", (np.eye(6),), {}, 72),
        ("trtrs", (np.eye(6), np.ones((6, 2))), {"trans": 1}, 72),
        ("trmv", (np.eye(6), np.ones(6)), {}, 36),
        ("trmm", (1.0, np.eye(6), np.ones((6, 2))), {}, 72),
        ("trmm", (1.0, np.eye(6), np.ones((2, 6))), {"side": 1}, 72),
        ("gemm", (1.0, np.ones((2, 3)), np.ones((3, 5))), {}, 60),
        ("gemm", (1.0, np.ones((3, 2)), np.ones((5, 3))), {"trans_a": 1, "trans_b": 1}, 60),
        ("syrk", (1.0, np.ones((2, 3))), {}, 12),
        ("syrk", (1.0, np.ones((2, 3))), {"trans": 1}, 18),
        ("gemv", (1.0, np.ones((2, 3)), np.ones(2)), {"trans": 1}, 12),
        ("pstrf", (np.eye(6),), {"lower": 1}, 72),
    ],
)
def test_count(name, args, options, count):
    """Operations follow from shapes, sides and transpositions."""
    counter = operations.Counter()
    counter.counted(name)(*args, **options)
    assert counter.total == pytest.approx(count)


@pytest.mark.parametrize("job", JOBS)
def test_work_is_not_dearer(job):
    """Evaluations, whole fits and curves take no more operations than they did."""
    found, limit = taken(job), FROZEN[job]
    if "matrices" in limit:
        assert 0.0 < found["matrices"] <= MOST_MATRICES.get(job, MATRICES)
    else:
        assert 0.0 < found["operations"] <= SLACK * limit["operations"]


@pytest.mark.parametrize("job", CHEAPER)
def test_fits_of_medium_size_are_cheaper(job):
    """Whole fits of 500 examples take fewer operations than they did."""
    assert 0.0 < taken(job)["operations"] < LESS * FROZEN[job]["operations"]


def test_three_classes_at_once_are_affordable():
    """They take at most four times what one against the rest takes with a shared kernel."""
    together, apart = FROZEN["3 classes cold 500"], FROZEN["3 classes against the rest cold 500"]
    assert taken("3 classes cold 500")["operations"] <= SLACK * together["operations"]
    assert together["operations"] < 4.0 * apart["operations"]
