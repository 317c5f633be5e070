# SPDX-License-Identifier: Apache-2.0
"""Ops one by one, without a model around them."""
from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence, Union

import numpy

from . import _raw
from ._library import InvalidError, Owned, Owner, check, encode, lib, new
from .device import Device, Stream, open_device
from .programs import make_attributes
from .tensors import Tensor, empty, get_numpy_dtype, put_array

__all__ = ["Op"]


class Op(Owned):
    """An op of ONNX, prepared once for fixed shapes: rondo.Op("MatMul", a, b)(stream, a, b).

    inputs      tensors (rondo.Tensor), whose types and shapes count; arrays and numbers, which are
                constants; None for what is left out. An input that decides a shape must be a constant
    outputs     how many are wanted
    attributes  by name: numbers, texts, lists of them, arrays
    version     of the domain; 0: the newest usual one

    A call puts it on the stream, or records it. One thread at a time.
    """

    __slots__ = ("device", "name", "_count", "_descriptions")
    device: Device

    def __init__(self, name: str, *inputs: Any, outputs: int = 1,
                 device: Union[str, Device, None] = None, domain: str = "", version: int = 0,
                 seed: int = 0, **attributes: Any) -> None:
        if device is None:
            device = next((i.device for i in inputs if isinstance(i, Tensor)), None)
        self.device, self.name, self._count = open_device(device), name, len(inputs)
        described = (_raw.rondo_tensor * max(1, len(inputs)))()
        kept = [_describe(entry, value, name) for entry, value in zip(described, inputs)]
        raw, count, more = make_attributes(attributes)
        options = new(_raw.rondo_op_options, domain=encode(domain), version=version, seed=seed,
                      attributes=raw, attribute_count=count)
        handle = ctypes.c_void_p()
        check(lib.rondo_op_prepare(self.device._h, encode(name), ctypes.byref(options), described,
                                   len(inputs), outputs, ctypes.byref(handle)))
        del kept, more
        self._own(Owner(handle.value, lib.rondo_op_destroy, self.device._need()))
        self._descriptions: list[tuple[tuple[int, ...], Any]] = []
        for index in range(outputs):
            output = _raw.rondo_tensor()
            check(lib.rondo_op_get_output(self._h, index, ctypes.byref(output)))
            self._descriptions.append((tuple(output.shape.extent[:output.shape.rank]),
                                       get_numpy_dtype(output.dtype)))

    @property
    def outputs(self) -> list[tuple[tuple[int, ...], Any]]:
        """Shape and type of each output."""
        return list(self._descriptions)

    def __call__(self, stream: Any, *inputs: Optional[Tensor],
                 out: Union[Tensor, Sequence[Tensor], None] = None) -> Any:
        """Puts the op on the stream; gives its output, a list where it has several.

        inputs   as many as were prepared; constants are not looked at, and may be None
        out      tensors that are written; None: new ones
        """
        if len(inputs) != self._count:
            raise InvalidError(f"{self.name} was prepared for {self._count} inputs, and not {len(inputs)}")
        stream = Stream.wrap(stream, self.device)
        results = [out] if isinstance(out, Tensor) else list(out) if out is not None else [
            empty(shape, dtype, self.device, stream) for shape, dtype in self._descriptions]
        stream._keep.add(self._need(), inputs, results)
        for result in results:
            if isinstance(result, Tensor):
                result._need_writable()
        check(lib.rondo_op_put(self._h, stream._h, _list(inputs), len(inputs), _list(results),
                               len(results)))
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"<rondo.Op {self.name} on {self.device.name}{' closed' if self.is_closed else ''}>"


def _list(tensors: Sequence[Any]) -> Any:
    structs = (_raw.rondo_tensor * max(1, len(tensors)))()
    for struct, tensor in zip(structs, tensors):
        if isinstance(tensor, Tensor):
            ctypes.memmove(ctypes.byref(struct), ctypes.byref(tensor._struct()), ctypes.sizeof(struct))
    return structs


def _describe(struct: Any, value: Any, name: str) -> Any:
    """An input to be prepared; gives what must stay during the call."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        struct.dtype, struct.shape = value._struct().dtype, value._struct().shape
        return None
    return put_array(struct, numpy.asarray(value), name)
