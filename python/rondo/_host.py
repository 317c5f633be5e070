# SPDX-License-Identifier: Apache-2.0
"""Python functions in stream order, and what work on streams must keep alive.

The library calls one C function for all of them. Its arguments are a token, the address of the HostCall
with the Python function and the objects bound to it; whether it is for one run; and then one word for
each number. Equal calls that are recorded have equal bytes, so that a step that is recorded again
records the same (rondo.learn compares recordings).

A call for one run has a reference of its own until it has run, which the collector sees as one from
outside. Recorded ones are kept by their graph, whose destruction waits for replays in flight.
"""
from __future__ import annotations

import atexit
import collections
import ctypes
import struct
import sys
import threading
import weakref
from typing import Any, Callable, Iterable, Optional

from ._library import destroy_postponed, in_host_functions

__all__: list[str] = []

# Only to find equal calls again.
_by_key: "weakref.WeakValueDictionary[Any, HostCall]" = weakref.WeakValueDictionary()
# Exceptions of host functions that nobody has seen yet.
failures: "collections.deque[BaseException]" = collections.deque()
# What captures that are open now keep: lists of any thread.
_keepers: list[list[Any]] = []
# Streams with work of Python's, which must be done before the interpreter goes.
streams: "weakref.WeakSet[Any]" = weakref.WeakSet()


class HostCall:
    """A Python function and the arguments bound to it."""

    __slots__ = ("function", "slots", "layout", "__weakref__")

    def __init__(self, function: Callable[..., Any], slots: list[Any], layout: str) -> None:
        self.function, self.slots = function, slots
        self.layout = struct.Struct(layout)

    def __call__(self, address: int) -> None:
        words = iter(self.layout.unpack_from(
            (ctypes.c_char * self.layout.size).from_address(address))[2:])
        self.function(*(next(words) if slot is _WORD else slot for slot in self.slots))


_WORD = object()  # a number that stands among the bytes


def pack(function: Callable[..., Any], arguments: Iterable[Any],
         is_once: bool = False) -> tuple[HostCall, bytes]:
    """The call, and the bytes that stand for it. Integers and floats become words, anything else is
    bound. Who puts a call for one run on a stream has to call let_run first."""
    slots: list[Any] = []
    words: list[Any] = []
    layout = "=qq"
    for value in arguments:
        if type(value) is float:
            layout += "d"
        elif type(value) is int and -2**63 <= value < 2**64:
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
    return call, call.layout.pack(id(call), is_once, *words)


_increase = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
_decrease = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))


def let_run(call: HostCall) -> None:
    """The call stays until it has run, or let_go says that it will not."""
    _increase(call)


def let_go(call: HostCall) -> None:
    _decrease(call)


def _run(address: int) -> None:
    thread = threading.get_ident()
    in_host_functions.add(thread)
    call = None
    try:
        token, is_once = _HEAD.unpack_from((ctypes.c_char * _HEAD.size).from_address(address))
        call = ctypes.cast(token, ctypes.py_object).value
        if is_once:
            let_go(call)
        call(address)
    except BaseException as error:  # nothing may leave through C
        failures.append(error)
    finally:
        del call  # maybe the last reference
        in_host_functions.discard(thread)


_HEAD = struct.Struct("=qq")
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
        self._make_mark = weakref.WeakMethod(make_mark)  # of what this belongs to
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
            make_mark = self._make_mark()
            mark = make_mark() if make_mark is not None else None
        except Exception:
            return  # the stream records, say: keeping longer does no harm
        if mark is not None:
            self._old, self._young, self._mark = self._young, [], mark
            self._limit = self.LIMIT

    def clear(self) -> None:
        """The stream is idle."""
        self._young, self._old, self._mark, self._limit = [], [], None, self.LIMIT


# Called when no capture is open any more.
_after_captures: "collections.deque[Callable[[], Any]]" = collections.deque()


def find_keeper() -> Optional[list[Any]]:
    """The capture that was begun last."""
    return _keepers[-1] if _keepers else None


def when_captures_are_over(keeper: Optional[list[Any]], call: Callable[[], Any]) -> bool:
    """Whether captures are open that are not `keeper`; then the call is made behind them."""
    if not _keepers or any(open_one is keeper for open_one in _keepers):
        return False
    _after_captures.append(call)
    if not _keepers:  # the last one has ended meanwhile
        _call_after_captures()
    return True


def _call_after_captures() -> None:
    while _after_captures and not _keepers:
        try:
            call = _after_captures.popleft()
        except IndexError:
            return
        call()


def keep(thing: Any) -> bool:
    """Gives a thing to the captures that are open; false where none is."""
    for keeper in _keepers:
        keeper.append(thing)
    return bool(_keepers)


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
                break
        if _after_captures:
            _call_after_captures()


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
