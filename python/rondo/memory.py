# SPDX-License-Identifier: Apache-2.0
"""Memory in stream order: pools, and the arenas of graphs."""
from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any, Optional, Union

from . import _host, _raw
from ._library import Owned, Owner, check, get_record, lib, new
from .device import Device, Stream, open_device

__all__ = ["Pool", "Block", "Arena"]


class Arena(Owned):
    """Memory that several graphs share: what one has freed, captures of others reuse.

    allows_any_order   replays of sharers are neither checked nor put in a row
    """

    __slots__ = ("device",)
    device: Device

    def __init__(self, device: Union[str, Device, None] = None, *,
                 allows_any_order: bool = False) -> None:
        self.device = open_device(device)
        options = new(_raw.rondo_arena_options, allows_any_order=allows_any_order)
        handle = ctypes.c_void_p()
        check(lib.rondo_arena_create(self.device._h, ctypes.byref(options), ctypes.byref(handle)))
        self._own(Owner(handle.value, lib.rondo_arena_release, self.device._need()))

    @classmethod
    def _borrow(cls, handle: Any, device: Device) -> "Arena":
        lib.rondo_arena_retain(handle)
        self = cls.__new__(cls)
        self.device = device
        self._own(Owner(handle, lib.rondo_arena_release, device._need()))
        return self

    def begin_round(self) -> None:
        """Nobody needs what the sharers' replays have left behind: the next step of a loop begins."""
        check(lib.rondo_arena_begin_round(self._h))

    @property
    def stats(self) -> SimpleNamespace:
        return get_record(lib.rondo_arena_get_stats, _raw.rondo_arena_stats, self._h)


class Pool(Owned):
    """Device memory that is cheap to take and give back, in stream order.

    On a stream that records, blocks come from the graph's arena, and stay the graph's.

    kind          "device" or "pinned"
    limit_bytes   most bytes taken from the driver at a time; 0: no limit
    """

    __slots__ = ("device", "kind")
    device: Device

    def __init__(self, device: Union[str, Device, None] = None, *, kind: str = "device",
                 limit_bytes: int = 0) -> None:
        from .graphs import _value
        self.device, self.kind = open_device(device), kind
        options = new(_raw.rondo_pool_options, kind=_value("MEMORY", kind), limit_bytes=limit_bytes)
        handle = ctypes.c_void_p()
        check(lib.rondo_pool_create(self.device._h, ctypes.byref(options), ctypes.byref(handle)))
        self._own(Owner(handle.value, lib.rondo_pool_release, self.device._need()))

    def allocate(self, stream: Stream, nbytes: int) -> "Block":
        """A block for use on the stream; given back by close(), or with the last reference to it."""
        address = ctypes.c_void_p()
        check(lib.rondo_pool_allocate(self._h, stream._h, nbytes, ctypes.byref(address)))
        return Block(self, stream, address.value or 0, nbytes)

    def trim(self, keep_bytes: int = 0) -> int:
        """Returns unused memory to the driver; how much it was."""
        released = ctypes.c_uint64()
        check(lib.rondo_pool_trim(self._h, keep_bytes, ctypes.byref(released)))
        return released.value

    @property
    def stats(self) -> SimpleNamespace:
        return get_record(lib.rondo_pool_get_stats, _raw.rondo_pool_stats, self._h)


class Block(Owned):
    """Bytes of a pool. Work that was put on its stream may still use it when it is given back."""

    __slots__ = ("address", "nbytes", "_pool", "_on_host", "_stream")

    def __init__(self, pool: Pool, stream: Stream, address: int, nbytes: int) -> None:
        self.address, self.nbytes = address, nbytes
        self._on_host = pool.device.is_host or pool.kind == "pinned"
        owner = pool._need()
        self._pool = owner
        self._stream: Optional[Stream] = stream

        keeper = _host.find_keeper() if stream.is_recording else None

        def free() -> None:
            lib.rondo_pool_free(owner.handle, address)
            owner.release()

        def give_back(_block: int) -> None:
            # A block from before a capture that then fails would be the caller's again.
            owner.retain()
            if not _host.when_captures_are_over(keeper, free):
                free()

        self._own(Owner(address, give_back, owner))

    def use(self, stream: Stream) -> None:
        """Work on another stream uses the block, too."""
        check(lib.rondo_pool_use(self._pool.handle, stream._h, self._h))

    def numpy(self, dtype: Any = "uint8", shape: Optional[Any] = None) -> Any:
        """The bytes as an array, where the processor can read them. It keeps the block."""
        import numpy
        if not self._on_host:
            raise BufferError("the processor cannot read a GPU's memory")
        self._need()
        dtype = numpy.dtype(dtype)
        array = numpy.asarray(_Bytes(self))[:self.nbytes // dtype.itemsize * dtype.itemsize]
        array = array.view(dtype)
        return array if shape is None else array.reshape(shape)

    def __rondo_memory__(self, _written: bool = False) -> tuple[Optional[int], Optional[int], bool]:
        self._need()
        return self.address, self.nbytes, self._on_host

    def __int__(self) -> int:
        return self.address


class _Bytes:
    """What numpy refers to; so the block stays as long as an array of it, also when it is closed."""

    def __init__(self, block: Block) -> None:
        self.owner = block._need().retain()
        self.__array_interface__ = {"version": 3, "shape": (block.nbytes,), "typestr": "|u1",
                                    "data": (block.address, False)}

    def __del__(self) -> None:
        self.owner.release()
