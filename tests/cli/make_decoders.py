#!/usr/bin/env python3
"""Makes tests/cli/decoders: one small language model with random weights in the two forms that
builders write, and the tokens that ONNX Runtime gives for it.

    tests/cli/make_decoders.py [DIRECTORY]

shared/   as onnxruntime-genai's builder writes it: GroupQueryAttention over caches of one length,
          lengths from the sum of the mask's rows, prompts padded on the right
growing/  as optimum writes it: plain ops, caches that a Concat makes longer, positions as an input,
          prompts padded on the left
sliding/  the same, where a row sees the last keys alone, by where they stand
tokens.txt  a line for each way: its name, the options, and a list of ids for each prompt

Needs numpy, onnx and onnxruntime. The result is checked in; both forms must agree here, or nothing
is written.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

VOCABULARY, HIDDEN, HEADS, KV_HEADS, SIZE, INNER, CONTEXT, LAYERS = 40, 16, 2, 1, 16, 24, 64, 2
STOP, SIGHT = 7, 6
FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
PROMPTS = ([3, 14, 15, 9, 26], [31, 8])


def make_weights():
    random = numpy.random.RandomState(27)

    def draw(*shape):
        scale = 1.0 if shape[0] == VOCABULARY else 1.6 / numpy.sqrt(shape[0])
        return (random.randn(*shape) * scale).astype(numpy.float32)

    weights = {"embed": draw(VOCABULARY, HIDDEN), "head": draw(HIDDEN, VOCABULARY),
               "norm": (1 + 0.1 * random.randn(HIDDEN)).astype(numpy.float32)}
    for n in range(LAYERS):
        weights.update({
            f"qkv.{n}": draw(HIDDEN, (HEADS + 2 * KV_HEADS) * SIZE),
            f"out.{n}": draw(HEADS * SIZE, HIDDEN),
            f"up.{n}": draw(HIDDEN, INNER), f"gate.{n}": draw(HIDDEN, INNER),
            f"down.{n}": draw(INNER, HIDDEN),
            f"norm1.{n}": (1 + 0.1 * random.randn(HIDDEN)).astype(numpy.float32),
            f"norm2.{n}": (1 + 0.1 * random.randn(HIDDEN)).astype(numpy.float32)})
    frequencies = (10000.0 ** (-numpy.arange(SIZE // 2) * 2.0 / SIZE)).astype(numpy.float32)
    angles = numpy.arange(CONTEXT, dtype=numpy.float32)[:, None] * frequencies
    weights["cos"], weights["sin"], weights["frequencies"] = (
        numpy.cos(angles), numpy.sin(angles), frequencies)
    return weights


class Graph:
    """Nodes, and constants by what they hold."""

    def __init__(self, weights):
        self.nodes, self.constants, self.weights = [], {}, weights

    def node(self, op, inputs, output=None, outputs=1, domain="", **attributes):
        name = f"{op}.{len(self.nodes)}"
        results = output if isinstance(output, list) else (
            [output or f"{name}.{i}" for i in range(outputs)])
        self.nodes.append(helper.make_node(op, inputs, results, name=name, domain=domain,
                                           **attributes))
        return results[0] if len(results) == 1 else results

    def weight(self, name):
        self.constants[name] = onnx.numpy_helper.from_array(self.weights[name], name)
        return name

    def numbers(self, values, dtype=numpy.int64):
        array = numpy.array(values, dtype)
        name = f"numbers.{dtype.__name__}.{array.shape}.{array.tolist()}"
        self.constants[name] = onnx.numpy_helper.from_array(array, name)
        return name

    def save(self, path, inputs, outputs, opset, ir):
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs,
                                  list(self.constants.values()))
        opsets = [helper.make_opsetid("", opset)]
        if any(node.domain for node in self.nodes):
            opsets.append(helper.make_opsetid("com.microsoft", 1))
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=ir), path)


def port(name, dtype, *shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def make_ports(width, present):
    kinds = [(n, kind) for n in range(LAYERS) for kind in ("key", "value")]
    pasts = [port(f"past_key_values.{n}.{kind}", FLOAT, "batch_size", KV_HEADS,
                  "past_sequence_length", width) for n, kind in kinds]
    presents = [port(f"present.{n}.{kind}", FLOAT, "batch_size", KV_HEADS, present, width)
                for n, kind in kinds]
    return pasts, presents


def add_inner(g, n, x):
    up, gate = (g.node("MatMul", [x, g.weight(f"{name}.{n}")]) for name in ("up", "gate"))
    swish = g.node("Mul", [gate, g.node("Sigmoid", [gate])])
    return g.node("MatMul", [g.node("Mul", [swish, up]), g.weight(f"down.{n}")])


def make_shared(weights, path):
    g = Graph(weights)
    sums = g.node("ReduceSum", ["attention_mask", g.numbers([1])], keepdims=0)
    lengths = g.node("Cast", [g.node("Sub", [sums, g.numbers([1])])], to=INT32)
    columns = g.node("Gather", [g.node("Shape", ["attention_mask"]), g.numbers(1)], axis=0)
    total = g.node("Cast", [columns], to=INT32)
    rest = g.node("Gather", [g.weight("embed"), "input_ids"])
    x = g.node("SimplifiedLayerNormalization", [rest, g.weight("norm1.0")], axis=-1, epsilon=1e-5)

    def add_and_norm(x, rest, gain):
        out = f"skip.{len(g.nodes)}"
        g.node("SkipSimplifiedLayerNormalization", [rest, x, gain],
               [out, "", "", out + ".sum"], domain="com.microsoft", epsilon=1e-5)
        return out, out + ".sum"

    for n in range(LAYERS):
        qkv = g.node("MatMul", [x, g.weight(f"qkv.{n}")])
        y = f"attention.{n}"
        g.node("GroupQueryAttention",
               [qkv, "", "", f"past_key_values.{n}.key", f"past_key_values.{n}.value", lengths,
                total, g.weight("cos"), g.weight("sin")],
               [y, f"present.{n}.key", f"present.{n}.value"], domain="com.microsoft",
               num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1, rotary_interleaved=0)
        x = g.node("MatMul", [y, g.weight(f"out.{n}")])
        x, rest = add_and_norm(x, rest, g.weight(f"norm2.{n}"))
        x = add_inner(g, n, x)
        x, rest = add_and_norm(x, rest,
                               g.weight(f"norm1.{n + 1}" if n + 1 < LAYERS else "norm"))
    g.node("MatMul", [x, g.weight("head")], "logits")
    pasts, presents = make_ports("kv_cache_dim", "total_sequence_length")
    g.save(path, [port("input_ids", INT64, "batch_size", "sequence_length"),
                  port("attention_mask", INT64, "batch_size", "total_sequence_length")] + pasts,
           [port("logits", FLOAT, "batch_size", "sequence_length", VOCABULARY)] + presents, 22, 10)


def make_growing(weights, path, sight=None):
    g = Graph(weights)

    def norm(x, gain):
        square = g.node("ReduceMean", [g.node("Pow", [x, g.numbers(2.0, numpy.float32)]),
                                       g.numbers([-1])])
        root = g.node("Sqrt", [g.node("Add", [square, g.numbers(1e-5, numpy.float32)])])
        return g.node("Mul", [gain, g.node("Div", [x, root])])

    def extent(value, axis):
        return g.node("Gather", [g.node("Shape", [value]), g.numbers([axis])])

    def heads(x, count):
        shape = g.node("Concat", [extent("input_ids", 0), extent("input_ids", 1),
                                  g.numbers([count, SIZE])], axis=0)
        return g.node("Transpose", [g.node("Reshape", [x, shape])], perm=[0, 2, 1, 3])

    rest = g.node("Gather", [g.weight("embed"), "input_ids"])
    places = g.node("Cast", [g.node("Unsqueeze", ["position_ids", g.numbers([1, 3])])], to=FLOAT)
    angles = g.node("Mul", [places, g.weight("frequencies")])
    angles = g.node("Concat", [angles, angles], axis=-1)
    cosines, sines = g.node("Cos", [angles]), g.node("Sin", [angles])

    def turn(x):
        a, b = g.node("Split", [x, g.numbers([SIZE // 2, SIZE // 2])], outputs=2, axis=-1)
        other = g.node("Concat", [g.node("Neg", [b]), a], axis=-1)
        return g.node("Add", [g.node("Mul", [x, cosines]), g.node("Mul", [other, sines])])

    past = g.node("Squeeze", [extent("past_key_values.0.key", 2), g.numbers([0])])
    total = g.node("Add", [past, g.node("Squeeze", [extent("input_ids", 1), g.numbers([0])])])
    keys = g.node("Range", [g.numbers(0), total, g.numbers(1)])
    rows = g.node("Unsqueeze", [g.node("Range", [past, total, g.numbers(1)]), g.numbers([1])])
    is_before = g.node("LessOrEqual", [keys, rows])
    if sight:
        first = g.node("Sub", [rows, g.numbers(sight)])
        is_before = g.node("And", [is_before, g.node("Greater", [keys, first])])
    is_there = g.node("Unsqueeze", [g.node("Cast", ["attention_mask"], to=TensorProto.BOOL),
                                    g.numbers([1, 2])])
    mask = g.node("Where", [g.node("And", [is_before, is_there]),
                            g.numbers(0.0, numpy.float32),
                            g.numbers(float(numpy.finfo(numpy.float32).min), numpy.float32)])
    for n in range(LAYERS):
        qkv = g.node("MatMul", [norm(rest, g.weight(f"norm1.{n}")), g.weight(f"qkv.{n}")])
        widths = [HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE]
        q, k, v = g.node("Split", [qkv, g.numbers(widths)], outputs=3, axis=-1)
        q, k, v = turn(heads(q, HEADS)), turn(heads(k, KV_HEADS)), heads(v, KV_HEADS)
        k, v = (g.node("Concat", [f"past_key_values.{n}.{kind}", value], f"present.{n}.{kind}",
                       axis=2) for kind, value in (("key", k), ("value", v)))
        scores = g.node("MatMul", [q, g.node("Transpose", [k], perm=[0, 1, 3, 2])])
        scores = g.node("Mul", [scores, g.numbers(SIZE ** -0.5, numpy.float32)])
        weights_of = g.node("Softmax", [g.node("Add", [scores, mask])], axis=-1)
        is_nan = g.node("IsNaN", [weights_of])
        weights_of = g.node("Where", [is_nan, g.numbers(0.0, numpy.float32), weights_of])
        y = g.node("Transpose", [g.node("MatMul", [weights_of, v])], perm=[0, 2, 1, 3])
        shape = g.node("Concat", [extent("input_ids", 0), extent("input_ids", 1),
                                  g.numbers([HEADS * SIZE])], axis=0)
        y = g.node("MatMul", [g.node("Reshape", [y, shape]), g.weight(f"out.{n}")])
        rest = g.node("Add", [rest, y])
        rest = g.node("Add", [rest, add_inner(g, n, norm(rest, g.weight(f"norm2.{n}")))])
    g.node("MatMul", [norm(rest, g.weight("norm")), g.weight("head")], "logits")
    grown = "past_sequence_length + sequence_length"
    pasts, presents = make_ports(SIZE, grown)
    ids = port("input_ids", INT64, "batch_size", "sequence_length")
    places = port("position_ids", INT64, "batch_size", "sequence_length")
    mask = port("attention_mask", INT64, "batch_size", grown)
    g.save(path, [ids] + pasts + [mask, places],
           [port("logits", FLOAT, "batch_size", "sequence_length", VOCABULARY)] + presents, 18, 8)


# ---- what ONNX Runtime gives ----------------------------------------------------------------


class Decoder:
    """Logits of the last real token of each row, by the rule of the form."""

    def __init__(self, path, is_shared):
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.is_shared = is_shared

    def begin(self, prompts, capacity):
        self.lengths = numpy.array([len(p) for p in prompts])
        most = int(self.lengths.max())
        ids = numpy.zeros((len(prompts), most), numpy.int64)
        self.mask = numpy.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            here = slice(0, len(prompt)) if self.is_shared else slice(most - len(prompt), most)
            ids[row, here] = prompt
            self.mask[row, here] = 1
        rows = capacity if self.is_shared else 0
        self.caches = [numpy.zeros((len(prompts), KV_HEADS, rows, SIZE), numpy.float32)
                       for _ in range(2 * LAYERS)]
        places = numpy.where(self.mask, numpy.cumsum(self.mask, 1) - 1, 1)
        logits = self.run(ids, places)
        last = self.lengths - 1 if self.is_shared else [most - 1] * len(prompts)
        return logits[range(len(prompts)), last]

    def step(self, tokens):
        self.lengths = self.lengths + 1
        self.mask = numpy.concatenate([self.mask, numpy.ones((len(tokens), 1), numpy.int64)], 1)
        return self.run(numpy.array(tokens)[:, None], self.lengths[:, None] - 1)[:, 0]

    def run(self, ids, places):
        feeds = {"input_ids": ids, "attention_mask": self.mask}
        if not self.is_shared:
            feeds["position_ids"] = places
        names = [f"{n}.{kind}" for n in range(LAYERS) for kind in ("key", "value")]
        feeds.update({f"past_key_values.{name}": c for name, c in zip(names, self.caches)})
        logits, *self.caches = self.session.run(["logits"] + [f"present.{n}" for n in names], feeds)
        return logits


def philox(seed, stream, index):
    """Philox 4x32-10 of Salmon et al.: the first two words."""
    key = [seed & 0xffffffff, seed >> 32]
    c = [index & 0xffffffff, index >> 32, stream & 0xffffffff, stream >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ key[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ key[1], a & 0xffffffff]
        key = [(key[0] + 0x9E3779B9) & 0xffffffff, (key[1] + 0xBB67AE85) & 0xffffffff]
    return c[0], c[1]


def choose(logits, row, step, how):
    if not how.get("sample"):
        return int(numpy.argmax(logits))
    values = logits.astype(numpy.float64) / how.get("temperature", 1.0)
    order = numpy.argsort(-values, kind="stable")[:how.get("top-k", len(values))]
    weights = numpy.exp(values[order] - values[order[0]])
    shares = numpy.cumsum(weights / weights.sum())
    count = 1 + int(numpy.searchsorted(shares, how.get("top-p", 1.0)))
    sums = numpy.cumsum(weights[:count])
    first, second = philox(how["seed"], row, step)
    point = ((first >> 5) * 67108864.0 + (second >> 6)) / 9007199254740992.0 * sums[-1]
    return int(order[min(numpy.searchsorted(sums, point, side="right"), len(sums) - 1)])


def decode(decoder, prompts, count, how):
    capacity = max(len(p) for p in prompts) + count
    logits = decoder.begin(prompts, capacity)
    rows, is_done = [[] for _ in prompts], [False] * len(prompts)
    for step in range(count):
        tokens = [choose(logits[row], row, step, how) for row in range(len(prompts))]
        for row, token in enumerate(tokens):
            is_done[row] = is_done[row] or token == how.get("stop", STOP)
            if not is_done[row]:
                rows[row].append(token)
        if all(is_done) or step + 1 == count:
            return rows
        logits = decoder.step(tokens)
    return rows


WAYS = (
    ("greedy", PROMPTS[:1], {}), ("batch", PROMPTS, {}), ("stop", PROMPTS, {"stop": 24}),
    ("sampled", PROMPTS, {"sample": True, "seed": 5}),
    ("warm", PROMPTS, {"sample": True, "seed": 6, "temperature": 1.5, "top-k": 12}),
    ("kernel", PROMPTS, {"sample": True, "seed": 7, "top-p": 0.7}),
    ("both", PROMPTS, {"sample": True, "seed": 4294967298, "top-k": 20, "top-p": 0.9}),
)
COUNT = 24


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__),
                                                               "decoders")
    weights = make_weights()
    for name in ("shared", "growing", "sliding"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    paths = [os.path.join(folder, name, "model.onnx") for name in ("shared", "growing")]
    make_shared(weights, paths[0])
    make_growing(weights, paths[1])
    sliding = os.path.join(folder, "sliding", "model.onnx")
    make_growing(weights, sliding, SIGHT)
    decoders = [Decoder(paths[0], True), Decoder(paths[1], False)]
    lines = []
    for name, prompts, how in WAYS:
        shared, growing = (decode(d, prompts, COUNT, how) for d in decoders)
        alone = [decode(decoders[1], [p], COUNT, how)[0] for p in prompts]
        if shared != growing or (not how.get("sample") and shared != alone):
            sys.exit(f"{name}: the forms differ\n{shared}\n{growing}\n{alone}")
        options = " ".join(f"--{k}" if k == "sample" else f"--{k} {v}" for k, v in how.items())
        texts = [",".join(str(t) for t in row) for row in shared]
        lines.append("|".join([name, " ".join("--prompt " + ",".join(str(t) for t in p)
                                              for p in prompts), options.strip(), " ".join(texts)]))
    rows = decode(Decoder(sliding, False), PROMPTS, COUNT, {})
    with open(os.path.join(folder, "sliding", "tokens.txt"), "w", encoding="ascii") as file:
        file.writelines(",".join(str(t) for t in row) + "\n" for row in rows)
    with open(os.path.join(folder, "tokens.txt"), "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    config = {"model": {"type": "llama", "bos_token_id": 1, "eos_token_id": STOP, "pad_token_id": 0,
                        "context_length": CONTEXT, "vocab_size": VOCABULARY,
                        "decoder": {"filename": "model.onnx", "head_size": SIZE,
                                    "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
                                    "num_key_value_heads": KV_HEADS}},
              "search": {"max_length": CONTEXT, "past_present_share_buffer": True}}
    with open(os.path.join(folder, "shared", "genai_config.json"), "w", encoding="ascii") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    config = {"model_type": "llama", "eos_token_id": [STOP], "pad_token_id": 0, "head_dim": SIZE,
              "num_key_value_heads": KV_HEADS, "max_position_embeddings": CONTEXT}
    with open(os.path.join(folder, "growing", "config.json"), "w", encoding="ascii") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
