# SPDX-License-Identifier: Apache-2.0
"""Random numbers that replays draw anew."""
from __future__ import annotations

import ctypes
from typing import Any, Optional, Union

from . import _raw
from ._library import InvalidError, Owned, Owner, check, fit, lib, read_count
from .device import Device, Stream, get_memory, open_device

__all__ = ["Generator"]


def _word(number: Any) -> ctypes.c_uint64:
    word = ctypes.c_uint64()
    fit(word, "value", read_count(number, "a seed"), "a seed")
    return word


class Generator(Owned):
    """A place in an endless sequence of random words (Philox 4x32-10), the same on every device.

    A replay draws on from where the last use stood: eager, replay, eager gives what three eager
    draws would. One thread at a time.
    """

    __slots__ = ("device",)
    device: Device

    def __init__(self, device: Union[str, Device, None] = None, seed: int = 0) -> None:
        self.device = open_device(device)
        handle = ctypes.c_void_p()
        check(lib.rondo_generator_create(self.device._h, _word(seed), ctypes.byref(handle)))
        self._own(Owner(handle.value, lib.rondo_generator_release, self.device._need()))

    @property
    def state(self) -> tuple[int, int]:
        """(seed, counters used up), after everything put on streams so far; waits for that."""
        state = _raw.rondo_generator_state()
        check(lib.rondo_generator_get_state(self._h, ctypes.byref(state)))
        return state.seed, state.offset

    @state.setter
    def state(self, value: tuple[int, int]) -> None:
        state = _raw.rondo_generator_state(*map(_word, value))
        check(lib.rondo_generator_set_state(self._h, ctypes.byref(state)))

    def seed(self, seed: int) -> None:
        """Goes to the start of another sequence."""
        check(lib.rondo_generator_set_seed(self._h, _word(seed)))

    def _out(self, stream: Stream, out: Any, dtype: Optional[str],
             count: Optional[int]) -> tuple[int, int, int]:
        """Address, dtype and count of an array to be filled."""
        from .tensors import find_dtype, get_itemsize
        address, nbytes, _ = get_memory(out, True)
        number = find_dtype(dtype if dtype is not None else getattr(out, "dtype", "float32"))
        if count is None:
            if nbytes is None:
                raise InvalidError("say how many elements, an address does not tell")
            count = nbytes // get_itemsize(number)
        if count < 0 or (nbytes is not None and count * get_itemsize(number) > nbytes):
            raise InvalidError(f"{count} elements of {get_itemsize(number)} bytes"
                               + (f" in {nbytes} bytes" if nbytes is not None else ""))
        stream._keep.add(out, self)
        return address or 0, number, count

    def words(self, stream: Stream, out: Any, count: Optional[int] = None) -> None:
        """Fills `out` with random 32-bit words."""
        address, _, count = self._out(stream, out, "uint32", count)
        check(lib.rondo_random_words(
            self._h, stream._h, ctypes.cast(address, ctypes.POINTER(ctypes.c_uint32)), count))

    def uniform(self, stream: Stream, out: Any, low: float = 0.0, high: float = 1.0, *,
                dtype: Optional[str] = None, count: Optional[int] = None) -> None:
        """Fills `out` evenly, at least `low` and below `high`."""
        address, number, count = self._out(stream, out, dtype, count)
        check(lib.rondo_random_uniform(self._h, stream._h, number, address, count, low, high))

    def normal(self, stream: Stream, out: Any, mean: float = 0.0, deviation: float = 1.0, *,
               dtype: Optional[str] = None, count: Optional[int] = None) -> None:
        """Fills `out` with normally distributed numbers."""
        address, number, count = self._out(stream, out, dtype, count)
        check(lib.rondo_random_normal(self._h, stream._h, number, address, count, mean, deviation))

    def bernoulli(self, stream: Stream, out: Any, probability: Any, *,
                  dtype: Optional[str] = None, count: Optional[int] = None) -> None:
        """Fills `out` with ones of this probability, and zeros. An array or tensor has one for each
        element."""
        address, number, count = self._out(stream, out, dtype, count)
        if isinstance(probability, (int, float)):
            check(lib.rondo_random_bernoulli(self._h, stream._h, number, address, count, probability))
            return
        from .tensors import find_dtype, get_itemsize
        each, each_bytes, _ = get_memory(probability)
        each_number = find_dtype(probability.dtype)
        if each_bytes is not None and each_bytes < count * get_itemsize(each_number):
            raise InvalidError("bernoulli: there are fewer probabilities than elements")
        stream._keep.add(probability)
        check(lib.rondo_random_bernoulli_each(self._h, stream._h, each_number, each, number, address,
                                              count))

    def dropout(self, stream: Stream, x: Any, y: Any, ratio: float, mask: Any = None, *,
                dtype: Optional[str] = None, count: Optional[int] = None) -> None:
        """y = x / (1 - ratio) where kept, 0 where dropped; mask gets 1 where kept."""
        address, number, count = self._out(stream, y, dtype, count)
        source, source_bytes, _ = get_memory(x)
        if source_bytes is not None:
            from .tensors import get_itemsize
            if source_bytes < count * get_itemsize(number):
                raise InvalidError("dropout: x has fewer elements than y")
        seen = None
        if mask is not None:
            place: Any
            place, mask_bytes, _ = get_memory(mask, True)
            if mask_bytes is not None and mask_bytes < count:
                raise InvalidError("dropout: the mask has fewer elements than y")
            seen = ctypes.cast(place, ctypes.POINTER(ctypes.c_uint8))
        stream._keep.add(x, mask)
        check(lib.rondo_random_dropout(self._h, stream._h, number, source, address, seen, count, ratio))
