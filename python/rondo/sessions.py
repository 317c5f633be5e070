# SPDX-License-Identifier: Apache-2.0
"""Models: read from ONNX files, run, replayed."""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from types import SimpleNamespace
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

import numpy

from . import _raw
from ._library import (InvalidError, Owned, Owner, StateError, check, encode, encode_path, fit, get_list,
                       get_record, get_text, lib, make_error, new, read_count, text, to_record)
from .bound import BoundRun
from .compatible import choose_device, read_metadata
from .device import Device, Event, Stream, open_device
from .graphs import _value
from .profiles import Profile
from .programs import NodeArg, Program, list_variables, read_ports
from .tensors import (OPTIONAL, SEQUENCE, STRING, Tensor, find_dtype, from_dlpack, put_value,
                      take_value)

__all__ = ["Session", "InferenceSession", "Run"]


class Run:
    """A run that was put on the stream and not waited for. `outputs` waits."""

    def __init__(self, session: "Session", names: list[str], values: list[Any], event: Event,
                 kept: Any) -> None:
        self._session, self.names, self._values = session, names, values
        self.event, self._kept = event, kept

    @property
    def is_complete(self) -> bool:
        return self.event.is_complete

    def wait(self) -> list[Any]:
        """The outputs, when they are there. What only the device finds out is raised here."""
        if self._kept is not None:
            self._session.wait()
            self._kept = None
        return self._values

    @property
    def outputs(self) -> dict[str, Any]:
        return dict(zip(self.names, self.wait()))

    def on_stream(self) -> dict[str, Any]:
        """The outputs at once, for work that is put on the same stream: device tensors alone."""
        return dict(zip(self.names, self._values))


class Session(Owned):
    """A model on a device: the first run is eager, the second captured, the others are replayed.

    model       the path of an ONNX file, its bytes, or a rondo.Program
    device      "auto", "host", "cuda:0"; None: what `providers` says
    dtype       "f32", "f16" to compute in half precision, or "bf16" to compute products in it
    graphs      "auto", "on" (a capture that fails is an error), "off", "measured" (replays that are
                slower than eager runs end)
    stream      where runs are put, also one of torch or cupy; None: one of its own
    dimensions  {"batch": 4}: numbers for symbolic extents
    threads     for one op on the host; 0: the default
    place       {"Gather*": "cpu"}: where ops run
    options     others of rondo_executor_options, by name: seed=1, op_by_op=True, training=True,
                memory_limit_bytes=2**30, self_check_every=1000, keep_f32=["Softmax*"], ...

    sess_options and providers are there for programs written for onnxruntime (a device may stand in
    the place of sess_options, too). Several threads may
    run one session; the runs come one behind another.
    """

    __slots__ = ("device", "inputs", "outputs", "optional_inputs", "_lock", "_program", "_by_name",
                 "_raw_names", "_output_names", "_all_fetches", "_stream", "_source", "model_path")
    device: Device
    inputs: list[NodeArg]
    outputs: list[NodeArg]

    def __init__(self, model: Union[str, os.PathLike[str], bytes, Program], sess_options: Any = None,
                 providers: Any = None, provider_options: Any = None, *,
                 device: Union[str, Device, None] = None, dtype: Any = "f32", graphs: str = "auto",
                 stream: Any = None, dimensions: Optional[Mapping[str, int]] = None,
                 threads: int = 0, place: Optional[Mapping[str, str]] = None,
                 progress: Optional[Callable[[str, int, int], None]] = None,
                 **options: Any) -> None:
        if isinstance(sess_options, (str, Device)):  # Session(model, "cuda:0")
            sess_options, device = None, sess_options
        # Before anything is made: names that are wrong cost nothing.
        raw, kept = _make_options(dtype, graphs, threads, place, options, sess_options)
        self._lock = threading.RLock()
        dimensions = dimensions or getattr(sess_options, "dimensions", None)
        # Of the file's own texts: its bytes, or its path and what it is; None: there is none.
        self._source: Any = None if isinstance(model, (str, os.PathLike, Program)) else model
        if not isinstance(model, Program):
            model = Program(model, dimensions=dimensions)
        elif dimensions:
            raise InvalidError("Session: the dimensions of a Program are said when it is made")
        self.model_path = model.path
        if self._source is None and model.path is not None:
            path = os.path.abspath(model.path)
            self._source = path, _describe_file(path)
        owner = model._need().retain()
        program = ctypes.c_void_p(owner.handle)
        try:
            given = Stream.wrap(stream, device) if stream is not None else None
            if given is not None:
                chosen: Union[str, Device] = given.device
            else:
                chosen = device if device is not None else choose_device(providers, provider_options)
            self.device = open_device(chosen)
            needs = [self.device._need()]
            if given is not None:
                raw.stream = given._need().handle
                needs.append(given._need())
            if progress is not None:
                @_raw.rondo_progress_function
                def report(_data: Any, what: bytes, done: int, total: int) -> None:
                    progress(text(what), done, total)
                raw.progress = report
                kept.append(report)
            handle = ctypes.c_void_p()
            check(lib.rondo_executor_create(program, self.device._h, ctypes.byref(raw),
                                            ctypes.byref(handle)))

            def destroy(address: int, _kept: Any = kept, lock: Any = self._lock) -> None:
                with lock:  # a run of another thread ends first
                    lib.rondo_executor_destroy(address)

            # The program outlives the executor: names of ports are borrowed from it.
            self._own(Owner(handle.value, destroy, *needs, owner))
            self._program = program.value
            self._read_ports(program)
        finally:
            owner.release()
        self._stream = given or Stream._borrow(
            lib.rondo_executor_get_stream(self._h), self.device, self._need())

    def close(self) -> None:
        super().close()
        # The executor's own stream needs it; whoever took that keeps both.
        with contextlib.suppress(AttributeError):
            del self._stream

    def _read_ports(self, program: Any) -> None:
        self.inputs, self.outputs = read_ports(program, "input"), read_ports(program, "output")
        self.optional_inputs = read_ports(program, "optional_input")
        self._by_name = {port.name: port for port in (*self.optional_inputs, *self.inputs)}
        self._output_names = [port.name for port in self.outputs]
        self._raw_names = {port.name: port.raw_name for port in (*self.outputs, *self._by_name.values())}
        # What fetches all outputs into new arrays: a run's own are a copy of it.
        kind = _raw.rondo_binding * max(1, len(self.outputs))
        self._all_fetches = kind(*(_raw.rondo_binding(port.raw_name) for port in self.outputs))

    # ---- what onnxruntime has -----------------------------------------------------------------

    def get_inputs(self) -> list[NodeArg]:
        return self.inputs

    def get_outputs(self) -> list[NodeArg]:
        return self.outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        return self.optional_inputs

    def get_providers(self) -> list[str]:
        cpu = ["CPUExecutionProvider"]
        return cpu if self.device.is_host else ["CUDAExecutionProvider", *cpu]

    def get_modelmeta(self) -> SimpleNamespace:
        """custom_metadata_map, producer_name, graph_name and others, as the ONNX file has them."""
        source = self._source
        if source is None:
            raise StateError("the session was made of a Program, which keeps no such texts: "
                             "read them from its file")
        if isinstance(source, tuple):
            source, known = source
            if known is None or _describe_file(source) != known:
                raise StateError(f"{source} is not the file any more that the session was made of")
        return read_metadata(source)

    # ---- running ------------------------------------------------------------------------------

    def _choose_names(self, names: Optional[Sequence[str]],
                      out: Optional[Mapping[str, Any]]) -> list[str]:
        """The outputs that are asked for; a single one may be said without a list."""
        self._need()
        if out is not None and not isinstance(out, Mapping):
            raise InvalidError(f"out is no mapping of names to arrays, but a {type(out).__name__}")
        if isinstance(names, str):
            names = [names]
        if not names and not out:
            return self._output_names
        chosen = list(names) if names else self._output_names
        for name in chosen:
            if not isinstance(name, str):
                raise InvalidError(f"names of outputs are texts, not {name!r}")
        for name in out or ():
            if name not in chosen:
                raise InvalidError(f"out: {name!r} is not among the outputs that are asked for: "
                                   + ", ".join(chosen))
        return chosen

    def _feed(self, feeds: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """rondo_binding structs, and what they point to."""
        if not isinstance(feeds, Mapping):
            raise InvalidError(f"feeds are a mapping of names to values, not a {type(feeds).__name__}")
        bindings = (_raw.rondo_binding * max(1, len(feeds)))()
        kept: list[Any] = [bindings]
        for binding, (name, value) in zip(bindings, feeds.items()):
            port = self._by_name.get(name)
            if port is None:
                binding.name = encode(name)  # the library names it, and those that there are
                kept.append(put_value(binding.tensor, value, name))
                continue
            binding.name = port.raw_name
            kept.append(put_value(binding.tensor, value, name, port.number, self._stream, port.items))
        return bindings, kept

    def _fetch(self, names: Sequence[str], out: Optional[Mapping[str, Any]],
               on_device: bool) -> tuple[Any, list[Any]]:
        if names is self._output_names and not out and not on_device:
            return type(self._all_fetches).from_buffer_copy(self._all_fetches), [None] * len(names)
        bindings = (_raw.rondo_binding * max(1, len(names)))()
        targets: list[Any] = []
        taken: list[tuple[int, int, str]] = []  # what is given: addresses, behind the last, names
        for binding, name in zip(bindings, names):
            binding.name = self._raw_names.get(name) or encode(name)
            target = out.get(name) if out else None
            if target is not None:
                targets.append(self._put_target(binding.tensor, target, name))
                begin = binding.tensor.data or 0
                nbytes = lib.rondo_tensor_get_bytes(ctypes.byref(binding.tensor))
                if nbytes:
                    taken.append((begin, begin + nbytes, name))
            else:
                targets.append(None)
                if on_device:
                    binding.tensor.device = self.device._h
        taken.sort()
        for (_, end, one), (begin, _, other) in zip(taken, taken[1:]):
            if begin < end:
                raise InvalidError(f"out: {one!r} and {other!r} have the same memory")
        return bindings, targets

    def _put_target(self, tensor: Any, target: Any, name: str) -> Any:
        """An output's own memory: (what is given back, what stays)."""
        if isinstance(target, numpy.ndarray):
            if not target.flags.c_contiguous or not target.flags.writeable:
                raise InvalidError(f"{name}: an output array must be contiguous and writable")
            if not target.dtype.isnative or target.dtype.kind in "OSUT":
                raise InvalidError(f"{name}: no output is written to an array of {target.dtype!r}: "
                                   "numbers in this machine's byte order alone")
            return target, put_value(tensor, target, name)
        given = target
        if not isinstance(target, Tensor):
            if not hasattr(target, "__dlpack__"):
                raise InvalidError(f"{name}: an output is written to an array or a tensor, "
                                   f"not to a {type(target).__name__}")
            given = from_dlpack(target, self._stream)
        given._need_writable()
        return target, put_value(tensor, given, name)

    def _take(self, bindings: Any, targets: list[Any], on_device: bool) -> list[Any]:
        values = []
        for binding, target in zip(bindings, targets):
            if target is not None:
                values.append(target[0])
            elif on_device and binding.tensor.dtype not in (STRING, SEQUENCE, OPTIONAL):
                values.append(Tensor._adopt(binding.tensor, stream=self._stream))
            else:
                values.append(take_value(binding.tensor))
        return values

    def run(self, output_names: Optional[Sequence[str]] = None,
            input_feed: Optional[Mapping[str, Any]] = None, run_options: Any = None, *,
            out: Optional[Mapping[str, Any]] = None, on_device: bool = False) -> list[Any]:
        """Runs, waits, and gives the outputs: numpy arrays, lists for sequences.

        output_names  None: all
        input_feed    by name: numpy arrays, numbers, lists for sequences, anything with DLPack (GPU
                      tensors are read where they are)
        out           by name: arrays or tensors that are written instead of new ones
        on_device     outputs stay on the device, as rondo.Tensor (which speaks DLPack)
        """
        if input_feed is None and isinstance(output_names, Mapping):
            output_names, input_feed = None, output_names
        names = self._choose_names(output_names, out)
        feeds = {} if input_feed is None else input_feed
        bindings, kept = self._feed(feeds)
        fetches, targets = self._fetch(names, out, on_device)
        with self._lock:
            status = lib.bare_rondo_executor_run(ctypes.c_void_p(self._h), bindings,
                                                 ctypes.c_size_t(len(feeds)), fetches,
                                                 ctypes.c_size_t(len(names)))
        if status:
            raise make_error(status)
        del kept
        return self._take(fetches, targets, on_device)

    def __call__(self, **feeds: Any) -> dict[str, Any]:
        """session(x=array): the outputs by name."""
        return dict(zip(self._output_names, self.run(None, feeds)))

    def run_async(self, input_feed: Mapping[str, Any], output_names: Optional[Sequence[str]] = None,
                  *, out: Optional[Mapping[str, Any]] = None) -> Run:
        """Puts a run on the session's stream, behind what is there, and returns.

        Outputs are tensors on the device. Work that is put on the same stream may use them at once.
        """
        names = self._choose_names(output_names, out)
        bindings, kept = self._feed(input_feed)
        fetches, targets = self._fetch(names, out, True)
        done = Event(self.device)
        with self._lock:
            status = lib.rondo_executor_run_async(self._h, bindings, len(input_feed), fetches,
                                                  len(names), done._h)
        if status:
            raise make_error(status)
        values = [target[0] if target is not None else Tensor._adopt(binding.tensor,
                                                                     stream=self._stream)
                  for binding, target in zip(fetches, targets)]
        self._stream._keep.add(kept, targets, values)
        return Run(self, names, values, done, kept)

    def bind_tensors(self, input_feed: Mapping[str, Any],
                     output_names: Optional[Sequence[str]] = None, *,
                     out: Optional[Mapping[str, Any]] = None, on_device: bool = False) -> BoundRun:
        """Names and checks feeds and outputs once, for many runs: see BoundRun. Arguments as run has
        them; inputs are read anew from their arrays in each run."""
        return BoundRun(self, input_feed, output_names, out=out, on_device=on_device)

    def output_shapes(self, feeds: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """The outputs' shapes for these inputs, without a run; -1: only a run tells."""
        bindings, kept = self._feed(feeds)
        with self._lock:
            outputs = get_list(lib.rondo_executor_infer_outputs, _raw.rondo_binding, self._h,
                               bindings, len(feeds))
        del kept
        return {port.name: tuple(entry.tensor.shape.extent[:max(0, entry.tensor.shape.rank)])
                if entry.tensor.shape.rank >= 0 else (-1,)
                for port, entry in zip(self.outputs, outputs)}

    def dump_graphs(self, format: str = "dot") -> list[str]:
        """The graphs of the plan that ran last, with ops as labels: "dot" or "json". For sessions
        that were made with keep_templates=True."""
        with self._lock:
            count = ctypes.c_size_t()
            check(lib.rondo_executor_list_graphs(self._h, None, 0, ctypes.byref(count)))
            graphs = (ctypes.c_void_p * max(1, count.value))()
            check(lib.rondo_executor_list_graphs(self._h, graphs, count.value,
                                                 ctypes.byref(count)))
            number = _value("TEXT", format)

            def dump(graph: Optional[int]) -> str:
                return get_text(lambda write: lib.rondo_graph_dump(graph, number, write, None))

            return [dump(graph) for graph in graphs[:count.value]]

    def wait(self) -> None:
        """Waits for runs that were not waited for, and raises what they have met."""
        with self._lock:
            check(lib.rondo_executor_wait(self._h))

    def rerun(self) -> None:
        """Runs again on the inputs that the last run left on the device."""
        with self._lock:
            check(lib.rondo_executor_rerun(self._h))

    def record(self, stream: Any, feeds: Mapping[str, Any], out: Mapping[str, Any]) -> None:
        """Records a run into the capture of a stream: the model becomes nodes of that graph, which
        reads the feeds and writes `out` at each replay. Run the session once before, with these
        shapes."""
        stream = Stream.wrap(stream, self.device)
        bindings, kept = self._feed(feeds)
        fetches, targets = self._fetch(list(out), out, False)
        stream._keep.add(kept, targets, self)
        with self._lock:
            check(lib.rondo_executor_record(self._h, stream._h, bindings, len(feeds), fetches,
                                            len(out)))

    def cancel(self) -> None:
        """Ends the call that another thread makes on the session now (CancelledError there)."""
        check(lib.rondo_executor_cancel(self._h))

    def self_check(self, feeds: Mapping[str, Any]) -> SimpleNamespace:
        """Runs eagerly and as a graph, and compares what is left, bit for bit."""
        bindings, kept = self._feed(feeds)
        fetches, targets = self._fetch(self._output_names, None, False)
        report = new(_raw.rondo_self_check_report)
        with self._lock:
            check(lib.rondo_executor_self_check(self._h, bindings, len(feeds), fetches, len(targets),
                                                ctypes.byref(report)))
        self._take(fetches, targets, False)
        del kept
        return to_record(report)

    @property
    def self_check_report(self) -> SimpleNamespace:
        """What the latest checked run found (self_check_every=...), also one that failed for it."""
        with self._lock:
            return get_record(lib.rondo_executor_get_self_check, _raw.rondo_self_check_report, self._h)

    # ---- states and weights -------------------------------------------------------------------

    def bind(self, output: Optional[str], input: str) -> None:
        """An input of each run is what an output of the run before was: a state. None: no more."""
        with self._lock:
            check(lib.rondo_executor_bind(self._h, encode(output) if output else None,
                                          encode(input)))

    def get(self, name: str) -> Any:
        """A weight, or the state of an input, as an array of its own."""
        struct = _raw.rondo_tensor()
        with self._lock:
            check(lib.rondo_executor_get_variable(self._h, encode(name), ctypes.byref(struct)))
            # What changed it last may still be at work on the session's stream.
            tensor = Tensor._adopt(struct, is_read_only=True, stream=self._stream)
            return numpy.array(tensor.numpy())

    def set(self, name: str, value: Any) -> None:
        """Replaces a weight for this session, or sets the state of an input."""
        struct = _raw.rondo_tensor()
        port = self._by_name.get(name)
        kept = put_value(struct, value, name, port.number if port else 0, self._stream)
        with self._lock:
            check(lib.rondo_executor_set_variable(self._h, encode(name), ctypes.byref(struct)))
        del kept

    def reserve(self, name: str, nbytes: int) -> None:
        """Takes memory for a state ahead, so that it does not move when it grows."""
        with self._lock:
            check(lib.rondo_executor_reserve_variable(self._h, encode(name), nbytes))

    @property
    def variables(self) -> dict[str, Optional[str]]:
        """The variables of the model, and the output that each is after a run."""
        self._need()
        return list_variables(self._program)

    def reset_variables(self) -> None:
        """Variables that have a start begin again."""
        with self._lock:
            check(lib.rondo_executor_reset_variables(self._h))

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the model as ONNX, its variables with the values that they have now."""
        program = ctypes.c_void_p()
        with self._lock:
            check(lib.rondo_executor_snapshot(self._h, ctypes.byref(program)))
        with Program._adopt(program) as snapshot:
            snapshot.save(path)

    def get_trained(self, model: Program) -> Program:
        """The model from which the step of this session was built, with the values that its
        parameters have now: to be saved, or run."""
        program = ctypes.c_void_p()
        with self._lock:
            check(lib.rondo_executor_get_trained(self._h, model.handle, ctypes.byref(program)))
        return Program._adopt(program)

    def save_checkpoint(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes all variables, those of the optimiser too, and where random numbers stand."""
        with self._lock:
            check(lib.rondo_checkpoint_save(self._h, encode_path(path)))

    def load_checkpoint(self, path: Union[str, os.PathLike[str]]) -> None:
        """Goes on from there, to the same bits as if there had been no end between."""
        with self._lock:
            check(lib.rondo_checkpoint_load(self._h, encode_path(path)))

    # ---- looking ------------------------------------------------------------------------------

    @property
    def stream(self) -> Stream:
        """Where runs are put."""
        return self._stream

    def set_graphs(self, mode: str) -> None:
        """Whether later runs use graphs: "auto", "on", "off", "measured"."""
        with self._lock:
            check(lib.rondo_executor_set_graphs(self._h, _value("GRAPHS", mode)))

    def set_training(self, is_training: bool) -> None:
        """Whether ops that leave it open (Dropout) work as in training, in later runs."""
        with self._lock:
            check(lib.rondo_executor_set_training(self._h, is_training))

    @property
    def times(self) -> SimpleNamespace:
        """Of the last run: latency_ns, enqueue_ns, compute_ns, was_replayed, ..."""
        with self._lock:
            return get_record(lib.rondo_executor_get_times, _raw.rondo_run_times, self._h)

    @property
    def stats(self) -> SimpleNamespace:
        """Of the plan of the last run: op_count, segment_count, node_count, arena_bytes, ..."""
        with self._lock:
            return get_record(lib.rondo_executor_get_stats, _raw.rondo_executor_stats, self._h)

    def inspect(self, feeds: Optional[Mapping[str, Any]] = None,
                format: str = "plain") -> "Inspection":
        """Ops, segments with the reason for each cut, and the memory plan: "plain", "json", "svg".
        A notebook shows it as a picture.

        feeds   whose shapes count; None: those that the model declares
        """
        bindings, kept = self._feed(feeds or {})
        count = len(feeds or {})

        def describe(number: int) -> str:
            with self._lock:
                return get_text(lambda write: lib.rondo_executor_describe_feeds(
                    self._h, bindings, count, number, write, None))

        result = Inspection(describe(_value("TEXT", format)))
        result.svg = describe(_raw.RONDO_TEXT_SVG)
        del kept
        return result

    def list_placements(self, feeds: Optional[Mapping[str, Any]] = None) -> list[SimpleNamespace]:
        """Where ops, copies and tensors are, and why: kind ("op", "transfer", "tensor"), type, name,
        place, reason, bytes.

        feeds   whose shapes count; None: those that the model declares
        """
        bindings, kept = self._feed(feeds or {})
        with self._lock:
            records = [to_record(entry) for entry in get_list(
                lambda *a: lib.rondo_executor_list_placements(*a[:3], a[4], a[3], a[5]),
                _raw.rondo_placement, self._h, bindings, len(feeds or {}))]
        del kept
        for record in records:
            record.kind = _PLACEMENT_KINDS[record.kind]
        return records

    def profile(self, input_feed: Mapping[str, Any], runs: int = 10, warm_up: int = 3,
                **options: Any) -> Profile:
        """Profiles `runs` runs: print it, or leave it to a notebook."""
        for _ in range(warm_up):
            self.run(None, input_feed)
        profile = Profile(os.path.basename(self.model_path or "model"), **options)
        with profile:
            for _ in range(runs):
                self.run(None, input_feed)
        return profile

    def __repr__(self) -> str:
        if self.is_closed:
            return "<rondo.Session closed>"
        return f"<rondo.Session {self.model_path or 'from bytes'} on {self.device.name}>"


class Inspection(str):
    """A text that a notebook shows as a picture."""

    svg = ""

    def _repr_svg_(self) -> str:
        return self.svg


InferenceSession = Session

_PLACEMENT_KINDS = {_raw.RONDO_PLACEMENT_OP: "op", _raw.RONDO_PLACEMENT_TRANSFER: "transfer",
                    _raw.RONDO_PLACEMENT_TENSOR: "tensor"}


def _describe_file(path: str) -> Optional[tuple[int, int, int]]:
    """What tells a file from one that takes its place; None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _make_options(dtype: Any, graphs: str, threads: int, place: Optional[Mapping[str, str]],
                  options: Mapping[str, Any], sess_options: Any) -> tuple[Any, list[Any]]:
    raw = new(_raw.rondo_executor_options, graphs=_value("GRAPHS", graphs), dtype=find_dtype(dtype),
              thread_count=read_count(threads or getattr(sess_options, "intra_op_num_threads", 0),
                                      "threads"))
    kept: list[Any] = []
    level = getattr(sess_options, "graph_optimization_level", None)
    if level is not None and (level == 0 or str(level).endswith("ORT_DISABLE_ALL")):
        raw.op_by_op = True
    kinds = {field[0] for field in _raw.rondo_executor_options._fields_}
    lists = {"keep_f32": options.get("keep_f32", ()), "use_f16": options.get("use_f16", ()),
             "place": [f"{pattern}={where}" for pattern, where in (place or {}).items()]}
    enums = {"branches": "BRANCHES", "tuning": "TUNING", "self_check_action": "SELF_CHECK"}
    for name, value in options.items():
        if name in lists:
            continue
        if name not in kinds or name in ("struct_size", "progress_data", "stream", "workers",
                                         "run_arena", "watchdog", "communicator", "place_count", "keep_f32_count", "use_f16_count"):
            raise TypeError(f"Session: there is no option {name!r}")
        if name in enums:
            value = _value(enums[name], value)
        elif isinstance(value, (str, os.PathLike)):
            value = encode_path(value)
        fit(raw, name, value)
    for name, patterns in lists.items():
        array = (ctypes.c_char_p * max(1, len(patterns)))(*(encode(p) for p in patterns))
        setattr(raw, name, array)
        setattr(raw, name + "_count", len(patterns))
        kept.append(array)
    return raw, kept


