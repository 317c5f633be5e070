#!/usr/bin/env python3
"""The networks of bench/peers/gpu_networks.py under ONNX Runtime's CUDA provider, fp16, with its own CUDA graphs.

    bench/peers/onnxruntime_cuda.py [NAME...]        default: all that bench/peers/gpu_networks.py has exported

Weights and ops become half precision by onnxruntime.transformers.float16. Feeds and outputs are bound to
device memory; cuDNN searches exhaustively; with channels first and last (prefer_nhwc), replayed from a CUDA
graph where every op is on the GPU, and eagerly: the fastest counts, and the row says which. Microseconds of
wall time of a run with the wait, median and 99th percentile of 150. Outputs are compared with the expected
ones. Needs torch (for its CUDA libraries), onnx and onnxruntime-gpu.
"""
import os
import statistics
import subprocess
import sys
import time

WORK = os.environ.get("TMPDIR", "/tmp") + "/gpu_networks"
PROVIDER = os.environ.get("PROVIDER", "CUDAExecutionProvider")


def tensors(folder, kind):
    import onnx
    from onnx import numpy_helper
    found = {}
    for number in range(len([name for name in os.listdir(folder) if name.startswith(kind)])):
        tensor = onnx.TensorProto()
        with open(f"{folder}/{kind}_{number}.pb", "rb") as file:
            tensor.ParseFromString(file.read())
        found[tensor.name] = numpy_helper.to_array(tensor)
    return found


def half_model(name):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16
    path = f"{WORK}/{name}/half.onnx"
    if not os.path.exists(path):
        model = convert_float_to_float16(onnx.load(f"{WORK}/{name}/model.onnx"), disable_shape_infer=True)
        onnx.save(model, path, save_as_external_data=model.ByteSize() > 1 << 30, location="half.data")
    return path


def time_one(path, feeds, expected, nhwc, graph):
    """Median and 99th percentile in microseconds, and the largest error."""
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    settings = {"enable_cuda_graph": graph, "prefer_nhwc": nhwc, "cudnn_conv_algo_search": "EXHAUSTIVE"}
    device = "cuda" if PROVIDER.startswith("CUDA") else "cpu"
    session = ort.InferenceSession(path, options, [(PROVIDER, settings if device == "cuda" else {})])
    binding, kept = session.io_binding(), []
    for spec in session.get_inputs():
        value = feeds[spec.name].astype(np.float16) if spec.type == "tensor(float16)" else feeds[spec.name]
        kept.append(ort.OrtValue.ortvalue_from_numpy(value, device, 0))
        binding.bind_ortvalue_input(spec.name, kept[-1])
    kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(int64)": np.int64}
    for spec in session.get_outputs():
        kept.append(ort.OrtValue.ortvalue_from_shape_and_type(expected[spec.name].shape, kinds[spec.type], device, 0))
        binding.bind_ortvalue_output(spec.name, kept[-1])
    times = []
    for _ in range(170):
        begin = time.perf_counter()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        times.append(1e6 * (time.perf_counter() - begin))
    times = sorted(times[20:])
    error = max(float(np.abs(value.numpy().astype(np.float64) - expected[spec.name]).max())
                for spec, value in zip(session.get_outputs(), kept[len(session.get_inputs()):]))
    return statistics.median(times), times[int(0.99 * len(times))], error


def measure(name):
    import torch  # noqa: F401  brings the CUDA libraries
    folder = f"{WORK}/{name}/test_data_set_0"
    feeds, expected = tensors(folder, "input"), tensors(folder, "output")
    rows, why = [], {}
    for path, graph in ((half_model(name), "1"), (half_model(name), "0"), (f"{WORK}/{name}/model.onnx", "0")):
        for nhwc in ("0", "1"):
            try:
                rows.append((*time_one(path, feeds, expected, nhwc, graph),
                             ("graph" if graph == "1" else "eager") + (", channels last" if nhwc == "1" else "") +
                             (", f32" if path.endswith("model.onnx") else "")))
            except Exception as error:
                why[path + graph] = str(error).replace("\n", " ")[:160]
        if rows:
            break
    best = min(rows, default=None)
    text = f"{best[0]:.0f} | {best[1]:.0f} | {best[3]} | {best[2]:.3g}" if best else "- | - | - | -"
    print(f"| {name} | {text} | {'; '.join(why.values())}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        measure(sys.argv[2])
    elif len(sys.argv) > 1 and sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
    else:
        print("| network | ORT, us | p99 | how | largest error |\n|---|---:|---:|---|---:|")
        for each in sys.argv[1:] or sorted(os.listdir(WORK)):
            if not os.path.exists(f"{WORK}/{each}/test_data_set_0/done"):
                continue
            try:
                done = subprocess.run([sys.executable, __file__, "--one", each], capture_output=True, text=True,
                                      timeout=60)
                print(done.stdout.strip() or f"| {each} | {done.stderr.strip()[-300:]}", flush=True)
            except subprocess.TimeoutExpired:
                print(f"| {each} | no time", flush=True)
