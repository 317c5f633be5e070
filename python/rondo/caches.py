# SPDX-License-Identifier: Apache-2.0
"""Graphs found by what they were captured for, captured where that pays."""
from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any, Callable, Optional, Union

import numpy

from . import _host, _raw
from ._library import InvalidError, Owned, Owner, check, encode, get_record, lib, new
from .device import Device, Stream, open_device
from .graphs import _value
from .learning import Steps

__all__ = ["GraphCache"]

_OUTCOMES = {_raw.RONDO_CACHE_NOTHING: "nothing", _raw.RONDO_CACHE_RAN_EAGERLY: "ran_eagerly",
             _raw.RONDO_CACHE_REPLAYED: "replayed",
             _raw.RONDO_CACHE_CAPTURED_AND_REPLAYED: "captured_and_replayed",
             _raw.RONDO_CACHE_UPDATED: "updated"}


class GraphCache(Owned):
    """cache.run(key, stream, step, ...): the first uses run the step, later ones replay it.

    policy       "measured" (where it pays), "always_capture", "never_capture"
    entry_limit  graphs held at a time; byte_limit: their bytes
    arena        memory that all graphs share

    The key must hold all that the step depends on, but for what stands in memory. It is bytes, or
    anything whose repr() tells keys apart: a tuple of shapes, types and addresses. Arrays and
    tensors in it are refused.
    """

    __slots__ = ("device", "_steps", "_step", "_callback", "_kept", "_entry_limit", "_last",
                 "_retired")

    def __init__(self, device: Union[str, Device, None] = None, *, label: Optional[str] = None,
                 policy: str = "measured", entry_limit: int = 0, byte_limit: int = 0,
                 key_limit: int = 0, mode: str = "thread_local", arena: Any = None,
                 pageable_sources: str = "refuse") -> None:
        self.device = open_device(device)
        options = new(_raw.rondo_graph_cache_options, label=encode(label) if label else None,
                      policy=_value("CACHE", policy), entry_limit=entry_limit,
                      byte_limit=byte_limit, key_limit=key_limit, mode=_value("CAPTURE", mode),
                      arena=arena._need().handle if arena is not None else None,
                      pageable_sources=_value("PAGEABLE", pageable_sources))
        steps = self._steps = Steps(self.device)
        current: list[Any] = []
        self._step = current

        @_raw.rondo_step_function
        def call(stream: int, _user_data: Any) -> int:
            function, arguments = current[-1]
            return steps.call(function, stream, *arguments)

        handle = ctypes.c_void_p()
        check(lib.rondo_graph_cache_create(self.device._h, ctypes.byref(options),
                                           ctypes.byref(handle)))

        def destroy(address: int, _callback: Any = call) -> None:
            lib.rondo_graph_cache_destroy(address)

        self._own(Owner(handle.value, destroy, self.device._need()))
        self._callback = call
        self._kept: dict[bytes, list[Any]] = {}
        self._last: Optional[Stream] = None
        # What graphs used that were evicted or patched, until replays have run.
        self._retired = _host.Keep(self._make_mark)
        self._need().holds = (self._kept, self._retired)
        self._entry_limit = entry_limit or 64

    def run(self, key: Any, stream: Any, step: Callable[..., Any], *arguments: Any) -> str:
        """Puts step(stream, *arguments) on the stream, by a replay or as it is: "replayed",
        "ran_eagerly", "captured_and_replayed", "updated"."""
        name = _encode(key)
        stream = self._last = Stream.wrap(stream, self.device)
        outcome = ctypes.c_int32()
        kept: list[Any] = []
        self._steps.streams.append(stream)
        self._step.append((step, arguments))
        try:
            with _host.keeping(kept):
                status = lib.rondo_graph_cache_run(self._h, name, len(name), stream._h,
                                                   self._callback, None, ctypes.byref(outcome))
        finally:
            self._step.pop()
            self._steps.streams.pop()
        if outcome.value in (_raw.RONDO_CACHE_CAPTURED_AND_REPLAYED, _raw.RONDO_CACHE_UPDATED):
            self._keep(name, kept)
        self._steps.check(status)
        return _OUTCOMES[outcome.value]

    def _keep(self, name: bytes, kept: list[Any]) -> None:
        """What a graph's nodes use stays as long as the graph. Those that were evicted go by and by."""
        if name in self._kept:
            self._retired.add(self._kept[name])
        self._kept[name] = kept
        if len(self._kept) > 2 * self._entry_limit:
            for key in list(self._kept):
                entry = new(_raw.rondo_graph_cache_entry)
                if (lib.rondo_graph_cache_get_entry(self._h, key, len(key), ctypes.byref(entry))
                        or not entry.has_graph):
                    self._retired.add(self._kept.pop(key))

    def _make_mark(self) -> Any:
        return self._last._make_mark() if self._last is not None and not self._last.is_closed else None

    def wait(self) -> None:
        check(lib.rondo_graph_cache_wait(self._h))

    def pin(self, key: Any) -> None:
        """The key is never evicted."""
        name = _encode(key)
        check(lib.rondo_graph_cache_pin(self._h, name, len(name)))

    def unpin(self, key: Any) -> None:
        name = _encode(key)
        check(lib.rondo_graph_cache_unpin(self._h, name, len(name)))

    def forget(self, key: Any) -> None:
        """Gives up the key's graph and all that is known of it."""
        name = _encode(key)
        check(lib.rondo_graph_cache_forget(self._h, name, len(name)))
        self._kept.pop(name, None)

    def clear(self) -> None:
        check(lib.rondo_graph_cache_clear(self._h))
        self._kept.clear()

    def get_entry(self, key: Any) -> SimpleNamespace:
        """What is known of a key: times, counts, and the reason of the choice."""
        name = _encode(key)
        return get_record(lib.rondo_graph_cache_get_entry, _raw.rondo_graph_cache_entry, self._h,
                          name, len(name))

    @property
    def stats(self) -> SimpleNamespace:
        return get_record(lib.rondo_graph_cache_get_stats, _raw.rondo_graph_cache_stats, self._h)


def _refuse_arrays(key: Any) -> None:
    """Of a large array repr() shows the ends alone, and of numbers some digits. A number of numpy's own
    and a class are told in full."""
    if isinstance(key, (tuple, list, set, frozenset)):
        for part in key:
            _refuse_arrays(part)
    elif isinstance(key, dict):
        _refuse_arrays([*key.keys(), *key.values()])
    elif isinstance(key, (type, numpy.generic, numpy.dtype)):
        return
    elif hasattr(key, "ndim") and hasattr(key, "shape"):
        raise InvalidError(f"a {type(key).__name__} in a key: its text does not tell it from others; give "
                           "its shape, type and address, or its bytes")


def _encode(key: Any) -> bytes:
    _refuse_arrays(key)
    return bytes(key) if isinstance(key, (bytes, bytearray)) else repr(key).encode()
