"""Kernels, likelihoods and labels as JSON, and back.

Reading builds only the kernels of scikit-learn and the kernels and likelihoods of this library,
by name, with numbers and strings as parameters. A file cannot name anything else.
"""

from collections.abc import Sequence
from dataclasses import fields
from inspect import signature
from itertools import compress
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import Kernel

from cavity.arrays import Array
from cavity.kernels import Linear, length_scales
from cavity.likelihoods import REGISTRY, Likelihood
from cavity.storage import StorageError, check_classes, short

_NAMES = (
    "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern "
    "PairwiseKernel Product RBF RationalQuadratic Sum WhiteKernel"
)
_KERNELS: dict[str, type] = {name: getattr(kernels, name) for name in _NAMES.split()}
_KERNELS["Linear"] = Linear
_LONGEST_LABEL = 2**12
"""Letters of a label: each row of a prediction has as many."""
_MOST_PARTS = 200
"""Parts of a kernel for one function: the time to read them grows with their square."""
_SCALARS = (bool, int, float, str, type(None))


def kernel_to_json(kernel: Any) -> Any:
    """Return a kernel (or None, or "precomputed") in a form that JSON can hold."""
    if kernel is None or isinstance(kernel, str):
        return kernel
    found = _kernel_to_json(kernel)
    _check_parts(found)
    return found


def _kernel_to_json(kernel: Any) -> dict[str, Any]:
    name = type(kernel).__name__
    if _KERNELS.get(name) is not type(kernel):
        raise StorageError(
            f"only the kernels of sklearn.gaussian_process.kernels and cavity.kernels.Linear can "
            f"be stored; got {name}"
        )
    keys = signature(type(kernel)).parameters
    return {"kernel": name, "parameters": {k: _value_to_json(getattr(kernel, k)) for k in keys}}


def kernel_from_json(found: Any) -> Any:
    """Return the kernel that `kernel_to_json` described."""
    if found is None or found == "precomputed":
        return found
    try:
        _check_parts(found)
        kernel = _kernel(found)
        _try_out(kernel)
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(f"a stored kernel is invalid: {short(error)}") from error
    return kernel


def _check_parts(found: dict[str, Any]) -> None:
    """Refuse a function's kernel of very many parts."""
    several = found.get("kernel") == "CompoundKernel" and found["parameters"]["kernels"]
    for one in several or [found]:
        # A list, and no recursion, which many parts would exhaust.
        left, count = [one], 0
        while left:
            value = left.pop()
            count += isinstance(value, dict) and "kernel" in value
            left += value.values() if isinstance(value, dict) else ()
            left += value if isinstance(value, list) else ()
        if count > _MOST_PARTS:
            raise StorageError(
                f"a kernel of {count:,} parts cannot be stored: use one of at most {_MOST_PARTS}"
            )


def _try_out(kernel: Kernel) -> None:
    """Fail here, not later during a prediction, if a parameter has the wrong type."""
    parts = kernel.kernels if isinstance(kernel, kernels.CompoundKernel) else [kernel]
    with np.errstate(all="ignore"):
        found = [part(np.zeros((1, _columns(part)))) for part in parts]
        found += [np.asarray(part.theta, dtype=float) for part in parts]
    if not all(np.all(np.isfinite(values)) for values in found):
        raise StorageError("a stored kernel is invalid: its values are not finite")
    np.asarray(kernel.bounds, dtype=float)


def _kernel(found: Any) -> Kernel:
    if not isinstance(found, dict) or set(found) != {"kernel", "parameters"}:
        raise StorageError(f"expected the description of a kernel, got {short(found)}")
    cls = _KERNELS.get(found["kernel"]) if isinstance(found["kernel"], str) else None
    if cls is None:
        raise StorageError(f"unknown kernel {short(found['kernel'])}")
    if set(found["parameters"]) != set(signature(cls).parameters):
        raise StorageError(f"the stored kernel {found['kernel']} has the wrong parameters")
    return cls(**{key: _value_from_json(value) for key, value in found["parameters"].items()})


def _columns(kernel: Kernel) -> int:
    """Return a number of inputs that the kernel accepts."""
    parameters = kernel.get_params()
    scales = compress(parameters.values(), length_scales(list(parameters)))
    return max((np.size(scale) for scale in scales), default=1)


def _value_to_json(value: Any) -> Any:
    if isinstance(value, Kernel):
        return _kernel_to_json(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, np.ndarray):
        return {"array": _value_to_json(value.tolist())}
    if isinstance(value, tuple):
        return {"tuple": [_value_to_json(item) for item in value]}
    if isinstance(value, list):
        return [_value_to_json(item) for item in value]
    if isinstance(value, dict):
        return {"dict": {str(key): _value_to_json(item) for key, item in value.items()}}
    raise StorageError(f"a kernel's parameter cannot be stored: {short(value)}")


def _value_from_json(found: Any) -> Any:
    if isinstance(found, _SCALARS):
        return found
    if isinstance(found, list):
        return [_value_from_json(item) for item in found]
    if "kernel" in found:
        return _kernel(found)
    [(tag, inner)] = found.items()
    if tag == "array":
        return np.asarray(inner, dtype=np.float64)
    if tag == "tuple":
        return tuple(_value_from_json(item) for item in inner)
    if tag == "dict":
        return {key: _value_from_json(item) for key, item in inner.items()}
    raise StorageError(f"unknown value {short(found)}")


def likelihood_to_json(likelihood: Any) -> Any:
    """Return a likelihood, a name or an object of this library, in a form that JSON can hold."""
    if isinstance(likelihood, str):
        return likelihood
    names = [name for name, cls in REGISTRY.items() if cls is type(likelihood)]
    own = type(likelihood).__module__.startswith("cavity.")
    values = {f.name: getattr(likelihood, f.name) for f in fields(likelihood)} if own else {}
    plain = all(isinstance(value, tuple) or np.ndim(value) == 0 for value in values.values())
    if not names or not own or not plain:
        raise StorageError(
            "only this library's own likelihoods, the same for all examples, can be stored; got "
            f"{short(likelihood)}"
        )
    return {
        "likelihood": names[0],
        "parameters": {k: _number_to_json(v) for k, v in values.items()},
    }


def likelihood_from_json(found: Any) -> Any:
    """Return the likelihood that `likelihood_to_json` described."""
    if isinstance(found, str):
        return found
    try:
        cls = REGISTRY[found["likelihood"]]
        given = {key: _number_from_json(value) for key, value in found["parameters"].items()}
        built: Likelihood = cls(**given)
        # Fails here, not later, if a parameter makes no sense.
        with np.errstate(all="ignore"):
            low, high = built.bounds.T
        if not np.all(low <= high):
            raise ValueError("limits that exclude each other")
    except (ArithmeticError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"a stored likelihood is invalid: {short(found)}") from error
    return built


def _number_to_json(value: Any) -> Any:
    """Return a parameter: a number, "fixed", None, or a tuple of numbers."""
    if value is None or isinstance(value, str):
        return value
    return [float(item) for item in value] if isinstance(value, tuple) else float(value)


def _number_from_json(found: Any) -> Any:
    if found is None or found == "fixed":
        return found
    return tuple(float(item) for item in found) if isinstance(found, list) else float(found)


def labels_to_json(labels: Array) -> Any:
    """Return class labels or feature names, of any type that JSON has, with their dtype."""
    values = labels.tolist()
    if not all(isinstance(value, _SCALARS) for value in values):
        raise StorageError(f"labels of type {labels.dtype} cannot be stored: {short(values)}")
    if _longest(values) > _LONGEST_LABEL:
        raise StorageError(f"labels of more than {_LONGEST_LABEL} letters cannot be stored")
    return {"dtype": "object" if labels.dtype == object else labels.dtype.str, "values": values}


def labels_from_json(found: Any) -> Array:
    """Return the labels that `labels_to_json` described."""
    try:
        values = found["values"]
        if not all(isinstance(value, _SCALARS) for value in values):
            raise TypeError("not plain values")
        dtype, longest = np.dtype(found["dtype"]), _longest(values)
        if dtype.kind not in "biufUO" or max(longest, dtype.itemsize / 4) > _LONGEST_LABEL:
            raise TypeError("not a type of labels")
        # As wide as the longest, whatever the file says.
        labels = np.array(values, f"U{max(longest, 1)}" if dtype.kind == "U" else dtype)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StorageError(f"stored labels are invalid: {short(found)}") from error
    return labels


def classes_from_json(found: Any) -> Array:
    """Return the sorted classes that `labels_to_json` described."""
    try:
        check_classes(found["values"])
    except (KeyError, TypeError) as error:
        raise StorageError(f"stored classes are invalid: {short(found)}") from error
    classes = labels_from_json(found)
    if not np.array_equal(np.unique(classes), classes):
        raise StorageError("its classes are not sorted")
    return classes


def _longest(values: Sequence[Any]) -> int:
    return max((len(value) for value in values if isinstance(value, str)), default=0)
