"""A module of version 0.1, which its pickles ask for."""

from cavity.former import refusing

__getattr__ = refusing(__name__)
