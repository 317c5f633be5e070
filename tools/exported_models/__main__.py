# SPDX-License-Identifier: Apache-2.0

"""Models that today's exporters write, on Rondo and on ONNX Runtime: right or not, and the times.

    python3 tools/exported_models FOLDER [FAMILY...] [--library build/librondo.so] [--device host]

FAMILY is torch (torch.onnx of torchvision's and transformers' networks), networks (whole ones, small),
pieces (what stands around networks), modules and ideas (torch.onnx of one idea each) and varied (these
quantised or halved), quantise and optimise (onnxruntime's tools), sklearn (skl2onnx), keras (tf2onnx), jax
(jax2onnx), learners (Hummingbird, CatBoost), script (PyTorch's older exporter, control flow of TorchScript),
narrow (weights of 4 bits, float8) or ops (single ones); none named: all of them. Weights are random, nothing is
downloaded. Each model is loaded, run eagerly and replayed, compared with ONNX Runtime without graph
optimisation, and timed in turns with ONNX Runtime as it optimises itself, on memory that both are bound to
where ONNX Runtime binds it. Two whose f32 results ONNX Runtime rounds more than
Rondo are compared with those in f64 (torch, numpy). Where steps of 8 bits make a last bit large, the
difference is compared with what optimisation, and inputs moved by 1e-6 of their size, change in ONNX
Runtime's own outputs. --avx2 COPY times each model without AVX-512, too (bench/peers/onnxruntime_avx2.py
makes COPY). FOLDER keeps models and results: --kept takes them from there, --report only prints the summary of all
results. With --cases, models are not run on Rondo but written with ONNX Runtime's outputs as directories
that `rondo test` takes, for a machine that has no ONNX Runtime.

Needs numpy, onnx and onnxruntime, and of a family its packages (torch, torchvision, transformers,
onnxscript; skl2onnx; tensorflow and tf2onnx; jax and jax2onnx; hummingbird-ml, dill and catboost); one that
cannot be imported is left out with a word. No part of `make check`.
"""
import argparse
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import time
import warnings

import numpy as np
import onnx
import onnxruntime

warnings.filterwarnings("ignore")
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "real_models"))
RELATIVE, ABSOLUTE, OF_LARGEST, MOVE = 1e-3, 1e-7, 1e-5, 1e-6
RELATIVE_HALF, OF_LARGEST_HALF = 1e-2, 4e-3  # of networks that compute in f16
TURN = 0.05  # ms that a turn has at least
HEADER = ("| model | level | result | ops | bypassed | Rondo ms | ORT ms | ratio |\n|---|---|---|---:|---:|---:|---:|---:|")
FAMILIES = ("torch", "networks", "quantise", "optimise", "sklearn", "keras", "ops", "narrow", "modules", "varied", "ideas",
            "jax", "learners", "script", "pieces")
GOOD = ("right", "within", "runs")


def make_session(data, optimises, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    if not optimises:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.x64quantprecision", "1")  # sums of bytes that do not saturate
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def open_peer(data, feeds, threads):
    """Sessions without and with optimisation; one that ONNX Runtime cannot run is the other, or None."""
    sessions = []
    for optimises in (False, True):
        try:
            sessions.append(make_session(data, optimises, threads))
            sessions[-1].run(None, feeds)
        except Exception:  # whatever it says: what counts is that it does not run
            sessions = sessions[:int(optimises)] + [None]
    return sessions[0] or sessions[1], sessions[1] or sessions[0]


def excess(found, expected, is_half=False):
    """How far the worst element is outside of its tolerance, in tolerances; 0: all are inside."""
    worst = 0.0
    relative, of_largest = (RELATIVE_HALF, OF_LARGEST_HALF) if is_half else (RELATIVE, OF_LARGEST)
    for name, wanted in expected.items():
        wanted, given = np.asarray(wanted), np.asarray(found[name])
        if wanted.shape != given.shape or wanted.dtype != given.dtype:
            return np.inf
        if wanted.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(wanted, given) else np.inf)
            continue
        wanted, given = wanted.astype(np.float64), given.astype(np.float64)
        allowed = ABSOLUTE + relative * np.abs(wanted)
        allowed += of_largest * np.max(np.abs(wanted), where=np.isfinite(wanted), initial=0)
        with np.errstate(invalid="ignore"):
            ratio = np.where((wanted == given) | (np.isnan(wanted) & np.isnan(given)), 0, np.abs(wanted - given) / allowed)
        worst = max(worst, float(np.nan_to_num(ratio, nan=np.inf).max(initial=0)))
    return worst if not worst <= 1 else 0.0


def find_spread(data, feeds, expected, threads):
    random = np.random.default_rng(0)
    moved = {name: (value * (1 + MOVE * random.standard_normal(value.shape))).astype(value.dtype)
             if value.dtype.kind == "f" else value for name, value in feeds.items()}
    plain, optimised = open_peer(data, feeds, threads)
    return max(excess(dict(zip(expected, session.run(None, inputs))), expected)
               for session, inputs in ((optimised, feeds), (plain, moved)))


def bind(session, executor, feeds, found):
    """What runs each on memory that stays: inputs and outputs are not copied."""
    binding = session.io_binding()
    kept = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in (*feeds.values(), *found.values())]
    for name, value in zip(feeds, kept):
        binding.bind_ortvalue_input(name, value)
    for name, value in zip(found, kept[len(feeds):]):
        binding.bind_ortvalue_output(name, value)
    # What session.run_with_iobinding calls, without its own time.
    return functools.partial(session._sess.run_with_iobinding, binding._iobinding, None), executor.bind(feeds, found)


def take_turns(calls, counts, seconds):
    """The middle time of a run of each, in ms of the processor's time: other load falls out of it."""
    times, end = [[] for _ in calls], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for call, count, taken in zip(calls, counts, times):
            start = time.process_time_ns()
            for _ in range(count):
                call()
            taken.append((time.process_time_ns() - start) / 1e6 / count)
    return [float(np.median(taken)) for taken in times]


def open_session(data, options):
    """The Python package's session, as its users have it."""
    os.environ["RONDO_LIBRARY"] = options.library
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
    import rondo
    return rondo.InferenceSession(data, device=options.device, threads=options.threads)


def measure(session, executor, feeds, found, data, options):
    """Times of Rondo and of ONNX Runtime, in turns, each of several runs of a short model: a look at the processor's
    time takes half a microsecond."""
    calls = (lambda: session and session.run(None, feeds)), (lambda: executor.run(feeds, list(found)))
    if session and options.copied:
        calls = calls[0], functools.partial(open_session(data, options).run, None, feeds)
    elif session:
        try:
            bound = bind(session, executor, feeds, found)
            take_turns(bound, (1, 1), 0)
            calls = bound
        except RuntimeError:  # outputs that are not what the file says: ONNX Runtime refuses to bind them
            pass
    counts = [max(1, round(TURN / taken)) for taken in take_turns(calls, (1, 1), 0)]
    theirs, ours = take_turns(calls, counts, options.seconds)
    return ours, theirs if session else np.nan


def check_model(options, name):
    """The row of one model: what the executor makes of it, eagerly and replayed, and the times."""
    from executor import Executor, Refused, load_library
    with open(os.path.join(options.folder, name + ".onnx"), "rb") as file:
        data = file.read()
    feeds = dict(np.load(os.path.join(options.folder, name + ".npz")))
    graph = onnx.load_from_string(data).graph
    is_half = any(tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in graph.initializer)
    outputs = [port.name for port in graph.output]
    plain, optimised = open_peer(data, feeds, options.threads)
    expected = dict(zip(outputs, plain.run(None, feeds))) if plain else None
    if os.path.exists(truth := os.path.join(options.folder, name + ".truth.npz")):
        expected = dict(zip(outputs, np.load(truth).values()))
    library = load_library(options.library, options.device)
    try:
        with Executor(library, data, False, options.threads) as eager, \
                Executor(library, data, True, options.threads) as replayed:
            first = eager.run(feeds, outputs)
            for _ in range(3):
                last = replayed.run(feeds, outputs)
            is_same = all(first[name].tobytes() == last[name].tobytes() for name in outputs)
            stats = replayed.stats()
            worst = excess(first, expected, is_half) if expected else 0.0
            ours, theirs = measure(optimised, replayed, feeds, last, data, options)
    except Refused as refused:
        return {"model": name, "result": f"REFUSED: {refused}"}
    result = "right" if expected else "runs, ONNX Runtime does not"
    if worst > 0:
        spread = find_spread(data, feeds, expected, options.threads)
        result = (f"within ORT's own spread ({worst:.3g}, its {spread:.3g})" if worst <= 2 * spread < np.inf
                  else f"DIFFERS ({worst:.3g} tolerances, ORT's own {spread:.3g})")
    return {"model": name, "result": result if is_same else "REPLAY DIFFERS", "ops": stats.op_count,
            "bypassed": stats.bypassed_count, "ms": ours, "ort_ms": theirs}


def make_models(options, family):
    """Writes the models of a family; yields their names."""
    import catalog
    try:
        for name, data, feeds, *truth in catalog.FAMILIES[family]():
            with open(os.path.join(options.folder, name + ".onnx"), "wb") as file:
                file.write(data)
            np.savez(os.path.join(options.folder, name + ".npz"), **feeds)
            if truth:
                np.savez(os.path.join(options.folder, name + ".truth.npz"), *truth[0])
            yield name
    except ImportError as missing:
        print(f"{family} is left out: {missing}", file=sys.stderr)
    except Exception as failure:  # an exporter's own; what it made before counts
        print(f"{family} ends early: {type(failure).__name__}: {str(failure)[:200]}", file=sys.stderr)


def write_case(options, name):
    """FOLDER/cases/NAME: the model, its inputs and what ONNX Runtime makes of them without optimisation."""
    with open(os.path.join(options.folder, name + ".onnx"), "rb") as file:
        data = file.read()
    feeds = dict(np.load(os.path.join(options.folder, name + ".npz")))
    session = open_peer(data, feeds, options.threads)[0]
    if session is None:
        print(f"{name} is left out: ONNX Runtime does not run it", file=sys.stderr)
        return
    folder = os.path.join(options.folder, "cases", name, "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(os.path.dirname(folder), "model.onnx"), "wb") as file:
        file.write(data)
    outputs = [port.name for port in onnx.load_from_string(data).graph.output]
    found = session.run(None, feeds)
    largest = max((float(np.abs(value).max(initial=0)) for value in found if value.dtype.kind == "f"), default=0)
    with open(os.path.join(os.path.dirname(folder), "data.json"), "w", encoding="utf-8") as file:
        json.dump({"rtol": RELATIVE, "atol": ABSOLUTE + OF_LARGEST * largest}, file)
    values = {"input": list(feeds.items()), "output": list(zip(outputs, found))}
    for kind, tensors in values.items():
        for i, (port, value) in enumerate(tensors):
            with open(os.path.join(folder, f"{kind}_{i}.pb"), "wb") as file:
                file.write(onnx.numpy_helper.from_array(np.asarray(value), port).SerializeToString())


def check_models(options, names):
    """Prints a row for each model, of a process of its own: a crash is that row."""
    for name in names:
        if os.fork() == 0:
            try:
                print(json.dumps(check_model(options, name)), flush=True)
                os._exit(0)
            except Exception as failure:
                print(f"{name}: {type(failure).__name__}: {failure}", file=sys.stderr)
            os._exit(1)
        status = os.wait()[1]
        if status:
            print(json.dumps({"model": name, "result": f"FAILED with status {os.waitstatus_to_exitcode(status)}"}), flush=True)


def run_models(options, names, level):
    """The rows of models, by a process that sees the processor as that level."""
    command = [*shlex.split(options.under), sys.executable, "-W", "ignore", sys.argv[0], options.folder,
               "--these", ",".join(names)] + ["--copied"] * options.copied
    for key in ("library", "device", "threads", "seconds"):
        command += ["--" + key, str(getattr(options, key))]
    more = {} if level == "all" else {"PYTHONPATH": options.avx2, "RONDO_MAX_CPU_ISA": "AVX2",
                                      "LD_PRELOAD": os.path.join(options.avx2, "shim.so")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **more}) as process:
        for line in process.stdout:
            if line.startswith("{"):
                yield {"level": level, **json.loads(line)}


def find_ratio(row):
    return row["ms"] / row["ort_ms"] if row.get("ort_ms", np.nan) > 0 else np.nan


def format_row(row):
    start = f"| {row['model']} | {row['level']} | {row['result']} "
    if "ms" not in row:
        return start + "| | | | | |"
    return f"{start}| {row['ops']} | {row['bypassed']} | {row['ms']:.3f} | {row['ort_ms']:.3f} | {find_ratio(row):.2f} |"


def print_summary(rows, families):
    """By family and level: what is right, and how the ratios lie; then the ten worst of each level."""
    print("\n| family | level | models | right | median | 90th percentile | worst | above 1.2 |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|")
    groups = {}
    for row in rows:
        for family in (families[row["model"]], "all models" if families[row["model"]] != "ops" else "single ops"):
            groups.setdefault((family, row["level"]), []).append(row)
    for (family, level), members in sorted(groups.items()):
        ratios = np.array([ratio for ratio in map(find_ratio, members) if ratio > 0])
        right = sum(row["result"].startswith(GOOD) for row in members)
        marks = np.percentile(ratios, (50, 90, 100)) if len(ratios) else (np.nan,) * 3
        print(f"| {family} | {level} | {len(members)} | {right} | {marks[0]:.2f} | {marks[1]:.2f} | {marks[2]:.2f} "
              f"| {np.sum(ratios > 1.2)} |")
    for level in sorted({row["level"] for row in rows}):
        worst = sorted((row for row in rows if row["level"] == level and find_ratio(row) > 0), key=find_ratio)[:-11:-1]
        print(f"\nWorst ten, {level}: " + ", ".join(f"{row['model']} {find_ratio(row):.2f}" for row in worst))


def load_kept(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def keep(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("families", nargs="*")
    parser.add_argument("--library", default="build/librondo.so")
    parser.add_argument("--device", default="host")
    parser.add_argument("--threads", type=int, default=1, help="of ONNX Runtime and of Rondo (1)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of measuring a model (0.5)")
    parser.add_argument("--copied", action="store_true", help="time runs by names, which copy, in Python")
    parser.add_argument("--avx2", metavar="COPY", help="time models without AVX-512, too")
    parser.add_argument("--under", default="", metavar="COMMAND", help="what starts the processes, as taskset -c 1")
    parser.add_argument("--only", default="", metavar="PATTERN", help="models whose names a regular expression finds")
    parser.add_argument("--kept", action="store_true", help="models as FOLDER has them; exporters do not run")
    parser.add_argument("--report", action="store_true", help="summary of FOLDER's results; nothing runs")
    parser.add_argument("--cases", action="store_true", help="write cases for `rondo test` and run nothing")
    parser.add_argument("--these", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.these:
        check_models(options, options.these.split(","))
        return 0
    os.makedirs(options.folder, exist_ok=True)
    paths = [os.path.join(options.folder, name) for name in ("families.json", "results.json")]
    families, results = map(load_kept, paths)
    wanted = options.families or list(dict.fromkeys(families.values()) if options.kept or options.report else FAMILIES)
    if not (options.kept or options.report):
        for family in wanted:
            for name in make_models(options, family):
                families[name] = family
                keep(paths[0], families)
    names = [name for name, family in families.items() if family in wanted and re.search(options.only, name)]
    if options.cases:
        for name in names:
            write_case(options, name)
        return 0
    if not options.report:
        print(HEADER, flush=True)
        for level in ["all"] + ["AVX2"] * bool(options.avx2):
            for row in run_models(options, names, level):
                results[f"{row['model']} {level}"] = row
                print(format_row(row), flush=True)
                keep(paths[1], results)
    rows = [row for row in results.values() if row["model"] in names]
    print_summary(rows, families)
    return 0 if all(row["result"].startswith(GOOD) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
