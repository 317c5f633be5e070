# SPDX-License-Identifier: Apache-2.0
"""Steps whose arguments change from replay to replay, with their code unchanged."""
from __future__ import annotations

import ctypes
import math
from types import SimpleNamespace
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from . import _host, _raw
from ._library import (InvalidError, Owned, Owner, _ERRORS, check, encode, fit, get_list, get_record,
                       get_text, lib, make_error, new, text, to_record)
from .device import Device, Stream, get_memory, open_device
from .graphs import _value

__all__ = ["Argument", "Learned", "learn"]

_KINDS = {"pointer": "POINTER", "bool": "BOOL", "float": "FLOAT", "float32": "FLOAT",
          "double": "DOUBLE", "float64": "DOUBLE", "struct": "STRUCT", "int": "INT64",
          "uint": "UINT64", **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}"
                               for sign in ("", "u") for bits in (8, 16, 32, 64)}}
_FIELDS = {_raw.RONDO_ARGUMENT_POINTER: "pointer", _raw.RONDO_ARGUMENT_FLOAT: "single",
           _raw.RONDO_ARGUMENT_DOUBLE: "number", _raw.RONDO_ARGUMENT_BOOL: "unsigned_integer",
           _raw.RONDO_ARGUMENT_STRUCT: "bytes",
           **{getattr(_raw, f"RONDO_ARGUMENT_INT{bits}"): "integer" for bits in (8, 16, 32, 64)},
           **{getattr(_raw, f"RONDO_ARGUMENT_UINT{bits}"): "unsigned_integer"
              for bits in (8, 16, 32, 64)}}


_REALS = (_raw.RONDO_ARGUMENT_FLOAT, _raw.RONDO_ARGUMENT_DOUBLE)


class Argument:
    """What one argument of a step may be.

    kind         "pointer", "int8" to "uint64", "bool", "float32", "float64", "struct"; or an array,
                 tensor or block, for a pointer to such memory
    extent       pointers: bytes behind it that the step may use
    alignment    pointers: a power of two that it is a multiple of
    memory       pointers: "device" or "pinned"
    least, most  numbers: the domain; none: all values
    multiple_of  integers
    values       all but pointers: the only values
    is_unchecked pointers: memory that Rondo and the driver do not know, as numpy's
    is_exclusive pointers: it shares no byte with another pointer argument
    nbytes       structs: the size
    """

    def __init__(self, kind: Any = "pointer", *, extent: int = 0, alignment: int = 0,
                 memory: str = "device", least: Any = None, most: Any = None, multiple_of: int = 0,
                 values: Sequence[Any] = (), is_unchecked: bool = False,
                 is_exclusive: bool = False, nbytes: int = 0) -> None:
        if not isinstance(kind, str):
            _, known, on_host = get_memory(kind)
            extent = extent or known or 0
            itemsize = getattr(getattr(kind, "dtype", None), "itemsize", 1)
            alignment = alignment or itemsize
            is_unchecked = is_unchecked or (on_host and hasattr(kind, "__array_interface__"))
            kind = "pointer"
        name = _KINDS.get(kind.lower())
        if name is None:
            raise InvalidError(f"{kind!r} is not among: {', '.join(sorted(_KINDS))}")
        self.kind = getattr(_raw, "RONDO_ARGUMENT_" + name)
        self.field = _FIELDS[self.kind]
        self.extent, self.alignment, self.memory = extent, alignment, memory
        self.least, self.most, self.multiple_of = least, most, multiple_of
        self.values, self.nbytes = tuple(values), nbytes
        self.is_unchecked, self.is_exclusive = is_unchecked, is_exclusive

    def describe(self, raw: Any, name: str) -> list[Any]:
        raw.struct_size = ctypes.sizeof(raw)
        raw.name, raw.kind, raw.bytes = encode(name), self.kind, self.nbytes
        raw.extent, raw.alignment = self.extent, self.alignment
        raw.memory = _value("MEMORY", self.memory)
        raw.is_unchecked, raw.is_exclusive = self.is_unchecked, self.is_exclusive
        raw.multiple_of = self.multiple_of
        kept: list[Any] = []
        for bound, value in (("least", self.least), ("most", self.most)):
            if value is not None:
                self.put(getattr(raw, bound), value, kept)
        if self.values:
            values = (_raw.rondo_value * len(self.values))()
            for entry, value in zip(values, self.values):
                self.put(entry, value, kept)
            raw.values, raw.value_count = values, len(values)
            kept.append(values)
        return kept

    def put(self, raw: Any, value: Any, kept: list[Any]) -> None:
        if self.field == "pointer":
            value = get_memory(value)[0]
        elif self.field == "bytes":
            buffer = ctypes.create_string_buffer(bytes(value), self.nbytes)
            kept.append(buffer)
            value = ctypes.addressof(buffer)
        elif hasattr(value, "__index__") and self.kind not in _REALS:
            fit(raw, self.field, value, "an argument")
            return
        setattr(raw, self.field, value)
        if self.kind in _REALS and math.isinf(getattr(raw, self.field)) and not math.isinf(value):
            raise InvalidError(f"an argument cannot be {value}")

    def get(self, raw: Any) -> Any:
        value = getattr(raw, self.field)
        if self.field == "bytes":
            return ctypes.string_at(value, self.nbytes)
        if self.kind == _raw.RONDO_ARGUMENT_BOOL:
            return bool(value)
        return value or 0 if self.field == "pointer" else value


class Steps:
    """Calls a step of Python's for the library, and keeps what it raises."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.streams: list[Stream] = []  # that calls have given, innermost last
        self.error: Optional[BaseException] = None
        self.is_inside = False

    def find_stream(self, handle: int) -> Stream:
        for stream in self.streams:
            if stream._h == handle:
                return stream
        return Stream._borrow(handle, self.device, self.device._need())

    def call(self, function: Callable[..., Any], handle: int, *arguments: Any) -> int:
        try:
            function(self.find_stream(handle), *arguments)
            return 0
        except BaseException as error:
            self.error = error
            for number, kind in _ERRORS.items():
                if isinstance(error, kind):
                    return number
            return _raw.RONDO_STATUS_INVALID

    def check(self, status: int) -> None:
        error, self.error = self.error, None
        if status:
            if error is not None:
                raise error
            raise make_error(status)


class Learned(Owned):
    """A step that was, or will be, learned: run() patches what has changed, and replays."""

    __slots__ = ("device", "arguments", "_steps", "_kept", "_values", "_callback")

    def __init__(self, step: Callable[..., Any], arguments: Mapping[str, Any],
                 device: Union[str, Device, None] = None, *, label: Optional[str] = None,
                 fallback: str = "cheapest", mode: str = "thread_local", check_every: int = 0,
                 check_addresses: bool = False, seed: int = 0, learn_ms: float = 0,
                 draws_wanted: int = 0, arena: Any = None) -> None:
        self.device = open_device(device)
        described = {name: a if isinstance(a, Argument) else Argument(a)
                     for name, a in arguments.items()}
        self.arguments = described
        kinds = list(described.values())
        raw = (_raw.rondo_argument * max(1, len(kinds)))()
        buffers = [a.describe(entry, name) for entry, (name, a) in zip(raw, described.items())]
        options = new(_raw.rondo_learned_options, label=encode(label) if label else None,
                      fallback=_value("LEARN", fallback), mode=_value("CAPTURE", mode),
                      check_addresses=check_addresses, check_every=check_every, seed=seed,
                      learn_ns=int(learn_ms * 1e6), draws_wanted=draws_wanted,
                      arena=arena._need().handle if arena is not None else None)
        steps = Steps(self.device)

        @_raw.rondo_learned_function
        def call(stream: int, values: Any, _user_data: Any) -> int:
            return steps.call(step, stream, *(a.get(values[i]) for i, a in enumerate(kinds)))

        handle = ctypes.c_void_p()
        check(lib.rondo_learned_create(self.device._h, ctypes.byref(options), raw, len(kinds), call,
                                       None, ctypes.byref(handle)))
        del buffers

        def destroy(address: int, _callback: Any = call) -> None:
            lib.rondo_learned_destroy(address)

        self._own(Owner(handle.value, destroy, self.device._need()))
        self._steps, self._callback = steps, call
        self._kept: list[Any] = []
        self._need().holds = self._kept
        self._values = (_raw.rondo_value * max(1, len(kinds)))()

    def _call(self, function: Callable[..., int], stream: Any, values: tuple[Any, ...]) -> None:
        kinds = self.arguments.values()
        if len(values) != len(kinds):
            raise InvalidError(f"the step takes {', '.join(self.arguments) or 'nothing'}: "
                               f"{len(kinds)}, and not {len(values)}")
        kept: list[Any] = []
        for raw, argument, value in zip(self._values, kinds, values):
            argument.put(raw, value, kept)
        stream = Stream.wrap(stream, self.device)
        stream._keep.add(values, kept)
        self._steps.streams.append(stream)
        before = len(self._kept)
        try:
            # Recordings must find the same functions again, so all that steps used is kept.
            with _host.keeping(self._kept):
                status = function(self._h, stream._h, self._values, len(values))
        finally:
            self._steps.streams.pop()
        if len(self._kept) != before:
            self._kept[:] = {id(entry): entry for entry in self._kept}.values()
        self._steps.check(status)

    def run(self, stream: Any, *values: Any) -> None:
        """Runs the step with these values: the first run learns."""
        self._call(lib.rondo_learned_run, stream, values)

    __call__ = run

    def learn(self, stream: Any, *values: Any) -> SimpleNamespace:
        """Learns the step without running it; gives the report."""
        self._call(lib.rondo_learned_learn, stream, values)
        return self.report

    def try_values(self, *values: Any) -> None:
        """Names values that must be foretold, too: a special case that the program knows of."""
        kept: list[Any] = []
        raw = (_raw.rondo_value * max(1, len(values)))()
        for entry, argument, value in zip(raw, self.arguments.values(), values):
            argument.put(entry, value, kept)
        check(lib.rondo_learned_try(self._h, raw, len(values)))

    @property
    def report(self) -> SimpleNamespace:
        """state ("proved", "refused", "not_yet"), what, advice, slot_count, missed_share, ..."""
        record = get_record(lib.rondo_learned_get_report, _raw.rondo_learned_report, self._h)
        record.state = _STATES[record.state]
        record.refusal = text(lib.rondo_refusal_get_name(record.refusal))
        record.what, record.advice = record.what or "", record.advice or ""
        return record

    @property
    def findings(self) -> list[SimpleNamespace]:
        return [to_record(entry) for entry in get_list(
            lib.rondo_learned_list_findings, _raw.rondo_learned_finding, self._h)]

    @property
    def slots(self) -> list[SimpleNamespace]:
        """The words that depend on arguments, each with its formula."""
        return [to_record(entry) for entry in get_list(
            lib.rondo_learned_list_slots, _raw.rondo_learned_slot, self._h)]

    @property
    def stats(self) -> SimpleNamespace:
        return get_record(lib.rondo_learned_get_stats, _raw.rondo_learned_stats, self._h)

    def describe(self, format: str = "plain") -> str:
        number = _value("TEXT", format)
        return get_text(lambda write: lib.rondo_learned_describe(self._h, number, write, None))

    @property
    def graph_node_count(self) -> int:
        count = ctypes.c_size_t()
        check(lib.rondo_graph_get_node_count(lib.rondo_learned_get_graph(self._h),
                                             ctypes.byref(count)))
        return count.value


_STATES = {getattr(_raw, name): name[len("RONDO_LEARNED_"):].lower()
           for name in ("RONDO_LEARNED_NOT_YET", "RONDO_LEARNED_PROVED", "RONDO_LEARNED_REFUSED")}


def learn(step: Callable[..., Any], arguments: Union[Mapping[str, Any], Iterable[tuple[str, Any]]],
          device: Union[str, Device, None] = None, **options: Any) -> Learned:
    """A step(stream, *values) that puts work on the stream, learned at its first run.

    arguments   by name and in order: an Argument, a kind ("int64", "float32"), or an array, tensor
                or block that stands for pointers to such memory
    options     of Learned

    The step is called some hundred times with made-up values, and with addresses in the place of
    arrays, while nothing runs; it must have no effect but on the stream. Python functions that it
    puts there must be the same objects in each call.
    """
    return Learned(step, dict(arguments), device, **options)


