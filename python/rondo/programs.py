# SPDX-License-Identifier: Apache-2.0
"""Models that lie on no device: read, built in code, changed, written."""
from __future__ import annotations

import contextlib
import ctypes
import os
from types import SimpleNamespace
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Union

import numpy

from . import _raw
from ._library import (InvalidError, Owned, Owner, check, encode, encode_path, fit, get_list, get_text,
                       lib, new, read_count, text)
from .graphs import _value
from .tensors import (OPTIONAL, SEQUENCE, STRING, Tensor, find_dtype, get_numpy_dtype, put_value)

__all__ = ["Builder", "NodeArg", "Program"]

_ORT_NAMES = {"f32": "float", "f64": "double", "f16": "float16", "bf16": "bfloat16", "i8": "int8",
              "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
              "u32": "uint32", "u64": "uint64", "c64": "complex64", "c128": "complex128",
              "i4": "int4", "u4": "uint4", "i2": "int2", "u2": "uint2", "f4e2m1": "float4e2m1",
              "f8e4m3fn": "float8e4m3fn", "f8e4m3fnuz": "float8e4m3fnuz", "f8e5m2": "float8e5m2",
              "f8e5m2fnuz": "float8e5m2fnuz", "f8e8m0": "float8e8m0"}


def _name_type(number: int, items: Sequence[int]) -> str:
    """As onnxruntime writes it: "tensor(float)", "seq(tensor(int64))"."""
    if number in (SEQUENCE, OPTIONAL):
        inner = _name_type(items[0], items[1:]) if items and items[0] else "tensor(float)"
        return f"{'seq' if number == SEQUENCE else 'optional'}({inner})"
    name = text(lib.rondo_dtype_get_name(number))
    return f"tensor({_ORT_NAMES.get(name, name)})"


class NodeArg:
    """An input or output of a model: name, shape (numbers, names of symbols, None), type."""

    def __init__(self, port: Any) -> None:
        self.name = text(port.name)
        self.number = port.dtype
        self.items = tuple(port.item_dtype)
        self.type = _name_type(port.dtype, self.items)
        self.raw_name = port.name
        self.shape: Optional[list[Any]] = None
        if port.rank >= 0:
            self.shape = [port.extent[axis] if port.extent[axis] >= 0
                          else text(port.symbol[axis]) or None for axis in range(port.rank)]

    @property
    def dtype(self) -> Any:
        """As numpy has it; object for strings, sequences and optionals."""
        if self.number in (STRING, SEQUENCE, OPTIONAL, _raw.RONDO_DTYPE_NONE):
            return numpy.dtype(object)
        return get_numpy_dtype(self.number)

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


def read_ports(program: Any, kind: str) -> list[NodeArg]:
    """The ports of a program: "input", "output", "optional_input"."""
    ports = []
    for index in range(getattr(lib, f"rondo_program_get_{kind}_count")(program)):
        port = new(_raw.rondo_port)
        check(getattr(lib, f"rondo_program_get_{kind}")(program, index, ctypes.byref(port)))
        ports.append(NodeArg(port))
    return ports


class Program(Owned):
    """A model, read from an ONNX file or its bytes, or finished by a rondo.Builder. A session of it
    runs it: rondo.Session(program, device="cuda:0").

    dimensions   {"batch": 4}: numbers for symbolic extents
    """

    __slots__ = ("path",)
    path: Optional[str]

    def __init__(self, model: Union[str, os.PathLike[str], bytes], *,
                 dimensions: Optional[Mapping[str, int]] = None) -> None:
        self.path = os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
        program = ctypes.c_void_p()
        if isinstance(model, (str, os.PathLike)):
            check(lib.rondo_program_load_onnx(encode_path(model), ctypes.byref(program)))
        else:
            try:
                data = memoryview(model).tobytes()
            except TypeError:
                raise TypeError("a model is the path of an ONNX file, its bytes or a rondo.Program, "
                                f"not {model!r:.60}") from None
            check(lib.rondo_program_parse_onnx(data, len(data), ctypes.byref(program)))
        self._own(Owner(program.value, lib.rondo_program_destroy))
        for symbol, extent in (dimensions or {}).items():
            number = ctypes.c_int64()
            what = f"dimension {symbol!r}"
            fit(number, "value", read_count(extent, what), what)
            check(lib.rondo_program_set_dimension(self.handle, encode(symbol), number))

    @classmethod
    def _adopt(cls, handle: Any) -> "Program":
        self = cls.__new__(cls)
        self.path = None
        self._own(Owner(handle.value, lib.rondo_program_destroy))
        return self

    @property
    def inputs(self) -> list[NodeArg]:
        return read_ports(self.handle, "input")

    @property
    def outputs(self) -> list[NodeArg]:
        return read_ports(self.handle, "output")

    @property
    def optional_inputs(self) -> list[NodeArg]:
        return read_ports(self.handle, "optional_input")

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters and constants by name, as arrays of their own."""
        entries = get_list(lambda program, out, capacity, count: lib.rondo_program_list_parameters(
            program, capacity, out, count), _raw.rondo_parameter, ctypes.c_void_p(self.handle))
        values = {}
        for entry in entries:
            share = _raw.rondo_tensor()
            lib.rondo_tensor_share(entry.tensor, ctypes.byref(share))
            values[text(entry.name)] = _copy(share)
        return values

    @property
    def variables(self) -> dict[str, Optional[str]]:
        """The variables, and the output that each is after a run."""
        return list_variables(self.handle)

    @property
    def nodes(self) -> list[SimpleNamespace]:
        """Each node: op, domain, version, name, place, inputs, outputs."""
        nodes = []
        for index in range(lib.rondo_program_get_node_count(self.handle)):
            raw = new(_raw.rondo_program_node)
            check(lib.rondo_program_get_node(self.handle, index, ctypes.byref(raw)))
            nodes.append(SimpleNamespace(
                op=text(raw.op), domain=text(raw.domain), version=raw.version, name=text(raw.name),
                place=text(raw.place),
                inputs=[text(lib.rondo_program_get_node_input(self.handle, index, i))
                        for i in range(raw.input_count)],
                outputs=[text(lib.rondo_program_get_node_output(self.handle, index, i))
                         for i in range(raw.output_count)]))
        return nodes

    def get_metadata(self, key: str) -> Optional[str]:
        value = lib.rondo_program_get_metadata(self.handle, encode(key))
        return None if value is None else text(value)

    def describe(self, format: str = "plain") -> str:
        """Inputs, outputs, parameters and nodes: "plain" or "json"."""
        number = _value("TEXT", format)
        return get_text(lambda write: lib.rondo_program_describe(self.handle, number, write, None))

    def make_variables(self, *names: str) -> "Program":
        """A program in which these parameters are variables, which session.set() replaces."""
        program = ctypes.c_void_p()
        check(lib.rondo_program_make_variables(self.handle, make_texts(names), len(names),
                                               ctypes.byref(program)))
        return Program._adopt(program)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes it as ONNX."""
        check(lib.rondo_program_save_onnx(self.handle, encode_path(path)))

    def __repr__(self) -> str:
        return f"<rondo.Program {'closed' if self.is_closed else self.path or 'from memory'}>"


def list_variables(program: Any) -> dict[str, Optional[str]]:
    entries = get_list(lambda handle, out, capacity, count: lib.rondo_program_list_variables(
        handle, capacity, out, count), _raw.rondo_variable, ctypes.c_void_p(program))
    return {text(entry.name): text(entry.update) or None for entry in entries}


def _copy(share: Any) -> Any:
    from .tensors import take_value
    return numpy.array(take_value(share))


def make_texts(texts: Sequence[Optional[str]]) -> Any:
    """An array of C strings; None is NULL."""
    return (ctypes.c_char_p * max(1, len(texts)))(
        *(encode(entry) if entry is not None else None for entry in texts))


# ---- building -----------------------------------------------------------------------------------


def _fill_port(port: Any, name: str, dtype: Any, shape: Optional[Sequence[Any]]) -> None:
    port.name, port.dtype, port.rank = encode(name), find_dtype(dtype), -1
    if shape is None:
        return
    if len(shape) > len(port.extent):
        raise InvalidError(f"{name}: {len(shape)} axes; there are at most {len(port.extent)}")
    port.rank = len(shape)
    for axis, extent in enumerate(shape):
        port.extent[axis] = -1 if extent is None or isinstance(extent, str) else extent
        if isinstance(extent, str):
            port.symbol[axis] = encode(extent)
        elif extent is not None and port.extent[axis] != extent:
            raise InvalidError(f"{name}: an extent of {extent}; they fit 63 bits")


def _make_attribute(raw: Any, name: str, value: Any) -> list[Any]:
    """Fills a rondo_attribute by the type of the value; gives what must stay until it is copied."""
    raw.name = encode(name)
    if isinstance(value, (bool, int, numpy.integer, numpy.bool_)):
        raw.kind = _raw.RONDO_ATTRIBUTE_INT
        fit(raw, "int_value", int(value), name)
    elif isinstance(value, (float, numpy.floating)):
        raw.kind, raw.float_value = _raw.RONDO_ATTRIBUTE_FLOAT, float(value)
    elif isinstance(value, str):
        raw.kind, raw.string_value = _raw.RONDO_ATTRIBUTE_STRING, encode(value)
    elif isinstance(value, (list, tuple)):
        return _make_list(raw, name, value)
    else:
        tensor = _raw.rondo_tensor()
        kept = put_value(tensor, value, name)
        raw.kind, raw.tensor = _raw.RONDO_ATTRIBUTE_TENSOR, ctypes.pointer(tensor)
        return [tensor, kept]
    return []


def _make_list(raw: Any, name: str, values: Sequence[Any]) -> list[Any]:
    array: Any
    if values and all(isinstance(value, str) for value in values):
        array = make_texts(values)
        raw.kind, raw.strings = _raw.RONDO_ATTRIBUTE_STRINGS, array
    elif all(isinstance(value, (bool, int, numpy.integer)) for value in values):
        array = (ctypes.c_int64 * max(1, len(values)))(*values)
        if any(kept != value for kept, value in zip(array, values)):
            raise InvalidError(f"{name}: {list(values)} do not fit 64 bits")
        raw.kind, raw.ints = _raw.RONDO_ATTRIBUTE_INTS, array
    elif all(isinstance(value, (int, float, numpy.number)) for value in values):
        array = (ctypes.c_float * max(1, len(values)))(*values)
        raw.kind, raw.floats = _raw.RONDO_ATTRIBUTE_FLOATS, array
    else:
        raise InvalidError(f"{name}: a list has whole numbers, numbers or texts alone")
    raw.count = len(values)
    return [array]


def make_attributes(attributes: Mapping[str, Any]) -> tuple[Any, int, list[Any]]:
    """The structs, how many, and what must stay until they are copied. None: not given."""
    given = {name: value for name, value in attributes.items() if value is not None}
    raw = (_raw.rondo_attribute * max(1, len(given)))()
    kept = [_make_attribute(entry, name, value) for entry, (name, value) in zip(raw, given.items())]
    return raw, len(given), kept


class Builder(Owned):
    """Makes a program in code, or goes on from one. Values have names, as in ONNX.

    builder = rondo.Builder()
    builder.add_input("x", "float32", ["batch", 4])
    builder.add_parameter("w", numpy.ones((4, 2), numpy.float32))
    builder.add_output(builder.add_node("MatMul", "x", "w", outputs=["y"]))
    session = rondo.Session(builder.finish(), "host")

    program   a Program to go on from, which stays as it is; None: an empty one
    name      of the program
    opset     version of the domain ai.onnx; 0: the library's choice
    """

    __slots__ = ("_count",)

    def __init__(self, program: Optional[Program] = None, *, name: Optional[str] = None,
                 opset: int = 0) -> None:
        handle = ctypes.c_void_p()
        if program is not None:
            if name is not None or opset:
                raise InvalidError("Builder: a program brings its name and opset along")
            check(lib.rondo_builder_create_from(program.handle, ctypes.byref(handle)))
        else:
            options = new(_raw.rondo_builder_options, opset=opset,
                          name=encode(name) if name is not None else None)
            check(lib.rondo_builder_create(ctypes.byref(options), ctypes.byref(handle)))
        self._own(Owner(handle.value, lib.rondo_builder_destroy))
        self._count = 0

    def add_input(self, name: str, dtype: Any, shape: Optional[Sequence[Any]] = None) -> str:
        """An input; extents are numbers, names, or None for one that is not known. Gives its name."""
        port = new(_raw.rondo_port)
        _fill_port(port, name, dtype, shape)
        check(lib.rondo_builder_add_input(self.handle, ctypes.byref(port)))
        return name

    def add_parameter(self, name: str, value: Any, *, is_input: bool = False) -> str:
        """A value that the program brings along; with is_input it is the default of an input."""
        tensor = _raw.rondo_tensor()
        kept = put_value(tensor, value, name)
        kind = _raw.RONDO_PARAMETER_INPUT if is_input else _raw.RONDO_PARAMETER_COPIED
        check(lib.rondo_builder_add_parameter(self.handle, encode(name), ctypes.byref(tensor), kind))
        del kept
        return name

    def add_variable(self, name: str, dtype: Any = None, shape: Optional[Sequence[Any]] = None,
                     start: Any = None, *, a: float = 0.0, b: float = 0.0, seed: int = 0) -> str:
        """An input that sessions keep from run to run.

        start   None: it has no value until it is set; an array: that (dtype and shape are its own
                then); or "constant" (a), "uniform" (from a to b), "normal" (mean a, deviation b),
                "xavier_uniform", "xavier_normal", "he_uniform", "he_normal" (gain a)
        """
        port, raw, kept = new(_raw.rondo_port), new(_raw.rondo_start, a=a, b=b, seed=seed), None
        if start is not None and not isinstance(start, str):
            tensor = _raw.rondo_tensor()
            kept = put_value(tensor, start, name)
            raw.kind, raw.tensor = _raw.RONDO_START_TENSOR, ctypes.pointer(tensor)
            port.name, port.dtype, port.rank = encode(name), tensor.dtype, tensor.shape.rank
            port.extent[:] = tensor.shape.extent[:len(port.extent)]
        elif dtype is None:
            raise InvalidError(f"{name}: a variable without an array to start with needs its dtype")
        else:
            raw.kind = _value("START", start or "none")
            _fill_port(port, name, dtype, shape)
        check(lib.rondo_builder_add_variable(self.handle, ctypes.byref(port), ctypes.byref(raw)))
        del kept
        return name

    def set_update(self, variable: str, value: str) -> None:
        """What a variable is after each run."""
        check(lib.rondo_builder_set_update(self.handle, encode(variable), encode(value)))

    def add_node(self, op: str, *inputs: Optional[str], outputs: Union[int, Sequence[str]] = 1,
                 name: Optional[str] = None, domain: str = "", version: int = 0,
                 **attributes: Any) -> Any:
        """A node of any op; gives the name of its output, a tuple where it has several.

        inputs      names of values; None for one that is left out
        outputs     new names, or how many: then they are made up
        attributes  numbers, texts, arrays, lists of whole numbers, of numbers or of texts; None: not
                    given. Where ONNX wants a float, give one (1.0)
        """
        if isinstance(outputs, int):
            outputs = [f"{op}.{self._count}" + (f".{i}" if i else "") for i in range(outputs)]
        raw, count, kept = make_attributes(attributes)
        options = new(_raw.rondo_builder_node_options, domain=encode(domain) or None,
                      version=version, name=encode(name) if name is not None else None,
                      attributes=raw, attribute_count=count)
        check(lib.rondo_builder_add_node(self.handle, encode(op), make_texts(inputs), len(inputs),
                                         make_texts(outputs), len(outputs), ctypes.byref(options)))
        del kept
        self._count += 1
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @contextlib.contextmanager
    def place(self, place: str) -> Iterator[None]:
        """with builder.place("cpu"): nodes that are added in the block run there."""
        check(lib.rondo_builder_begin_place(self.handle, encode(place)))
        try:
            yield
        finally:
            check(lib.rondo_builder_end_place(self.handle))

    def add_output(self, name: str) -> str:
        """Makes a value an output of the program."""
        check(lib.rondo_builder_add_output(self.handle, encode(name), None))
        return name

    # ---- training -----------------------------------------------------------------------------

    def add_gradients(self, y: str, xs: Iterable[str], *, outputs: Optional[Sequence[str]] = None,
                      seed: Optional[str] = None, stop: Sequence[str] = (),
                      recompute: Sequence[str] = ()) -> list[str]:
        """Nodes for d(sum of y) / dx, for each x; gives their names.

        outputs    new names; None: "x.gradient"
        seed       a value of y's shape in the place of ones
        stop       values that count as fixed
        recompute  patterns of ops that run once more on the way back, to save memory
        """
        xs = list(xs)
        names = list(outputs) if outputs is not None else [f"{x}.gradient" for x in xs]
        if len(names) != len(xs):
            raise InvalidError(f"add_gradients: {len(xs)} values and {len(names)} names for gradients")
        options = new(_raw.rondo_gradient_options, seed=encode(seed) if seed is not None else None,
                      stop=make_texts(stop), stop_count=len(stop),
                      recompute=make_texts(recompute), recompute_count=len(recompute))
        check(lib.rondo_builder_add_gradients(self.handle, encode(y), make_texts(xs), make_texts(names),
                                              len(xs), ctypes.byref(options)))
        return names

    def minimize(self, loss: str, optimizer: str = "sgd", learning_rate: float = 0.01, *,
                 rate: Optional[str] = None, betas: tuple[float, float] = (0.9, 0.999),
                 schedule: str = "constant", train: Optional[Sequence[str]] = None,
                 recompute: Sequence[str] = (), rows: Sequence[str] = (), **options: Any) -> None:
        """Adds a whole training step: a run computes the loss and changes the parameters, which are
        variables then.

        optimizer      "sgd" (with momentum, dampening, nesterov), "adam", "adamw", "adagrad"
        learning_rate  above 0; or `rate`, a scalar of the builder that is fed with each run
        schedule       "constant", "step", "cosine", "linear", with schedule_steps, schedule_factor,
                       schedule_least, warmup_steps
        train          patterns of names of parameters; None: all that look trained
        rows           patterns of tables whose rows change alone, as with PyTorch's SparseAdam
        options        others of rondo_minimize_options: weight_decay, clip_norm, clip_value,
                       epsilon, scale_loss, accumulate, ...
        """
        raw = new(_raw.rondo_minimize_options, optimizer=_value("OPTIMIZER", optimizer),
                  learning_rate=learning_rate, rate=encode(rate) if rate is not None else None,
                  beta1=betas[0], beta2=betas[1], schedule=_value("SCHEDULE", schedule),
                  recompute=make_texts(recompute), recompute_count=len(recompute),
                  rows=make_texts(rows), rows_count=len(rows))
        if train is not None:
            raw.train, raw.train_count = make_texts(train), len(train)
        known = {field[0] for field in raw._fields_} - {"struct_size", "train_count",
                                                         "recompute_count", "rows_count", "beta1",
                                                         "beta2"}
        for name, value in options.items():
            if name not in known:
                raise TypeError(f"minimize: there is no option {name!r}")
            fit(raw, name, value)
        check(lib.rondo_builder_minimize(self.handle, encode(loss), ctypes.byref(raw)))

    def add_adapters(self, rank: int, patterns: Optional[Sequence[str]] = None) -> None:
        """Low-rank adapters beside matrices, "NAME.lora_a" and "NAME.lora_b": train=["*.lora_?"]."""
        check(lib.rondo_builder_add_adapters(
            self.handle, make_texts(patterns) if patterns is not None else None, len(patterns or ()),
            rank))

    def finish(self) -> Program:
        """The program; the builder is empty then."""
        program = ctypes.c_void_p()
        check(lib.rondo_builder_finish(self.handle, ctypes.byref(program)))
        return Program._adopt(program)

    def __repr__(self) -> str:
        return f"<rondo.Builder{' closed' if self.is_closed else ''}>"
