"""A module of version 0.1, which its pickles ask for."""

from cavity.former import gone

__getattr__ = gone(__name__)
