#!/usr/bin/env python3
"""64 steps of llama_half_b in Rondo, in fp16 and fp32, each with its own cache, beside PyTorch's in f32.

    bench/peers/torch_decode_steps.py [STEPS]              needs torch, onnx, a GPU; RONDO_LIBRARY, PYTHONPATH=python
    DEVICE=host WIDTH=256                            where both run, and how wide the network is

The network of gpu_network_list.py (511 keys behind it) chooses tokens greedily in PyTorch's f32; all others are fed
these. A line for each: how many top tokens are the same, the largest difference of a logit, the largest logit.
"""
import os
import sys
import tempfile
import warnings

import numpy as np
import torch

import gpu_network_list as networks
import rondo

warnings.filterwarnings("ignore")
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 64
DEVICE = os.environ.get("DEVICE", "cuda:0")
WIDTH = int(os.environ.get("WIDTH", "2048"))


def turn(position, extent):
    """Cosines and sines of a position as they are rotated by."""
    angles = position * 10000.0 ** (-torch.arange(0, extent, 2) / extent)
    angles = torch.cat([angles, angles])[None, None, None]
    return angles.cos(), angles.sin()


def step_torch(net, inputs, tokens, kind):
    """The logits of each step, and the tokens that were fed; without tokens, the likeliest of each step is next."""
    caches, extent = [x.to(kind) for x in inputs[3:]], inputs[1].shape[-1]
    past, ids, logits, fed = inputs[3].shape[2], inputs[0], [], []
    for step in range(STEPS):
        ids = ids if tokens is None or step == 0 else torch.tensor([[tokens[step]]], device=ids.device)
        fed.append(int(ids))
        turned = [x.to(ids.device, kind) for x in turn(past + step, extent)]
        values, *caches = net(ids, *turned, *caches)
        logits.append(values[0, -1].float().cpu().numpy())
        ids = values[0, -1:].argmax(-1, keepdim=True)
    return np.stack(logits), fed


def step_rondo(path, inputs, tokens, kind):
    session = rondo.Session(path, device=DEVICE, dtype=kind)
    extent, past = inputs[1].shape[-1], inputs[3].shape[2]
    for number, cache in enumerate(inputs[3:]):
        session.bind(f"present_{number}", f"past_{number}")
        session.set(f"past_{number}", cache.cpu().numpy())
    logits = []
    for step in range(STEPS):
        cosine, sine = (x.numpy() for x in turn(past + step, extent))
        feeds = {"ids": np.array([[tokens[step]]], np.int64), "cosine": cosine, "sine": sine}
        logits.append(np.array(session.run(["logits"], feeds)[0], np.float32).reshape(-1))
    return np.stack(logits)


def write(net, inputs, path):
    caches = range(len(inputs) - 3)
    past, present = [f"past_{i}" for i in caches], [f"present_{i}" for i in caches]
    axes = {name: {2: "past"} for name in past} | {name: {2: "present"} for name in present}
    torch.onnx.export(net, inputs, path, input_names=["ids", "cosine", "sine", *past],
                      output_names=["logits", *present],
                      dynamic_axes=axes, opset_version=17, do_constant_folding=True, dynamo=False)


def main():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    with torch.device("cpu" if DEVICE == "host" else DEVICE):
        net, inputs = networks.make_llama(width=WIDTH, heads=WIDTH // 64, groups=max(1, WIDTH // 256), inner=4 * WIDTH)
    net = net.eval()
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        write(net, inputs, f"{folder}/model.onnx")
        right, tokens = step_torch(net, inputs, None, torch.float32)
        found = {"Rondo fp32": lambda: step_rondo(f"{folder}/model.onnx", inputs, tokens, "f32"),
                 "Rondo fp16": lambda: step_rondo(f"{folder}/model.onnx", inputs, tokens, "f16"),
                 "PyTorch fp16": lambda: step_torch(net.half(), inputs, tokens, torch.float16)[0]}
        for name, steps in found.items():
            logits = steps()
            same = int((logits.argmax(-1) == right.argmax(-1)).sum())
            error = np.abs(logits - right).max()
            print(f"{name}: {same} of {STEPS} top tokens, logits off by {error:.5f} at most, the largest is "
                  f"{np.abs(right).max():.2f}", flush=True)


if __name__ == "__main__":
    main()
