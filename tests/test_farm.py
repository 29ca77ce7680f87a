"""Hostile problems: as many converge as did, and none ends in NaN."""

import pytest
from frozen import farm, load

FROZEN = load("farm")
QUICK = 10
"""One in so many problems is solved in the fast test."""


def judge(name, problems):
    outcomes = farm.outcomes(name, problems)
    assert all(farm.is_number(outcome) for outcome in outcomes)
    failed = sum(not outcome.converged for outcome in outcomes)
    known = sum(k in FROZEN[name]["failed"] for k in problems)
    assert failed <= known


@pytest.mark.parametrize("name", farm.SIZES)
def test_part_of_the_farm(name):
    """A part of the problems, those that were hard included, converges as it did."""
    hard = FROZEN[name]["failed"] + FROZEN[name]["fell back"]
    judge(name, sorted({*range(0, farm.SIZES[name], QUICK), *hard}))


@pytest.mark.slow
@pytest.mark.parametrize("name", farm.SIZES)
def test_whole_farm(name):
    """All problems together converge as often as they did."""
    judge(name, range(farm.SIZES[name]))
