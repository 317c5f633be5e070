# SPDX-License-Identifier: Apache-2.0
"""The shared library, its calls by name, and their failures as exceptions."""
from __future__ import annotations

import atexit
import collections
import ctypes
import logging
import operator
import os
import threading
from types import SimpleNamespace
from typing import Any, Callable, Optional, Sequence

from . import _raw

__all__: list[str] = []


def _candidates() -> list[str]:
    named = os.environ.get("RONDO_LIBRARY")
    if named:
        return [named]
    folder = os.path.dirname(os.path.abspath(__file__))
    for path in ("librondo.so.0.1", "../../build/librondo.so.0.1"):  # the wheel's, a clone's
        if os.path.exists(os.path.join(folder, path)):
            return [os.path.join(folder, path)]
    return ["librondo.so.0.1", "librondo.so"]


class _Library:
    """lib.rondo_x is the C function rondo_x, declared when it is first asked for. The library
    itself is loaded then, too, so that importing the package costs and needs nothing.

    lib.bare_rondo_x is the same without declared arguments, whose checks take longer than a short
    call: for what each run calls, with ctypes' own values (byref, arrays, c_void_p, c_size_t)."""

    def __init__(self) -> None:
        self._dll: Optional[ctypes.CDLL] = None
        self._lock = threading.Lock()

    def load(self) -> ctypes.CDLL:
        with self._lock:
            if self._dll is None:
                problems = []
                for path in _candidates():
                    try:
                        self._dll = ctypes.CDLL(path)
                        break
                    except OSError as error:
                        problems.append(str(error))
                if self._dll is None:
                    raise ImportError(
                        "librondo.so.0.1 cannot be loaded (set RONDO_LIBRARY to its path, or install "
                        "the package with it): " + "; ".join(problems))
                self._check_version(self._dll)
            return self._dll

    @staticmethod
    def _check_version(dll: ctypes.CDLL) -> None:
        """Before 1.0, a minor version may change what structs and calls are."""
        number, wanted = dll.rondo_version_get_number(), _raw.RONDO_VERSION_NUMBER
        if number // 100 != wanted // 100:
            raise ImportError(f"{dll._name} is Rondo {number // 10000}.{number // 100 % 100}, and the "
                              f"package is for {wanted // 10000}.{wanted // 100 % 100}")

    def __getattr__(self, name: str) -> Any:
        is_bare = name.startswith("bare_")
        name = name.removeprefix("bare_")
        try:
            signature: tuple[Any, Any] = _raw.FUNCTIONS[name]
        except KeyError:
            raise AttributeError(f"the C API has no {name}") from None
        try:
            function = (self._dll or self.load())[name]  # an object of its own
        except AttributeError:
            raise UnsupportedError(
                f"this librondo has no {name}: it is older than the package, or was built without "
                "models") from None
        function.restype, arguments = signature
        if not is_bare:
            function.argtypes = arguments
        setattr(self, "bare_" * is_bare + name, function)
        return function


lib = _Library()


# ---- failures -----------------------------------------------------------------------------------


class RondoError(Exception):
    """A call of the library that failed; each status has a class of its own.

    status       the name of the status, "STATE"
    message      what is wrong and what to do, one line
    call         the rondo or driver call that failed
    op           op, node or label at fault, or ""
    driver_code  the driver's or another library's code, and its name
    """

    status = "INTERNAL"

    def __init__(self, message: str, *, status: Optional[str] = None, call: str = "", op: str = "",
                 driver_code: int = 0, driver_name: str = "", place: str = "") -> None:
        super().__init__(message)
        if status is not None:
            self.status = status
        self.message, self.call, self.op = message, call, op
        self.driver_code, self.driver_name, self.place = driver_code, driver_name, place


class InvalidError(RondoError, ValueError):
    """An argument is wrong; the same call fails again."""
    status = "INVALID"


class StateError(RondoError, RuntimeError):
    """The object is not in a state that allows this."""
    status = "STATE"


class UnsupportedError(RondoError, NotImplementedError):
    """This device or build cannot do it."""
    status = "UNSUPPORTED"


class HostMemoryError(RondoError, MemoryError):
    """Host memory is exhausted, or a limit of it."""
    status = "NO_MEMORY"


class DeviceMemoryError(RondoError, MemoryError):
    """Device memory or a budget of it is exhausted."""
    status = "NO_DEVICE_MEMORY"


class UnavailableError(RondoError, OSError):
    """A driver library, device or file is absent."""
    status = "UNAVAILABLE"


class DriverError(RondoError, RuntimeError):
    """The driver failed."""
    status = "DRIVER"


class LostError(RondoError, RuntimeError):
    """The device is poisoned, or belongs to the process that forked this one."""
    status = "LOST"


class BadDataError(RondoError, ValueError):
    """A file, a model or what a model computes with is malformed."""
    status = "BAD_DATA"


class InternalError(RondoError, RuntimeError):
    """A rule of the library's own is broken; please report."""
    status = "INTERNAL"


class CancelledError(RondoError, RuntimeError):
    """Another thread ended the call."""
    status = "CANCELLED"


class MismatchError(RondoError, RuntimeError):
    """A self-check found a replay that computes something else."""
    status = "MISMATCH"


class CaptureError(RondoError, RuntimeError):
    """A capture that yields no graph, with the report on it.

    cause   "SYNCHRONIZE", "PAGEABLE_MEMORY" and so on
    what    the same in words
    call    the call that broke it
    cure    what to do about it
    label   path of the label scopes that were open there
    report  the whole report, as lines of text
    """

    def __init__(self, message: str, *, cause: str = "OTHER", what: str = "", cure: str = "",
                 label: str = "", report: str = "", last_node: Optional[str] = None,
                 last_node_index: Optional[int] = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.cause, self.what, self.cure, self.label = cause, what, cure, label
        self.report, self.last_node, self.last_node_index = report, last_node, last_node_index

    def __str__(self) -> str:
        return self.report or self.message


_ERRORS: dict[int, type[RondoError]] = {
    getattr(_raw, "RONDO_STATUS_" + kind.status): kind
    for kind in (InvalidError, StateError, UnsupportedError, HostMemoryError, DeviceMemoryError,
                 UnavailableError, DriverError, LostError, BadDataError, InternalError,
                 CancelledError, MismatchError)
}


def text(value: Optional[bytes]) -> str:
    return value.decode("utf-8", "replace") if value else ""


def make_error(status: int) -> RondoError:
    """The exception of a call that has just returned `status` on this thread."""
    record = lib.rondo_error_get_last().contents
    kind = _ERRORS.get(status, InternalError)
    if record.status != status:
        return kind(text(lib.rondo_status_get_name(status)))
    return kind(text(record.message), call=text(record.call), op=text(record.op),
                driver_code=record.driver_code, driver_name=text(record.driver_name),
                place=f"{text(record.file)}:{record.line}")


def check(status: int) -> None:
    if status:
        raise make_error(status)


def set_log_levels(levels: str) -> None:
    """What the library tells of on stderr: "error", "info", "warning,executor=debug"."""
    check(lib.rondo_log_set_levels(encode(levels)))


_LEVELS = {_raw.RONDO_LOG_ERROR: logging.ERROR, _raw.RONDO_LOG_WARNING: logging.WARNING,
           _raw.RONDO_LOG_INFO: logging.INFO, _raw.RONDO_LOG_DEBUG: logging.DEBUG}
_sinks: list[Any] = []  # all that there were: another thread may be in an earlier one


def log_to(logger: Optional[logging.Logger]) -> None:
    """Hands the library's messages to a logger, each to its child for the part that it comes from
    ("rondo.executor"), with level, time, file and line. None: to stderr again.

    set_log_levels says which messages there are. A handler must not call rondo.
    """
    if logger is None:
        lib.rondo_log_set_record_sink(_raw.rondo_log_record_function(), None)
        return

    @_raw.rondo_log_record_function
    def sink(_data: Any, pointer: Any) -> None:
        record = pointer.contents
        child = logger.getChild(text(record.room))
        level = _LEVELS.get(record.level, logging.DEBUG)
        if child.isEnabledFor(level):
            entry = child.makeRecord(child.name, level, text(record.file), record.line,
                                     text(record.message), (), None)
            entry.created, entry.msecs = record.time_ns / 1e9, record.time_ns // 10**6 % 1000
            child.handle(entry)

    if not _sinks:
        atexit.register(log_to, None)  # threads of the library may outlive the interpreter
    _sinks.append(sink)
    lib.rondo_log_set_record_sink(sink, None)


# ---- structs and lists --------------------------------------------------------------------------


def encode(name: Any) -> bytes:
    """A text for the C API, where a zero would end it."""
    if not isinstance(name, str):
        raise TypeError(f"a name is a text, not {name!r:.60}")
    if "\0" in name:
        raise InvalidError(f"{name!r:.60}: a text here has no zero in it")
    return name.encode()


def encode_path(path: Any) -> bytes:
    """The same for a path of a file."""
    raw = os.fsencode(path)
    if b"\0" in raw:
        raise InvalidError(f"{path!r:.60}: a path has no zero in it")
    return raw


def read_count(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; give a whole number") from None


def fit(struct: Any, name: str, value: Any, what: str = "") -> None:
    """Sets a field. ctypes takes every whole number, and leaves away what does not fit."""
    setattr(struct, name, value)
    if hasattr(value, "__index__"):  # numpy's numbers, too
        kept = getattr(struct, name)
        if not isinstance(kept, float) and (kept or 0) != operator.index(value):
            raise InvalidError(f"{what or name} cannot be {value}")


def new(struct: type, /, **fields: Any) -> Any:
    """A zeroed struct with its size, and these fields."""
    made = struct(struct_size=ctypes.sizeof(struct))
    for name, value in fields.items():
        fit(made, name, value)
    return made


def to_record(struct: Any) -> SimpleNamespace:
    """The struct's fields as attributes, texts decoded."""
    values = {}
    for name, _ in struct._fields_:
        if name == "struct_size":
            continue
        value = getattr(struct, name)
        if isinstance(value, bytes):
            value = text(value)
        elif isinstance(value, ctypes.Array):
            value = tuple(value)
        values[name] = value
    return SimpleNamespace(**values)


def get_record(function: Callable[..., int], kind: type, *arguments: Any) -> SimpleNamespace:
    """What a call of the form get(..., struct *out) fills in."""
    struct = new(kind)
    check(function(*arguments, ctypes.byref(struct)))
    return to_record(struct)


def get_list(function: Callable[..., int], kind: Any, *arguments: Any) -> Sequence[Any]:
    """What a call of the form list(..., struct *entries, capacity, *out_count) lists."""
    count = ctypes.c_size_t()
    check(function(*arguments, None, 0, ctypes.byref(count)))
    entries = (kind * count.value)()
    for entry in entries:
        if hasattr(kind, "struct_size"):
            entry.struct_size = ctypes.sizeof(kind)
    if count.value:
        check(function(*arguments, entries, count.value, ctypes.byref(count)))
    listed: Sequence[Any] = entries[:count.value]
    return listed


def get_text(call: Callable[[Any], int]) -> str:
    """What a call writes through a rondo_write_function; `call` gets that function."""
    pieces: list[bytes] = []

    def write(_user_data: Any, piece: int, size: int) -> bool:
        pieces.append(ctypes.string_at(piece, size))
        return True

    check(call(_WRITE(write)))
    return b"".join(pieces).decode("utf-8", "replace")


# rondo_write_function with the text as an address: its size counts, not a zero.
_WRITE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


# ---- ownership ----------------------------------------------------------------------------------


# Threads that run a host function now. They call nothing of the library, but the collector may find
# garbage there; what it would destroy waits in `postponed` for any other thread.
in_host_functions: set[int] = set()
postponed: "collections.deque[Owner]" = collections.deque()


def destroy_postponed() -> None:
    while postponed and threading.get_ident() not in in_host_functions:
        try:
            owner = postponed.popleft()
        except IndexError:
            return
        owner._finish()


class Owner:
    """A C object, what destroys it, and the owners that it needs until then.

    Garbage is finalised in any order, so an object of Python cannot rely on those that it refers
    to. Owners count: one that others need is destroyed behind them. A token is in `_tokens` for each
    use but the first; taking one out is atomic, also where the collector runs in between. What the
    object's work uses is in `holds`, until it is destroyed, which waits for that work.
    """

    __slots__ = ("handle", "holds", "_destroy", "_needs", "_tokens")
    handle: int

    def __init__(self, handle: Any, destroy: Callable[[int], Any], *needs: "Owner") -> None:
        self.handle, self._destroy, self._needs = handle, destroy, needs
        self.holds: Any = None
        self._tokens: list[None] = []
        for owner in needs:
            owner.retain()
        if postponed:
            destroy_postponed()

    def retain(self) -> "Owner":
        self._tokens.append(None)
        return self

    def release(self) -> None:
        try:
            self._tokens.pop()
            return
        except IndexError:
            pass
        if threading.get_ident() in in_host_functions:
            postponed.append(self)
            return
        if postponed:
            destroy_postponed()
        self._finish()

    def _finish(self) -> None:
        self._destroy(self.handle)
        self.holds = None
        for owner in self._needs:
            owner.release()


class Owned:
    """What a user holds: released by close(), the end of a with block, or the collector."""

    __slots__ = ("_owner", "_h", "__weakref__")
    _owner: Optional[Owner]
    _h: int

    def _own(self, owner: Owner) -> None:
        self._owner, self._h = owner, owner.handle

    def close(self) -> None:
        """Gives the object up; it is freed when nothing needs it any more. Twice is fine."""
        owner = self._owner
        try:
            del self._h  # which one thread can
        except AttributeError:
            return
        self._owner = None
        if owner is not None:
            owner.release()

    def __getattr__(self, name: str) -> Any:
        if name in ("_h", "_stream"):  # what closing takes away
            self._need()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def is_closed(self) -> bool:
        return self._owner is None

    @property
    def handle(self) -> int:
        """The address of the C object, for calls of the C API."""
        return self._need().handle

    def _need(self) -> Owner:
        owner = self._owner
        if owner is None:
            raise StateError(f"this {type(self).__name__} was closed")
        return owner

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy would give up the same C object again; so there is none, and no pickle."""
        raise TypeError(f"a rondo.{type(self).__name__} can be neither copied nor pickled")

    def __enter__(self):  # type: ignore[no-untyped-def]
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except AttributeError:
            pass  # it was never made
