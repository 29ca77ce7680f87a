"""Learning from a stream: one pass, a budget of basis points, constant memory."""

from cavity.online.posterior import OnlinePosterior, Options, predict
from cavity.online.stream import learn, repeat
from cavity.online.table import sweep
from cavity.online.updates import recondition

__all__ = ["OnlinePosterior", "Options", "learn", "predict", "recondition", "repeat", "sweep"]
