#!/usr/bin/env python3
"""Networks of several kinds on one GPU, fp16, batch 1: Rondo beside PyTorch, eager, from a CUDA graph and compiled.

    bench/peers/gpu_networks.py RONDO [NAME...]      default: all networks of gpu_network_list.py
    BEFORE=path                                an older tool, timed in turns with RONDO
    LIMIT_S=530                                then the table is printed as far as it is, and all ends
    PREPARE_S=200 COMPILE_S=120                likewise for all that precedes the timing, and torch.compile (0: none)
    ROUNDS=2 FULL=1                            how often each tool runs a network; without --tune full: FULL=0
    PYTORCH=0                                  without PyTorch
    SKELETONS=folder                           of graphs without weights, instead of exports
    bench/peers/gpu_networks.py --step export NAME   only makes and exports the network
    bench/peers/gpu_networks.py --step strip NAME    leaves an export without its weights in SKELETONS

First, JOBS=8 at once: each network is made with random weights and exported to ONNX, or drawn from its skeleton, and
run by ONNX Runtime's CPU provider for the expected outputs (unless an earlier call has left that in
$TMPDIR/gpu_networks); each tool compiles all kernels that it will time, into a cache of its own, from which the choices
made now are removed; `rondo test` compares fp32. Meanwhile a process of PyTorch for each network compiles it
(torch.compile, mode reduce-overhead: with CUDA graphs), and waits. Then, one after another and alone on the GPU, each
is timed by PyTorch in fp16 (channels last where there are convolutions, cuDNN's benchmark mode on) and by both tools in
turns with the default tuning, and behind them all by RONDO once after --tune full. At last, several at once, `rondo
test` compares fp16. Latency is wall time of one run with the wait, inputs on the device: median and 99th percentile
of at least 150 runs. Shares of the memory's rate are for steps of decoders: their weights and caches, each read once,
beside a sum of 8 GB by PyTorch. A row for each network; all numbers go to $OUT/gpu_networks.json (or build-gpu/out),
too. Needs torch, torchvision, transformers, onnx, onnxruntime.
"""
import fcntl
import glob
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Timer

import gpu_network_list as networks

warnings.filterwarnings("ignore")
WORK = os.environ.get("TMPDIR", "/tmp") + "/gpu_networks"
OUT = os.environ.get("OUT", "build-gpu/out")
SKELETONS = os.environ.get("SKELETONS")
PYTORCH = os.environ.get("PYTORCH") != "0"
CHOICE_BYTES = 1024  # in a kernel cache: what is smaller is a tuner's choice


# ---- steps, in processes of their own -----------------------------------------------------------

def export(name):
    import gpu_skeleton
    folder = f"{WORK}/{name}"
    skeleton = f"{SKELETONS}/{name.replace('_q4', '_f16')}.onnx"
    if os.path.exists(f"{folder}/test_data_set_0/done"):
        return
    if SKELETONS and os.path.exists(skeleton):
        gpu_skeleton.fill(skeleton, folder, name.endswith("_q4"))
    else:
        if name.endswith("_q4"):
            sys.exit("4-bit weights are put into a skeleton: see --step strip")
        write_model(name, folder)
    gpu_skeleton.expect(folder)
    open(f"{folder}/test_data_set_0/done", "w").close()


def write_model(name, folder):
    import gpu_skeleton
    import torch
    net, inputs = networks.make(name)
    os.makedirs(f"{folder}/test_data_set_0", exist_ok=True)
    with torch.no_grad():
        torch.onnx.export(net, inputs, f"{folder}/model.onnx", opset_version=17, do_constant_folding=True, dynamo=False)
    names = gpu_skeleton.input_names(f"{folder}/model.onnx")
    for number, (input_name, value) in enumerate(zip(names, inputs)):
        gpu_skeleton.write(f"{folder}/test_data_set_0/input_{number}.pb", value.numpy(), input_name)


def strip(name):
    import gpu_skeleton
    if not os.path.exists(f"{WORK}/{name}/model.onnx"):
        write_model(name, f"{WORK}/{name}")
    gpu_skeleton.strip(f"{WORK}/{name}", f"{SKELETONS}/{name}.onnx")


def summarise(times):
    times = sorted(times)
    return statistics.median(times), times[min(len(times) - 1, int(0.99 * len(times)))]


def time_torch(name):
    """Compiles, says "ready", waits for a line, and prints the network's name and its numbers."""
    import torch
    networks.FUSED = True
    torch.backends.cudnn.benchmark = True
    try:
        with torch.device("cuda"):  # weights are drawn sooner there
            net, inputs = networks.make(name)
    except RuntimeError:
        net, inputs = networks.make(name)
    net = net.cuda().half()
    inputs = [x.cuda().half() if x.is_floating_point() else x.cuda() for x in inputs]
    if any(isinstance(module, torch.nn.Conv2d) for module in net.modules()):
        net = net.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    found, replays = {}, {"eager": lambda: net(*inputs)}

    def measure(way, replay):
        times, start = [], time.perf_counter()
        while len(times) < 160 and (len(times) < 40 or time.perf_counter() - start < 2):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            replay()
            torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - begin))
        found[f"{way}_us"], found[f"{way}_p99"] = summarise(times[10:])

    def attempt(way, step):
        try:
            step()
        except Exception as error:  # a way that PyTorch does not have here
            found[f"no_{way}"] = (str(error).splitlines() or [repr(error)])[0]

    def compiled():
        def late(*_):
            raise TimeoutError("torch.compile takes too long")
        signal.signal(signal.SIGALRM, late)
        signal.alarm(int(os.environ.get("COMPILE_S", "120")))
        begin = time.perf_counter()
        fast = torch.compile(net, mode="reduce-overhead")
        for _ in range(4):
            fast(*inputs)
        torch.cuda.synchronize()
        signal.alarm(0)
        found["compile_s"] = time.perf_counter() - begin
        replays["compile"] = lambda: fast(*inputs)

    def captured():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                net(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            net(*inputs)
        measure("graph", graph.replay)

    with torch.inference_mode():
        with open(f"{WORK}/gpu.lock", "w") as lock:  # cuDNN times its kernels now
            fcntl.flock(lock, fcntl.LOCK_EX)
            net(*inputs)
            torch.cuda.synchronize()
        if name not in networks.NOT_COMPILED and os.environ.get("COMPILE_S") != "0":
            attempt("compile", compiled)
            signal.alarm(0)
        print("ready", flush=True)
        sys.stdin.readline()
        for way, replay in replays.items():
            attempt(way, lambda: measure(way, replay))
        attempt("graph", captured)  # last, since a refused capture may break the process
    print(name, json.dumps(found), flush=True)


def read_rate(_):
    """GB/s of a sum over 8 GB, the best of ten."""
    import torch
    values, best = torch.zeros(1 << 31, device="cuda"), 1e9
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        values.sum()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end))
    print(values.numel() * 4 / best / 1e6)


# ---- processes ----------------------------------------------------------------------------------

class Children:
    """All processes that run, so that the time's end finds them."""

    def __init__(self):
        self.lock, self.running, self.over = Lock(), set(), False

    def begin(self, command, **options):
        with self.lock:
            if self.over:
                raise TimeoutError("no time")
            child = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, start_new_session=True, **options)
            self.running.add(child)
            return child

    def end(self, child):
        with self.lock:
            self.running.discard(child)

    def end_all(self):
        with self.lock:
            self.over = True
            for child in self.running:
                kill(child)


def kill(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


CHILDREN = Children()


def run(command, seconds=180, **environment):
    child = CHILDREN.begin(command, stderr=subprocess.PIPE, env=dict(os.environ, **environment))
    late = Timer(seconds, kill, (child,))
    late.start()
    out, error = child.communicate()
    late.cancel()
    CHILDREN.end(child)
    return subprocess.CompletedProcess(command, child.returncode, out, error)


def step(what, name, seconds=60, **environment):
    return run([sys.executable, __file__, "--step", what, name], seconds, **environment)


def begin_torch(name):
    return CHILDREN.begin([sys.executable, __file__, "--step", "time", name], stdin=subprocess.PIPE,
                          stderr=open(f"{WORK}/{name}.torch", "w"),
                          env=dict(os.environ, OMP_NUM_THREADS="2", TORCHINDUCTOR_COMPILE_THREADS="3"))


def wait_ready(child, seconds):
    late = Timer(seconds, kill, (child,))
    late.start()
    is_ready = any(line.startswith("ready") for line in iter(child.stdout.readline, ""))
    late.cancel()
    return is_ready


def finish_torch(name, child, seconds=40):
    """PyTorch's numbers of a process that is ready."""
    late = Timer(seconds, kill, (child,))
    late.start()
    try:
        text = child.communicate("now\n")[0]
    except (BrokenPipeError, ValueError):
        text = ""
    late.cancel()
    CHILDREN.end(child)
    lines = [line for line in text.splitlines() if line.startswith(name + " {")]
    error = open(f"{WORK}/{name}.torch").read()[-300:]
    return json.loads(lines[0].split(" ", 1)[1]) if lines else {"error": "PyTorch: " + error}


# ---- Rondo --------------------------------------------------------------------------------------

def bench(rondo, name, tune, cache, *options, seconds=60):
    return run([rondo, "bench", f"{WORK}/{name}/model.onnx", "--device", "cuda:0", "--dtype", "fp16", "--tune", tune,
                "--no-transfers", *options], seconds, RONDO_CACHE_DIR=cache)


def time_rondo(rondo, name, tune, cache, iterations):
    path = f"{WORK}/{name}.json"
    if os.path.exists(path):
        os.remove(path)
    begin = time.time()
    done = bench(rondo, name, tune, cache, "--iterations", str(iterations), "--duration", "0.3", "--json", path)
    if not os.path.exists(path):
        return {"error": (done.stdout + done.stderr)[-300:]}
    found = json.load(open(path))
    latency, graph = found["replay"]["latency_ms"], found.get("graph", {})
    return {"replay_us": 1e3 * latency["median"], "p99_us": 1e3 * latency["p99"],
            "eager_us": 1e3 * found["eager"]["latency_ms"]["median"], "prepare_s": graph.get("prepare_ms", 0) / 1e3,
            "process_s": time.time() - begin, **{key: graph.get(key) for key in ("ops", "nodes", "bypassed_ops")}}


def test(rondo, name, dtype, cache, seconds=60):
    done = run([rondo, "test", "--device", "cuda:0", "--dtype", dtype, f"{WORK}/{name}"], seconds,
               RONDO_CACHE_DIR=cache)
    return (done.stdout.strip() or done.stderr.strip() or "no time").splitlines()[0]


def match_boxes(rondo, name, cache):
    """How many of the expected boxes there are, whatever their order: of the same class, and nine tenths shared."""
    import gpu_skeleton
    import numpy as np
    folder = f"{WORK}/{name}"
    feed = f"{gpu_skeleton.input_names(f'{folder}/model.onnx')[0]}={folder}/test_data_set_0/input_0.pb"
    run([rondo, "run", f"{folder}/model.onnx", "--device", "cuda:0", "--dtype", "fp16", "--input", feed, "--output-dir",
         f"{folder}/found"], 60, RONDO_CACHE_DIR=cache)
    names = gpu_skeleton.output_names(f"{folder}/model.onnx")
    found = [np.load(f"{folder}/found/{each}.npy") for each in names]
    boxes, scores, labels = (gpu_skeleton.read(f"{folder}/test_data_set_0/output_{i}.pb") for i in range(3))
    area = lambda x: (x[..., 2] - x[..., 0]).clip(0) * (x[..., 3] - x[..., 1]).clip(0)
    one, other = boxes[:, None].astype(np.float32), found[0][None].astype(np.float32)
    shared = area(np.concatenate([np.maximum(one, other)[..., :2], np.minimum(one, other)[..., 2:]], -1))
    alike = (shared > 0.9 * (area(one) + area(other) - shared)) & (labels[:, None] == found[2][None])
    same = min(len(scores), len(found[1]))
    error = np.abs(np.sort(scores)[::-1][:same] - np.sort(found[1].astype(np.float32))[::-1][:same]).max()
    return f"{int(alike.any(1).sum())} of {len(scores)} boxes found, scores in order off by {error:.4f} at most"


# ---- the table ----------------------------------------------------------------------------------

def show(value, digits=0):
    return f"{value:.{digits}f}" if isinstance(value, (int, float)) else "-"


HEAD = ("network", "PyTorch eager", "graph", "compile", "p99 of these", "before", "now", "again: before", "now",
        "p99 before", "now", "now / PyTorch graph", "now / best PyTorch", "now / before", "full", "now / full",
        "prepare, s", "full", "ops", "nodes before", "now", "bypassed before", "now", "GB/s before", "now",
        "share of 4800", "of a sum", "fp16", "fp32")


def least(rows, key="replay_us"):
    return min((row[key] for row in rows if isinstance(row.get(key), (int, float))), default=None)


def ratio(value, base):
    return show(value / base if value and base else None, 2)


def show_row(row, rate=None):
    torch_side, before, now, full = row["torch"], row["before"], row["now"], row["full"]
    both = [[rows[turn] if turn < len(rows) else {} for rows in (before, now)] for turn in (0, 1)]
    ways = ("eager", "graph", "compile")
    fastest = min((torch_side[f"{way}_us"] for way in ways if f"{way}_us" in torch_side), default=None)
    size = row.get("read_bytes")
    rates = [size / us / 1e3 if size and us else None for us in (least(before), least(now))]
    cells = [row["name"], *[show(torch_side.get(f"{way}_us")) for way in ways],
             " ".join(show(torch_side.get(f"{way}_p99")) for way in ways),
             *[show(each.get("replay_us")) for turn in both for each in turn], show(least(before, "p99_us")),
             show(least(now, "p99_us")), ratio(least(now), torch_side.get("graph_us")), ratio(least(now), fastest),
             ratio(least(now), least(before)), show(full.get("replay_us")), ratio(least(now), full.get("replay_us")),
             show(both[0][1].get("prepare_s"), 1), show(full.get("prepare_s"), 1), both[0][1].get("ops"),
             *[each.get("nodes") for each in both[0]], *[each.get("bypassed_ops") for each in both[0]],
             *[show(each) for each in rates], ratio(rates[1], 4800), ratio(rates[1], rate),
             row.get("fp16", "-"), row.get("fp32", "-")]
    errors = " ".join(each["error"] for each in (*before, *now, full, torch_side) if "error" in each)
    print("| " + " | ".join(str(cell) for cell in cells) + " | " + errors[-300:].replace("\n", " "), flush=True)


class Table:
    def __init__(self, limit):
        self.begin, self.rows, self.rate, self.shown = time.time(), [], None, Lock()
        self.limit = Timer(limit, self.cut)
        self.limit.daemon = True
        self.limit.start()

    def seconds(self):
        return time.time() - self.begin

    def say(self, what):
        print(f"{what}: {self.seconds():.0f} s", flush=True)

    def keep(self):
        with open(f"{OUT}/gpu_networks.json", "w") as file:
            json.dump({"read_gb_s": self.rate, "rows": self.rows}, file, indent=1)

    def print_all(self):
        if not self.shown.acquire(blocking=False):
            return
        self.keep()
        print(f"a sum of 8 GB by PyTorch: {show(self.rate)} GB/s")
        print("| " + " | ".join(HEAD) + " |\n|---|" + "---:|" * (len(HEAD) - 3) + "---|---|")
        for row in self.rows:
            show_row(row, self.rate)
        self.say("all")

    def cut(self):
        self.print_all()
        print("cut by LIMIT_S", flush=True)
        CHILDREN.end_all()
        os._exit(1)


def prepare(name, tools, full, end):
    """Model, expected outputs, kernels and the test in fp32, until `end`; what is wrong, or nothing."""
    begin, times = time.time(), {}
    done = step("export", name, end - begin, OMP_NUM_THREADS="2", CUDA_VISIBLE_DEVICES="")
    times["export"] = time.time() - begin
    if done.returncode != 0:
        return f"not exported: {(done.stderr.strip().splitlines() or ['no time'])[-1]}", None
    for which, tool in tools.items():
        tune = "full" if full and which == "now" else "fast"
        bench(tool, name, tune, f"{WORK}/{which}_{name}", "--iterations", "1", "--duration", "0.01", "--warm-up", "0",
              seconds=max(1, end - time.time()))
        times[which] = time.time() - begin
    seconds = max(1, end - time.time())
    found = None if name in networks.FORMS else test(tools["now"], name, "fp32", f"{WORK}/fp32_{name}", seconds)
    times["fp32"] = time.time() - begin
    for path in glob.glob(f"{WORK}/*_{name}/kernels/*.bin"):
        if os.path.getsize(path) < CHOICE_BYTES:
            os.remove(path)
    print(f"{name}: {' '.join(f'{key} {value:.0f}' for key, value in times.items())} s; fp32 {(found or '-')[:150]}",
          flush=True)
    return None, found


def prepare_all(table, names, tools, full):
    """What prepare found for each network, and PyTorch's processes, which are ready or dead."""
    bases = dict.fromkeys(networks.FORMS.get(name, name) for name in names) if PYTORCH else ()
    torch_sides = {name: begin_torch(name) for name in bases}
    seconds = float(os.environ.get("PREPARE_S", "200"))
    end = time.time() + seconds
    with ThreadPoolExecutor(len(names)) as waiting, ThreadPoolExecutor(int(os.environ.get("JOBS", "8"))) as pool:
        ready = [waiting.submit(wait_ready, child, seconds) for child in torch_sides.values()]
        prepared = list(pool.map(lambda name: prepare(name, tools, full, end), names))
        table.say("models, kernels")
        for each in ready:
            each.result()
    table.say("PyTorch compiled")
    return prepared, torch_sides


def time_row(row, tools):
    name = row["name"]
    if name in networks.DECODERS:
        import gpu_skeleton
        row["read_bytes"] = gpu_skeleton.count_read_bytes(f"{WORK}/{name}/model.onnx")
    for _ in range(int(os.environ.get("ROUNDS", "2"))):
        for which, tool in tools.items():
            iterations = networks.SLOW.get(name, 150) if which == "before" else 150
            row[which].append(time_rondo(tool, name, "fast", f"{WORK}/{which}_{name}", iterations))


def test_all(rows, rondo):
    with ThreadPoolExecutor(6) as pool:
        found = pool.map(lambda row: test(rondo, row["name"], "fp16", f"{WORK}/now_{row['name']}"), rows)
        for row, result in zip(rows, found):
            row["fp16"] = result.split()[0]
            print(f"{row['name']} fp16: {result[:200]}", flush=True)
    for row in rows:
        if row["name"] == "ssdlite320":
            row["boxes"] = match_boxes(rondo, row["name"], f"{WORK}/now_{row['name']}")
            print(f"{row['name']} fp16: {row['boxes']}", flush=True)


def fill_table(table, rondo, names):
    tools = {"before": os.environ.get("BEFORE"), "now": rondo}
    tools = {which: tool for which, tool in tools.items() if tool}
    full, torch_found = os.environ.get("FULL") != "0", {}
    prepared, torch_sides = prepare_all(table, names, tools, full)
    table.rate = float(PYTORCH and step("rate", "-").stdout or "nan")
    for name, (error, fp32) in zip(names, prepared):
        base = networks.FORMS.get(name, name)
        if base in torch_sides and base not in torch_found:
            torch_found[base] = finish_torch(base, torch_sides[base])
        row = {"name": name, "torch": torch_found.get(base, {}), "before": [], "now": [], "full": {},
               "fp32": (fp32 or "-").split()[0]}
        table.rows.append(row)
        if error:
            row["now"].append({"error": error})
        else:
            time_row(row, tools)
        table.keep()
        times = [[round(each.get("replay_us", 0)) for each in row[which]] for which in ("before", "now")]
        table.say(f"{name} {times}, PyTorch's graph {row['torch'].get('graph_us', 0):.0f}")
    test_all(table.rows, rondo)
    table.keep()
    table.say("tested")
    for row in table.rows if full else []:
        row["full"] = time_rondo(rondo, row["name"], "full", f"{WORK}/now_{row['name']}", 150)
        table.keep()


def main(rondo, names):
    os.makedirs(OUT, exist_ok=True)
    os.makedirs(WORK, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", f"{WORK}/inductor")
    table = Table(float(os.environ.get("LIMIT_S", "530")))
    signal.signal(signal.SIGTERM, lambda *_: table.cut())
    try:
        fill_table(table, rondo, names)
    finally:
        table.print_all()
        table.limit.cancel()


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--step":
        for each in sys.argv[3:]:
            {"export": export, "strip": strip, "time": time_torch, "rate": read_rate}[sys.argv[2]](each)
    elif len(sys.argv) > 1 and sys.argv[1] not in ("-h", "--help"):
        main(sys.argv[1], sys.argv[2:] or [*networks.NETWORKS, *networks.FORMS])
    else:
        print(__doc__.strip())
