#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a replay costs from Python, beside the same loop in C; the stream is emptied outside of the
measured time.

usage: bench_replay.py [DEVICE]     default: host; needs cc
"""
import ctypes
import gc
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import rondo
from rondo._library import lib

LOOP = r"""
#include <stddef.h>
#include <stdint.h>
#include <time.h>
static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
int64_t loop(int (*replay)(void *, void *), void *graph, void *stream, int count) {
    int64_t begin = now();
    for (int i = 0; i < count; ++i) {
        if (replay(graph, stream)) return -1;
    }
    return now() - begin;
}
"""
BATCH, ROUNDS = 256, 200


def compile_loop(folder):
    source, output = folder + "/loop.c", folder + "/loop.so"
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(LOOP)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", output, source], check=True)
    loop = ctypes.CDLL(output).loop
    loop.restype = ctypes.c_int64
    loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return loop


def time_python(replay, stream):
    begin = time.perf_counter_ns()
    for _ in range(BATCH):
        replay(stream)
    return time.perf_counter_ns() - begin


def time_empty(nothing, stream):
    begin = time.perf_counter_ns()
    for _ in range(BATCH):
        nothing(stream)
    return time.perf_counter_ns() - begin


def main():
    device = rondo.Device(sys.argv[1] if len(sys.argv) > 1 else "host")
    stream = rondo.Stream(device)
    memory = rondo.empty(64, "uint8", device)
    with rondo.capture(stream) as graph:
        stream.fill(memory, 7)
    address = ctypes.cast(lib.rondo_graph_replay, ctypes.c_void_p)
    with tempfile.TemporaryDirectory() as folder:
        loop = compile_loop(folder)
        ways = {
            "C": lambda: loop(address, graph.handle, stream.handle, BATCH),
            "Python, graph.replay(stream)": lambda: time_python(graph.replay, stream),
            "Python, an empty function": lambda: time_empty(lambda _: None, stream),
        }
        times = {name: [] for name in ways}
        gc.disable()
        for _ in range(ROUNDS):
            for name, way in ways.items():
                gate = threading.Event()  # the stream stands still, so that no worker disturbs
                if device.is_host:
                    stream.call_host(gate.wait, 10.0)
                times[name].append(way() / BATCH)
                gate.set()
                stream.synchronize()
    print(f"Python {sys.version.split()[0]}, {device.name}: median of {ROUNDS} rounds of {BATCH}, ns a call")
    for name, values in times.items():
        print(f"  {name:30} {statistics.median(values):8.0f}")
    print(f"  {'Python over C':30} "
          f"{statistics.median(times['Python, graph.replay(stream)']) - statistics.median(times['C']):8.0f}")


if __name__ == "__main__":
    main()
