"""A place for rows outside the package: files in a folder."""

import shutil
import tempfile
import weakref
from functools import reduce
from pathlib import Path

import numpy as np

from cavity.rows import ENGINES, added
from cavity.sites import Rows


class ToyFolder:
    """Rows in files, a block in each; what visits leave behind is kept in memory."""

    def __init__(self, rows, size):
        folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, folder)
        n = len(rows.y)
        self.places = [slice(i, min(i + size, n)) for i in range(0, n, size)]
        self.files = [folder / f"{place.start}.npz" for place in self.places]
        self.states = {}
        for file, place in zip(self.files, self.places, strict=True):
            np.savez(file, y=rows.y[place], weight=rows.weight[place], X=rows.X[place])

    def visits(self, state, start=None):
        kept = self.states.get(state) or self.states.get(start) or [None] * len(self.files)
        for file, place, own in zip(self.files, self.places, kept, strict=True):
            with np.load(file) as block:
                yield Rows(**block, place=place), own

    def reduce(self, visit, shared, state, start=None):
        found = [visit(rows, kept, shared) for rows, kept in self.visits(state, start)]
        self.states[state] = [kept for kept, _ in found]
        return reduce(added, [parts for _, parts in found])

    def collect(self, look, shared, state):
        return (look(rows, kept, shared) for rows, kept in self.visits(state))

    def drop(self, state):
        self.states.pop(state, None)


ENGINES["toy_folder"] = ToyFolder
