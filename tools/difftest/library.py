# SPDX-License-Identifier: Apache-2.0

"""Rondo's shared library through ctypes: a model's bytes and arrays in, arrays out."""
import ctypes
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint64, c_void_p

import ml_dtypes
import numpy as np

from values import STRING, Maybe, Sequence

STATUS_NAMES = ("OK", "INVALID", "STATE", "UNSUPPORTED", "NO_MEMORY", "NO_DEVICE_MEMORY",
                "UNAVAILABLE", "DRIVER", "LOST", "BAD_DATA", "INTERNAL")
F32, F16 = 1, 3
DTYPES = {1: np.float32, 2: np.float64, 3: np.float16, 4: ml_dtypes.bfloat16, 5: np.int8,
          6: np.int16, 7: np.int32, 8: np.int64, 9: np.uint8, 10: np.uint16, 11: np.uint32,
          12: np.uint64, 13: np.bool_}
NUMBERS = {np.dtype(dtype): number for number, dtype in DTYPES.items()}
STRINGS, SEQUENCE, OPTIONAL = 14, 15, 16
RANK_MAX = 8


class Shape(ctypes.Structure):
    _fields_ = [("rank", c_int32), ("extent", c_int64 * RANK_MAX)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("shape", Shape), ("data", c_void_p), ("storage", c_void_p),
                ("device", c_void_p)]


class String(ctypes.Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t)]


class TextView(ctypes.Structure):
    """A string of a result: zeros may be inside, so its address is no c_char_p."""
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class Binding(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("tensor", Tensor)]


class Options(ctypes.Structure):
    """The first fields; the library fills in what a later header added."""
    _fields_ = [("struct_size", c_size_t), ("graphs", c_int32), ("dtype", c_int32), ("seed", c_uint64),
                ("op_by_op", c_bool), ("reference", c_bool), ("plan_limit", c_size_t),
                ("progress", c_void_p), ("progress_data", c_void_p)]


class ErrorRecord(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("status", c_int32), ("driver_code", c_int32), ("driver_name", c_char * 48),
                ("op", c_char * 64), ("call", c_char * 48), ("message", c_char * 480)]


class RunTimes(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("latency_ns", c_uint64), ("enqueue_ns", c_uint64), ("host_to_device_ns", c_uint64),
                ("compute_ns", c_uint64), ("device_to_host_ns", c_uint64), ("was_replayed", c_bool)]


class Refused(Exception):
    """A call that failed: its status by name, and the message of its record."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Library:
    def __init__(self, path, device):
        self.calls = ctypes.CDLL(path)
        self.calls.rondo_error_get_last.restype = POINTER(ErrorRecord)
        for name, arguments in {
                "rondo_device_open": (c_char_p, POINTER(c_void_p)),
                "rondo_program_parse_onnx": (c_char_p, c_size_t, POINTER(c_void_p)),
                "rondo_executor_create": (c_void_p, c_void_p, POINTER(Options), POINTER(c_void_p)),
                "rondo_executor_run": (c_void_p, POINTER(Binding), c_size_t, POINTER(Binding),
                                       c_size_t),
                "rondo_executor_get_times": (c_void_p, POINTER(RunTimes)),
                "rondo_tensor_init_strings": (POINTER(Shape), POINTER(String), POINTER(Tensor)),
                "rondo_tensor_init_sequence": (POINTER(Tensor), c_size_t, POINTER(Tensor)),
                "rondo_tensor_init_optional": (POINTER(Tensor), POINTER(Tensor)),
        }.items():
            function = getattr(self.calls, name)
            function.restype, function.argtypes = c_int32, arguments
        for name, arguments in {
                "rondo_program_destroy": (c_void_p,), "rondo_executor_destroy": (c_void_p,),
                "rondo_tensor_deinit": (POINTER(Tensor),), "rondo_device_release": (c_void_p,),
        }.items():
            function = getattr(self.calls, name)
            function.restype, function.argtypes = None, arguments
        self.device = c_void_p()
        self.check(self.calls.rondo_device_open(device.encode(), byref(self.device)))

    def check(self, status):
        if status != 0:
            message = self.calls.rondo_error_get_last().contents.message
            raise Refused(STATUS_NAMES[status], message.decode(errors="replace"))

    def run(self, model, feeds, outputs, turns, dtype=F32, op_by_op=False, reference=False):
        """The outputs of each of `turns` runs: of two runs the second captures, of three the third
        replays. Gives a list of {name: array}, and whether the last run was replayed."""
        program, executor = c_void_p(), c_void_p()
        self.check(self.calls.rondo_program_parse_onnx(model, len(model), byref(program)))
        try:
            options = Options(struct_size=ctypes.sizeof(Options), dtype=dtype, op_by_op=op_by_op,
                              reference=reference)
            self.check(self.calls.rondo_executor_create(program, self.device, byref(options),
                                                        byref(executor)))
            results = [self.run_once(executor, feeds, outputs) for _ in range(turns)]
            times = RunTimes(struct_size=ctypes.sizeof(RunTimes))
            self.check(self.calls.rondo_executor_get_times(executor, byref(times)))
            return results, times.was_replayed
        finally:
            self.calls.rondo_executor_destroy(executor)
            self.calls.rondo_program_destroy(program)

    def make_tensor(self, value, kept):
        """A tensor of a fed value. What it borrows goes into `kept`, what is to be freed as well."""
        tensor = Tensor()
        if isinstance(value, Maybe):
            item = byref(self.make_tensor(value.inner, kept)) if value.is_there else None
            self.check(self.calls.rondo_tensor_init_optional(item, byref(tensor)))
        elif isinstance(value, Sequence):
            items = (Tensor * max(len(value.items), 1))(*[self.make_tensor(item, kept) for item in value.items])
            self.check(self.calls.rondo_tensor_init_sequence(items if value.items else None,
                                                             len(value.items), byref(tensor)))
        elif value.dtype == STRING:
            texts = [text.encode() for text in value.flatten()]
            strings = (String * max(len(texts), 1))(*[(text, len(text)) for text in texts])
            shape = Shape(value.ndim, (c_int64 * RANK_MAX)(*value.shape))
            self.check(self.calls.rondo_tensor_init_strings(byref(shape), strings, byref(tensor)))
        else:
            array = np.ascontiguousarray(value).reshape(value.shape)
            kept.append(array)
            tensor.dtype = NUMBERS[array.dtype]
            tensor.shape = Shape(array.ndim, (c_int64 * RANK_MAX)(*array.shape))
            tensor.data = array.ctypes.data
            return tensor
        kept.append(tensor)
        return tensor

    def run_once(self, executor, feeds, outputs):
        bound = (Binding * max(len(feeds), 1))()
        fetches = (Binding * len(outputs))()
        kept = []
        try:
            for binding, (name, value) in zip(bound, feeds.items()):
                binding.name = name.encode()
                binding.tensor = self.make_tensor(value, kept)
            for fetch, name in zip(fetches, outputs):
                fetch.name = name.encode()
            self.check(self.calls.rondo_executor_run(executor, bound, len(feeds), fetches,
                                                     len(outputs)))
            return {name: copy_tensor(fetch.tensor) for fetch, name in zip(fetches, outputs)}
        finally:
            for tensor in [fetch.tensor for fetch in fetches] + kept:
                if isinstance(tensor, Tensor):
                    self.calls.rondo_tensor_deinit(byref(tensor))


def copy_tensor(tensor):
    """An array; a list of them for a sequence; what an optional holds, or None."""
    shape = tuple(tensor.shape.extent[:tensor.shape.rank])
    if tensor.dtype in (SEQUENCE, OPTIONAL):
        items = ctypes.cast(tensor.data, POINTER(Tensor))
        copies = [copy_tensor(items[i]) for i in range(shape[0])]
        return copies if tensor.dtype == SEQUENCE else copies[0] if copies else None
    if tensor.dtype == STRINGS:
        array = np.empty(shape, object)
        strings = ctypes.cast(tensor.data, POINTER(TextView))
        for i in range(array.size):
            text = ctypes.string_at(strings[i].data, strings[i].size) if strings[i].size else b""
            array.flat[i] = text.decode(errors="replace")
        return array
    array = np.empty(shape, np.dtype(DTYPES[tensor.dtype]))
    if array.nbytes > 0:
        ctypes.memmove(array.ctypes.data, tensor.data, array.nbytes)
    return array
