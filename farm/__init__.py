"""A farm of random problems that are hostile but legal, and what must hold of every answer.

``python -m farm`` draws problems by number, checks properties rather than values, and shrinks and
keeps whatever fails in ``farm/cases``, where the tests replay it.
"""
