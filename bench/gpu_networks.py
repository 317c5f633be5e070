#!/usr/bin/env python3
"""Networks of several kinds on one GPU, fp16, batch 1: Rondo beside PyTorch, eager and from a CUDA graph.

    bench/gpu_networks.py RONDO [NAME...]      default: all networks that are listed below

RONDO is the tool (build/rondo). Each network is made with random weights, exported to ONNX and run
by ONNX Runtime's CPU provider for the expected outputs, unless an earlier call has left all that in
$TMPDIR/gpu_networks. Then PyTorch runs each in fp16 (channels last where it has images, cuDNN's
benchmark mode on), and behind that Rondo each without any timing of kernels (--tune off) and with all
of it (--tune full), each on an empty kernel cache, and once more on the full one. At last, several at
once, `rondo test` compares fp16 and fp32 with the expected outputs. Latency is wall time of one run
with the wait, inputs on the device: median and 99th percentile of at least 150 runs. A row for each
network; all numbers go to $OUT/gpu_networks.json (or build-gpu/out), too. Needs torch, torchvision,
transformers, onnx, onnxruntime.

    LIMIT_S=530                                no network is begun after so many seconds
    bench/gpu_networks.py --step export NAME   only makes and exports the network
"""
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

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


def make_vision(name, count=1, size=224, **options):
    import torchvision
    return getattr(torchvision.models, name)(weights=None, **options), image(count, size)


NETWORKS = {
    "unet": make_unet, "deeplab": make_deeplab, "gru": make_gru, "bert_base": make_bert, "gpt2": make_gpt2,
    "vit_tiny": make_vit,
    "densenet121": lambda: make_vision("densenet121"), "resnet50": lambda: make_vision("resnet50"),
    "convnext_tiny": lambda: make_vision("convnext_tiny"), "resnet50_b128": lambda: make_vision("resnet50", 128),
    "inception_v3": lambda: make_vision("inception_v3", size=299, aux_logits=True, init_weights=False),
}


def make(name):
    """The network as after training, and its inputs; the same in each process."""
    import torch
    torch.manual_seed(0)
    net, inputs = NETWORKS[name]()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
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
    """Prints the network's name and its numbers."""
    import torch
    torch.backends.cudnn.benchmark = True
    net, inputs = make(name)
    net = net.cuda().half()
    inputs = [x.cuda().half() if x.is_floating_point() else x.cuda() for x in inputs]
    if any(x.dim() == 4 for x in inputs):
        net = net.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]

    def measure(run):
        times = []
        for _ in range(160):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            run()
            torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - begin))
        return statistics.median(times[10:])

    found = {}
    with torch.inference_mode():
        found["eager_us"] = measure(lambda: net(*inputs))
        try:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    net(*inputs)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                net(*inputs)
            found["graph_us"] = measure(graph.replay)
        except RuntimeError as error:
            found["no_graph"] = str(error).splitlines()[0]
    print(name, json.dumps(found), flush=True)


# ---- the table ----------------------------------------------------------------------------------

def run(command, **environment):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=180, env=dict(os.environ, **environment))
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(command, 124, (late.stdout or b"").decode(), "no time")


def step(what, *names, **environment):
    return run([sys.executable, __file__, "--step", what, *names], **environment)


def time_all_torch(names):
    """PyTorch's numbers by network, as far as it came."""
    done = step("time", *names)
    lines, error = done.stdout.splitlines(), done.stderr[-300:]
    found = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1]) for line in lines if "{" in line}
    return {name: found.get(name, {"error": error}) for name in names}


def time_rondo(rondo, name, tune, cache):
    path = f"{WORK}/{name}.json"
    if os.path.exists(path):
        os.remove(path)
    begin = time.time()
    done = run([rondo, "bench", f"{WORK}/{name}/model.onnx", "--device", "cuda:0", "--dtype", "fp16", "--tune", tune,
                "--no-transfers", "--iterations", "150", "--duration", "0.5", "--json", path], RONDO_CACHE_DIR=cache)
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


HEAD = ("network", "PyTorch eager, us", "graph", "Rondo off: replay, p99", "prepare, s", "full: eager", "replay", "p99",
        "prepare, s", "warm", "replay / best PyTorch", "off / full", "ops", "nodes", "bypassed", "fp16", "fp32")


def show_row(row):
    torch_side, off, full, warm = row["torch"], row["off"], row["full"], row["warm"]
    best = min((v for k, v in torch_side.items() if k.endswith("_us")), default=None)
    replay = full.get("replay_us")
    cells = [row["name"], show(torch_side.get("eager_us")), show(torch_side.get("graph_us")),
             f"{show(off.get('replay_us'))}, {show(off.get('p99_us'))}", show(off.get("prepare_s"), 1),
             show(full.get("eager_us")), show(replay), show(full.get("p99_us")), show(full.get("prepare_s"), 1),
             show(warm.get("prepare_s"), 2), show(replay / best if best and replay else None, 2),
             show(off["replay_us"] / replay if replay and "replay_us" in off else None, 2), full.get("ops"),
             full.get("nodes"), full.get("bypassed_ops"), row["fp16"].split()[0], row["fp32"].split()[0]]
    print("| " + " | ".join(str(cell) for cell in cells) + " | " + full.get("error", "") + off.get("error", ""), flush=True)


def main(rondo, names):
    begin = time.time()
    limit = float(os.environ.get("LIMIT_S", "530"))
    rows = []
    os.makedirs(OUT, exist_ok=True)
    with ThreadPoolExecutor(8) as pool:
        exports = dict(zip(names, pool.map(lambda name: step("export", name, OMP_NUM_THREADS="2",
                                                             CUDA_VISIBLE_DEVICES=""), names)))
    torch_sides = time_all_torch(names)
    for name in names:
        if exports[name].returncode != 0:
            print(f"{name} is not exported: {(exports[name].stderr.strip().splitlines() or [''])[-1]}", flush=True)
        elif time.time() - begin > limit:
            print(f"{name}: no time", flush=True)
        else:
            off = time_rondo(rondo, name, "off", f"{WORK}/off_{name}")
            full = time_rondo(rondo, name, "full", f"{WORK}/full_{name}")
            warm = time_rondo(rondo, name, "full", f"{WORK}/full_{name}")
            rows.append({"name": name, "torch": torch_sides[name], "off": off, "full": full, "warm": warm})
            json.dump(rows, open(f"{OUT}/gpu_networks.json", "w"), indent=1)
    with ThreadPoolExecutor(6) as pool:
        for dtype in ("fp16", "fp32"):
            found = pool.map(lambda row: test(rondo, row["name"], dtype, f"{WORK}/full_{row['name']}"), rows)
            for row, result in zip(rows, list(found)):
                row[dtype] = result
    json.dump(rows, open(f"{OUT}/gpu_networks.json", "w"), indent=1)
    print("| " + " | ".join(HEAD) + " |\n|---|" + "---:|" * (len(HEAD) - 3) + "---|---|")
    for row in rows:
        show_row(row)


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--step":
        for each in sys.argv[3:]:
            {"export": export, "time": time_torch}[sys.argv[2]](each)
    elif len(sys.argv) > 1 and sys.argv[1] not in ("-h", "--help"):
        main(sys.argv[1], sys.argv[2:] or list(NETWORKS))
    else:
        print(__doc__.strip())
