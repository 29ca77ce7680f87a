"""Rows in Parquet files, or in anything else that is an Arrow dataset."""

import glob
import importlib.util
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from cavity.rows.arrow import Columns, check_pieces, pieces, pyarrow, reading, scanned
from cavity.rows.base import ENGINES
from cavity.rows.batch import Batch, check_batch
from cavity.rows.streamed import BATCH_ROWS, KEPT, StreamedRows
from cavity.sites import Rows

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc"}


class ParquetRows(StreamedRows):
    """Rows of Parquet files that need not fit into memory.

    Every pass reads the files again, a batch at a time.

    Parameters
    ----------
    path : str, Path, list of them, or pyarrow.dataset.Dataset
        A file, a folder, a pattern such as ``"data/part-*.parquet"``, or several files. Files are
        sorted by name, those of a list are taken as they come. Arrow files (``.arrow``,
        ``.feather``) are read as well, and whatever else can be a dataset of pyarrow.
    target : str or list of str, optional
        The column to learn, of any type; a list of columns for several targets.
    features : list of str, optional
        The columns of X, all of them numbers or booleans. By default all that are neither target
        nor weight.
    weight : str, optional
        A column that says how often each row counts.
    batch_rows : int, default 4096
        Rows of a block. Memory grows with them: a block takes 8 bytes for each row and inducing
        point, several times.
    kept : float, default 1073741824
        Bytes of memory for what a prior makes of the rows between visits; if it is not enough for
        all rows, that is made again in every pass.
    progress : callable, optional
        Called as ``progress(rows_done, n_rows)`` after every block.

    Examples
    --------
    >>> from cavity.rows import ParquetRows
    >>> rows = ParquetRows("measurements/", "label")  # doctest: +SKIP
    >>> rows.n_rows, rows.feature_names  # doctest: +SKIP
    (1000000, ['height', 'width'])
    """

    def __init__(
        self,
        path: Any,
        target: str | Sequence[str] | None = None,
        *,
        features: Sequence[str] | None = None,
        weight: str | None = None,
        batch_rows: int = BATCH_ROWS,
        kept: float = KEPT,
        progress: Callable[[int, int | None], Any] | None = None,
    ) -> None:
        super().__init__(batch_rows, kept, progress)
        self._data = _opened(path)
        self._names = Columns.of(self._data.schema, target, features, weight)
        self._stamps = _stamps(self._data)
        self._checked = False

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of X."""
        return list(self._names.features)

    @property
    def n_features(self) -> int:
        """The number of columns of X."""
        return len(self._names.features)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        if self._n is None:
            self._same_files()
            with reading("The table"):
                self._known(self._data.count_rows())
        return super().n_rows

    def with_targets(self, y: Any) -> Self:
        """Return the same table with other targets.

        Parameters
        ----------
        y : str, or array of shape (n_rows,) or (n_rows, n_targets)
            The name of a column, which is no feature from then on; or the targets.
        """
        column = y if isinstance(y, str) else None
        names = self._names.with_target(self._data.schema, column)
        targets = np.asarray(y) if column is None else None
        other = self._with(targets, names.features == self._names.features)
        other._names = names
        # A column that has not been read has not been checked.
        other._checked = self._checked and column is None
        return other

    def _batches(self) -> Iterator[Batch]:
        self._same_files()
        if not self._checked:
            check_pieces(self._data, self._names)
        done, _ = 0, self.n_rows
        for piece in pieces(self._data):
            for batch in self._of_piece(piece):
                if not self._checked:
                    check_batch(batch, done, self._names.features)
                done += batch.n
                yield batch
        self._same_files()
        self._checked = True

    def _of_piece(self, piece: Any) -> Iterator[Batch]:
        try:
            yield from scanned(piece, self._names, self.batch_rows)
        except ValueError:
            # A file that cannot be read may be one that is being written.
            self._same_files()
            raise

    def _same_files(self) -> None:
        """Check that no file has changed since the table was opened."""
        for name, stamp in _stamps(self._data).items():
            if stamp != self._stamps[name]:
                what = "has changed" if stamp[0] is not None else "is gone"
                raise ValueError(
                    f"{name} {what} since this table was opened. What was found in it does not "
                    "belong to the same rows any more: open the table again and fit anew."
                )


def _opened(path: Any) -> Any:
    """Return a dataset."""
    dataset = pyarrow(".dataset")
    if isinstance(path, dataset.Dataset):
        return path
    if isinstance(path, str) and "://" in path:
        with reading(path):
            return dataset.dataset(path, format="parquet")
    files = _files(path)
    formats = {_FORMATS.get(file.suffix.lower(), "parquet") for file in files}
    if len(formats) > 1:
        raise ValueError("The table is in files of different formats: give them one by one.")
    # Folders called column=value say what is in a column.
    folder = Path(path) if not isinstance(path, list | tuple) and Path(path).is_dir() else None
    hive = {"partitioning": "hive", "partition_base_dir": str(folder)} if folder else {}
    with reading(str(files[0])):
        return dataset.dataset([str(file) for file in files], format=formats.pop(), **hive)


def _files(path: Any) -> list[Path]:
    """Return the files of a folder, a pattern or a list."""
    if isinstance(path, list | tuple):
        files = [file for each in path for file in _files(each)]
        if not files:
            raise ValueError("Expected files, but got an empty list.")
        return files
    if not isinstance(path, str | Path):
        raise TypeError(
            f"Expected a path, a list of paths or a pyarrow dataset, not {type(path).__name__}."
        )
    file = Path(path)
    if file.is_dir():
        found = [each for each in sorted(file.rglob("*")) if _is_data(each.relative_to(file))]
        if not found:
            raise FileNotFoundError(f"There is no file *.parquet, *.arrow or *.feather in {file}.")
        return found
    if file.exists():
        return [file]
    found = [Path(each) for each in sorted(glob.glob(str(path), recursive=True))]
    if not found:
        raise FileNotFoundError(f"There is no file {file}.")
    return found


def _is_data(file: Path) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in file.parts)
    return file.suffix.lower() in _FORMATS and not hidden


def _stamps(data: Any) -> dict[str, tuple[int | None, int | None]]:
    """Return size and time of the files, by which one can tell that they have changed."""
    names = getattr(data, "files", None)
    if not names:
        return {}
    with reading("The table"):
        return {
            info.path: (info.size, info.mtime_ns) for info in data.filesystem.get_file_info(names)
        }


def _of_rows(rows: Rows, size: int) -> ParquetRows:
    """Return rows in memory as rows in a temporary file, gone with them."""
    table = {f"x{j}": rows.X[:, j] for j in range(rows.X.shape[1])}
    with tempfile.NamedTemporaryFile(suffix=".parquet", delete=False) as file:
        pyarrow(".parquet").write_table(
            pyarrow("").table(table | {"y": rows.y, "weight": rows.weight}), file
        )
    found = ParquetRows(file.name, "y", weight="weight", batch_rows=size)
    weakref.finalize(found, Path(file.name).unlink)
    return found


if importlib.util.find_spec("pyarrow"):
    ENGINES["parquet"] = _of_rows
