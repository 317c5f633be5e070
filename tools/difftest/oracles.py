# SPDX-License-Identifier: Apache-2.0

"""What the model must give, twice: by ONNX Runtime and by the reference evaluator of the onnx package."""
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

import values

onnxruntime.set_default_logger_severity(4)
warnings.simplefilter("ignore")
np.seterr(all="ignore")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NAMES = ("onnxruntime", "reference")


def cast_borders(model, case):
    """Python cannot hand bfloat16 to ONNX Runtime: f32 goes in and out, and is cast inside."""
    plain = {name: values.get_plain(value) for name, value in case.feeds.items()}
    names = [name for name, value in case.feeds.items() if value.dtype == BFLOAT16]
    if not names and not any(array.dtype == BFLOAT16 for array in case.get_arrays()):
        return model, plain, set()
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    for info in graph.input:
        if info.name in names:
            info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name in names:
                node.input[i] = name + "_bf16"
    for name in names:
        graph.node.insert(0, helper.make_node("Cast", [name], [name + "_bf16"], to=16))
    feeds = {name: array.astype(np.float32) if name in names else array
             for name, array in plain.items()}
    types = infer_types(model)
    bfloats = {info.name for info in graph.output if types.get(info.name) == 16}
    for info in graph.output:
        if info.name in bfloats:
            graph.node.append(helper.make_node("Cast", [info.name], [info.name + "_f32"], to=1))
            info.name += "_f32"
    return changed, feeds, bfloats


def infer_types(model):
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception:
        return {}
    return {info.name: info.type.tensor_type.elem_type for info in inferred.graph.output}


def run_onnxruntime(model, case):
    changed, feeds, bfloats = cast_borders(model, case)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(changed.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    names = [info.name for info in changed.graph.output]
    results = session.run(names, feeds)
    if case.nodes[-1].op == "ZipMap":
        results = [unzip(results[0], case.nodes[-1].attrs)]
    return {name: np.asarray(r).astype(BFLOAT16) if name in bfloats else values.clean(r)
            for name, r in zip(case.outputs, results)}


def unzip(rows, attrs):
    """The scores that dictionaries hold, in the order of the labels: Rondo gives those."""
    labels = attrs.get("classlabels_strings", attrs.get("classlabels_int64s"))
    return np.array([[row[label] for label in labels] for row in rows], np.float32)


def run_reference(model, case):
    feeds = {name: values.get_plain(value) for name, value in case.feeds.items()}
    results = ReferenceEvaluator(model).run(case.outputs, feeds)
    if case.nodes[-1].op == "Optional":  # the evaluator wraps what an optional holds in a list
        results = [r[0] for r in results]
    return {name: values.clean(r) for name, r in zip(case.outputs, results)}


def run_oracle(name, model, case):
    """The outputs, or the reason why there are none as text."""
    try:
        return (run_onnxruntime if name == "onnxruntime" else run_reference)(model, case)
    except Exception as error:  # an oracle refuses in many ways
        return f"{type(error).__name__}: {str(error)[:300]}"
