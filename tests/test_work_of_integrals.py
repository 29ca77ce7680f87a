"""What integrals cost, counted: no change of the code may make them dearer."""

import pytest
from frozen import load
from frozen.integrals import JOBS, work

FROZEN = load("integrals")
SLACK = 1.01
"""A panel more or less, where rounding decides."""


def test_nothing_is_left_out():
    """Every job has its frozen counts."""
    assert JOBS.keys() == FROZEN.keys()


@pytest.mark.parametrize("job", JOBS)
def test_integrals_are_not_dearer(job):
    """Panels, calls and questions to the likelihood are no more than they were."""
    found = work(job)
    assert found.keys() == FROZEN[job].keys()
    assert all(0 < found[name] <= SLACK * count for name, count in FROZEN[job].items()), found
