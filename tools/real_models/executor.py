# SPDX-License-Identifier: Apache-2.0

"""An executor that lives through many runs, over the library's binding of tools/difftest."""
import ctypes
import functools
import os
import sys
from ctypes import byref, c_bool, c_char_p, c_uint32, c_uint64, c_void_p

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "difftest"))
from library import Binding, Library, Options, Refused, RunTimes, Tensor  # noqa: E402

GRAPHS_ON, GRAPHS_OFF = 1, 2
__all__ = ["Executor", "Refused", "load_library"]


class ThreadOptions(Options):
    _fields_ = [("thread_count", c_uint32), ("memory_limit_bytes", c_uint64)]


class Stats(ctypes.Structure):
    """The first fields of rondo_executor_stats."""
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, c_uint64) for name in (
        "op_count", "segment_count", "bypassed_count", "node_count", "plan_count", "capture_ns",
        "instantiate_ns", "first_replay_ns", "prepare_ns", "arena_bytes")]


def load_library(path, device):
    library = Library(path, device)
    library.calls.rondo_executor_get_stats.argtypes = (c_void_p, ctypes.POINTER(Stats))
    library.calls.rondo_bound_run_destroy.argtypes = (c_void_p,)
    library.calls.rondo_bound_run_destroy.restype = None
    return library


class Executor:
    def __init__(self, library, model, uses_graphs, threads):
        self.library, self.program, self.executor, self.bound = library, c_void_p(), c_void_p(), []
        self.bound_run = c_void_p()
        calls = library.calls
        library.check(calls.rondo_program_parse_onnx(model, len(model), byref(self.program)))
        options = ThreadOptions(struct_size=ctypes.sizeof(ThreadOptions), thread_count=threads,
                                graphs=GRAPHS_ON if uses_graphs else GRAPHS_OFF)
        try:
            library.check(calls.rondo_executor_create(self.program, library.device, byref(options),
                                                      byref(self.executor)))
        except Refused:
            calls.rondo_program_destroy(self.program)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.calls.rondo_bound_run_destroy(self.bound_run)
        for binding in [binding for bindings in self.bound for binding in bindings]:
            self.library.calls.rondo_tensor_deinit(byref(binding.tensor))
        self.library.calls.rondo_executor_destroy(self.executor)
        self.library.calls.rondo_program_destroy(self.program)

    def run(self, feeds, outputs):
        return self.library.run_once(self.executor, feeds, outputs)

    def bind(self, feeds, found):
        """What runs on tensors of the host device, which live as long as the executor, and returns the status: names
        and tensors are bound once (rondo_bound_run), nothing is copied, and the call's argument is converted once."""
        calls = self.library.calls
        self.bound = [self.place(feeds, True), self.place(found, False)]
        self.library.check(calls.rondo_bound_run_create(self.executor, byref(self.bound_run)))
        for bindings, values, set_entry in zip(self.bound, (feeds, found),
                                               (calls.rondo_bound_run_set_feed, calls.rondo_bound_run_set_fetch)):
            for binding, _ in zip(bindings, values):
                self.library.check(set_entry(self.bound_run, c_char_p(binding.name), byref(binding.tensor)))
        # A function of its own, without conversions.
        run_bound = functools.partial(calls["rondo_bound_run_run"], c_void_p(self.bound_run.value))
        self.library.check(run_bound())
        return run_bound

    def place(self, values, is_filled):
        """Tensors of the device that live as long as the executor."""
        bindings = (Binding * max(len(values), 1))()
        for binding, (name, value) in zip(bindings, values.items()):
            binding.name = name.encode()
            array, calls = np.ascontiguousarray(value).reshape(value.shape), self.library.calls
            tensor = self.library.make_tensor(array, [])
            self.library.check(calls.rondo_tensor_init_device(self.library.device, tensor.dtype, byref(tensor.shape),
                                                              byref(binding.tensor)))
            if is_filled:
                ctypes.memmove(binding.tensor.data, array.ctypes.data, array.nbytes)
        return bindings

    def times(self):
        times = RunTimes(struct_size=ctypes.sizeof(RunTimes))
        self.library.check(self.library.calls.rondo_executor_get_times(self.executor, byref(times)))
        return times

    def stats(self):
        stats = Stats(struct_size=ctypes.sizeof(Stats))
        self.library.check(self.library.calls.rondo_executor_get_stats(self.executor, byref(stats)))
        return stats
