# SPDX-License-Identifier: Apache-2.0

"""What stands before and behind networks in exported files, and networks of one step: short models, in which a
single op or the way into a run decides."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from ops import OPSET, boxes, draw, scalar, whole

IR = 10
NAMES = {np.dtype("f4"): "float", np.dtype("i8"): "int64", np.dtype("i4"): "int32", np.dtype("u1"): "uint8",
         np.dtype("i1"): "int8", np.dtype("?"): "bool"}
LIST = np.array


def build(text, outputs, feeds, weights=(), opset=OPSET):
    """(ONNX bytes, feeds) of nodes in onnx.parser's text."""
    ports = ", ".join(f"{NAMES[value.dtype]}[{','.join(map(str, value.shape))}] {name}" for name, value in feeds.items())
    graph = parser.parse_graph(f"pieces ({ports}) => (float y) {{ {text} }}")
    del graph.output[:]
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs.split())
    graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in dict(weights).items())
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=sets, ir_version=IR))
    for port in model.graph.output:
        if not port.type.WhichOneof("value"):
            port.type.tensor_type.elem_type = TensorProto.FLOAT
    return model.SerializeToString(), feeds


def ints(*values):
    return np.array(values, np.int64)


def list_texts():
    """Behind language models."""
    yield "tags", build("s = Softmax<axis=-1>(x) i = ArgMax<axis=-1, keepdims=0>(x) p = ReduceMax<keepdims=0>(s, last)",
                        "i p", {"x": draw(1, 128, 9)}, {"last": ints(-1)})
    mask = (np.arange(128) < 90).astype(np.int64)[None]
    yield "sentence", build(
        "m = Cast<to=1>(mask) w = Unsqueeze(m, last) e = Expand(w, shape) v = Mul(x, e) a = ReduceSum<keepdims=0>(v, one)"
        "c = ReduceSum<keepdims=0>(e, one) k = Clip(c, least) p = Div(a, k) n = ReduceL2<keepdims=1>(p, one) y = Div(p, n)",
        "y", {"x": draw(1, 128, 384), "mask": mask},
        {"last": ints(-1), "one": ints(1), "shape": ints(1, 128, 384), "least": scalar(1e-9)})
    yield "positions", build(
        "e = Equal(ids, pad) n = Not(e) m = Cast<to=7>(n) c = CumSum(m, one) p = Mul(c, m) y = Add(p, one)",
        "y", {"ids": whole(9, 1, 57)}, {"pad": scalar(1, np.int64), "one": scalar(1, np.int64)})
    yield "spans", build(
        "a = Unsqueeze(s, last) b = Unsqueeze(e, one) p = Add(a, b) t = Trilu<upper=1>(p) f = Reshape(t, flat)"
        "v, i = TopK(f, k) from = Div(i, n) to = Mod(i, n)", "v from to", {"s": draw(1, 384), "e": draw(1, 384)},
        {"last": ints(-1), "one": ints(1), "flat": ints(1, -1), "k": ints(20), "n": scalar(384, np.int64)})
    yield "beams", build(
        "l = LogSoftmax<axis=-1>(x) a = Add(l, scores) f = Reshape(a, flat) v, i = TopK(f, k) beam = Div(i, n)"
        "token = Mod(i, n) b = Squeeze(beam, zero) y = Gather<axis=0>(state, b)", "v token y",
        {"x": draw(4, 8000), "scores": draw(4, 1), "state": draw(4, 64)},
        {"flat": ints(1, -1), "k": ints(4), "n": scalar(8000, np.int64), "zero": ints(0)})
    yield "sampler", build(
        "v, i = TopK(x, k) s = Softmax<axis=-1>(v) c = CumSum(s, axis) b = Sub(c, s) keep = Less(b, p)"
        "y = Where(keep, v, low)", "y i", {"x": draw(1, 8000)},
        {"k": ints(50), "axis": scalar(1, np.int64), "p": scalar(0.9), "low": scalar(-1e9)})
    yield "penalty", build(
        "g = GatherElements<axis=1>(x, ids) n = Less(g, zero) a = Mul(g, r) b = Div(g, r) w = Where(n, a, b)"
        "y = ScatterElements<axis=1>(x, ids, w)", "y", {"x": draw(1, 8000), "ids": whole(8000, 1, 60)},
        {"zero": scalar(0), "r": scalar(1.2)})
    yield "viterbi", build(
        "a = Unsqueeze(s, one) b = Add(a, t) m = ReduceMax<keepdims=0>(b, last) i = ArgMax<axis=-1, keepdims=0>(b)"
        "y = Add(m, e)", "y i", {"s": draw(1, 24), "e": draw(1, 24)},
        {"one": ints(1), "last": ints(-1), "t": draw(1, 24, 24)})


def list_boxes():
    """Behind detectors."""
    yield "yolo", build(
        "t = Transpose<perm=[0,2,1]>(x) c, wh, s = Split<axis=2>(t, sizes) h = Mul(wh, half) a = Sub(c, h) b = Add(c, h)"
        "xy = Concat<axis=2>(a, b) p = Transpose<perm=[0,2,1]>(s) n = NonMaxSuppression(xy, p, most, iou, score)"
        "y = GatherND<batch_dims=0>(p, n)", "n y",
        {"x": np.concatenate([draw(1, 2, 700) * 99, abs(draw(1, 2, 700)) * 40, draw(1, 8, 700)], 1)},
        {"sizes": ints(2, 2, 8), "half": scalar(0.5), "most": ints(20), "iou": LIST([0.5], "f4"), "score": LIST([1.0], "f4")})
    yield "peaks", build(
        "s = Sigmoid(x) m = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(s) e = Equal(s, m) w = Where(e, s, zero)"
        "f = Reshape(w, flat) v, i = TopK(f, k) class = Div(i, area) place = Mod(i, area) r = Reshape(z, planes)"
        "p = Squeeze(place, first) y = Gather<axis=2>(r, p)", "v class y", {"x": draw(1, 20, 64, 64), "z": draw(1, 2, 64, 64)},
        {"zero": scalar(0), "flat": ints(1, -1), "k": ints(100), "area": scalar(4096, np.int64), "planes": ints(1, 2, -1),
         "first": ints(0)})
    yield "overlaps", build(
        "a = Unsqueeze(p, one) b = Unsqueeze(q, first) al, ah = Split<axis=-1, num_outputs=2>(a)"
        "bl, bh = Split<axis=-1, num_outputs=2>(b) l = Max(al, bl) h = Min(ah, bh) d = Sub(h, l) c = Relu(d)"
        "i = ReduceProd<keepdims=0>(c, last) ad = Sub(ah, al) bd = Sub(bh, bl) aa = ReduceProd<keepdims=0>(ad, last)"
        "ba = ReduceProd<keepdims=0>(bd, last) u = Add(aa, ba) v = Sub(u, i) y = Div(i, v)", "y",
        {"p": boxes(100), "q": boxes(60)}, {"one": ints(1), "first": ints(0), "last": ints(-1)})
    yield "anchors", build(
        "d, e = Split<axis=-1, num_outputs=2>(x) m = Mul(d, size) c = Add(m, centre) k = Clip(e, , four) w = Exp(k)"
        "s = Mul(w, size) h = Mul(s, half) a = Sub(c, h) b = Add(c, h) t = Concat<axis=-1>(a, b) y = Clip(t, zero, side)",
        "y", {"x": draw(1, 1200, 4)}, {"size": abs(draw(1, 1200, 2)), "centre": draw(1, 1200, 2), "four": scalar(4),
                                       "half": scalar(0.5), "zero": scalar(0), "side": scalar(1)})
    yield "cache_row", build("y = ScatterND(x, i, r)", "y", {"x": draw(256, 256), "i": ints(77).reshape(1, 1), "r": draw(1, 256)})
    yield "chosen", build(
        "m = ReduceMax<keepdims=0>(s, last) g = Greater(m, t) n = NonZero(g) i = Transpose<perm=[1,0]>(n) y = GatherND(b, i)"
        "z = GatherND(m, i)", "y z", {"s": draw(300, 8), "b": boxes(300)}, {"last": ints(-1), "t": scalar(1.5)})


def find_log_mel(data, x, window):
    """In f64: ONNX Runtime's STFT is in f32."""
    graph = onnx.load_from_string(data).graph
    node = [node for node in graph.node if node.op_type == "MelWeightMatrix"]
    known = [tensor for tensor in graph.initializer if tensor.name in node[0].input]
    mel = ReferenceEvaluator(helper.make_model(helper.make_graph(node, "mel", [], [graph.output[1]], known))).run(None, {})[0]
    frames = np.stack([x[at:at + 400] for at in range(0, len(x) - 399, 160)]).astype(np.float64) * window
    return [np.log(np.maximum(abs(np.fft.rfft(frames)) ** 2 @ mel.astype(np.float64), 1e-6)).astype(np.float32)[None], mel]


def list_sounds():
    """Before and behind speech models."""
    window = np.hanning(400).astype(np.float32)
    data, feeds = build(
        "f = STFT<onesided=1>(x, step, w, length) q = Mul(f, f) p = ReduceSum<keepdims=0>(q, last)"
        "m = MelWeightMatrix(bins, size, rate, low, high) v = MatMul(p, m) c = Clip(v, least) y = Log(c)", "y m",
        {"x": draw(1, 8000)},
        {"step": scalar(160, np.int64), "w": window, "length": scalar(400, np.int64), "last": ints(-1),
         "bins": scalar(40, np.int64), "size": scalar(400, np.int64), "rate": scalar(16000, np.int64), "low": scalar(20),
         "high": scalar(8000), "least": scalar(1e-6)})
    yield "log_mel", (data, feeds, find_log_mel(data, feeds["x"][0], window))
    yield "conv_mel", build(
        "f = Conv<strides=[160]>(x, w) a, b = Split<axis=1, num_outputs=2>(f) c = Mul(a, a) d = Mul(b, b) p = Add(c, d)"
        "m = MatMul(bank, p) k = Clip(m, least) l = Log(k) top = ReduceMax<keepdims=1>(l) low = Sub(top, eight) y = Max(l, low)",
        "y", {"x": draw(1, 1, 8000)},
        {"w": draw(402, 1, 400) / 20, "bank": abs(draw(80, 201)), "least": scalar(1e-6), "eight": scalar(8)})
    yield "cepstra", build(
        "c = MatMul(x, dct) m = ReduceMean<keepdims=1>(c, one) d = Sub(c, m) q = Mul(d, d) v = ReduceMean<keepdims=1>(q, one)"
        "e = Add(v, tiny) s = Sqrt(e) y = Div(d, s)", "y", {"x": draw(1, 98, 40)},
        {"dct": draw(40, 13), "one": ints(1), "tiny": scalar(1e-5)})
    yield "ctc", build(
        "i = ArgMax<axis=-1, keepdims=0>(x) n = Slice(i, one, end, zero) o = Slice(i, zero, back, zero) e = Equal(n, o)"
        "d = Not(e) b = Equal(n, blank) k = Not(b) a = And(d, k) z = NonZero(a) r = Squeeze(z, zero) y = Gather<axis=0>(n, r)",
        "y", {"x": draw(200, 32)}, {"one": ints(1), "end": ints(1 << 40), "zero": ints(0), "back": ints(-1),
                                    "blank": scalar(0, np.int64)})
    yield "gru_step", build(
        "o, h = GRU<hidden_size=64, linear_before_reset=1>(x, w, r, b, , s) q = Squeeze(h, zero) g = Gemm<transB=1>(q, v, c)"
        "y = Sigmoid(g)", "y h", {"x": draw(1, 1, 40), "s": draw(1, 1, 64)},
        {"w": draw(1, 192, 40) / 8, "r": draw(1, 192, 64) / 8, "b": draw(1, 384), "zero": ints(0), "v": draw(1, 64),
         "c": draw(1)})
    yield "lstm_step", build(
        "o, h, c = LSTM<hidden_size=128>(x, w, r, b, , s, t)", "h c", {"x": draw(1, 1, 64), "s": draw(1, 1, 128), "t": draw(1, 1, 128)},
        {"w": draw(1, 512, 64) / 8, "r": draw(1, 512, 128) / 11, "b": draw(1, 1024)})
    yield "stream_conv", build(
        "j = Concat<axis=2>(cache, x) a = Conv<group=64>(j, w) b = Relu(a) y = Conv(b, p) n = Slice(j, from, end, axis)", "y n",
        {"x": draw(1, 64, 8), "cache": draw(1, 64, 14)},
        {"w": draw(64, 1, 15), "p": draw(64, 64, 1) / 8, "from": ints(-14), "end": ints(1 << 40), "axis": ints(2)})


def list_tables():
    """Recommenders, tables, filters."""
    yield "bags", build("g = Gather<axis=0>(table, ids) y = ReduceSum<keepdims=0>(g, one)", "y", {"ids": whole(1000, 32, 20)},
                        {"table": draw(1000, 16), "one": ints(1)})
    tables = {f"t{i}": draw(100, 16) for i in range(8)}
    columns = " ".join(f"c{i} = Gather<axis=1>(ids, n{i}) e{i} = Gather<axis=0>(t{i}, c{i})" for i in range(8))
    yield "dlrm", build(
        columns + "d = Gemm(x, w) r = Relu(d) j = Concat<axis=1>(" + ", ".join(f"e{i}" for i in range(8)) + ", r)"
        "m = Reshape(j, rows) z = Einsum<equation=\"bij,bkj->bik\">(m, m) f = Reshape(z, flat) p = Gather<axis=1>(f, pairs)"
        "q = Concat<axis=1>(r, p) h = Gemm(q, v) y = Sigmoid(h)", "y", {"ids": whole(100, 4, 8), "x": draw(4, 13)},
        {**tables, **{f"n{i}": scalar(i, np.int64) for i in range(8)}, "w": draw(13, 16), "rows": ints(4, 9, 16),
         "flat": ints(4, 81), "pairs": LIST([9 * i + j for i in range(9) for j in range(i)]), "v": draw(52, 1)})
    yield "machine", build(
        "g = Gather<axis=0>(t, ids) s = ReduceSum<keepdims=0>(g, one) a = Mul(s, s) q = Mul(g, g) b = ReduceSum<keepdims=0>(q, one)"
        "d = Sub(a, b) r = ReduceSum<keepdims=1>(d, one) y = Mul(r, half)", "y", {"ids": whole(500, 64, 12)},
        {"t": draw(500, 8), "one": ints(1), "half": scalar(0.5)})
    yield "interest", build(
        "s = Einsum<equation=\"bd,btd->bt\">(q, k) w = Where(m, s, low) p = Softmax<axis=-1>(w)"
        "y = Einsum<equation=\"bt,btd->bd\">(p, k)", "y", {"q": draw(8, 32), "k": draw(8, 50, 32), "m": draw(8, 50) > 0},
        {"low": scalar(-1e9)})
    yield "cross", build(
        "a = Gemm(x, w, b) c = Mul(x, a) d = Add(c, x) e = Gemm(d, v, b) f = Mul(x, e) y = Add(f, d)", "y", {"x": draw(16, 40)},
        {"w": draw(40, 40) / 6, "v": draw(40, 40) / 6, "b": draw(40)})
    yield "categories", build(
        "o = OneHot<axis=-1>(ids, depth, values) f = Reshape(o, flat) j = Concat<axis=1>(f, x) h = Gemm(j, w, b) y = Softmax(h)",
        "y", {"ids": whole(12, 1, 6), "x": draw(1, 10)},
        {"depth": scalar(12, np.int64), "values": LIST([0, 1], "f4"), "flat": ints(1, 72), "w": draw(82, 3), "b": draw(3)})
    yield "scaled", build(
        "c = Sub(x, m) s = Div(c, d) a = Gemm(s, w, b) r = Relu(a) h = Gemm(r, v, e) t = Relu(h) y = Gemm(t, u)", "y",
        {"x": draw(1, 30)}, {"m": draw(30), "d": abs(draw(30)) + 1, "w": draw(30, 64), "b": draw(64), "v": draw(64, 32),
                             "e": draw(32), "u": draw(32, 1)})
    yield "buckets", build(
        "u = Unsqueeze(x, last) g = GreaterOrEqual(u, edges) c = Cast<to=7>(g) i = ReduceSum<keepdims=0>(c, last)"
        "y = Gather<axis=0>(t, i)", "y", {"x": draw(64, 10)}, {"last": ints(-1), "edges": np.linspace(-2, 2, 15, dtype="f4"),
                                                              "t": draw(16, 4)})
    yield "kalman", build(
        "p = MatMul(f, x) a = MatMul(f, c) b = MatMul(a, ft) q = Add(b, n) h = MatMul(g, q) s = MatMul(h, gt) k = MatMul(q, gt)"
        "d = Add(s, one) w = Div(k, d) v = MatMul(g, p) e = Sub(z, v) u = MatMul(w, e) y = Add(p, u) r = MatMul(w, h) o = Sub(q, r)",
        "y o", {"x": draw(4, 1), "c": np.eye(4, dtype="f4"), "z": draw(1, 1)},
        {"f": draw(4, 4), "ft": draw(4, 4), "n": np.eye(4, dtype="f4"), "g": draw(1, 4), "gt": draw(4, 1), "one": scalar(1)})


def list_rest():
    """Images before networks, bytes, old forms of norms."""
    picture = whole(256, 96, 128, 3, kind=np.uint8)
    yield "pixels", build(
        "f = Cast<to=1>(x) s = Div(f, top) a = Sub(s, mean) b = Div(a, spread) t = Transpose<perm=[2,0,1]>(b) y = Unsqueeze(t, zero)",
        "y", {"x": picture}, {"top": scalar(255), "mean": draw(3), "spread": abs(draw(3)) + 1, "zero": ints(0)})
    yield "resized", build(
        "t = Transpose<perm=[2,0,1]>(x) u = Unsqueeze(t, zero) f = Cast<to=1>(u)"
        "r = Resize<mode=\"linear\">(f, , , sizes) c = Slice(r, low, high, axes) y = Mul(c, s)", "y", {"x": picture},
        {"zero": ints(0), "sizes": ints(1, 3, 72, 96), "low": ints(4, 16), "high": ints(68, 80), "axes": ints(2, 3),
         "s": scalar(1 / 255)})
    yield "old_norm", build(
        "m = ReduceMean<keepdims=1>(x, last) c = Sub(x, m) p = Pow(c, two) v = ReduceMean<keepdims=1>(p, last) e = Add(v, tiny)"
        "s = Sqrt(e) n = Div(c, s) a = Mul(n, g) y = Add(a, b)", "y", {"x": draw(1, 16, 64)},
        {"last": ints(-1), "two": scalar(2), "tiny": scalar(1e-5), "g": draw(64), "b": draw(64)})
    yield "excite", build(
        "p = GlobalAveragePool(x) a = Conv(p, w) r = Relu(a) b = Conv(r, v) s = HardSigmoid(b) y = Mul(x, s)", "y",
        {"x": draw(1, 32, 14, 14)}, {"w": draw(8, 32, 1, 1), "v": draw(32, 8, 1, 1)})
    yield "dynamic_bytes", build(
        "q, s, z = DynamicQuantizeLinear(x) i = MatMulInteger(q, w, z) f = Cast<to=1>(i) t = Mul(s, u) m = Mul(f, t) y = Add(m, b)",
        "y", {"x": draw(1, 128)}, {"w": whole(127, 128, 256, kind=np.int8, low=-127), "u": scalar(0.01), "b": draw(256)})
    step, zero = scalar(0.0513), scalar(128, np.uint8)
    parts, last = [], "x"
    for i in range(3):
        parts.append(f"q{i} = QuantizeLinear({last}, s, z) d{i} = DequantizeLinear(q{i}, s, z) k{i} = DequantizeLinear(w{i}, ws, wz)"
                     f"c{i} = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(d{i}, k{i}) r{i} = Relu(c{i})")
        last = f"r{i}"
    yield "byte_convs", build(
        " ".join(parts) + " q = QuantizeLinear(r2, s, z) y = DequantizeLinear(q, s, z)", "y", {"x": draw(1, 16, 14, 14)},
        {"s": step, "z": zero, "ws": scalar(0.00973), "wz": scalar(0, np.int8),
         **{f"w{i}": whole(30, 16, 16, 3, 3, kind=np.int8, low=-30) for i in range(3)}})
    yield "digits", build(
        "f = Flatten(x) a = Gemm<transB=1>(f, w, b) r = Relu(a) h = Gemm<transB=1>(r, v, c) y = Softmax(h)", "y",
        {"x": draw(1, 1, 28, 28)}, {"w": draw(128, 784) / 28, "b": draw(128), "v": draw(10, 128), "c": draw(10)})
    yield "turned_rows", build(
        "a = Mul(t, f) c = Cos(a) s = Sin(a) l, r = Split<axis=-1, num_outputs=2>(x) n = Neg(r) d = Concat<axis=-1>(n, l)"
        "cc = Concat<axis=-1>(c, c) ss = Concat<axis=-1>(s, s) u = Mul(x, cc) v = Mul(d, ss) y = Add(u, v)", "y",
        {"x": draw(1, 4, 16, 32), "t": np.arange(16, dtype="f4").reshape(16, 1)}, {"f": abs(draw(16))})


def export_pieces():
    for kind in (list_texts, list_boxes, list_sounds, list_tables, list_rest):
        for name, made in kind():
            yield "piece_" + name, *made
