#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rondo's host backend, replayed, against ONNX Runtime's CPU provider, over ONNX test directories.

Usage: bench/peers/cpu_directories.py [--library build/librondo.so] [--threads 2] [--rounds 3]
           [--seconds 0.12] DIRECTORY...      each with model.onnx and test_data_set_0

Needs the wheels onnx, onnxruntime, numpy and ml_dtypes. Both sides run in this process and take
turns of `seconds`, each after 0.05 s that do not count, in which the other's threads go to sleep. A
turn yields a median; printed are the median of those, the least time, the 99th percentile of all
runs, and the ratios of the first two. See bench/peers/onnxruntime_avx2.py for AVX2. A run by
`chrt -r 10` is not disturbed by other processes, much as on an idle machine.
"""
import argparse
import glob
import os
import statistics
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tools", "real_models"), os.path.join(ROOT, "tools", "difftest")]
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import numpy_helper  # noqa: E402

from executor import Executor, load_library  # noqa: E402


def read_tensor(path):
    tensor = onnx.TensorProto()
    with open(path, "rb") as file:
        tensor.ParseFromString(file.read())
    return tensor.name, numpy_helper.to_array(tensor)


def read_feeds(directory, model):
    """The inputs by name: files without one are in the order of the model's."""
    known = {tensor.name for tensor in model.graph.initializer}
    names = [port.name for port in model.graph.input if port.name not in known]
    files = sorted(glob.glob(os.path.join(directory, "test_data_set_0", "input_*.pb")),
                   key=lambda path: int(path.rsplit("_", 1)[1][:-3]))
    values = [read_tensor(path) for path in files]
    return {name if name in names else names[i]: value for i, (name, value) in enumerate(values)}


def take_turn(run, seconds):
    end = time.perf_counter() + 0.05
    runs = 0
    while runs < 2 or time.perf_counter() < end:
        run()
        runs += 1
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 4 or time.perf_counter() < end:
        times.append(run())
    return times


def measure(directory, library, arguments):
    path = os.path.join(directory, "model.onnx")
    model = onnx.load(path, load_external_data=False)
    feeds, outputs = read_feeds(directory, model), [port.name for port in model.graph.output]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = arguments.threads, 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    with open(path, "rb") as file:
        data = file.read()

    def run_peer():
        start = time.perf_counter()
        session.run(None, feeds)
        return 1e3 * (time.perf_counter() - start)

    with Executor(library, data, True, arguments.threads) as executor:
        def run_rondo():
            executor.run(feeds, outputs)
            return executor.times().latency_ns / 1e6

        turns = [(take_turn(run_peer, arguments.seconds), take_turn(run_rondo, arguments.seconds))
                 for _ in range(arguments.rounds)]
        stats = executor.stats()
    sides = [[turn[side] for turn in turns] for side in (0, 1)]
    median = [statistics.median(statistics.median(times) for times in side) for side in sides]
    together = [sorted(sum(side, [])) for side in sides]
    least = [times[0] for times in together]
    late = [times[min(len(times) - 1, int(0.99 * len(times)))] for times in together]
    return (f"| {median[0]:.3f} ({least[0]:.3f}) | {median[1]:.3f} ({least[1]:.3f}) | {late[1]:.3f} ({late[0]:.3f}) "
            f"| {median[1] / median[0]:.2f} ({least[1] / least[0]:.2f}) | {stats.op_count}, {stats.bypassed_count} |")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--library", default=os.path.join(ROOT, "build", "librondo.so"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.12)
    parser.add_argument("directories", nargs="+")
    arguments = parser.parse_args()
    library = load_library(arguments.library, "host")
    print(f"onnxruntime {onnxruntime.__version__}, {arguments.threads} threads, load {os.getloadavg()[0]:.1f}\n")
    print("| model | ORT median (min), ms | Rondo | p99 of Rondo (ORT) | ratio of medians (min) | ops, bypassed |\n"
          "|---|---:|---:|---:|---:|---:|")
    for directory in arguments.directories:
        print(f"| {os.path.basename(os.path.normpath(directory))} {measure(directory, library, arguments)}", flush=True)


if __name__ == "__main__":
    main()
