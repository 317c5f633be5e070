#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rondo's NVTX ranges as a tool of NVIDIA's sees them: Nsight Compute tells a replay's kernels, and
those of a label scope, by their ranges.

usage: nvtx_ncu.py LIBRONDO [DEVICE]       default: cuda:0

ncu runs this script again (with --work): one draw of random numbers inside the label "warm-up", a
graph "step" with another draw, and its replays.

Exit status: 0 passed, 1 failed, 77 skipped: there is no ncu, or it may not read counters here.
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys

import rondo_library as r

REPLAYS = 3
COUNT = 1 << 16


def work(path, name):
    rondo = r.Library(path)
    has_path = bool(os.environ.get("NVTX_INJECTION64_PATH"))
    print(f"NVTX_INJECTION64_PATH is {'set' if has_path else 'not set'}")
    device = rondo.device_open(name.encode())
    stream = rondo.stream_create(device, None)
    words = rondo.memory_allocate(device, 0, 4 * COUNT)
    generator = rondo.generator_create(device, 1)
    options = r.GraphOptions(struct_size=ctypes.sizeof(r.GraphOptions))
    options.label = b"step"
    graph = rondo.graph_create(device, ctypes.byref(options))
    rondo.label_push(stream, b"warm-up")
    rondo.random_words(generator, stream, words, COUNT)
    rondo.label_pop(stream)
    rondo.graph_capture_begin(graph, stream, r.THREAD_LOCAL)
    rondo.label_push(stream, b"layer3")
    rondo.random_words(generator, stream, words, COUNT)
    rondo.label_pop(stream)
    rondo.graph_capture_end(graph)
    for _ in range(REPLAYS):
        rondo.graph_replay(graph, stream)
    rondo.stream_synchronize(stream)
    rondo.graph_destroy(graph)
    rondo.generator_release(generator)
    rondo.memory_free(device, 0, words)
    rondo.stream_destroy(stream)
    rondo.device_release(device)


def profile(ncu, *options):
    """What ncu says, and how many kernels it looked at."""
    command = [ncu, "--nvtx", "--graph-profiling", "node", "--metrics", "gpu__time_duration.sum",
               *options, sys.executable, os.path.abspath(__file__), "--work", *sys.argv[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=240, check=False)
    print(f"$ {' '.join(command)}\n{done.stdout}")
    if "ERR_NVGPUCTRPERM" in done.stdout:
        print("skipped: ncu may not read the GPU's counters here (ERR_NVGPUCTRPERM)")
        sys.exit(77)
    assert "Traceback" not in done.stdout, "the profiled program failed"
    return done.stdout, len(re.findall(r"^==PROF== Profiling ", done.stdout, re.MULTILINE))


def main():
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    if not os.access(ncu, os.X_OK):
        print("skipped: there is no ncu")
        sys.exit(77)
    text, total = profile(ncu, "--print-nvtx-rename", "kernel")
    assert total >= 1 + REPLAYS, f"{total} kernels"
    for name in ("warm-up", "replay step"):  # before the kernels' names
        assert re.search(rf"^ *{name}/rondo_", text, re.MULTILINE), f"no kernel is in {name}"
    assert "capture step" not in text, "the capture's range is still open"
    counts = {}
    for expression in ("rondo@warm-up/", "rondo@replay step/", "rondo@layer3/", "other@warm-up/"):
        counts[expression] = profile(ncu, "--nvtx-include", expression)[1]
    # Nothing runs while a graph is recorded, so no kernel lies in the range of "layer3".
    assert counts["rondo@layer3/"] == counts["other@warm-up/"] == 0, counts
    assert counts["rondo@warm-up/"] >= 1 and counts["rondo@replay step/"] >= REPLAYS, counts
    assert counts["rondo@warm-up/"] + counts["rondo@replay step/"] <= total, (counts, total)
    print(f"ncu: {total} kernels, by range: "
          + ", ".join(f"{count} in {key}" for key, count in counts.items()))


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "cuda:0")
    else:
        main()
