# SPDX-License-Identifier: Apache-2.0
"""Tensors: numpy arrays in and out, DLPack in and out, without copies where that can be."""
from __future__ import annotations

import ctypes
from struct import Struct
from typing import Any, Optional, Sequence, Union

import numpy

from . import _raw
from ._library import InvalidError, Owned, Owner, UnsupportedError, check, lib, new, text
from .device import Device, Stream, check_signs, open_device

__all__ = ["Tensor", "from_dlpack", "empty"]

RANK_MAX = _raw.RONDO_RANK_MAX
STRING, SEQUENCE, OPTIONAL = (_raw.RONDO_DTYPE_STRING, _raw.RONDO_DTYPE_SEQUENCE,
                              _raw.RONDO_DTYPE_OPTIONAL)

_NUMPY = {
    _raw.RONDO_DTYPE_F32: "float32", _raw.RONDO_DTYPE_F64: "float64", _raw.RONDO_DTYPE_F16: "float16",
    _raw.RONDO_DTYPE_I8: "int8", _raw.RONDO_DTYPE_I16: "int16", _raw.RONDO_DTYPE_I32: "int32",
    _raw.RONDO_DTYPE_I64: "int64", _raw.RONDO_DTYPE_U8: "uint8", _raw.RONDO_DTYPE_U16: "uint16",
    _raw.RONDO_DTYPE_U32: "uint32", _raw.RONDO_DTYPE_U64: "uint64", _raw.RONDO_DTYPE_BOOL: "bool",
    _raw.RONDO_DTYPE_C64: "complex64", _raw.RONDO_DTYPE_C128: "complex128",
}
# What numpy has with ml_dtypes alone, and what stands for it without: the bits, or the value.
_NARROW = {
    _raw.RONDO_DTYPE_BF16: ("bfloat16", "uint16"), _raw.RONDO_DTYPE_I4: ("int4", "int8"),
    _raw.RONDO_DTYPE_U4: ("uint4", "uint8"), _raw.RONDO_DTYPE_I2: ("int2", "int8"),
    _raw.RONDO_DTYPE_U2: ("uint2", "uint8"), _raw.RONDO_DTYPE_F4E2M1: ("float4_e2m1fn", "uint8"),
    _raw.RONDO_DTYPE_F8E4M3FN: ("float8_e4m3fn", "uint8"),
    _raw.RONDO_DTYPE_F8E4M3FNUZ: ("float8_e4m3fnuz", "uint8"),
    _raw.RONDO_DTYPE_F8E5M2: ("float8_e5m2", "uint8"),
    _raw.RONDO_DTYPE_F8E5M2FNUZ: ("float8_e5m2fnuz", "uint8"),
    _raw.RONDO_DTYPE_F8E8M0: ("float8_e8m0fnu", "uint8"),
}
_BY_NAME = {name: number for number, name in _NUMPY.items()}
# The library's own names, less those that numpy has for other types: "i4" is int32 there.
_BY_NAME.update({row[0].lower(): number for number, row in _raw.RONDO_DTYPE_TEXTS.items()
                 if row[0].lower() not in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")})
_BY_NAME.update({names[0]: number for number, names in _NARROW.items()})
_BY_NAME.update(fp32=_raw.RONDO_DTYPE_F32, fp64=_raw.RONDO_DTYPE_F64, fp16=_raw.RONDO_DTYPE_F16,
                half=_raw.RONDO_DTYPE_F16,
                float=_raw.RONDO_DTYPE_F32, double=_raw.RONDO_DTYPE_F64)
# By numpy's own numbers, the quick way for the plain types in this machine's byte order.
_BY_NUMPY = {numpy.dtype(name): number for number, name in _NUMPY.items()}
_TO_NUMPY = {number: numpy.dtype(name) for number, name in _NUMPY.items()}

# dtype, rank, the extents and the address of a rondo_tensor at once; by ctypes each field is a call.
_FIELDS = Struct(f"@i4xi4x{RANK_MAX}qP")
_as_bytes = ctypes.c_char.from_buffer
_UNUSED = [(0,) * (RANK_MAX - rank) for rank in range(RANK_MAX + 1)]


def find_dtype(dtype: Any) -> int:
    """RONDO_DTYPE_* of a numpy or torch dtype, or a name."""
    number = _BY_NAME.get(str(dtype).rpartition(".")[2])
    if number is None:
        try:
            number = _BY_NUMPY.get(numpy.dtype(dtype))
        except TypeError:
            number = None
    if number is None:
        raise InvalidError(f"{dtype!r} is no element type of Rondo's: "
                           + ", ".join(row[-1] for row in _raw.RONDO_DTYPE_TEXTS.values()))
    return number


def get_itemsize(number: int) -> int:
    return int(lib.rondo_dtype_get_bytes(number))


def get_numpy_dtype(number: int) -> Any:
    """Narrow types are those of ml_dtypes where it is installed and has them, otherwise their bits as
    whole numbers."""
    dtype = _TO_NUMPY.get(number)
    if dtype is None:
        name, bits = _NARROW[number]
        try:
            import ml_dtypes
            dtype = numpy.dtype(getattr(ml_dtypes, name))
        except (ImportError, AttributeError):
            dtype = numpy.dtype(bits)
    return dtype


def extend_sign(bits: Any, number: int) -> Any:
    """Signed numbers of 4 or 2 bits as whole bytes, which is how numpy's have them."""
    shift = {_raw.RONDO_DTYPE_I4: 4, _raw.RONDO_DTYPE_I2: 6}.get(number)
    return bits if shift is None else numpy.right_shift((bits << shift).view("int8"), shift)


# ---- Python to Rondo ----------------------------------------------------------------------------


def _too_many_axes(shape: Sequence[int], name: str) -> UnsupportedError:
    return UnsupportedError(f"{name}: {len(shape)} axes; there are at most {RANK_MAX}")


def _set_shape(tensor: Any, shape: Sequence[int], name: str) -> None:
    if len(shape) > RANK_MAX:
        raise _too_many_axes(shape, name)
    tensor.shape.rank = len(shape)
    for axis, extent in enumerate(shape):
        tensor.shape.extent[axis] = extent
        if tensor.shape.extent[axis] != extent:
            raise InvalidError(f"{name}: an extent of {extent}; they fit 63 bits")


def put_array(tensor: Any, array: Any, name: str) -> Any:
    """Describes a numpy array by a zeroed rondo_tensor; gives what must stay as long."""
    if array.dtype.kind in "OSUT":
        return _put_strings(tensor, array, name)
    number = _BY_NUMPY.get(array.dtype)
    if number is None:
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        number = _BY_NUMPY.get(array.dtype) or _BY_NAME.get(array.dtype.name)
    if number is None:
        raise UnsupportedError(f"{name}: Rondo has no element type like {array.dtype}")
    if not array.flags.c_contiguous:
        array = numpy.ascontiguousarray(array)
    shape = array.shape
    if len(shape) > RANK_MAX:
        raise _too_many_axes(shape, name)
    try:
        address = ctypes.addressof(_as_bytes(array))
    except (TypeError, ValueError):  # read-only, or empty
        address = array.__array_interface__["data"][0]
    _FIELDS.pack_into(tensor, 0, number, len(shape), *shape, *_UNUSED[len(shape)], address)
    return array


def _put_strings(tensor: Any, array: Any, name: str) -> Any:
    # As they are read: what is no UTF-8 comes back as it was.
    flat = [item if isinstance(item, bytes) else str(item).encode(errors="surrogateescape")
            for item in array.ravel().tolist()]
    strings = (_raw.rondo_string * len(flat))()
    for entry, item in zip(strings, flat):
        entry.data, entry.size = item, len(item)
    shape = _raw.rondo_tensor()
    _set_shape(shape, array.shape, name)
    check(lib.rondo_tensor_init_strings(ctypes.byref(shape.shape), strings, ctypes.byref(tensor)))
    return _Struct(tensor)


class _Struct:
    """Gives a rondo_tensor up when it goes."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __del__(self) -> None:
        lib.rondo_tensor_deinit(ctypes.byref(self.tensor))


def put_value(tensor: Any, value: Any, name: str, dtype: int = 0, stream: Optional[Stream] = None,
              items: Sequence[int] = ()) -> Any:
    """Describes any value that an input may have: an array, something with DLPack, a number, a list
    where the input is a sequence, None where it is an optional. Gives what must stay as long."""
    if dtype == OPTIONAL:
        inner = _raw.rondo_tensor()
        kept = None
        if value is not None:
            kept = put_value(inner, value, name, items[0] if items else 0, stream, items[1:])
        check(lib.rondo_tensor_init_optional(
            ctypes.byref(inner) if value is not None else None, ctypes.byref(tensor)))
        return [_Struct(tensor), kept]
    kind = type(value)
    if kind is numpy.ndarray:
        return put_array(tensor, value, name)
    if kind is Tensor:
        ctypes.memmove(ctypes.byref(tensor), ctypes.byref(value._struct()), ctypes.sizeof(tensor))
        return value
    if dtype == SEQUENCE and isinstance(value, (list, tuple)):
        return _put_items(tensor, value, name, items)
    if hasattr(value, "__dlpack__") and not isinstance(value, (numpy.ndarray, numpy.generic)):
        given = from_dlpack(value, stream)
        return put_value(tensor, given, name)
    if value is None:
        raise InvalidError(f'feed "{name}" is None; only optional inputs may be')
    if isinstance(value, (int, float, bool, str, bytes, list, tuple)):
        return put_array(tensor, _make_array(value, dtype, name), name)
    return put_array(tensor, numpy.asarray(value), name)


def _make_array(value: Any, number: int, name: str) -> Any:
    """An array of Python's numbers, of the input's type where it holds them: numpy would cut 1.7 to 1,
    and read "1" as 1. Of texts numpy's own types lose zeros at the end, and bytes beside texts."""
    if number == STRING:
        texts = numpy.asarray(value, dtype=object)
        if all(isinstance(item, (str, bytes)) for item in texts.reshape(-1)):
            return texts
    array, wanted = numpy.asarray(value), _TO_NUMPY.get(number)
    if wanted is None or array.dtype == wanted:
        return array
    if wanted.kind in "iu" and array.dtype.kind == "f":  # as numpy makes of 1 beside 2**63
        whole = numpy.asarray(value, dtype=object)
        if all(isinstance(item, (int, numpy.integer)) for item in whole.reshape(-1)):
            array = whole
    kinds = {"b": "b", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}[wanted.kind]
    if not array.size or array.dtype.kind in kinds + "O":
        made = numpy.asarray(value, dtype=wanted)
        if wanted.kind in "iu" and not (made == array).all():  # arrays in a list would be cut
            raise InvalidError(f"{name}: {wanted} does not hold all of these whole numbers")
        return made
    if wanted.kind == "b" and array.dtype.kind in "iu" and ((array == 0) | (array == 1)).all():
        return array.astype(wanted)
    return array  # the library names both types


def _put_items(tensor: Any, values: Sequence[Any], name: str, items: Sequence[int]) -> Any:
    structs = (_raw.rondo_tensor * max(1, len(values)))()
    kept = [put_value(struct, value, name, items[0] if items else 0) for struct, value in
            zip(structs, values)]
    check(lib.rondo_tensor_init_sequence(structs, len(values), ctypes.byref(tensor)))
    return [_Struct(tensor), kept, structs]


# ---- Rondo to Python ----------------------------------------------------------------------------


def take_value(tensor: Any) -> Any:
    """The value of a tensor in host memory, which moves into it: an array that owns the bytes, an array
    of strings, a list for a sequence, None or its value for an optional. The struct is not used again."""
    fields = _FIELDS.unpack_from(tensor)
    typestr = _TYPESTR.get(fields[0])
    if typestr is not None and fields[-1]:
        return numpy.asarray(_Held(tensor, typestr, fields[2:2 + fields[1]], fields[-1]))
    if fields[0] in (STRING, SEQUENCE, OPTIONAL):
        try:
            return _read_objects(tensor)
        finally:
            lib.rondo_tensor_deinit(ctypes.byref(tensor))
    return Tensor._adopt(tensor).numpy()


def _read_objects(tensor: Any) -> Any:
    shape = tuple(tensor.shape.extent[:tensor.shape.rank])
    if tensor.dtype == STRING:
        count = lib.rondo_shape_get_count(ctypes.byref(tensor.shape))
        result = numpy.empty(count, dtype=object)
        strings = ctypes.cast(tensor.data, ctypes.POINTER(_RawString))
        for index in range(count):
            entry = strings[index]
            piece = ctypes.string_at(entry.data, entry.size) if entry.size else b""
            result[index] = piece.decode("utf-8", "surrogateescape")
        return result.reshape(shape)
    values = []
    for index in range(shape[0] if shape else 0):
        item = lib.rondo_tensor_get_item(ctypes.byref(tensor), index)
        share = _raw.rondo_tensor()
        lib.rondo_tensor_share(item, ctypes.byref(share))
        values.append(take_value(share))
    if tensor.dtype == OPTIONAL:
        return values[0] if values else None
    return values


_TYPESTR = {number: dtype.str for number, dtype in _TO_NUMPY.items()}


class _Held:
    """What a numpy array of an output refers to: the tensor's struct, whose share it has."""

    __slots__ = ("struct", "__array_interface__")

    def __init__(self, struct: Any, typestr: str, shape: tuple[int, ...], address: int) -> None:
        self.struct = struct
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": typestr,
                                    "data": (address, False)}

    def __del__(self) -> None:
        lib.bare_rondo_tensor_deinit(ctypes.byref(self.struct))


class _RawString(ctypes.Structure):
    """rondo_string with its address as a number: zeros inside are possible."""
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _View:
    """What a numpy array of a tensor refers to."""

    __slots__ = ("owner", "__array_interface__")

    def __init__(self, owner: Owner, interface: dict[str, Any]) -> None:
        self.owner = owner.retain()
        self.__array_interface__ = interface

    def __del__(self) -> None:
        self.owner.release()


class Tensor(Owned):
    """A dense tensor in host memory or on a device. It speaks DLPack and numpy's protocol, so

        torch.from_dlpack(tensor), cupy.from_dlpack(tensor), numpy.asarray(tensor)

    share its bytes, and keep them.
    """

    __slots__ = ("_raw_struct", "is_read_only", "_stream", "_device_type")
    _raw_struct: Any
    is_read_only: bool
    _stream: Optional[Stream]
    _device_type: int

    @classmethod
    def _adopt(cls, struct: Any, is_read_only: bool = False, stream: Optional[Stream] = None,
               device_type: int = 0) -> "Tensor":
        """Takes one share of the bytes."""
        self = cls.__new__(cls)
        mine = _raw.rondo_tensor()
        ctypes.memmove(ctypes.byref(mine), ctypes.byref(struct), ctypes.sizeof(mine))
        ctypes.memset(ctypes.byref(struct), 0, ctypes.sizeof(struct))
        self._raw_struct, self.is_read_only = mine, is_read_only
        self._stream, self._device_type = stream, device_type

        def deinit(_address: int, struct: Any = mine) -> None:
            lib.rondo_tensor_deinit(ctypes.byref(struct))

        self._own(Owner(ctypes.addressof(mine), deinit))
        return self

    def _struct(self) -> Any:
        self._need()
        return self._raw_struct

    def _need_writable(self) -> None:
        if self.is_read_only:
            raise InvalidError("this tensor is read-only, as the array is that it was made of")

    @property
    def shape(self) -> tuple[int, ...]:
        struct = self._struct()
        return tuple(struct.shape.extent[:struct.shape.rank])

    @property
    def ndim(self) -> int:
        return int(self._struct().shape.rank)

    @property
    def dtype(self) -> Any:
        """As numpy has it."""
        return get_numpy_dtype(self._struct().dtype)

    @property
    def nbytes(self) -> int:
        return int(lib.rondo_tensor_get_bytes(ctypes.byref(self._struct())))

    @property
    def address(self) -> int:
        return self._struct().data or 0

    @property
    def is_on_host(self) -> bool:
        return bool(lib.rondo_tensor_is_on_host(ctypes.byref(self._struct())))

    @property
    def device(self) -> str:
        struct = self._struct()
        return text(lib.rondo_device_get_name(struct.device)) if struct.device else "host"

    def __rondo_memory__(self, written: bool = False) -> tuple[Optional[int], Optional[int], bool]:
        if written:
            self._need_writable()
        return self.address, self.nbytes, self.is_on_host

    def copy_to(self, other: "Tensor", stream: Stream) -> None:
        """Copies the elements to a tensor of the same type and shape, in stream order."""
        other._need_writable()
        stream._keep.add(self, other)
        check(lib.rondo_tensor_copy(stream._h, ctypes.byref(self._struct()),
                                    ctypes.byref(other._struct())))

    def numpy(self) -> Any:
        """The same bytes as an array; of a GPU a copy, for which the stream is waited for."""
        struct = self._struct()
        dtype = get_numpy_dtype(struct.dtype)
        if not self.is_on_host:
            return self._copy_to_host(dtype)
        view = _View(self._need(), {"version": 3, "shape": self.shape, "typestr": "|u1",
                                    "data": (struct.data or 0, self.is_read_only)})
        if not self.nbytes:
            return numpy.empty(self.shape, dtype)
        view.__array_interface__["shape"] = (self.nbytes,)
        flat = extend_sign(numpy.asarray(view), struct.dtype)
        return (flat if dtype == flat.dtype else flat.view(dtype)).reshape(self.shape)

    def _copy_to_host(self, dtype: Any) -> Any:
        result = numpy.empty(self.shape, dtype)
        stream = self._stream if self._stream and not self._stream.is_closed else Stream(self.device)
        stream.copy(result, self, self.nbytes, "device_to_host")
        stream.synchronize()
        return result

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.numpy()
        if copy is False and (not self.is_on_host or (dtype is not None and array.dtype != dtype)):
            raise ValueError("an array of this tensor without a copy: it would be one")
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.is_on_host:
            raise AttributeError("this tensor is in host memory")
        stream = self._stream.native if self._stream and self._stream.native else None
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "strides": None,
                "data": (self.address, self.is_read_only), "stream": stream}

    # ---- DLPack -------------------------------------------------------------------------------

    def __dlpack_device__(self) -> tuple[int, int]:
        struct = self._struct()
        if not struct.device:
            return self._device_type or _raw.RONDO_DLPACK_CPU, 0
        device = _raw.rondo_dlpack_device()
        check(lib.rondo_dlpack_get_device(struct.device, _raw.RONDO_MEMORY_DEVICE,
                                          ctypes.byref(device)))
        return device.type, device.id

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[tuple[int, int]] = None,
                   dl_device: Optional[tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        """stream   the reader's, which waits for the stream of the tensor's last work; -1: does not"""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the tensor lies on {self.device}, and is not moved")
        if copy:
            raise BufferError("rondo tensors are handed over without a copy")
        self._order(stream)
        return give_dlpack(self, max_version is not None and max_version[0] >= 1)

    def _order(self, reader: Any) -> None:
        """The reader's work comes behind the tensor's."""
        if self._stream is None or self._stream.is_closed or reader == -1:
            return
        if self.is_on_host:
            self._stream.synchronize()
            return
        # The standard's numbers: 1 the legacy default stream (also for None), 2 the thread's own.
        native = 0 if reader in (None, 1) else reader
        Stream.wrap(native, self.device).wait_stream(self._stream)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<rondo.Tensor closed>"
        return f"<rondo.Tensor {self.dtype} {self.shape} on {self.device}>"


def empty(shape: Union[int, Sequence[int]], dtype: Any = "float32",
          device: Union[str, Device, None] = "host", stream: Optional[Stream] = None) -> Tensor:
    """A tensor in a device's memory, not initialised. `stream` is where its work will be put."""
    described = _raw.rondo_tensor()
    _set_shape(described, (shape,) if isinstance(shape, int) else tuple(shape), "empty")
    struct = _raw.rondo_tensor()
    opened = open_device(device)
    check(lib.rondo_tensor_init_device(opened._h, find_dtype(dtype),
                                       ctypes.byref(described.shape), ctypes.byref(struct)))
    return Tensor._adopt(struct, stream=stream)


# ---- capsules -----------------------------------------------------------------------------------

_OLD, _NEW, _USED_OLD, _USED_NEW = (b"dltensor", b"dltensor_versioned", b"used_dltensor",
                                    b"used_dltensor_versioned")
_api = ctypes.pythonapi
for _name in (_OLD, _NEW, _USED_OLD, _USED_NEW):
    _api.Py_IncRef(ctypes.py_object(_name))  # capsules point at them


def _declare(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, _api))


_capsule_is = _declare("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_get = _declare("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_capsule_rename = _declare("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_new = _declare("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                        ctypes.c_void_p)
# The same by address, for a capsule that is being freed and must not be counted any more.
_dying_is = _declare("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_dying_get = _declare("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _free_capsule(capsule: int) -> None:
    """Nobody took the tensor: it is given up here."""
    for name, kind in ((_OLD, _raw.rondo_dlpack_managed), (_NEW, _raw.rondo_dlpack_versioned)):
        if _dying_is(capsule, name):
            address = _dying_get(capsule, name)
            managed = kind.from_address(address)
            if managed.deleter:
                _delete(managed.deleter, address)
            return


def _delete(deleter: Any, address: int) -> None:
    entry: Any = ctypes.cast(deleter, ctypes.c_void_p).value
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry)
    function(address)


_api.Py_IncRef(ctypes.py_object(_free_capsule))  # a capsule may be freed when the module is gone
_free_capsule_address = ctypes.cast(_free_capsule, ctypes.c_void_p).value


def give_dlpack(tensor: Tensor, is_versioned: bool) -> Any:
    struct = tensor._struct()
    kind, number = tensor.__dlpack_device__()
    device = _raw.rondo_dlpack_device(type=kind, id=number)
    if is_versioned:
        flags = _raw.RONDO_DLPACK_FLAG_READ_ONLY * bool(tensor.is_read_only)
        managed: Any = ctypes.POINTER(_raw.rondo_dlpack_versioned)()
        check(lib.rondo_tensor_to_dlpack_versioned(ctypes.byref(struct), ctypes.byref(device), None,
                                                   flags, ctypes.byref(managed)))
    else:
        if tensor.is_read_only:
            raise BufferError("a read-only tensor needs the versioned form (DLPack 1.0)")
        managed = ctypes.POINTER(_raw.rondo_dlpack_managed)()
        check(lib.rondo_tensor_to_dlpack(ctypes.byref(struct), ctypes.byref(device), None,
                                         ctypes.byref(managed)))
    return _capsule_new(ctypes.cast(managed, ctypes.c_void_p), _NEW if is_versioned else _OLD,
                        _free_capsule_address)


def from_dlpack(other: Any, stream: Optional[Stream] = None) -> Tensor:
    """A tensor of somebody else's bytes, without a copy.

    stream   where it will be used: the other library makes it wait for its own work. Needed for what
             lies on a GPU; -1 says that nobody has to wait.
    """
    kind = other.__dlpack_device__()[0] if hasattr(other, "__dlpack_device__") else 1
    options: dict[str, Any] = {}
    if kind in (_raw.RONDO_DLPACK_CUDA, _raw.RONDO_DLPACK_CUDA_MANAGED):
        if stream is None:
            raise InvalidError("from_dlpack: say on which stream a GPU's tensor will be used")
        options["stream"] = stream if isinstance(stream, int) else stream.native or 1
    check_signs(other)
    capsule = _ask(other, options)
    struct = _raw.rondo_tensor()
    info = new(_raw.rondo_dlpack_info)
    for name, used, kind_, take in (
            (_NEW, _USED_NEW, _raw.rondo_dlpack_versioned, lib.rondo_tensor_from_dlpack_versioned),
            (_OLD, _USED_OLD, _raw.rondo_dlpack_managed, lib.rondo_tensor_from_dlpack)):
        if _capsule_is(capsule, name):
            address = _capsule_get(capsule, name)
            check(take(ctypes.cast(address, ctypes.POINTER(kind_)), ctypes.byref(struct),
                       ctypes.byref(info)))
            _capsule_rename(capsule, used)
            return Tensor._adopt(struct, info.is_read_only,
                                 stream if isinstance(stream, Stream) else None, info.device.type)
    raise InvalidError(f"{type(other).__name__}.__dlpack__ gave no capsule with a tensor")


def _ask(other: Any, options: dict[str, Any]) -> Any:
    """The capsule; producers of the old form know no max_version, some not even stream."""
    for more in ({"max_version": (1, 0)}, {}):
        try:
            return other.__dlpack__(**options, **more)
        except (TypeError, BufferError) as error:
            refusal = error
    if isinstance(refusal, TypeError) and options:
        return other.__dlpack__()
    raise refusal
