# SPDX-License-Identifier: Apache-2.0
"""Python functions in stream order, and what work on streams must keep alive.

The library calls one C function for all of them. Its arguments are a token, which names the Python
function and the objects bound to it, and then one word for each number. Equal calls have equal
bytes, so that a step that is recorded again records the same (rondo.learn compares recordings).
"""
from __future__ import annotations

import atexit
import collections
import ctypes
import itertools
import struct
import sys
import threading
import weakref
from typing import Any, Callable, Iterable

from ._library import destroy_postponed, in_host_functions

__all__: list[str] = []

_numbers = itertools.count(1)
_entries: "weakref.WeakValueDictionary[int, HostCall]" = weakref.WeakValueDictionary()
_by_key: "weakref.WeakValueDictionary[Any, HostCall]" = weakref.WeakValueDictionary()
# Exceptions of host functions that nobody has seen yet.
failures: "collections.deque[BaseException]" = collections.deque()
# What captures that are open now keep: lists of any thread.
_keepers: list[list[Any]] = []
# Streams with work of Python's, which must be done before the interpreter goes.
streams: "weakref.WeakSet[Any]" = weakref.WeakSet()


class HostCall:
    """A Python function and the arguments bound to it. Kept by who may call it yet."""

    __slots__ = ("token", "function", "slots", "layout", "__weakref__")

    def __init__(self, function: Callable[..., Any], slots: list[Any], layout: str) -> None:
        self.token, self.function, self.slots = next(_numbers), function, slots
        self.layout = struct.Struct(layout)

    def __call__(self, address: int) -> None:
        words = iter(self.layout.unpack_from(
            (ctypes.c_char * self.layout.size).from_address(address))[1:])
        self.function(*(next(words) if slot is _WORD else slot for slot in self.slots))


_WORD = object()  # a number that stands among the bytes


def pack(function: Callable[..., Any], arguments: Iterable[Any]) -> tuple[HostCall, bytes]:
    """The call, and the bytes that stand for it. Integers and floats become words, anything else is
    bound."""
    slots: list[Any] = []
    words: list[Any] = []
    layout = "=q"
    for value in arguments:
        if type(value) is float:
            layout += "d"
        elif type(value) is int:
            layout += "q" if value < 2**63 else "Q"
        else:
            slots.append(value)
            continue
        words.append(value)
        slots.append(_WORD)
    key = (id(function), layout, tuple(map(id, slots)))
    try:
        # A bound method is another object each time it is asked for, and equal all the same.
        key = (hash(function), *key[1:]) if hasattr(function, "__self__") else key
    except TypeError:
        pass
    call = _by_key.get(key)
    if call is None or (call.function is not function and call.function != function):
        call = HostCall(function, slots, layout)
        _by_key[key] = call
        _entries[call.token] = call
    return call, call.layout.pack(call.token, *words)


def _run(address: int) -> None:
    thread = threading.get_ident()
    in_host_functions.add(thread)
    call = None
    try:
        call = _entries[ctypes.c_int64.from_address(address).value]
        call(address)
    except BaseException as error:  # nothing may leave through C
        failures.append(error)
    finally:
        del call  # maybe the last reference
        in_host_functions.discard(thread)


trampoline = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_run)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(trampoline))  # the library may call it at any time


def raise_failure() -> None:
    """Raises what the first of the failed host functions raised; a note counts the others."""
    try:
        error = failures.popleft()
    except IndexError:
        return
    others = len(failures)
    if others:
        error.add_note(f"{others} more host functions failed; the next: {failures[0]!r}")
    failures.clear()
    raise error


# ---- keeping ------------------------------------------------------------------------------------


class Keep:
    """What eager work on one stream needs: two generations, the older one with an event behind it."""

    __slots__ = ("_make_mark", "_young", "_old", "_mark", "_limit")
    LIMIT = 256

    def __init__(self, make_mark: Callable[[], Any]) -> None:
        self._make_mark = make_mark
        self._young: list[Any] = []
        self._old: list[Any] = []
        self._mark: Any = None
        self._limit = self.LIMIT

    def add(self, *objects: Any) -> None:
        """Called before the work is put on the stream; so a mark stands behind what is older."""
        for keeper in _keepers:
            keeper.extend(objects)
        if len(self._young) >= self._limit:
            self._turn()
        self._young.extend(objects)

    def _turn(self) -> None:
        """When the older ones are done with, the young ones become the older ones."""
        self._limit = len(self._young) + self.LIMIT
        try:
            if self._mark is not None and not self._mark.is_complete:
                return
            mark = self._make_mark()
        except Exception:
            return  # the stream records, say: keeping longer does no harm
        if mark is not None:
            self._old, self._young, self._mark = self._young, [], mark
            self._limit = self.LIMIT

    def clear(self) -> None:
        """The stream is idle."""
        self._young, self._old, self._mark, self._limit = [], [], None, self.LIMIT


class keeping:
    """While the block runs, what is put on streams is kept by `objects`."""

    def __init__(self, objects: list[Any]) -> None:
        self.objects = objects

    def __enter__(self) -> list[Any]:
        _keepers.append(self.objects)
        return self.objects

    def __exit__(self, *_: Any) -> None:
        for index, keeper in enumerate(_keepers):
            if keeper is self.objects:
                del _keepers[index]
                return


@atexit.register
def _drain() -> None:
    """Host functions of Python must not run when there is no interpreter any more."""
    for stream in list(streams):
        try:
            stream._drain()
        except Exception:
            pass
    destroy_postponed()
    while failures:
        sys.stderr.write(f"rondo: a host function failed, and nobody waited: {failures.popleft()!r}\n")
