"""Model files come back as they were, and nothing else comes in."""

import io
import json
import os
import pickle
import stat
import zipfile

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as k

from cavity import storage
from cavity.likelihoods import Gaussian, Logit, Probit
from cavity.storage import StorageError
from cavity.storage.codecs import (
    kernel_from_json,
    kernel_to_json,
    labels_from_json,
    labels_to_json,
    likelihood_from_json,
    likelihood_to_json,
)

HEADER = {"text": "äöü", "number": 0.1, "list": [1, None, True], "deep": {"a": [1.5]}}
ARRAYS = {
    "floats": np.linspace(0.0, 1.0, 7).reshape(1, 7) / 3.0,
    "ints": np.arange(6).reshape(2, 3),
    "flags": np.array([True, False]),
    "words": np.array(["a", "longer"]),
    "none": np.empty((0, 4)),
    "scalar": np.array(2.5),
    "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}

KERNELS = [
    None,
    "precomputed",
    k.RBF([1.0, 2.0 / 3.0], (1e-3, 1e3)),
    2.0 * k.RBF(1.0, "fixed") + k.WhiteKernel(0.3, (1e-9, 10.0)),
    k.Matern(np.array([0.1, 7.0]), nu=2.5),
    k.RationalQuadratic(1.5, 0.7, alpha_bounds="fixed"),
    k.ExpSineSquared(1.0, 3.0) * k.DotProduct(0.5),
    k.Exponentiation(k.DotProduct(1.0), 2.0),
    k.PairwiseKernel(0.5, metric="laplacian"),
    k.PairwiseKernel(0.5, metric="poly", pairwise_kernels_kwargs={"degree": 2}),
    k.CompoundKernel([k.RBF(1.0), k.RBF(2.0)]),
    k.ConstantKernel(3.0, np.array([[1.0, 5.0]])),
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model"
    storage.write(path, "test", HEADER, ARRAYS)
    return path


def test_what_is_written_comes_back(path):
    """Header and arrays return with every bit, shape and type."""
    header, arrays = storage.read(path, "test")
    assert header == HEADER
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert np.array_equal(arrays[name], array)
        assert arrays[name].flags.c_contiguous
        assert arrays[name].flags.writeable


def test_numpy_reads_the_arrays_as_well(path):
    """A file is a plain npz but for its header."""
    with np.load(path, allow_pickle=False) as found:
        assert np.array_equal(found["floats"], ARRAYS["floats"])


def test_the_same_contents_are_the_same_bytes(path, tmp_path):
    """No time stamps: equal models are equal files."""
    storage.write(tmp_path / "twin", "test", HEADER, ARRAYS)
    assert (tmp_path / "twin").read_bytes() == path.read_bytes()


def refused(path, kind="test"):
    with pytest.raises(StorageError) as caught:
        storage.read(path, kind)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert not RAN
    return message


def test_another_kind_or_version_is_refused(path, monkeypatch):
    """The message says what the file is and what was expected."""
    assert "expected 'other'" in refused(path, "other")
    monkeypatch.setattr("cavity.storage.format._VERSION", 2)
    assert "version" in refused(path)


def test_a_missing_file_is_the_systems_own_error(tmp_path):
    """It is no damage: the usual exception names it."""
    with pytest.raises(FileNotFoundError):
        storage.read(tmp_path / "nothing", "test")


def test_damage_anywhere_is_found(path):
    """A file cut short anywhere is refused; one with a flipped bit is refused or unharmed."""
    whole = path.read_bytes()
    for end in range(0, len(whole), 37):
        path.write_bytes(whole[:end])
        refused(path)
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(whole), size=300):
        changed = bytearray(whole)
        changed[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(changed))
        try:
            header, arrays = storage.read(path, "test")
        except StorageError:
            continue
        # Flags and dates of a zip carry nothing that is read.
        assert header == HEADER
        assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


RAN = []


def run():
    RAN.append("a pickle was loaded")


class Bomb:
    def __reduce__(self):
        return run, ()


def rewritten(path, change, compression=zipfile.ZIP_STORED):
    """Rewrite the file's members after a change to them."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    change(members)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def as_npy(array, allow_pickle=False):
    bare = io.BytesIO()
    np.lib.format.write_array(bare, array, allow_pickle=allow_pickle)
    return bare.getvalue()


def header_with(members, **changes):
    whole = json.loads(members["header.json"])
    whole.update(changes)
    members["header.json"] = json.dumps(whole).encode()


def shape_bomb(members):
    """Let an array claim a million million numbers."""
    data = members["floats.npy"]
    wide = b"(1, 7000000000000), }"
    members["floats.npy"] = data.replace(b"(1, 7), }".ljust(len(wide)), wide)
    assert members["floats.npy"] != data
    whole = json.loads(members["header.json"])
    whole["arrays"]["floats"][1] = [1, 7000000000000]
    members["header.json"] = json.dumps(whole).encode()


MALICE = {
    "pickle in the place of an array": lambda m: m.update({"floats.npy": pickle.dumps(Bomb())}),
    "array of objects": lambda m: m.update(
        {"floats.npy": as_npy(np.array([Bomb()], dtype=object), allow_pickle=True)}
    ),
    "another member": lambda m: m.update({"more.npy": as_npy(np.ones(3))}),
    "a member that leads outside": lambda m: m.update({"../evil.npy": as_npy(np.ones(3))}),
    "a missing member": lambda m: m.pop("ints.npy"),
    "no header": lambda m: m.pop("header.json"),
    "header of another program": lambda m: header_with(m, format="other"),
    "header that is no table": lambda m: header_with(m, header=[1, 2]),
    "header nested without end": lambda m: m.update({"header.json": b"[" * 100_000}),
    "header that is not text": lambda m: m.update({"header.json": b"\xff\xfe\x00"}),
    "another shape": lambda m: m.update({"floats.npy": as_npy(np.ones((7, 1)))}),
    "another type": lambda m: m.update({"floats.npy": as_npy(np.ones((1, 7), np.float32))}),
    "a huge shape": shape_bomb,
    "nothing": lambda m: m.clear(),
}


@pytest.mark.parametrize("kind", MALICE)
def test_malice_is_refused(path, kind):
    """Pickles, objects, foreign members and false claims are refused in one line."""
    rewritten(path, MALICE[kind])
    refused(path)


def test_a_zip_bomb_is_refused(path):
    """Compressed members are not even opened."""
    rewritten(path, lambda m: None, zipfile.ZIP_DEFLATED)
    assert "compressed" in refused(path)


@pytest.mark.parametrize("data", [b"", b"PK", pickle.dumps(Bomb()), b"a,b\n1,2\n", bytes(1000)])
def test_other_files_are_refused(path, data):
    """Whatever is not a zip is refused, pickles before all."""
    path.write_bytes(data)
    refused(path)


def test_what_cannot_be_stored_is_refused_before_anything_is_written(path):
    """Arrays of objects and headers beyond JSON leave the old file, and no other."""
    before = path.read_bytes()
    with pytest.raises(StorageError, match="has type object"):
        storage.write(path, "test", {}, {"x": np.array([object()])})
    with pytest.raises(StorageError, match="JSON"):
        storage.write(path, "test", {"x": object()}, {})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_while_writing_leaves_the_old_file(path, step, monkeypatch):
    """A full disk at any step leaves the old file whole and no scraps."""

    def fail(*args):
        raise OSError("no space left")

    before = path.read_bytes()
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="no space"):
        storage.write(path, "test", HEADER, {"x": np.ones(1000)})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_an_interrupted_replacement_leaves_the_old_file(path):
    """Whatever stops the writer half-way, the old file is whole and no temporary file stays."""

    def write():
        with storage.replacing(path) as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_link_is_written_through(path):
    """Writing to a symbolic link replaces the file that it names."""
    link = path.with_name("link")
    link.symlink_to(path)
    storage.write(link, "test", {"new": 1}, {})
    assert link.is_symlink()
    assert storage.read(path, "test")[0] == {"new": 1}


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_come_back(kernel):
    """Every kernel of scikit-learn survives JSON with its values and bounds."""
    found = kernel_from_json(json.loads(json.dumps(kernel_to_json(kernel))))
    if not isinstance(kernel, k.Kernel):
        assert found == kernel
        return
    assert type(found) is type(kernel)
    assert np.array_equal(found.theta, kernel.theta)
    assert np.array_equal(found.bounds, kernel.bounds)
    assert repr(found) == repr(kernel)
    assert [h.fixed for h in found.hyperparameters] == [h.fixed for h in kernel.hyperparameters]


class Own(k.RBF):
    pass


def test_a_kernel_of_ones_own_is_not_stored():
    """Only what can be built again by name is written."""
    with pytest.raises(StorageError, match="Own"):
        kernel_to_json(1.0 * Own())


RBF_JSON = kernel_to_json(k.RBF(1.0))


@pytest.mark.parametrize(
    "found",
    [
        "os.system",
        {"kernel": "system", "parameters": {}},
        {"kernel": "RBF", "parameters": {}},
        {"kernel": "RBF"},
        {"kernel": ["RBF"], "parameters": {}},
        {**RBF_JSON, "parameters": {**RBF_JSON["parameters"], "length_scale": "rm"}},
        {**RBF_JSON, "parameters": {**RBF_JSON["parameters"], "length_scale": {"eval": "1"}}},
        {**RBF_JSON, "parameters": {**RBF_JSON["parameters"], "length_scale": -1.0}},
        {**RBF_JSON, "parameters": {**RBF_JSON["parameters"], "more": 1.0}},
        [1, 2],
        7,
    ],
)
def test_kernels_that_make_no_sense_are_refused(found):
    """Unknown names, wrong parameters and values of the wrong kind are refused in one line."""
    with pytest.raises(StorageError) as caught:
        kernel_from_json(found)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", ["probit", Probit(0.3), Logit(), Gaussian(0.1)], ids=str)
def test_likelihoods_come_back(model):
    """By name or with their parameters."""
    found = likelihood_from_json(json.loads(json.dumps(likelihood_to_json(model))))
    assert repr(found) == repr(model)


def test_likelihoods_that_make_no_sense_are_refused():
    """Unknown names and parameters, and noise that differs from row to row."""
    for found in ({"likelihood": "system", "parameters": {}}, {"likelihood": "probit"}, 3):
        with pytest.raises(StorageError):
            likelihood_from_json(found)
    with pytest.raises(StorageError):
        likelihood_to_json(Gaussian(np.ones(3)))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["b", "a"]),
        np.array([3, -1]),
        np.array([True, False]),
        np.array([0.1, 2.0]),
        np.array(["x", 3, None], dtype=object),
    ],
    ids=lambda a: str(a.dtype),
)
def test_labels_come_back(labels):
    """Class labels of every usual type return with their type."""
    found = labels_from_json(json.loads(json.dumps(labels_to_json(labels))))
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "found",
    [
        {"dtype": "<U900000000", "values": ["a"]},
        {"dtype": "object", "values": [{"a": 1}]},
        {"dtype": "V8", "values": [1]},
        {"values": [1]},
        None,
    ],
)
def test_labels_that_make_no_sense_are_refused(found):
    """Types that would take the memory, and values that are no labels."""
    with pytest.raises(StorageError):
        labels_from_json(found)


def test_codes_of_classes_are_those_of_columns():
    """Whole numbers of 64 bits, with a sign or without, are codes; those beyond are none."""
    for values in ([-(2**63), 0], [0, 2**64 - 1]):
        storage.check_classes(values)
    for values in ([-(2**63) - 1, 0], [0, 2**64]):
        with pytest.raises(StorageError, match="larger than the numbers of a table"):
            storage.check_classes(values)


def test_messages_are_cut_to_their_length():
    """What is too long ends in dots, and is as long as allowed."""
    text = storage.short(ValueError("x" * 500), 50)
    assert (len(text), text[-4:]) == (50, "x...")
    assert storage.short(ValueError("y" * 50), 50) == "y" * 50


def test_a_header_may_be_as_large_as_allowed(path, monkeypatch):
    """The limit itself is allowed, and one byte more is not."""
    storage.write(path, "test", {"a": 1}, {})
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("header.json").file_size
    monkeypatch.setattr(storage.format, "_LARGEST_HEADER", size)
    assert storage.read(path, "test")[0]["a"] == 1
    monkeypatch.setattr(storage.format, "_LARGEST_HEADER", size - 1)
    with pytest.raises(StorageError, match="header is larger"):
        storage.read(path, "test")


@pytest.mark.skipif(os.name != "posix", reason="folders are written through on POSIX only")
def test_the_new_name_is_written_through(path, monkeypatch):
    """After the file itself its folder is synchronised: the name survives a loss of power."""
    synced, fsync = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda f: (synced.append(stat.S_ISDIR(os.fstat(f).st_mode)), fsync(f))
    )
    storage.write(path, "test", {"a": 1}, {})
    assert synced == [False, True]
