"""How far the automatic model can be trusted: predictions, reported losses, curves and cost."""
