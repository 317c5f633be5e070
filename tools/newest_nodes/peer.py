# SPDX-License-Identifier: Apache-2.0

"""Runs test directories, a line of input each, through ONNX Runtime; prints a JSON line for each.

Types that its Python binding has no arrays for go in as initializers and come out through a Cast.
"""
import glob
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RELATIVE, ABSOLUTE, RELATIVE_BF16 = 1e-3, 1e-7, 2.0 ** -6
PLAIN = {getattr(TensorProto, name) for name in
         "FLOAT DOUBLE FLOAT16 BOOL STRING INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64".split()}
REFUSALS = ("NOT_IMPLEMENTED", "NotImplemented", "not a registered function", "under development", "No Op registered",
            "Unsupported model IR", "not supported", "is invalid", "INVALID_GRAPH", "No opset import", "nknown", "Opset")


class Wrong(Exception):
    pass


def load(path, kind):
    with open(path, "rb") as file:
        data = file.read()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "map_type":
        return numpy_helper.to_dict(onnx.MapProto.FromString(data))
    if kind == "optional_type":
        optional = onnx.OptionalProto.FromString(data)
        is_empty = not any(optional.HasField(field) for field in ("tensor_value", "sequence_value"))
        return None if is_empty else numpy_helper.to_optional(optional)
    return TensorProto.FromString(data)


def compare(expected, result, name, is_cast):
    if isinstance(expected, list):
        if not isinstance(result, (list, tuple)) or len(expected) != len(result):
            raise Wrong(f"{name}: a sequence of {len(expected)} is expected")
        for pair in zip(expected, result):
            compare(*pair, name, is_cast)
        return
    if expected is None or isinstance(expected, dict):
        if result != expected:
            raise Wrong(f"{name}: {str(expected)[:40]} is expected")
        return
    if isinstance(result, list) and len(result) == 1:
        result = result[0]
    expected, result = np.asarray(expected), np.asarray(result)
    relative = RELATIVE_BF16 if expected.dtype.name == "bfloat16" else RELATIVE
    expected = expected.astype(result.dtype) if is_cast else expected
    if expected.shape != result.shape:
        raise Wrong(f"{name}: shape {result.shape}, expected {expected.shape}")
    if expected.dtype.kind in "OSU":
        bad = expected.astype(str) != result.astype(str)
    elif expected.dtype.kind in "fc":
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        bad = ~np.isclose(result.astype(wide), expected.astype(wide), rtol=relative, atol=ABSOLUTE, equal_nan=True)
    else:
        bad = expected != result
    if np.any(bad):
        raise Wrong(f"{name}: {np.count_nonzero(bad)} of {bad.size} are wrong")


def move_strange(model, feeds, expected):
    """Makes initializers of strange inputs, and casts strange outputs; the names of these."""
    strange = set()
    for name in [name for name, value in feeds.items() if isinstance(value, TensorProto)]:
        info = next(info for info in model.graph.input if info.name == name)
        model.graph.input.remove(info)
        model.graph.initializer.append(feeds.pop(name))
        model.graph.initializer[-1].name = name
    for i, value in enumerate(expected):
        if isinstance(value, TensorProto):
            name = model.graph.output[i].name
            to = TensorProto.INT32 if "INT" in TensorProto.DataType.Name(value.data_type) else TensorProto.FLOAT
            model.graph.node.append(helper.make_node("Cast", [name], [name + "_cast"], to=to))
            model.graph.output[i].CopyFrom(helper.make_tensor_value_info(name + "_cast", to, None))
            strange.add(i)
    return strange


def run_set(directory, folder):
    model = onnx.load(os.path.join(directory, "model.onnx"))
    known = {tensor.name for tensor in model.graph.initializer}
    ports = {"input": [info for info in model.graph.input if info.name not in known], "output": model.graph.output}
    values = {}
    for what, infos in ports.items():
        count = len(glob.glob(os.path.join(folder, what + "_*.pb")))
        values[what] = [load(os.path.join(folder, f"{what}_{i}.pb"), infos[i].type.WhichOneof("value"))
                        for i in range(count)]
        values[what] = [numpy_helper.to_array(value) if isinstance(value, TensorProto) and value.data_type in PLAIN
                        else value for value in values[what]]
    feeds = {info.name: value for info, value in zip(ports["input"], values["input"])}
    names = [info.name for info in model.graph.output]
    strange = move_strange(model, feeds, values["output"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for i, (expected, result) in enumerate(zip(values["output"], session.run(None, feeds))):
        expected = numpy_helper.to_array(expected) if isinstance(expected, TensorProto) else expected
        compare(expected, result, names[i], i in strange)


def judge(directory):
    try:
        for folder in sorted(glob.glob(os.path.join(directory, "test_data_set_*"))):
            run_set(directory, folder)
        return "passed", ""
    except Wrong as wrong:
        return "wrong", str(wrong)
    except Exception as error:  # whatever it is, it is the verdict
        text = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
        return ("refused" if any(part in text for part in REFUSALS) else "error"), text


if __name__ == "__main__":
    os.environ.setdefault("ALLOW_RELEASED_ONNX_OPSET_ONLY", "0")
    onnxruntime.set_default_logger_severity(4)
    for case in sys.stdin.read().split():
        print(json.dumps({"case": case}), flush=True)
        verdict, reason = judge(case)
        print(json.dumps({"case": case, "verdict": verdict, "reason": reason}), flush=True)
