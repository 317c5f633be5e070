#!/usr/bin/env python3
"""Networks of several kinds on one GPU, fp16, batch 1: Rondo beside PyTorch, eager, from a CUDA graph and compiled.

    bench/peers/gpu_networks.py RONDO [NAME...]      default: all networks that are listed below
    BEFORE=path                                an older tool, timed in turns with RONDO
    LIMIT_S=530                                no network is begun after so many seconds
    COMPILE_S=120                              torch.compile is given up after so many; 0: it is left out
    ROUNDS=2 FULL=1                            how often each tool runs a network; without --tune full: FULL=0
    bench/peers/gpu_networks.py --step export NAME   only makes and exports the network

Each network is made with random weights, exported to ONNX and run by ONNX Runtime's CPU provider for the
expected outputs, unless an earlier call has left all that in $TMPDIR/gpu_networks. Meanwhile a process of
PyTorch for each compiles it (torch.compile, mode reduce-overhead: with CUDA graphs); then one after another
they are timed in fp16 (channels last where there are convolutions, cuDNN's benchmark mode on). Behind that
each tool runs it twice with the default tuning, in turns, on a kernel cache of its own, and RONDO once after
--tune full. At last, several at once, `rondo test` compares fp16 and fp32 with the expected outputs. Latency
is wall time of one run with the wait, inputs on the device: median and 99th percentile of at least 150 runs.
A row for each network; all numbers go to $OUT/gpu_networks.json (or build-gpu/out), too. Needs torch,
torchvision, transformers, onnx, onnxruntime.
"""
import fcntl
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Timer

warnings.filterwarnings("ignore")
WORK = os.environ.get("TMPDIR", "/tmp") + "/gpu_networks"
OUT = os.environ.get("OUT", "build-gpu/out")


# ---- the networks -------------------------------------------------------------------------------

def image(count=1, size=224):
    import torch
    return (torch.randn(count, 3, size, size),)


def make_unet():
    import torch
    from torch import nn

    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.InstanceNorm2d(outputs, affine=True),
                             nn.LeakyReLU(0.1), nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs),
                             nn.SiLU())

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([block(3, 16), block(16, 32), block(32, 64)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 4, 2, 1)])
            self.join = nn.ModuleList([block(64, 32), block(32, 16)])
            self.pool, self.last = nn.AvgPool2d(2), nn.Conv2d(16, 2, 1)

        def forward(self, x):
            kept = [self.down[0](x)]
            kept.append(self.down[1](self.pool(kept[0])))
            y = self.down[2](self.pool(kept[1]))
            for up, join, old in zip(self.up, self.join, reversed(kept)):
                y = join(torch.cat([up(y), old], 1))
            return nn.functional.interpolate(self.last(y), scale_factor=2, mode="bilinear", align_corners=False)

    return Unet(), image(size=128)


def make_gru():
    import torch
    from torch import nn

    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layers = nn.Embedding(300, 64), nn.GRU(64, 80, 2, bidirectional=True)
            self.head = nn.Linear(160, 11)

        def forward(self, ids):
            return self.head(self.layers(self.words(ids))[0])

    return Gru(), (torch.randint(0, 300, (19, 2)),)


def make_vit():
    import torch
    from torchvision.models import VisionTransformer
    net = VisionTransformer(224, 16, 12, 3, 192, 768)
    torch.nn.init.normal_(net.heads.head.weight, std=0.02)
    return net, image()


class First:
    """Makes a module of a network and the part of its result that is wanted."""

    def __new__(cls, net, get):
        import torch

        class Wrapped(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, *arguments):
                return get(self.net, *arguments)

        return Wrapped()


def make_deeplab():
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large
    net = deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)
    return First(net, lambda net, x: net(x)["out"]), image()


def make_bert():
    import torch
    from transformers import BertConfig, BertModel
    net = BertModel(BertConfig(attn_implementation="eager"))
    ids, mask = torch.randint(0, 1000, (1, 128)), torch.ones(1, 128, dtype=torch.long)
    return First(net, lambda net, ids, mask: net(ids, attention_mask=mask)[0]), (ids, mask)


def make_gpt2():
    import argparse
    import torch
    from export_gpt2 import Gpt2
    options = argparse.Namespace(layers=12, width=768, heads=12, words=50257, tokens=128)
    return Gpt2(options), (torch.randint(0, 1000, (1, 128)),)


def make_mixer():
    """mixer_b16_224: twelve blocks of 196 tokens and 768 channels."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(768), nn.LayerNorm(768)])
            self.tokens = nn.Sequential(nn.Linear(196, 384), nn.GELU(), nn.Linear(384, 196))
            self.channels = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768))

        def forward(self, x):
            x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norms[1](x))

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 768, 16, 16)
            self.blocks, self.norm = nn.Sequential(*[Block() for _ in range(12)]), nn.LayerNorm(768)
            self.head = nn.Linear(768, 1000)

        def forward(self, x):
            return self.head(self.norm(self.blocks(self.stem(x).flatten(2).transpose(1, 2))).mean(1))

    return Mixer(), image()


def make_ssdlite():
    """All 3234 boxes of 90 classes are above the threshold: 300 of each class go through NonMaxSuppression."""
    import torch
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large
    net = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    for layers in net.head.classification_head.module_list:
        torch.nn.init.normal_(layers[-1].weight, std=0.06)
    with torch.no_grad():
        # Real statistics, so that scores differ by more than a rounding.
        net.head(list(net.backbone(torch.randn(4, 3, 320, 320)).values()))

    def detect(net, x):
        found = net([x[0]])[0]
        return found["boxes"], found["scores"], found["labels"]

    return First(net, detect), image(size=320)


def make_llama(layers=8, words=32000, past=511, tokens=1, width=2048, heads=32, groups=8, inner=8192):
    """One step of a decoder with 511 tokens behind it, or the first pass over a prompt (no past)."""
    import torch
    from torch import nn
    extent = width // heads

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            y = x.float()
            return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight

    def rotate(x, cosine, sine):
        return x * cosine + torch.cat([-x[..., extent // 2:], x[..., :extent // 2]], -1) * sine

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            linear = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)
            self.norms = nn.ModuleList([Norm(), Norm()])
            self.q, self.k, self.v = (linear(width, n * extent) for n in (heads, groups, groups))
            self.o, self.gate, self.up = linear(width, width), linear(width, inner), linear(width, inner)
            self.down = linear(inner, width)

        def attend(self, q, k, v):
            if FUSED and tokens > 1:
                return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            shape = (1, groups, heads // groups, k.shape[2], extent)
            k, v = (x.unsqueeze(2).expand(shape).reshape(1, heads, -1, extent) for x in (k, v))
            weights = q @ k.transpose(2, 3) / extent ** 0.5
            if tokens > 1:
                weights = weights + torch.full((tokens, tokens), -65504.0, dtype=q.dtype, device=q.device).triu(1)
            return torch.softmax(weights, -1) @ v

        def forward(self, x, cosine, sine, *past):
            split = lambda product, count: product.view(1, tokens, count, extent).transpose(1, 2)
            y = self.norms[0](x)
            q = rotate(split(self.q(y), heads), cosine, sine)
            k, v = rotate(split(self.k(y), groups), cosine, sine), split(self.v(y), groups)
            if past:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            x = x + self.o(self.attend(q, k, v).transpose(1, 2).reshape(1, tokens, width))
            y = self.norms[1](x)
            return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), k, v

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.norm = nn.Embedding(words, width), Norm()
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.head = nn.Linear(width, words, bias=False)
            for weight in self.parameters():
                if weight.dim() == 2:
                    nn.init.normal_(weight, std=0.02)

        def forward(self, ids, cosine, sine, *past):
            x, caches = self.words(ids), []
            for i, layer in enumerate(self.layers):
                x, k, v = layer(x, cosine, sine, *past[2 * i:2 * i + 2])
                caches += [k, v]
            return (self.head(self.norm(x[:, -1:])), *caches)

    caches = [torch.randn(1, groups, past, extent) * 0.3 for _ in range(2 * layers if past else 0)]
    return Llama(), (torch.randint(0, min(words, 32000), (1, tokens)), torch.rand(1, 1, tokens, extent),
                     torch.rand(1, 1, tokens, extent), *caches)


def make_vision(name, count=1, size=224, **options):
    import torchvision
    return getattr(torchvision.models, name)(weights=None, **options), image(count, size)


FUSED = False  # a prompt's attention as PyTorch's fused op: for its own times, not for the export
NOT_COMPILED = ("ssdlite320",)  # graphs break at each class
SLOW = {"ssdlite320": 20}  # runs of each, as the older tool needs a tenth of a second

NETWORKS = {
    "unet": make_unet, "deeplab": make_deeplab, "gru": make_gru, "bert_base": make_bert, "gpt2": make_gpt2,
    "vit_tiny": make_vit,
    "densenet121": lambda: make_vision("densenet121"), "resnet50": lambda: make_vision("resnet50"),
    "convnext_tiny": lambda: make_vision("convnext_tiny"), "resnet50_b128": lambda: make_vision("resnet50", 128),
    "inception_v3": lambda: make_vision("inception_v3", size=299, aux_logits=True, init_weights=False),
    "efficientnet_b0": lambda: make_vision("efficientnet_b0"), "regnet_y_3_2gf": lambda: make_vision("regnet_y_3_2gf"),
    "mixer_b16": make_mixer, "swin_t": lambda: make_vision("swin_t"),
    "swin_v2_t": lambda: make_vision("swin_v2_t", size=256), "ssdlite320": make_ssdlite,
    "llama_half_b": make_llama, "llama_half_b_prompt": lambda: make_llama(past=0, tokens=512),
    "llama_1b": lambda: make_llama(layers=16, words=128256),
}


def make(name):
    """The network as after training, and its inputs; the same in each process."""
    import torch
    torch.manual_seed(0)
    net, inputs = NETWORKS[name]()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d) and name != "ssdlite320":
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return net.eval(), inputs


# ---- steps, in processes of their own -----------------------------------------------------------

def export(name):
    import numpy as np
    import onnxruntime
    import torch
    from onnx import numpy_helper
    net, inputs = make(name)
    data = f"{WORK}/{name}/test_data_set_0"
    model = f"{WORK}/{name}/model.onnx"
    if os.path.exists(f"{data}/done"):
        return
    os.makedirs(data, exist_ok=True)
    with torch.no_grad():
        torch.onnx.export(net, inputs, model, opset_version=17, do_constant_folding=True, dynamo=False)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    feeds = {spec.name: value.numpy() for spec, value in zip(session.get_inputs(), inputs)}
    outputs = zip((spec.name for spec in session.get_outputs()), session.run(None, feeds))
    for kind, tensors in (("input", feeds.items()), ("output", outputs)):
        for number, (tensor_name, value) in enumerate(tensors):
            with open(f"{data}/{kind}_{number}.pb", "wb") as file:
                file.write(numpy_helper.from_array(np.asarray(value), tensor_name).SerializeToString())
    open(f"{data}/done", "w").close()


def time_torch(name):
    """Compiles, says "ready", waits for a line, and prints the network's name and its numbers."""
    global FUSED
    import torch
    FUSED = True
    torch.backends.cudnn.benchmark = True
    net, inputs = make(name)
    net = net.cuda().half()
    inputs = [x.cuda().half() if x.is_floating_point() else x.cuda() for x in inputs]
    if any(isinstance(module, torch.nn.Conv2d) for module in net.modules()):
        net = net.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    found, replays = {}, {"eager": lambda: net(*inputs)}

    def measure(way, replay):
        times = []
        for _ in range(160):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            replay()
            torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - begin))
        found[f"{way}_us"] = statistics.median(times[10:])

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
        fast = torch.compile(net, mode="reduce-overhead")
        for _ in range(4):
            fast(*inputs)
        torch.cuda.synchronize()
        signal.alarm(0)
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
        if name not in NOT_COMPILED and os.environ.get("COMPILE_S") != "0":
            attempt("compile", compiled)
            signal.alarm(0)
        print("ready", flush=True)
        sys.stdin.readline()
        for way, replay in replays.items():
            attempt(way, lambda: measure(way, replay))
        attempt("graph", captured)  # last, since a refused capture may break the process
    print(name, json.dumps(found), flush=True)


# ---- the table ----------------------------------------------------------------------------------

def run(command, **environment):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=180, env=dict(os.environ, **environment))
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(command, 124, (late.stdout or b"").decode(), "no time")


def step(what, *names, **environment):
    return run([sys.executable, __file__, "--step", what, *names], **environment)


def begin_torch(name):
    return subprocess.Popen([sys.executable, __file__, "--step", "time", name], text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=open(f"{WORK}/{name}.torch", "w"),
                            env=dict(os.environ, OMP_NUM_THREADS="2"))


def finish_torch(name, process):
    """PyTorch's numbers of a process that is ready, or soon will be."""
    late = Timer(float(os.environ.get("TORCH_S", "150")), process.kill)
    late.start()
    text = process.communicate("now\n")[0]
    late.cancel()
    lines = [line for line in text.splitlines() if line.startswith(name + " {")]
    error = open(f"{WORK}/{name}.torch").read()[-300:]
    return json.loads(lines[0].split(" ", 1)[1]) if lines else {"error": error}


def time_rondo(rondo, name, tune, cache):
    path = f"{WORK}/{name}.json"
    if os.path.exists(path):
        os.remove(path)
    begin = time.time()
    done = run([rondo, "bench", f"{WORK}/{name}/model.onnx", "--device", "cuda:0", "--dtype", "fp16", "--tune", tune,
                "--no-transfers", "--iterations", str(SLOW.get(name, 150)), "--duration", "0.4", "--json", path],
               RONDO_CACHE_DIR=cache)
    if not os.path.exists(path):
        return {"error": (done.stdout + done.stderr)[-300:]}
    found = json.load(open(path))
    latency, graph = found["replay"]["latency_ms"], found.get("graph", {})
    return {"replay_us": 1e3 * latency["median"], "p99_us": 1e3 * latency["p99"],
            "eager_us": 1e3 * found["eager"]["latency_ms"]["median"], "prepare_s": graph.get("prepare_ms", 0) / 1e3,
            "process_s": time.time() - begin, **{key: graph.get(key) for key in ("ops", "nodes", "bypassed_ops")}}


def test(rondo, name, dtype, cache):
    done = run([rondo, "test", "--device", "cuda:0", "--dtype", dtype, f"{WORK}/{name}"], RONDO_CACHE_DIR=cache)
    return (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()[0]


def show(value, digits=0):
    return f"{value:.{digits}f}" if isinstance(value, (int, float)) else "-"


HEAD = ("network", "PyTorch eager", "graph", "compile", "before", "now", "again: before", "now", "p99 before", "now",
        "now / best PyTorch", "now / before", "full", "now / full", "prepare, s", "full", "ops", "nodes before", "now",
        "bypassed before", "now", "fp16", "fp32")


def least(rows, key="replay_us"):
    return min((row[key] for row in rows if isinstance(row.get(key), (int, float))), default=None)


def ratio(value, base):
    return show(value / base if value and base else None, 2)


def show_row(row):
    torch_side, before, now, full = row["torch"], row["before"], row["now"], row["full"]
    both = [[rows[turn] if turn < len(rows) else {} for rows in (before, now)] for turn in (0, 1)]
    fastest = min((v for k, v in torch_side.items() if k.endswith("_us")), default=None)
    cells = [row["name"], *[show(torch_side.get(f"{way}_us")) for way in ("eager", "graph", "compile")],
             *[show(each.get("replay_us")) for turn in both for each in turn], show(least(before, "p99_us")),
             show(least(now, "p99_us")), ratio(least(now), fastest), ratio(least(now), least(before)),
             show(full.get("replay_us")), ratio(least(now), full.get("replay_us")),
             show(both[0][1].get("prepare_s"), 1), show(full.get("prepare_s"), 1), both[0][1].get("ops"),
             *[each.get("nodes") for each in both[0]], *[each.get("bypassed_ops") for each in both[0]],
             row.get("fp16", "-"), row.get("fp32", "-")]
    errors = " ".join(each["error"] for each in (*before, *now, full, torch_side) if "error" in each)
    print("| " + " | ".join(str(cell) for cell in cells) + " | " + errors[-300:].replace("\n", " "), flush=True)


def main(rondo, names):
    begin = time.time()
    limit = float(os.environ.get("LIMIT_S", "530"))
    tools = {"before": os.environ.get("BEFORE"), "now": rondo}
    rows = []
    os.makedirs(OUT, exist_ok=True)
    os.makedirs(WORK, exist_ok=True)
    torch_sides = {name: begin_torch(name) for name in names}
    with ThreadPoolExecutor(8) as pool:
        exports = dict(zip(names, pool.map(lambda name: step("export", name, OMP_NUM_THREADS="2",
                                                             CUDA_VISIBLE_DEVICES=""), names)))
    for name in names:
        for line in iter(torch_sides[name].stdout.readline, ""):
            if line.startswith("ready"):
                break
    print(f"exported and compiled: {time.time() - begin:.0f} s", flush=True)
    torch_sides = {name: finish_torch(name, process) for name, process in torch_sides.items()}
    print(f"PyTorch timed: {time.time() - begin:.0f} s", flush=True)
    for name in names:
        if exports[name].returncode != 0:
            print(f"{name} is not exported: {(exports[name].stderr.strip().splitlines() or [''])[-1]}", flush=True)
        elif time.time() - begin > limit:
            print(f"{name}: no time; PyTorch {torch_sides[name]}", flush=True)
        else:
            row = {"name": name, "torch": torch_sides[name], "before": [], "now": [], "full": {}}
            for _ in range(int(os.environ.get("ROUNDS", "2"))):
                for which, tool in tools.items():
                    if tool:
                        row[which].append(time_rondo(tool, name, "fast", f"{WORK}/{which}_{name}"))
            rows.append(row)
            json.dump(rows, open(f"{OUT}/gpu_networks.json", "w"), indent=1)
    for row in rows:
        if time.time() - begin < limit and os.environ.get("FULL") != "0":
            row["full"] = time_rondo(rondo, row["name"], "full", f"{WORK}/full_{row['name']}")
    with ThreadPoolExecutor(6) as pool:
        for dtype in ("fp16", "fp32"):
            found = pool.map(lambda row: test(rondo, row["name"], dtype, f"{WORK}/now_{row['name']}"), rows)
            for row, result in zip(rows, list(found)):
                row[dtype] = result.split()[0]
                print(f"{row['name']} {dtype}: {result[:200]}", flush=True)
    json.dump(rows, open(f"{OUT}/gpu_networks.json", "w"), indent=1)
    print("| " + " | ".join(HEAD) + " |\n|---|" + "---:|" * (len(HEAD) - 3) + "---|---|")
    for row in rows:
        show_row(row)
    print(f"{time.time() - begin:.0f} s")


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--step":
        for each in sys.argv[3:]:
            {"export": export, "time": time_torch}[sys.argv[2]](each)
    elif len(sys.argv) > 1 and sys.argv[1] not in ("-h", "--help"):
        main(sys.argv[1], sys.argv[2:] or list(NETWORKS))
    else:
        print(__doc__.strip())
