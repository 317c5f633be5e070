# SPDX-License-Identifier: Apache-2.0

"""PyTorch's ResNet-50, fp16, one image, channels last: eager and replayed from its CUDA graph.

The peer of bench/peers/gpu_resnet50.sh. Prints one JSON line; all times are microseconds of wall clock from before the
call until the device is idle ("with sync"), the input being on the device already.
"""
import json
import statistics
import time

import torch
import torchvision

torch.backends.cudnn.benchmark = True
net = torchvision.models.resnet50().eval().half().cuda().to(memory_format=torch.channels_last)
x = torch.randn(1, 3, 224, 224, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)


def measure(work, runs):
    for _ in range(20):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return round(statistics.median(times), 1)


with torch.inference_mode():
    eager = measure(lambda: net(x), 100)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            net(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        net(x)
    replay = measure(graph.replay, 500)

print(json.dumps({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                  "gpu": torch.cuda.get_device_name(), "eager_us": eager, "graph_us": replay}))
