#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rondo's host backend against ONNX Runtime's CPU provider, model by model.

Usage: bench/peers/cpu_vs_onnxruntime.py [--rondo build/rondo] [--threads 2] [--rounds 7]
           [--seconds 0.5] [--set DIM=N]... [--json FILE] MODEL.onnx...

Needs the wheels onnxruntime and numpy; install them into a virtual environment, for example
    python3 -m venv ~/ort && ~/ort/bin/pip install onnxruntime numpy

Both sides get the same number of threads and inputs of the same shapes. They take turns, one short
measurement each, so that whatever else the machine does falls on both. A turn yields a median and
a minimum; printed is the median of the medians, and the least of the minima. "load" says how many
processes wanted to run on average: well above the number of processors, medians say little.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime


def read_symbols(settings):
    symbols = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        symbols[name] = int(value)
    return symbols


def make_feeds(session, symbols):
    generator = np.random.default_rng(0)
    feeds = {}
    for port in session.get_inputs():
        shape = [d if isinstance(d, int) else symbols.get(d, 1) for d in port.shape]
        if "float" in port.type:
            feeds[port.name] = generator.uniform(-1, 1, shape).astype(np.float32)
        else:
            kinds = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool}
            feeds[port.name] = generator.integers(0, 2, shape).astype(kinds[port.type])
    return feeds


def measure_onnxruntime(session, feeds, seconds):
    times = []
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end:
        session.run(None, feeds)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 10:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times), min(times)


def measure_rondo(arguments, model):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [arguments.rondo, "bench", model, "--device", "host", "--warm-up", "100",
                   "--duration", str(arguments.seconds), "--json", file.name]
        for setting in arguments.set:
            command += ["--set", setting]
        environment = dict(os.environ, RONDO_NUM_THREADS=str(arguments.threads))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=environment)
        with open(file.name) as opened:
            result = json.load(opened)
    return {mode: (result[mode]["latency_ms"]["median"], result[mode]["latency_ms"]["min"])
            for mode in ("eager", "replay")}


def measure_model(arguments, model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = make_feeds(session, read_symbols(arguments.set))
    turns = {"onnxruntime": [], "eager": [], "replay": []}
    for _ in range(arguments.rounds):
        turns["onnxruntime"].append(measure_onnxruntime(session, feeds, arguments.seconds))
        for mode, turn in measure_rondo(arguments, model).items():
            turns[mode].append(turn)
    return {side: {"median_ms": statistics.median(turn[0] for turn in sides),
                   "min_ms": min(turn[1] for turn in sides)} for side, sides in turns.items()}


def get_commit():
    result = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            cwd=os.path.dirname(os.path.abspath(__file__)), check=False)
    return result.stdout.strip() or "unknown"


def get_processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rondo", default="build/rondo")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()

    load = os.getloadavg()[0]
    results = {}
    print(f"machine      {get_processor()}, {os.cpu_count()} processors, load {load:.1f}")
    print(f"versions     rondo {get_commit()}, onnxruntime {onnxruntime.__version__}, "
          f"{arguments.threads} threads each")
    print(f"{'':24}{'onnxruntime':>20}{'rondo eager':>20}{'rondo replay':>20}{'ratio':>16}")
    print(f"{'median (min), ms':24}{'':>60}{'median (min)':>16}")
    for model in arguments.models:
        name = os.path.basename(os.path.dirname(os.path.abspath(model)))
        result = results[name] = measure_model(arguments, model)
        cells = [f"{result[side]['median_ms']:.3f} ({result[side]['min_ms']:.3f})"
                 for side in ("onnxruntime", "eager", "replay")]
        ratios = [result["replay"][key] / result["onnxruntime"][key]
                  for key in ("median_ms", "min_ms")]
        print(f"{name:24}" + "".join(f"{cell:>20}" for cell in cells) +
              f"{ratios[0]:>8.2f} ({ratios[1]:.2f})", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"command": " ".join(sys.argv), "processor": get_processor(), "load": load,
                       "commit": get_commit(), "onnxruntime": onnxruntime.__version__,
                       "threads": arguments.threads, "models": results}, file, indent=1)


if __name__ == "__main__":
    main()
