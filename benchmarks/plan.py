"""How large and how often: the whole benchmark, and one that ends in two minutes."""

from typing import NamedTuple

__all__ = ["FULL", "QUICK", "Plan"]


class Plan(NamedTuple):
    """Sizes of the data, repetitions, and limits in seconds."""

    repeats: int
    tries: int
    """Of a measurement that others on the machine disturb."""
    quiet: float
    """The most seconds to wait for others before a measurement."""
    points: tuple[str, ...]
    """Hyperparameters at which an evidence is evaluated; the worse one is judged."""
    n_floor: int
    """For the evidence against dpotrf(n)."""
    n_peers: int
    """For the evidence against the peers."""
    fitted: tuple[str, ...]
    """Data on which whole models are fitted."""
    n_large: int
    """For peak memory and naive mean field."""
    deadline: float
    """After which a peer that can be stopped stops tuning."""
    timeout: float
    """After which any fresh process is given up."""
    sizes: tuple[int, ...]
    """For the cost against n."""
    patience: float
    """A peer is not asked for a size that would take longer than this."""


FULL = Plan(
    repeats=3,
    tries=2,
    quiet=30.0,
    points=("start", "tuned"),
    n_floor=2000,
    n_peers=1000,
    fitted=("pima", "synthetic-1000-10"),
    n_large=4000,
    deadline=240.0,
    timeout=900.0,
    sizes=(500, 1000, 2000, 4000, 8000),
    patience=30.0,
)
QUICK = Plan(
    repeats=1,
    tries=1,
    quiet=2.0,
    points=("start",),
    n_floor=500,
    n_peers=250,
    fitted=("pima",),
    n_large=1000,
    deadline=10.0,
    timeout=60.0,
    sizes=(250, 500),
    patience=3.0,
)
