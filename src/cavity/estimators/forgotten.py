"""What stands for the training rows of a model from a file."""

from typing import Any


class ForgottenRows:
    """The training rows of a model from a file, which it does not have."""

    _WHY = (
        "This model comes from a file, which holds what predictions need and not the training "
        "rows: leave-one-out, learning curves and the like need the estimator that was fitted."
    )

    def reduce(self, *_: Any) -> Any:
        """Refuse to visit any rows."""
        raise ValueError(self._WHY)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # What copying and pickling look for.
            raise AttributeError(name)
        raise ValueError(self._WHY)

    def drop(self, state: str) -> None:
        """Forget nothing."""
