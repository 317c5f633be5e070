# SPDX-License-Identifier: Apache-2.0

"""Random graphs: chains that Rondo fuses, and small random graphs of everything that composes."""
import numpy as np

from draw import NOT_FINITE, Draw, Invalid

ACTIVATIONS = ("Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "Silu", "Gelu", "HardSwish", "HardSigmoid", "Elu",
               None, None)


class Chain:
    """A graph that grows from one value; `value` is its end, `shape` that value's shape."""

    def __init__(self, draw, shape, kind="any"):
        self.draw = draw
        self.dtype = np.dtype(np.float32)
        self.value = draw.feed(draw.array(self.dtype, shape, kind), False)
        self.shape = list(shape)
        self.earlier = []     # (name, shape) of values that a later node may take

    def keep(self):
        self.earlier.append((self.value, list(self.shape)))

    def weight(self, shape, kind="plain", scale=1.0):
        return self.draw.feed((self.draw.array(self.dtype, shape, kind) * scale).astype(self.dtype),
                              self.draw.chance(0.85))

    def add(self, op, *more, shape=None, **attrs):
        self.keep()
        self.value, = self.draw.node(op, [self.value, *more], **attrs)
        self.shape = list(shape) if shape is not None else self.shape
        return self

    def activate(self):
        draw, name = self.draw, self.draw.pick(ACTIVATIONS)
        x = self.value
        if name is None:
            return self
        if name == "Clip":
            bounds = sorted([draw.real(), draw.real()])
            if draw.chance(0.5):
                bounds = [0.0, 6.0]
            if draw.opset < 11:
                return self.add("Clip", min=bounds[0], max=bounds[1])
            names = [draw.feed(np.array(b, np.float32), True) for b in bounds]
            return self.add("Clip", *draw.pick([names, names[:1]]))
        if name == "Silu":
            self.keep()
            gate, = draw.node("Sigmoid", [x])
            self.value, = draw.node("Mul", draw.pick([[x, gate], [gate, x]]))
            return self
        if name == "Gelu":
            if draw.opset >= 20 and draw.chance(0.5):
                return self.add("Gelu")
            self.keep()
            root, = draw.node("Div", [x, draw.feed(np.array(np.sqrt(2), np.float32), True)])
            erf, = draw.node("Erf", [root])
            one, = draw.node("Add", [erf, draw.feed(np.array(1, np.float32), True)])
            product, = draw.node("Mul", [x, one])
            self.value, = draw.node("Mul", [product, draw.feed(np.array(0.5, np.float32), True)])
            return self
        if name == "HardSwish" and draw.opset < 14:
            return self
        attrs = {"alpha": draw.real(0.01, 0.5)} if name in ("LeakyRelu", "Elu", "HardSigmoid") else {}
        return self.add(name, **attrs)

    def residual(self):
        """Adds an earlier value of the same shape, or a new input."""
        same = [name for name, shape in self.earlier if shape == self.shape]
        if same and self.draw.chance(0.7):
            other = self.draw.pick(same)
        else:
            other = self.draw.feed(self.draw.array(self.dtype, self.shape, "plain"), False)
        operands = self.draw.pick([[self.value, other], [other, self.value]])
        self.keep()
        self.value, = self.draw.node("Add", operands)
        return self

    def scalar_step(self):
        draw = self.draw
        op = draw.pick(["Add", "Sub", "Mul", "Div", "Max", "Min", "Exp", "Neg", "Abs", "Tanh", "Sigmoid",
                        "Relu", "Sqrt", "Softplus", "Erf", "Reciprocal"])
        if op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
            fits = [name for name, shape in self.earlier if shape == self.shape]
            if fits and draw.chance(0.4):
                other = draw.pick(fits)
            else:
                other = draw.feed(draw.array(self.dtype, draw.broadcast(self.shape), draw.pick(
                    ["plain", "positive"])))
            self.keep()
            self.value, = draw.node(op, draw.pick([[self.value, other], [other, self.value]]))
            return self
        return self.add(op)


def convolution_block(chain):
    draw, (n, c, *spatial) = chain.draw, chain.shape
    kernel = [draw.whole(1, min(3, s)) for s in spatial]
    group = draw.pick([1, 1, c]) if c > 1 else 1
    m = c if group == c or draw.chance(0.5) else draw.pick([4, 8, 16, 3])
    if m % group != 0:
        m = group
    same = draw.chance(0.6) and all(k % 2 for k in kernel)
    pads = [(k - 1) // 2 for k in kernel] * 2 if same else [0] * (2 * len(kernel))
    stride = 1 if same else draw.whole(1, 2)
    inputs = [chain.weight([m, c // group] + kernel, scale=0.5)]
    if draw.chance(0.6):
        inputs.append(chain.weight([m]))
    out = [(s + pads[i] * 2 - k) // stride + 1 for i, (s, k) in enumerate(zip(spatial, kernel))]
    chain.add("Conv", *inputs, shape=[n, m] + out, kernel_shape=kernel, pads=pads,
              strides=[stride] * len(kernel), group=group)
    if draw.chance(0.4):
        chain.add("BatchNormalization", *[chain.weight([m], k) for k in
                                          ("plain", "plain", "plain", "positive")])
    if draw.chance(0.4):
        chain.residual()
    chain.activate()


def pool_block(chain):
    draw, (n, c, *spatial) = chain.draw, chain.shape
    op = draw.pick(["MaxPool", "AveragePool", "GlobalAveragePool"])
    if op == "GlobalAveragePool":
        chain.add(op, shape=[n, c] + [1] * len(spatial))
        return
    kernel = [draw.whole(1, min(3, s)) for s in spatial]
    strides = [draw.whole(1, 2) for _ in spatial]
    chain.add(op, shape=[n, c] + [(s - k) // t + 1 for s, k, t in zip(spatial, kernel, strides)],
              kernel_shape=kernel, strides=strides)


def image_chain(draw):
    spatial = [draw.whole(3, 8) for _ in range(draw.pick([1, 2, 2, 2]))]
    chain = Chain(draw, [draw.whole(1, 2), draw.pick([1, 3, 4, 8, 16])] + spatial)
    for _ in range(draw.whole(1, 4)):
        draw.pick([convolution_block, convolution_block, convolution_block, pool_block])(chain)
        if min(chain.shape[2:]) < 2:
            break
    if draw.chance(0.3):
        chain.add("GlobalAveragePool", shape=chain.shape[:2] + [1] * len(spatial))
        chain.add("Flatten", shape=[chain.shape[0], chain.shape[1]])
        dense_block(chain)
    return chain


def dense_block(chain):
    draw, k = chain.draw, chain.shape[-1]
    n = k if draw.chance(0.5) else draw.pick([1, 3, 8, 16, 33])
    if len(chain.shape) == 2 and draw.chance(0.4):
        swaps = draw.chance(0.5)
        weight = chain.weight([n, k] if swaps else [k, n], scale=0.5)
        bias = [chain.weight(draw.pick([[n], [1, n], [chain.shape[0], n]]))] if draw.chance(0.7) else []
        chain.add("Gemm", weight, *bias, shape=[chain.shape[0], n], transB=int(swaps))
    else:
        chain.add("MatMul", chain.weight([k, n], scale=0.5), shape=chain.shape[:-1] + [n])
        if draw.chance(0.6):
            chain.add("Add", chain.weight([n]))
    if draw.chance(0.4):
        chain.residual()
    chain.activate()


def norm_block(chain):
    draw, n = chain.draw, chain.shape[-1]
    if draw.opset >= 17 and draw.chance(0.6):
        chain.add("LayerNormalization", chain.weight([n]), chain.weight([n]), axis=-1)
        return
    chain.add("Softmax", axis=len(chain.shape) - 1)


def attention_block(chain):
    """softmax(q k' / s + mask) v on [batch, rows, width]."""
    draw, (*lead, rows, width) = chain.draw, chain.shape
    x = chain.value
    order = list(range(len(chain.shape)))
    order[-1], order[-2] = order[-2], order[-1]
    q, = draw.node("MatMul", [x, chain.weight([width, width], scale=0.5)])
    k, = draw.node("MatMul", [x, chain.weight([width, width], scale=0.5)])
    turned, = draw.node("Transpose", [k], perm=order)
    scores, = draw.node("MatMul", [q, turned])
    scaled, = draw.node(draw.pick(["Mul", "Div"]), [scores, draw.feed(
        np.array(draw.real(0.3, 2), np.float32), True)])
    if draw.chance(0.5):
        mask = np.where(draw.rng.random([rows, rows]) < 0.3, draw.pick([-1e4, -3.4e38, -np.inf]), 0)
        mask[:, 0] = 0
        scaled, = draw.node("Add", [scaled, draw.feed(mask.astype(np.float32))])
    weights, = draw.node("Softmax", [scaled], axis=len(chain.shape) - 1)
    chain.keep()
    chain.value, = draw.node("MatMul", [weights, x])
    chain.residual()


def token_chain(draw):
    shape = draw.full_shape(1, 2, 4) + [draw.pick([1, 4, 8, 16, 17])]
    if len(shape) == 1:
        shape = [2] + shape
    chain = Chain(draw, shape)
    for _ in range(draw.whole(1, 5)):
        blocks = [dense_block, dense_block, norm_block] + ([attention_block] if len(chain.shape) > 2 else [])
        draw.pick(blocks)(chain)
    return chain


def scalar_chain(draw):
    chain = Chain(draw, draw.full_shape(0, 4, 12))
    for _ in range(draw.whole(2, 10)):
        chain.scalar_step()
    return chain


def moves_chain(draw):
    """Views, moves, reductions and element-wise ops mixed."""
    chain = Chain(draw, draw.full_shape(2, 4, 5))
    for _ in range(draw.whole(2, 7)):
        shape = chain.shape
        kind = draw.pick(["Transpose", "Reshape", "Slice", "Concat", "Pad", "Reduce", "Scalar", "Scalar",
                          "Unsqueeze", "Expand", "Gather"])
        if kind == "Transpose":
            order = draw.permutation(len(shape))
            chain.add("Transpose", shape=[shape[i] for i in order], perm=order)
        elif kind == "Reshape":
            target = [int(np.prod(shape[:2]))] + shape[2:] if len(shape) > 1 else shape
            chain.add("Reshape", draw.ints(target), shape=target)
        elif kind == "Slice" and draw.opset >= 10 and shape:
            axis = draw.whole(0, len(shape) - 1)
            cut = draw.whole(1, shape[axis])
            chain.add("Slice", *[draw.feed(np.array([v], np.int64), True) for v in (0, cut, axis)],
                      shape=shape[:axis] + [cut] + shape[axis + 1:])
        elif kind == "Concat" and shape:
            axis = draw.whole(0, len(shape) - 1)
            same = [n for n, s in chain.earlier if s == shape] or [chain.value]
            chain.add("Concat", draw.pick(same), shape=shape[:axis] + [shape[axis] * 2] + shape[axis + 1:],
                      axis=axis)
        elif kind == "Reduce" and shape and draw.opset < 18:
            axis = draw.whole(0, len(shape) - 1)
            op = draw.pick(["ReduceMean", "ReduceMax", "ReduceL2"])
            chain.add(op, shape=shape[:axis] + [1] + shape[axis + 1:], axes=[axis], keepdims=1)
        elif kind == "Unsqueeze" and draw.opset >= 13 and len(shape) < 6:
            axis = draw.whole(0, len(shape))
            chain.add("Unsqueeze", draw.feed(np.array([axis], np.int64), True),
                      shape=shape[:axis] + [1] + shape[axis:])
        elif kind == "Expand" and len(shape) < 6:
            target = [2] + [s if s > 1 else draw.whole(1, 3) for s in shape]
            if int(np.prod(target)) <= 600:
                chain.add("Expand", draw.feed(np.array(target, np.int64), True), shape=target)
        elif kind == "Gather" and shape:
            axis = draw.whole(0, len(shape) - 1)
            index = draw.rng.integers(0, shape[axis], [2])
            chain.add("Gather", draw.feed(index), shape=shape[:axis] + [2] + shape[axis + 1:], axis=axis)
        else:
            chain.scalar_step()
        if int(np.prod(chain.shape)) > 2000:
            break
    return chain


def list_chain(draw):
    """Steps on tensors around a sequence: captured parts before and behind what runs on the host."""
    if draw.opset < 11:
        raise Invalid
    chain = Chain(draw, draw.full_shape(1, 3, 5))
    chain.scalar_step()
    axis = draw.whole(0, len(chain.shape) - 1)
    part = chain.shape[:axis] + [1] + chain.shape[axis + 1:]
    count = chain.shape[axis]
    sequence, = draw.node("SplitToSequence", [chain.value], axis=axis)
    for _ in range(draw.whole(0, 2)):
        step = draw.pick(["SequenceInsert", "SequenceErase"])
        if step == "SequenceInsert":
            inputs = [sequence, draw.feed(draw.array(np.float32, part, "plain"), False)]
            count += 1
        elif count > 1:
            inputs = [sequence, draw.feed(np.array(draw.whole(-count, count - 1), np.int64))]
            count -= 1
        else:
            continue
        sequence, = draw.node(step, inputs)
    if draw.chance(0.5):
        chain.value, = draw.node("ConcatFromSequence", [sequence], axis=axis)
        chain.shape = part[:axis] + [count] + part[axis + 1:]
    else:
        at = draw.feed(np.array(draw.whole(-count, count - 1), np.int64))
        chain.value, = draw.node("SequenceAt", [sequence, at])
        chain.shape = part
    for _ in range(draw.whole(1, 3)):
        chain.scalar_step()
    return chain


KINDS = {"image": image_chain, "token": token_chain, "scalar": scalar_chain, "moves": moves_chain,
         "list": list_chain}


def make_chain(rng, opset):
    draw = Draw(rng, opset, NOT_FINITE)  # denormals only tell how each oracle rounds
    name = draw.pick(KINDS)
    chain = KINDS[name](draw)
    outputs = [chain.value]
    if draw.chance(0.3) and chain.earlier:  # a value inside that is also an output stops fusion
        extra = draw.pick(chain.earlier)[0]
        if extra not in outputs and extra.startswith("y"):
            outputs.append(extra)
    case = draw.finish(outputs)
    if not case.nodes:
        raise Invalid
    used = {name for node in case.nodes for name in node.inputs}
    case.feeds = {k: v for k, v in case.feeds.items() if k in used}
    case.constants = {k: v for k, v in case.constants.items() if k in used}
    case.tolerance = 20.0
    case.floor = 1e-6  # sums that cancel
    return case
