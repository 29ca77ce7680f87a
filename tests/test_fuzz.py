"""Strange files, tables, JSON and commands: an answer, or one refusal of one line."""

import pytest

pytest.importorskip("hypothesis", reason="strange things are drawn by Hypothesis")

from farm.doors import DOORS
from hypothesis import HealthCheck, given, settings


@pytest.mark.parametrize("name", DOORS)
def test_a_door(name):
    """Whatever comes is answered or refused."""
    door = DOORS[name]

    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(door.drawn())
    def check(drawn):
        door.check(drawn)

    check()
