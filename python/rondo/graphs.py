# SPDX-License-Identifier: Apache-2.0
"""Captures and graphs: record once, replay at hardware speed."""
from __future__ import annotations

import contextlib
import ctypes
from types import SimpleNamespace
from typing import Any, Callable, Iterable, Iterator, Optional, Union

from . import _host, _raw
from ._library import (CaptureError, InvalidError, Owned, Owner, RondoError, check,
                       encode, get_list, get_record, get_text, lib, make_error, new, read_count, text, to_record)
from .device import (Device, Stream, _name, count_bytes, count_elements, get_memory, make_launch,
                     open_device)

__all__ = ["Graph", "Node", "capture", "HostCall", "Copy", "Fill", "Launch", "Child"]


def _value(prefix: str, name: str) -> int:
    number = getattr(_raw, f"RONDO_{prefix}_{str(name).upper()}", None)
    if number is None:
        start = f"RONDO_{prefix}_"
        names = [n[len(start):].lower() for n in dir(_raw) if n.startswith(start)]
        raise InvalidError(f"{name!r} is not among: {', '.join(sorted(names))}")
    return int(number)


# ---- what a node does ---------------------------------------------------------------------------


class Node:
    """The handle of one node of one recording; it lives until the graph is reset or updated."""

    __slots__ = ("recording", "number")

    def __init__(self, recording: int, number: int) -> None:
        self.recording, self.number = recording, number

    def _raw(self) -> Any:
        return _raw.rondo_node(self.recording, self.number)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Node) and self.recording == other.recording
                and self.number == other.number)

    def __hash__(self) -> int:
        return hash((self.recording, self.number))

    def __repr__(self) -> str:
        return f"Node({self.recording}, {self.number})"


class _Work:
    """Fills a rondo_work; gives what must stay as long as the graph may do it."""

    def _fill(self, work: Any) -> list[Any]:
        raise NotImplementedError


class HostCall(_Work):
    """A Python function and its arguments, as Stream.call_host has them."""

    def __init__(self, function: Callable[..., Any], *arguments: Any, name: str = "") -> None:
        self.function, self.arguments = function, arguments
        self.name = name or getattr(function, "__name__", "python")

    def _fill(self, work: Any) -> list[Any]:
        call, data = _host.pack(self.function, self.arguments)
        buffer = ctypes.create_string_buffer(data, len(data))
        work.kind, work.name = _raw.RONDO_NODE_HOST, _name(self.name)
        entry: Any = ctypes.cast(_host.trampoline, ctypes.c_void_p).value
        work.function = _raw.rondo_host_function(entry)
        work.arguments, work.argument_bytes = ctypes.addressof(buffer), len(data)
        return [call, buffer]


class Copy(_Work):
    """A copy, as Stream.copy has it."""

    def __init__(self, destination: Any, source: Any, nbytes: Optional[int] = None,
                 kind: str = "device_to_device") -> None:
        self.destination, self.source, self.nbytes, self.kind = destination, source, nbytes, kind

    def _fill(self, work: Any) -> list[Any]:
        to, to_bytes, _ = get_memory(self.destination, True)
        of, of_bytes, _ = get_memory(self.source)
        nbytes = count_bytes("Copy", self.nbytes, to_bytes, of_bytes)
        work.kind, work.copy_kind = _raw.RONDO_NODE_COPY, _value("COPY", self.kind)
        work.destination, work.source, work.byte_count = to, of, nbytes
        return [self.destination, self.source]


class Fill(_Work):
    """A fill, as Stream.fill has it."""

    def __init__(self, destination: Any, value: int, element_bytes: int = 1,
                 count: Optional[int] = None) -> None:
        self.destination, self.value = destination, value
        self.element_bytes, self.count = element_bytes, count

    def _fill(self, work: Any) -> list[Any]:
        address, nbytes, _ = get_memory(self.destination, True)
        count = count_elements("Fill", self.count, self.element_bytes, nbytes)
        work.kind, work.destination, work.fill_value = (
            _raw.RONDO_NODE_FILL, address, read_count(self.value, "Fill: the value") & 0xffffffff)
        work.element_bytes, work.element_count = self.element_bytes, count
        return [self.destination]


class Launch(_Work):
    """A kernel launch, as Stream.launch has it."""

    def __init__(self, function: int, grid: Any, block: Any, arguments: bytes = b"", *,
                 shared_bytes: int = 0, name: str = "kernel", flags: int = 0,
                 keep: Any = None) -> None:
        self.parts = (function, grid, block, arguments, shared_bytes, name, flags)
        self.keep = keep

    def _fill(self, work: Any) -> list[Any]:
        launch, buffer = make_launch(*self.parts)
        work.kind, work.launch = _raw.RONDO_NODE_KERNEL, ctypes.pointer(launch)
        return [launch, buffer, self.keep]


class Child(_Work):
    """A copy of another graph's template."""

    def __init__(self, graph: "Graph") -> None:
        self.graph = graph

    def _fill(self, work: Any) -> list[Any]:
        work.kind, work.graph = _raw.RONDO_NODE_CHILD, self.graph._h
        return [self.graph, self.graph._get_kept()]


def _make_work(what: _Work) -> tuple[Any, list[Any]]:
    work = new(_raw.rondo_work)
    return work, what._fill(work)


# ---- graphs -------------------------------------------------------------------------------------


class _Keeps:
    """What a graph's nodes use; it goes with the C object."""

    __slots__ = ("kept", "memory", "patched", "retired")

    def __init__(self, make_mark: Callable[[], Any]) -> None:
        self.kept: list[Any] = []
        self.memory: Any = None  # another library's
        self.patched: dict[Node, list[Any]] = {}  # what patched nodes use
        self.retired = _host.Keep(make_mark)  # what nodes used, until replays have run

    def clear(self) -> None:
        self.kept, self.memory, self.patched = [], None, {}
        self.retired.clear()


class _Nobody:
    def mark(self) -> None:
        return None


_NOTHING = _Keeps(_Nobody().mark)  # of a graph that was closed


class Graph(Owned):
    """Work that was recorded once; replay() runs it.

    keep   what is left of a capture: "executable", "template" (both: for dumps, nodes, updates and
           other captures) or "template_only"
    arena  shared memory of several graphs (rondo.Arena)
    pageable_sources  "refuse" or "snapshot": what a capture does with copies from ordinary memory
    check_addresses   for tests: replays that use memory which was freed are refused
    """

    __slots__ = ("device", "stream", "_keeps", "_foreign", "_foreign_stream", "_last", "_building")
    device: Device
    stream: Optional[Stream]

    def __init__(self, device: Union[str, Device, None] = None, *, label: Optional[str] = None,
                 keep: str = "template", arena: Any = None, pageable_sources: str = "refuse",
                 check_addresses: bool = False) -> None:
        device = open_device(device)
        options = new(_raw.rondo_graph_options, keep=_value("KEEP", keep),
                      label=encode(label) if label is not None else None,
                      arena=arena._need().handle if arena is not None else None,
                      pageable_sources=_value("PAGEABLE", pageable_sources),
                      check_addresses=check_addresses)
        handle = ctypes.c_void_p()
        check(lib.rondo_graph_create(device._h, ctypes.byref(options), ctypes.byref(handle)))
        self._own(Owner(handle.value, lib.rondo_graph_destroy, device._need()))
        self.device, self.stream = device, None
        self._foreign: Any = None
        self._foreign_stream: Optional[Stream] = None
        self._last: Optional[Stream] = None  # of the latest replay
        self._building: list[Any] = []
        self._keeps = self._need().holds = _Keeps(self._make_mark)

    # ---- recording ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def capture(self, stream: Any, mode: str = "thread_local") -> Iterator["Graph"]:
        """with graph.capture(stream): records what is put on the stream in the block.

        A capture that cannot become a graph raises CaptureError, which says what broke it. Any other
        exception in the block gives the capture up and goes on (with the report as a note, where the
        capture was broken by then). Either way graph and stream can record again.
        """
        stream = Stream.wrap(stream, self.device)
        check(lib.rondo_graph_capture_begin(self._h, stream._h, _value("CAPTURE", mode)))
        kept: list[Any] = []
        with _host.keeping(kept):
            try:
                yield self
            except BaseException as error:
                report = self._abort(stream)
                if report is not None and isinstance(error, RondoError):
                    raise report from error
                if report is not None:
                    error.add_note(str(report))
                raise
            self._end(kept, stream)

    def _abort(self, stream: Stream) -> Optional[CaptureError]:
        """Gives the capture up. Where it was broken before, the report on that."""
        recording = ctypes.c_bool(True)
        status = lib.rondo_stream_is_recording(stream._h, ctypes.byref(recording))
        report = None
        if status == 0 and not recording and lib.rondo_graph_capture_end(self._h):
            report = self.report
        lib.rondo_graph_capture_abort(self._h)
        return report

    def _end(self, kept: list[Any], stream: Optional[Stream]) -> None:
        status = lib.rondo_graph_capture_end(self._h)
        if status:
            raise self._make_capture_error(status)
        self._keeps.kept, self.stream = kept, stream

    @contextlib.contextmanager
    def build(self) -> Iterator["Graph"]:
        """with graph.build(): the graph is made node by node, by graph.add()."""
        check(lib.rondo_graph_build_begin(self._h))
        kept = self._building = []
        try:
            yield self
        except BaseException:
            lib.rondo_graph_capture_abort(self._h)
            raise
        self._end(kept, None)

    def add(self, work: _Work, after: Iterable[Node] = ()) -> Node:
        """Adds a node behind those of `after`; inside graph.build()."""
        struct, kept = _make_work(work)
        before = [node._raw() for node in after]
        node = _raw.rondo_node()
        self._building.extend(kept)
        check(lib.rondo_graph_add_node(self._h, (_raw.rondo_node * len(before))(*before),
                                       len(before), ctypes.byref(struct), ctypes.byref(node)))
        return Node(node.recording, node.number)

    def _make_capture_error(self, status: int) -> RondoError:
        record = make_error(status)
        report = self.report
        if report is None:
            return record
        report.status = record.status
        return report

    @property
    def report(self) -> Optional[CaptureError]:
        """What broke the latest capture; None where it did not fail."""
        raw = new(_raw.rondo_capture_report)
        check(lib.rondo_graph_get_report(self._h, ctypes.byref(raw)))
        if raw.status == 0:
            return None
        buffer = ctypes.create_string_buffer(4096)
        lib.rondo_capture_report_format(ctypes.byref(raw), buffer, len(buffer))
        return CaptureError(
            text(raw.message), status=text(lib.rondo_status_get_name(raw.status)),
            cause=text(lib.rondo_capture_cause_get_name(raw.cause)), what=text(raw.what),
            cure=text(raw.advice), call=text(raw.call), op=text(raw.op), label=text(raw.label),
            driver_code=raw.driver_code, driver_name=text(raw.driver_name),
            place=f"{text(raw.file)}:{raw.line}", report=text(buffer.value).rstrip("\n"),
            last_node=text(raw.last_node_name) if raw.has_last_node else None,
            last_node_index=raw.last_node_index if raw.has_last_node else None)

    # ---- replaying ----------------------------------------------------------------------------

    def replay(self, stream: Any = None) -> None:
        """Runs the recorded work on a stream of the device (None: the one that was captured).

        A stream of another library may stand here; the one used last is remembered.
        """
        if stream is None:
            stream = self.stream or self._miss_stream()
        if type(stream) is not Stream:
            stream = self._wrap(stream)
        status = lib.rondo_graph_replay(self._h, stream._h)
        if status:
            raise make_error(status)
        self._last = stream

    def _make_mark(self) -> Any:
        """Replays come one behind another, so the latest one's end is that of all."""
        return self._last._make_mark() if self._last is not None and not self._last.is_closed else None

    def _miss_stream(self) -> Stream:
        raise InvalidError("nothing was captured on a stream: say on which one to replay")

    def _wrap(self, stream: Any) -> Stream:
        if type(stream) is Stream:
            return stream
        if self._foreign is not stream or self._foreign_stream is None:
            self._foreign, self._foreign_stream = stream, Stream.wrap(stream, self.device)
        return self._foreign_stream

    def upload(self, stream: Any = None) -> None:
        """Makes the first replay cost no more than later ones."""
        target = self.stream or self._miss_stream() if stream is None else self._wrap(stream)
        check(lib.rondo_graph_upload(self._h, target._h))

    def reset(self) -> None:
        """Waits for replays and empties the graph, which can record again."""
        check(lib.rondo_graph_reset(self._h))
        self._keeps.clear()

    def _get_kept(self) -> list[Any]:
        """What another graph with a copy of the template keeps."""
        return list(self._keeps.kept)

    def instantiate(self) -> None:
        check(lib.rondo_graph_instantiate(self._h))

    def update(self, source: "Graph") -> SimpleNamespace:
        """Takes over what `source` recorded, by patching where nodes and edges are the same."""
        report = new(_raw.rondo_update_report)
        report.difference.struct_size = ctypes.sizeof(_raw.rondo_difference)
        check(lib.rondo_graph_update(self._h, source._h, ctypes.byref(report)))
        self._keeps.retired.add(self._keeps.kept)  # replays in flight do what they did
        self._keeps.kept, source._keeps.kept = source._keeps.kept, []
        if self.stream is None:
            self.stream = source.stream
        return SimpleNamespace(
            was_patched=report.result == _raw.RONDO_UPDATE_PATCHED,
            difference=_to_difference(report.difference) if report.has_difference else None)

    def compare(self, other: "Graph") -> list[SimpleNamespace]:
        """Every field in which the other template differs; `text` says it in words."""
        return [_to_difference(entry) for entry in
                get_list(lib.rondo_graph_compare, _raw.rondo_difference, self._h, other._h)]

    # ---- nodes --------------------------------------------------------------------------------

    def patch(self, *patches: tuple[Node, _Work]) -> None:
        """graph.patch((node, Fill(x, 3)), ...): what nodes do from the next replay on; all or
        nothing."""
        raw = (_raw.rondo_patch * len(patches))()
        kept: dict[Node, list[Any]] = {}
        for entry, (node, what) in zip(raw, patches):
            work, kept[node] = _make_work(what)
            kept[node].append(work)
            entry.node, entry.work = node._raw(), ctypes.pointer(work)
        check(lib.rondo_graph_patch(self._h, raw, len(patches)))
        for node in kept:
            if node in self._keeps.patched:
                self._keeps.retired.add(self._keeps.patched[node])
        self._keeps.patched.update(kept)

    def _toggle(self, nodes: Iterable[Node], toggle: int) -> None:
        patches = [_raw.rondo_patch(node=node._raw(), toggle=toggle) for node in nodes]
        check(lib.rondo_graph_patch(self._h, (_raw.rondo_patch * len(patches))(*patches),
                                    len(patches)))

    def disable(self, *nodes: Node) -> None:
        """The nodes do nothing; those behind them run as before."""
        self._toggle(nodes, _raw.RONDO_TOGGLE_DISABLE)

    def enable(self, *nodes: Node) -> None:
        self._toggle(nodes, _raw.RONDO_TOGGLE_ENABLE)

    def index_of(self, node: Node) -> int:
        index = ctypes.c_size_t()
        check(lib.rondo_graph_get_node_index(self._h, node._raw(), ctypes.byref(index)))
        return index.value

    @property
    def node_count(self) -> int:
        count = ctypes.c_size_t()
        check(lib.rondo_graph_get_node_count(self._h, ctypes.byref(count)))
        return count.value

    @property
    def nodes(self) -> list[SimpleNamespace]:
        """What each node of the template does: kind, name, label, grid, byte_count, ..."""
        result = []
        for index in range(self.node_count):
            record = get_record(lib.rondo_graph_get_node, _raw.rondo_graph_node, self._h, index)
            record.kind = _NODE_KINDS[record.kind]
            result.append(record)
        return result

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Pairs of indices: the second node depends on the first."""
        return [(getattr(edge, "from"), edge.to) for edge in
                get_list(lib.rondo_graph_list_edges, _raw.rondo_graph_edge, self._h)]

    def dump(self, format: str = "dot") -> str:
        """The template as Graphviz ("dot") or "json"."""
        number = _value("TEXT", format)
        return get_text(lambda write: lib.rondo_graph_dump(self._h, number, write, None))

    @property
    def stats(self) -> SimpleNamespace:
        """node_count, replay_count, capture_ns, device_bytes, arena_live_bytes, ..."""
        return get_record(lib.rondo_graph_get_stats, _raw.rondo_graph_stats, self._h)

    def measure_device_bytes(self) -> int:
        """The driver's memory for one executable, by making many; a GPU's alone."""
        nbytes = ctypes.c_uint64()
        check(lib.rondo_graph_measure_device_bytes(self._h, ctypes.byref(nbytes)))
        return nbytes.value

    @property
    def arena(self) -> Any:
        """The graph's memory, for other graphs to share."""
        from .memory import Arena
        handle = ctypes.c_void_p()
        check(lib.rondo_graph_get_arena(self._h, ctypes.byref(handle)))
        return Arena._borrow(handle.value, self.device)

    @property
    def native(self) -> tuple[int, int]:
        """CUgraph and CUgraphExec, borrowed, for other libraries."""
        template, executable = ctypes.c_void_p(), ctypes.c_void_p()
        check(lib.rondo_graph_get_native(self._h, ctypes.byref(template), ctypes.byref(executable)))
        return template.value or 0, executable.value or 0

    def close(self) -> None:
        super().close()
        self._foreign = self._foreign_stream = self._last = None
        self._keeps = _NOTHING  # its owner has them, as long as it must

    def __repr__(self) -> str:
        return f"<rondo.Graph on {self.device.name}{' closed' if self.is_closed else ''}>"


def _to_difference(raw: Any) -> SimpleNamespace:
    record = to_record(raw)
    buffer = ctypes.create_string_buffer(512)
    lib.rondo_difference_format(ctypes.byref(raw), buffer, len(buffer))
    record.text = text(buffer.value)
    return record


_NODE_KINDS = {getattr(_raw, name): name[len("RONDO_NODE_"):].lower() for name in dir(_raw)
               if name.startswith("RONDO_NODE_")}


@contextlib.contextmanager
def capture(stream: Any = None, *, device: Union[str, Device, None] = None,
            mode: str = "thread_local", label: Optional[str] = None, pool: Any = None,
            **options: Any) -> Iterator[Graph]:
    """with rondo.capture(stream) as graph: records what the block puts on the stream.

    stream   of Rondo, or of torch, cupy and others (__cuda_stream__, or an address). None: a new
             one, which is graph.stream
    mode     whose unrelated calls break the capture: "thread_local", "global", "relaxed"
    pool     torch and cupy: take their memory for the block from this rondo.Pool; None: one that
             goes with the graph. torch: a graph that was captured so lends its memory, as torch's
             pool= does, and what one replay left there the other's overwrites
    options  of rondo.Graph

    Work of torch or cupy is recorded where their current stream is `stream`, as it is in the block
    for a stream of theirs. What they allocate there belongs to the graph.
    """
    foreign = stream
    if stream is None:
        stream = Stream(device)
    else:
        stream = Stream.wrap(stream, device)
    graph = Graph(stream.device, label=label, **options)
    graph.stream = stream
    with contextlib.ExitStack() as stack:
        _enter_library(stack, foreign, stream, graph, pool)
        stack.enter_context(graph.capture(stream, mode))
        yield graph


def _enter_library(stack: contextlib.ExitStack, foreign: Any, stream: Stream, graph: Graph,
                   pool: Any) -> None:
    """Makes the stream current in the library that it came from, and its memory the graph's."""
    module = type(foreign).__module__.partition(".")[0]
    if module == "torch":
        from .interop import torch as helper
    elif module == "cupy":
        from .interop import cupy as helper  # type: ignore[no-redef]
    else:
        return
    stack.enter_context(helper.recording(foreign, stream, graph, pool))

