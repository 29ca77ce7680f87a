"""Learning from a stream: one pass, a budget of basis points, constant memory."""

from cavity.online.state import Covariance, Options, State, empty_state, features, predict
from cavity.online.stream import Learned, learn
from cavity.online.sweeps import Sweeps, sweep
from cavity.online.updates import recondition

__all__ = [
    "Covariance",
    "Learned",
    "Options",
    "State",
    "Sweeps",
    "empty_state",
    "features",
    "learn",
    "predict",
    "recondition",
    "sweep",
]
