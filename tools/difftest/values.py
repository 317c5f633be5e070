# SPDX-License-Identifier: Apache-2.0

"""What goes into and comes out of a model: arrays (of strings too, dtype object), sequences and optionals.

Fed are arrays, Sequence and Maybe, which know their element type when they are empty. Results are
arrays, lists of arrays, and None for an optional that holds nothing.
"""
import dataclasses

import numpy as np
import onnx
from onnx import helper, numpy_helper

STRING = np.dtype(object)


@dataclasses.dataclass
class Sequence:
    dtype: np.dtype
    items: list


@dataclasses.dataclass
class Maybe:
    """An optional: `inner` says what it would hold, `is_there` whether it does."""
    inner: object
    is_there: bool

    @property
    def dtype(self):
        return self.inner.dtype


def list_arrays(value):
    if isinstance(value, Maybe):
        return list_arrays(value.inner) if value.is_there else []
    return list(value.items) if isinstance(value, Sequence) else [value]


def get_plain(value):
    """As both oracles take it: an array, a list, or None."""
    if isinstance(value, Maybe):
        return get_plain(value.inner) if value.is_there else None
    return list(value.items) if isinstance(value, Sequence) else value


def get_element_type(dtype):
    return onnx.TensorProto.STRING if dtype == STRING else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def make_type(value, shape=None):
    """The type of an input; `shape` for a tensor. What sequences hold is declared without one."""
    if isinstance(value, Maybe):
        return helper.make_optional_type_proto(make_type(value.inner, shape))
    if isinstance(value, Sequence):
        return helper.make_sequence_type_proto(
            helper.make_tensor_type_proto(get_element_type(value.dtype), None))
    return helper.make_tensor_type_proto(get_element_type(value.dtype), shape)


def clean(result):
    """An oracle's result in the form that this file says."""
    if result is None or isinstance(result, np.ndarray) and result.dtype.kind not in "US":
        return result
    if isinstance(result, (list, tuple)):
        return [clean(item) for item in result]
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind in "US" else array


def flatten(result):
    """The arrays inside of a result, by their places, with how many there are."""
    if result is None:
        return {" holds": np.array(0)}
    if not isinstance(result, list):
        return {"": result}
    arrays = {" length": np.array(len(result))}
    for i, item in enumerate(result):
        arrays.update({f"[{i}]{place}": array for place, array in flatten(item).items()})
    return arrays


def store(value, name):
    """The bytes of a test directory's file; None where that format has none."""
    if isinstance(value, Maybe):
        value = get_plain(value)
    elif isinstance(value, Sequence):
        value = list(value.items)
    if value is None:
        return None
    if isinstance(value, list):
        return numpy_helper.from_list(value, name).SerializeToString() if value else None
    return numpy_helper.from_array(value, name).SerializeToString()


def tell(value):
    """Text for a reader."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {list(value.shape)}: {value.flatten()[:24].tolist()}"
    arrays = [f"{a.dtype} {list(a.shape)} {a.flatten()[:8].tolist()}" for a in list_arrays(value)]
    return f"{type(value).__name__.lower()} of {value.dtype}: {'; '.join(arrays) or 'nothing'}"
