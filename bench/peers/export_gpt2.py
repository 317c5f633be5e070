# SPDX-License-Identifier: Apache-2.0

"""Exports a GPT-2 to an ONNX test directory.

    python3 bench/peers/export_gpt2.py FOLDER [--layers 12] [--width 768] [--heads 12] [--words 50257] [--tokens 128]

The network is that of the transformers package, with random weights of seed 0, one batch, and no
keys and values of tokens before. Positions and the causal mask are constants: transformers would
look for the borders of packed sequences with aten::diff, which PyTorch's exporter does not have.
Expected outputs by ONNX Runtime, CPU.
"""
import argparse
import os
import warnings

import onnx
import onnxruntime
import torch
from transformers import GPT2Config, GPT2LMHeadModel

warnings.filterwarnings("ignore")


class Gpt2(torch.nn.Module):
    def __init__(self, options):
        super().__init__()
        self.net = GPT2LMHeadModel(GPT2Config(
            n_layer=options.layers, n_embd=options.width, n_head=options.heads, vocab_size=options.words,
            n_positions=max(options.tokens, 16), bos_token_id=0, eos_token_id=0, attn_implementation="eager"))
        lowest = torch.finfo(torch.float32).min
        mask = torch.full((options.tokens, options.tokens), lowest).triu(1)[None, None]
        self.register_buffer("mask", mask, persistent=False)
        self.register_buffer("places", torch.arange(options.tokens)[None], persistent=False)

    def forward(self, ids):
        return self.net(ids, attention_mask=self.mask, position_ids=self.places, use_cache=False)[0]


def write_tensor(path, name, array):
    with open(path, "wb") as file:
        file.write(onnx.numpy_helper.from_array(array, name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    for name, default in (("layers", 12), ("width", 768), ("heads", 12), ("words", 50257), ("tokens", 128)):
        parser.add_argument("--" + name, type=int, default=default)
    options = parser.parse_args()
    torch.manual_seed(0)
    net = Gpt2(options).eval()
    ids = torch.randint(0, options.words, (1, options.tokens))
    data = os.path.join(options.folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    model = os.path.join(options.folder, "model.onnx")
    with torch.no_grad():
        torch.onnx.export(net, (ids,), model, opset_version=17, dynamo=False, input_names=["ids"],
                          output_names=["scores"])
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    scores, = session.run(None, {"ids": ids.numpy()})
    write_tensor(os.path.join(data, "input_0.pb"), "ids", ids.numpy())
    write_tensor(os.path.join(data, "output_0.pb"), "scores", scores)
    print(f"{model}: {len(onnx.load(model).graph.node)} nodes, {os.path.getsize(model)} bytes")


if __name__ == "__main__":
    main()
