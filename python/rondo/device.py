# SPDX-License-Identifier: Apache-2.0
"""Devices, streams, events."""
from __future__ import annotations

import ctypes
import os
import weakref
from types import SimpleNamespace
from typing import Any, Callable, Optional, Union

from . import _host, _raw
from ._library import (InvalidError, Owned, Owner, UnsupportedError, check, destroy_postponed,
                       encode, get_list, get_record, lib, make_error, new, read_count, text,
                       to_record)

__all__ = ["Device", "Stream", "Event", "devices", "open_device"]


def devices() -> list[SimpleNamespace]:
    """Every device, and an entry with `available` false and its `reason` for each backend that has
    none."""
    return [to_record(info) for info in get_list(lib.rondo_device_list, _raw.rondo_device_info)]


class Device(Owned):
    """A GPU ("cuda:0") or this machine's processor ("host"); "auto" is the first GPU, or the host."""

    __slots__ = ("name", "is_host")
    name: str
    is_host: bool

    def __init__(self, name: Union[str, "Device"] = "auto") -> None:
        if isinstance(name, Device):
            name = name.name
        handle = ctypes.c_void_p()
        check(lib.rondo_device_open(encode(_normalise(name)), ctypes.byref(handle)))
        self._own(Owner(handle.value, lib.rondo_device_release))
        self.name = text(lib.rondo_device_get_name(handle))
        self.is_host = lib.rondo_device_is_host(handle)

    @classmethod
    def _borrow(cls, handle: int) -> "Device":
        """A reference of one's own to a device that the library gave."""
        lib.rondo_device_retain(handle)
        self = cls.__new__(cls)
        self._own(Owner(handle, lib.rondo_device_release))
        self.name = text(lib.rondo_device_get_name(handle))
        self.is_host = lib.rondo_device_is_host(handle)
        return self

    @property
    def info(self) -> SimpleNamespace:
        """What is known of the device: description, memory_bytes, free_bytes, compute_units, ..."""
        return get_record(lib.rondo_device_get_info, _raw.rondo_device_info, self._h)

    def synchronize(self) -> None:
        """Waits for all work on all streams of the device."""
        check(lib.rondo_device_synchronize(self._h))
        _host.raise_failure()

    def supports(self, feature: str) -> bool:
        """Whether conditional nodes work: "IF", "IF_ELSE", "SWITCH", "WHILE", "HOST_IN_BODY"."""
        number = getattr(_raw, "RONDO_FEATURE_" + feature.upper(), None)
        if number is None:
            raise InvalidError(f"no such feature: {feature!r}")
        return bool(lib.rondo_device_supports(self._h, number) == _raw.RONDO_STATUS_OK)

    def copies_directly_from(self, other: "Device") -> bool:
        """Whether Stream.copy_between from the other device needs no host memory between."""
        is_direct = ctypes.c_bool()
        check(lib.rondo_device_copies_directly(self._h, other._h, ctypes.byref(is_direct)))
        return is_direct.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<rondo.Device {self.name}>"


def _normalise(name: str) -> str:
    """The names of other libraries: "cpu" is the host, "cuda" and "gpu" are the first GPU."""
    name = str(name).lower()
    return {"cpu": "host", "cpu:0": "host", "cuda": "cuda:0", "gpu": "cuda:0"}.get(
        name, name.replace("gpu:", "cuda:"))


def open_device(device: Union[str, Device, None]) -> Device:
    """The device for an object that is made on it: one of its own, as others may close theirs."""
    if not isinstance(device, Device):
        return Device("auto" if device is None else device)
    share = Device.__new__(Device)
    share._own(device._need().retain())
    share.name, share.is_host = device.name, device.is_host
    return share


class Event(Owned):
    """A place in the work of a stream.

    timed      it keeps a time stamp
    external   in captures its records and waits are nodes, which happen at each replay
    """

    __slots__ = ("device",)
    device: Device

    def __init__(self, device: Union[str, Device, None] = None, *, timed: bool = False,
                 external: bool = False) -> None:
        self.device = open_device(device)
        handle = ctypes.c_void_p()
        flags = _raw.RONDO_EVENT_TIMED * timed | _raw.RONDO_EVENT_EXTERNAL * external
        check(lib.rondo_event_create(self.device._h, flags, ctypes.byref(handle)))
        self._own(Owner(handle.value, lib.rondo_event_destroy, self.device._need()))

    def record(self, stream: "Stream") -> "Event":
        check(lib.rondo_event_record(self._h, stream._h))
        return self

    @property
    def is_complete(self) -> bool:
        done = ctypes.c_bool()
        check(lib.rondo_event_query(self._h, ctypes.byref(done)))
        return done.value

    def synchronize(self) -> None:
        check(lib.rondo_event_synchronize(self._h))
        _host.raise_failure()

    def elapsed_ns(self, end: "Event") -> int:
        """Device time from this timed event to another one."""
        result = ctypes.c_int64()
        check(lib.rondo_event_get_elapsed_ns(self._h, end._h, ctypes.byref(result)))
        return result.value


def count_bytes(call: str, nbytes: Optional[int], to_bytes: Optional[int],
                 of_bytes: Optional[int]) -> int:
    """How many bytes a copy takes; None: as many as the source has, or else the destination."""
    if nbytes is None:
        nbytes = of_bytes if of_bytes is not None else to_bytes
    if nbytes is None:
        raise InvalidError(f"{call}: say how many bytes, two addresses do not tell")
    if nbytes < 0:
        raise InvalidError(f"{call}: {nbytes} bytes; there are 0 at least")
    for known in (to_bytes, of_bytes):
        if known is not None and nbytes > known:
            raise InvalidError(f"{call}: {nbytes} bytes, but one of the two has only {known}")
    return nbytes


def count_elements(call: str, count: Optional[int], element_bytes: int, nbytes: Optional[int]) -> int:
    """How many elements a fill takes; None: as many as the memory has."""
    if element_bytes not in (1, 2, 4):
        raise InvalidError(f"{call}: elements of {element_bytes} bytes; they have 1, 2 or 4")
    if count is None:
        if nbytes is None:
            raise InvalidError(f"{call}: say how many elements, an address does not tell")
        return nbytes // element_bytes
    if count < 0 or (nbytes is not None and count * element_bytes > nbytes):
        raise InvalidError(f"{call}: {count} elements of {element_bytes} bytes"
                           + (f" in {nbytes} bytes" if nbytes is not None else ""))
    return count


# Streams of Rondo's by their CUstream, which may come back by way of other libraries.
_own_streams: "weakref.WeakValueDictionary[int, Stream]" = weakref.WeakValueDictionary()


class Stream(Owned):
    """An ordered queue of work.

    Stream(device) makes one; Stream.wrap(other) is one on a stream of another library.
    """

    __slots__ = ("device", "native", "_keep", "_foreign", "_process")
    device: Device
    native: int  # the CUstream, 0 on the host

    def __init__(self, device: Union[str, Device, None] = None, *, priority: int = 0) -> None:
        device = open_device(device)
        options = new(_raw.rondo_stream_options, priority=priority)
        handle = ctypes.c_void_p()
        check(lib.rondo_stream_create(device._h, ctypes.byref(options), ctypes.byref(handle)))
        self._make(device, Owner(handle.value, lib.rondo_stream_destroy, device._need()))

    def _make(self, device: Device, owner: Owner, foreign: Any = None) -> None:
        self._own(owner)
        self.device, self._foreign = device, foreign
        self.native = lib.rondo_stream_get_native(owner.handle) or 0
        self._keep = owner.holds = _host.Keep(self._make_mark)
        self._process = os.getpid()
        _host.streams.add(self)
        if foreign is None and self.native:
            _own_streams[self.native] = self

    @classmethod
    def wrap(cls, other: Any, device: Union[str, Device, None] = None) -> "Stream":
        """A stream of another library as one of Rondo's: anything with __cuda_stream__ (torch, cupy,
        cuda.core, numba), or the address of a CUstream. It stays the other library's, and is kept
        alive by the result. The legacy default stream runs work, but cannot record. A stream of
        Rondo's that another library was given comes back as itself.

        device   whose stream it is; None: what `other` says (its device or device_id), or cuda:0
        """
        if isinstance(other, Stream):
            return other
        native = get_native_stream(other)
        own = _own_streams.get(native)
        if own is not None and not own.is_closed and own._process == os.getpid():
            return own
        device = open_device(device if device is not None else _guess_device(other))
        handle = ctypes.c_void_p()
        check(lib.rondo_stream_wrap(device._h, native, ctypes.byref(handle)))
        self = cls.__new__(cls)
        self._make(device, Owner(handle.value, lib.rondo_stream_destroy, device._need()), other)
        return self

    @classmethod
    def _borrow(cls, handle: int, device: Device, owner: Owner) -> "Stream":
        """A stream that another object owns, which stays as long as this one."""
        self = cls.__new__(cls)
        self._make(device, Owner(handle, lambda _: None, owner))
        return self

    def __cuda_stream__(self) -> tuple[int, int]:
        """For torch.cuda.ExternalStream, cupy, cuda.core and others: (version, address)."""
        if self.device.is_host:
            raise UnsupportedError("a stream of the host is no CUDA stream")
        return 0, self.native

    # ---- order --------------------------------------------------------------------------------

    def synchronize(self) -> None:
        """Waits until all work has finished. What a Python function on a stream has raised is raised
        here."""
        status = lib.rondo_stream_synchronize(self._h)
        check(status)
        self._keep.clear()
        destroy_postponed()
        if _host.failures:
            _host.raise_failure()

    @property
    def is_idle(self) -> bool:
        idle = ctypes.c_bool()
        check(lib.rondo_stream_query(self._h, ctypes.byref(idle)))
        return idle.value

    @property
    def is_recording(self) -> bool:
        recording = ctypes.c_bool()
        check(lib.rondo_stream_is_recording(self._h, ctypes.byref(recording)))
        return recording.value

    def wait(self, event: Event) -> None:
        """Later work waits for the event; so the stream joins the event's capture, if it has one."""
        check(lib.rondo_stream_wait_event(self._h, event._h))

    def record_event(self, **options: bool) -> Event:
        return Event(self.device, **options).record(self)

    def wait_stream(self, other: "Stream") -> None:
        """Later work waits for all that is on the other stream now."""
        self.wait(other.record_event())

    def _make_mark(self) -> Optional[Event]:
        return None if self.is_recording else self.record_event()

    def _drain(self) -> None:
        if not self.is_closed and self._process == os.getpid() and not self.is_recording:
            lib.rondo_stream_synchronize(self._h)

    def close(self) -> None:
        if self._owner is not None:
            _host.streams.discard(self)
        super().close()

    # ---- work ---------------------------------------------------------------------------------

    def call_host(self, function: Callable[..., Any], *arguments: Any, name: str = "") -> None:
        """Runs a Python function on the processor, in stream order.

        Integers and floats are words that rondo.learn can follow; other arguments are bound as they
        are, and kept. The function must not call rondo on this device, and not wait for another
        host function. What it raises is raised by the next synchronize.
        """
        # Recorded, it is the graph's, where the capture is one of Python's, and otherwise for ever.
        is_recorded = self.is_recording
        call, data = _host.pack(function, arguments, not is_recorded)
        label = _name(name or getattr(function, "__name__", "python"))
        is_let = not is_recorded or not _host.keep(call)
        if is_let:
            _host.let_run(call)
        status = lib.rondo_stream_call_host(self._h, label, _host.trampoline, data, len(data))
        if status:
            error = make_error(status)
            if is_let:
                _host.let_go(call)
            raise error

    def copy(self, destination: Any, source: Any, nbytes: Optional[int] = None,
             kind: Optional[str] = None) -> None:
        """Copies bytes in stream order. Both are arrays, tensors, blocks or addresses.

        kind   "host_to_device", "device_to_host", "device_to_device"; None: what the two say (an
               address counts as the device's)
        """
        to, to_bytes, to_host = get_memory(destination, True)
        of, of_bytes, of_host = get_memory(source)
        nbytes = count_bytes("copy", nbytes, to_bytes, of_bytes)
        if kind is None:
            kind = ("device_to_device" if self.device.is_host or to_host == of_host
                    else "host_to_device" if of_host else "device_to_host")
        number = getattr(_raw, "RONDO_COPY_" + kind.upper(), None)
        if number is None:
            raise InvalidError(f"copy: no such kind: {kind!r}")
        self._keep.add(destination, source)
        check(lib.rondo_stream_copy(self._h, to, of, nbytes, number))

    def copy_between(self, to: Device, destination: Any, of: Device, source: Any,
                     nbytes: Optional[int] = None) -> None:
        """Copies bytes from one device to another, in the order of this stream of either; between
        two GPUs straight over their link where there is one. It waits for no work of the other."""
        to_address, to_bytes, _ = get_memory(destination, True)
        of_address, of_bytes, _ = get_memory(source)
        nbytes = count_bytes("copy_between", nbytes, to_bytes, of_bytes)
        self._keep.add(destination, source, to, of)
        check(lib.rondo_stream_copy_between(self._h, to._h, to_address, of._h, of_address, nbytes))

    def fill(self, destination: Any, value: int, element_bytes: int = 1,
             count: Optional[int] = None) -> None:
        """Sets elements of 1, 2 or 4 bytes to the low bytes of `value`."""
        address, nbytes, _ = get_memory(destination, True)
        count = count_elements("fill", count, element_bytes, nbytes)
        self._keep.add(destination)
        word = read_count(value, "fill: the value") & 0xffffffff
        check(lib.rondo_stream_fill(self._h, address, word, element_bytes, count))

    def launch(self, function: int, grid: Any, block: Any, arguments: bytes = b"", *,
               shared_bytes: int = 0, name: str = "kernel", flags: int = 0,
               keep: Any = None) -> None:
        """Launches a kernel: the address of a CUfunction (on the host of a C function), with its
        arguments packed as it has them. `keep` is what they point to."""
        launch, kept = make_launch(function, grid, block, arguments, shared_bytes, name, flags)
        self._keep.add(kept, keep)
        check(lib.rondo_stream_launch(self._h, ctypes.byref(launch)))

    def add_graph(self, graph: Any) -> None:
        """Records a copy of another graph's template as one node."""
        self._keep.add(graph, graph._get_kept())
        check(lib.rondo_stream_add_graph(self._h, graph._h))

    def add_node(self, work: Any) -> Any:
        """Records a rondo.Launch, HostCall, Copy, Fill or Child; gives the node, to be patched."""
        from .graphs import Node, _make_work
        struct, kept = _make_work(work)
        node = _raw.rondo_node()
        self._keep.add(*kept)
        check(lib.rondo_stream_add_node(self._h, ctypes.byref(struct), ctypes.byref(node)))
        return Node(node.recording, node.number)

    def last_node(self) -> Any:
        """The node recorded last on the stream, by whatever call."""
        from .graphs import Node
        node = _raw.rondo_node()
        check(lib.rondo_stream_get_last_node(self._h, ctypes.byref(node)))
        return Node(node.recording, node.number)

    def label(self, name: str) -> "_Label":
        """with stream.label("layer3"): names what is put on the stream in the block."""
        return _Label(self, name)

    def __repr__(self) -> str:
        return f"<rondo.Stream on {self.device.name}{' closed' if self.is_closed else ''}>"


class _Label:
    __slots__ = ("stream", "name")

    def __init__(self, stream: Stream, name: str) -> None:
        self.stream, self.name = stream, name

    def __enter__(self) -> None:
        check(lib.rondo_label_push(self.stream._h, encode(self.name)))

    def __exit__(self, kind: Any, *_: Any) -> None:
        status = lib.rondo_label_pop(self.stream._h)
        if kind is None:
            check(status)


_names: dict[str, bytes] = {}


def _name(name: str) -> bytes:
    """The library keeps the address of a name, so each is made once and stays."""
    kept = _names.get(name)
    if kept is None:
        kept = _names[name] = encode(name)[:200]
    return kept


def make_launch(function: int, grid: Any, block: Any, arguments: bytes, shared_bytes: int, name: str,
                flags: int) -> tuple[Any, Any]:
    """The struct, and what lies behind it."""
    buffer = ctypes.create_string_buffer(bytes(arguments), max(1, len(arguments)))
    launch = new(_raw.rondo_launch, name=_name(name), function=function,
                 shared_bytes=shared_bytes, arguments=ctypes.addressof(buffer),
                 argument_bytes=len(arguments), flags=flags)
    for field, value in (("grid", grid), ("block", block)):
        sizes = (value,) if isinstance(value, int) else tuple(value)
        if len(sizes) > 3:
            raise InvalidError(f"{field} {value!r}: there are three at most")
        getattr(launch, field)[:] = (*sizes, 1, 1, 1)[:3]
        if any(kept != size for kept, size in zip(getattr(launch, field), sizes)):
            raise InvalidError(f"{field} cannot be {value!r}")
    return launch, buffer


def check_signs(what: Any) -> None:
    """Refuses a tensor of torch's whose memory holds other signs than it has: `conj()` and what
    comes of it are views, and neither the address nor, of real numbers, DLPack tells."""
    for question, cure in (("is_neg", "resolve_neg"), ("is_conj", "resolve_conj")):
        if hasattr(what, question) and getattr(what, question)():
            raise InvalidError(f"its signs are not in its memory (a view of conj()): pass {cure}()")


def get_memory(what: Any, written: bool = False) -> tuple[Optional[int], Optional[int], bool]:
    """Address, bytes (None: not known) and whether it is host memory, of whatever has memory."""
    if what is None or isinstance(what, int):
        return what, None, False
    if hasattr(what, "__rondo_memory__"):
        memory: tuple[Optional[int], Optional[int], bool] = what.__rondo_memory__(written)
        return memory
    if hasattr(what, "data_ptr") and hasattr(what, "is_contiguous"):  # torch
        if not what.is_contiguous():
            raise InvalidError("strided memory: make it contiguous first")
        check_signs(what)
        return what.data_ptr(), what.numel() * what.element_size(), what.device.type == "cpu"
    for protocol, is_host in (("__cuda_array_interface__", False), ("__array_interface__", True)):
        described = getattr(what, protocol, None)
        if described is not None:
            import numpy
            if isinstance(what, numpy.generic) or getattr(getattr(what, "dtype", None), "hasobject",
                                                          False):
                break  # a copy, which is gone; objects of Python's, which are counted
            if described.get("strides") is not None:
                raise InvalidError("strided memory: make it contiguous first")
            if written and described["data"][1]:
                raise InvalidError("read-only memory is not written")
            count = 1
            for extent in described["shape"]:
                count *= extent
            return described["data"][0], count * numpy.dtype(described["typestr"]).itemsize, is_host
    if isinstance(what, (ctypes.Array, ctypes.Structure, ctypes._SimpleCData)):
        return ctypes.addressof(what), ctypes.sizeof(what), True
    raise TypeError(f"{type(what).__name__} is no memory that Rondo can take the address of")


def get_native_stream(other: Any) -> int:
    """The address of a CUstream."""
    if isinstance(other, bool) or other is None:
        raise TypeError(f"{other!r} is no stream")
    if isinstance(other, int):
        return other
    protocol = getattr(other, "__cuda_stream__", None)
    if protocol is not None:
        answer = protocol() if callable(protocol) else protocol
        if not isinstance(answer, tuple) or len(answer) != 2 or answer[0] != 0:
            raise TypeError(f"__cuda_stream__ gave {answer!r}, and not (0, address)")
        return int(answer[1])
    for attribute in ("cuda_stream", "ptr"):  # torch, cupy before they had the protocol
        value = getattr(other, attribute, None)
        if isinstance(value, int):
            return value
    handle = getattr(getattr(other, "handle", None), "value", None)  # numba
    if isinstance(handle, int):
        return handle
    raise TypeError(f"{type(other).__name__} is no stream: it has no __cuda_stream__")


def _guess_device(other: Any) -> str:
    for attribute in ("device_index", "device_id"):
        value = getattr(other, attribute, None)
        if isinstance(value, int) and value >= 0:
            return f"cuda:{value}"
    value = getattr(getattr(other, "device", None), "index", None)
    return f"cuda:{value}" if isinstance(value, int) else "cuda:0"

