# SPDX-License-Identifier: Apache-2.0

"""An executor that lives through many runs, over the library's binding of tools/difftest."""
import ctypes
import os
import sys
from ctypes import byref, c_bool, c_uint32, c_uint64, c_void_p

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "difftest"))
from library import Library, Options, Refused, RunTimes  # noqa: E402

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
    return library


class Executor:
    def __init__(self, library, model, uses_graphs, threads):
        self.library, self.program, self.executor = library, c_void_p(), c_void_p()
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
        self.library.calls.rondo_executor_destroy(self.executor)
        self.library.calls.rondo_program_destroy(self.program)

    def run(self, feeds, outputs):
        return self.library.run_once(self.executor, feeds, outputs)

    def times(self):
        times = RunTimes(struct_size=ctypes.sizeof(RunTimes))
        self.library.check(self.library.calls.rondo_executor_get_times(self.executor, byref(times)))
        return times

    def stats(self):
        stats = Stats(struct_size=ctypes.sizeof(Stats))
        self.library.check(self.library.calls.rondo_executor_get_stats(self.executor, byref(stats)))
        return stats
