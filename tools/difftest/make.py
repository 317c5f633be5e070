# SPDX-License-Identifier: Apache-2.0

"""A case of a seed and an index: always the same one."""
import numpy as np
import onnx.defs

import chains
import gen_elementwise, gen_index, gen_layout, gen_matrix, gen_misc, gen_reduce, gen_window  # noqa: F401
import gen_microsoft  # noqa: F401
import gen_ml, gen_sequence, gen_string, gen_tree  # noqa: F401
from draw import Draw, Invalid, Schema
from registry import GENERATORS

OPSETS = range(9, 22)
CHAIN_SHARE = 0.25
ML = "ai.onnx.ml"
OTHER_KINDS = {}
for _, kind in GENERATORS:
    if " of " in kind:
        OTHER_KINDS.setdefault(kind.split(" of ")[0], []).append(kind)


def list_ops():
    """(domain, name) of every op that some promised opset has."""
    names = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()
             if s.domain in ("", ML) and not s.deprecated}
    names |= {("", "Upsample"), ("", "Scatter")} | {op for op in GENERATORS if " of " not in op[1]}
    return sorted(op for op in names if op[0] != "" or find_opsets(op[1]))


def find_opsets(op):
    return [opset for opset in OPSETS if onnx.defs.has(op, opset, "")
            and not onnx.defs.get_schema(op, opset, "").deprecated]


SMALLEST_HALF = np.float32(2.0 ** -24)


def make_single(rng, ops):
    domain, op = ops[int(rng.integers(len(ops)))]
    if (domain, op) not in GENERATORS and len(ops) > 1 and rng.random() < 0.8:
        raise Invalid  # guesses are seldom valid; the time is better spent on the others
    opsets = find_opsets(op) if domain == "" else [int(rng.integers(9, 22))]
    opset = opsets[int(rng.integers(len(opsets)))]
    version = opset if domain == "" else 1
    if domain == ML:
        versions = [v for v in range(1, 6) if onnx.defs.has(op, v, ML)
                    and not onnx.defs.get_schema(op, v, ML).deprecated]
        version = versions[int(rng.integers(len(versions)))]
    schema = Schema(op, version, domain) if domain in ("", ML) else None
    draw = Draw(rng, opset)
    if domain:
        draw.case.domains[domain] = version
    generator = pick_generator(draw, domain, op)
    if generator is None:
        return gen_misc.guess(draw, op, schema, domain)
    return generator(draw, op, schema)


def pick_generator(draw, domain, op):
    """That of the op, or by chance one of its other kinds: `Cast of strings`."""
    names = [name for name in OTHER_KINDS.get(op, []) if domain == ""]
    return GENERATORS.get((domain, draw.pick(names) if names and draw.chance(0.15) else op))


def flush(array):
    """Zero for what half precision flushes to zero, in whose mode f32 is computed in f16."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float32:
        return array
    return np.where(np.abs(array) < SMALLEST_HALF, np.copysign(np.float32(0), array), array)


def make_case(seed, index, ops, chain_share=CHAIN_SHARE, uses_half=False):
    """The case, or None where the draws made none."""
    case = draw_case(seed, index, ops, chain_share)
    if case is not None and uses_half:
        for given in (case.feeds, case.constants):
            given.update({name: flush(array) for name, array in given.items()})
    return case


def draw_case(seed, index, ops, chain_share):
    for attempt in range(20):
        rng = np.random.default_rng([seed, index, attempt])
        try:
            if rng.random() < chain_share:
                opset = int(rng.choice(list(OPSETS)))
                case = chains.make_chain(rng, opset)
            else:
                case = make_single(rng, ops)
        except Invalid:
            continue
        case.seed, case.index = seed, index
        return case
    return None
