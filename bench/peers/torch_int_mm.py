# SPDX-License-Identifier: Apache-2.0

"""PyTorch's products of 8-bit integers (torch._int_mm, by cuBLASLt) and of halves, of the sizes of bench/models/byte_products.c.

Prints a line for each: microseconds of one product among ten in a CUDA graph, the least of five replays, and 10^12
operations a second. torch._int_mm multiplies signed bytes, gives the sums, and wants more than 16 rows; where it
refuses, that is said.
"""
import torch

SIZES = [("4096 cubed", 4096, 4096, 4096), ("2048 cubed", 2048, 2048, 2048), ("bert 128 q", 128, 768, 768),
         ("bert 128 qkv", 128, 2304, 768), ("bert 128 up", 128, 3072, 768), ("bert 128 down", 128, 768, 3072),
         ("bert 32x128 q", 4096, 768, 768), ("bert 32x128 up", 4096, 3072, 768),
         ("bert 32x128 down", 4096, 768, 3072), ("t5 1 token, q", 1, 384, 512),
         ("t5 1 token, words", 1, 32128, 512), ("t5 16 tokens, words", 16, 32128, 512)]
COUNT = 10


def measure(work):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(COUNT):
            work()
    graph.replay()
    best = float("inf")
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end) * 1000 / COUNT)
    return best


def tell(make, m, n, k):
    try:
        time_us = measure(make())
        return f"{time_us:9.2f} us {2e-6 * m * n * k / time_us:8.1f}"
    except RuntimeError as error:
        return f"refused: {str(error).splitlines()[0][:60]}"


print(torch.__version__, torch.cuda.get_device_name())
print(f"{'':24}{'_int_mm':>12}{'TOPS':>9}   {'half':>12}{'TFLOPS':>9}")
for name, m, n, k in SIZES:
    def of_bytes():
        a = torch.randint(-128, 128, (m, k), dtype=torch.int8, device="cuda")
        b = torch.randint(-128, 128, (n, k), dtype=torch.int8, device="cuda").t()
        return lambda: torch._int_mm(a, b)

    def of_halves():
        a = torch.randn(m, k, dtype=torch.half, device="cuda")
        b = torch.randn(n, k, dtype=torch.half, device="cuda").t()
        return lambda: torch.mm(a, b)

    print(f"{name:24}{tell(of_bytes, m, n, k)}   {tell(of_halves, m, n, k)}")
