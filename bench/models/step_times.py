#!/usr/bin/env python3
"""Where a step's time goes, from the records of `train_steps --records FILE`.

    step_times.py FILE [--rows 30] [--each]

A launch that may start early waits inside its kernel, and its own time counts the wait. So each moment
counts once here: for the kernel that ends first of those that run, on each stream. --each: also the
launches of a step one by one, with their label. Kernels of NCCL are set against all others: how much of
their time nothing else ran.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import collections
import json


def union(spans):
    joined = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return joined


def length(spans):
    return sum(end - begin for begin, end in spans)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--each", action="store_true")
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as file:
        records = json.load(file)
    texts = records["texts"]
    steps = sum(1 for span in records["spans"] if span[1] in (0, -1, None) and texts[span[4]] == "run") or 1
    works = [(w[9], w[8], texts[w[3]], texts[w[4]], w[6]) for w in records["works"]]
    busy_until = {}
    rows = collections.defaultdict(lambda: [0, 0.0])
    listed = []
    for end, begin, name, label, stream in sorted(works):
        last = busy_until.get(stream, 0)
        own = max(0, end - max(begin, last))
        gap = max(0, begin - last) if last else 0
        busy_until[stream] = max(last, end)
        rows[name][0] += 1
        rows[name][1] += own
        listed.append((own, gap, name, label, stream))
    busy = length(union((w[1], w[0]) for w in works))
    print(f"{options.file}: {steps} steps, {len(works) / steps:.0f} launches a step, busy {busy / steps / 1e3:.0f} us")
    print(f"{'us a step':>10} {'launches':>9} {'us each':>8}  kernel")
    for name, (count, own) in sorted(rows.items(), key=lambda row: -row[1][1])[: options.rows]:
        print(f"{own / steps / 1e3:10.1f} {count / steps:9.1f} {own / count / 1e3:8.2f}  {name}")
    sums = [(w[1], w[0]) for w in works if "nccl" in w[2].lower()]
    if sums:
        others = union((w[1], w[0]) for w in works if "nccl" not in w[2].lower())
        both = length(union(sums)) + length(others) - length(union(sums + [tuple(o) for o in others]))
        total = length(union(sums))
        print(f"sums of ranks: {total / steps / 1e3:.0f} us a step, of which {(total - both) / steps / 1e3:.0f} us "
              "with nothing beside them")
    if options.each and len(works) % steps == 0:
        a_step = len(works) // steps
        print("    us   gap stream kernel (label), each launch of a step, mean of the steps")
        for i in range(a_step):
            same = [listed[i + a_step * step] for step in range(steps)]
            print(f"{sum(s[0] for s in same) / steps / 1e3:6.1f} {sum(s[1] for s in same[1:]) / max(1, steps - 1) / 1e3:5.1f} "
                  f"{same[0][4]:>6} {same[0][2]} ({same[0][3]})")


if __name__ == "__main__":
    main()
