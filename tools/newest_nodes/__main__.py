# SPDX-License-Identifier: Apache-2.0

"""The test cases of the newest ONNX release, on Rondo and on ONNX Runtime: a table by opset and op.

    python3 tools/newest_nodes FOLDER [--rondo build/rondo] [--device host] [--no-peer]

From nothing: makes a virtual environment in FOLDER, installs the newest onnx and onnxruntime there,
writes every case that the onnx package makes or ships as a test directory (FOLDER/cases), runs
`rondo test` over them and ONNX Runtime's processor kernels beside it, and writes FOLDER/report.md. A
case passes when each output is as `rondo test` wants it, eagerly and replayed. On a GPU the report
also names the ops that run on the host in between. No part of `make check`.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys

PACKAGES = ["onnx", "onnxruntime", "numpy", "ml_dtypes"]
CHUNK = 64  # cases for one call of the tool
PLACES = ("passed", "wrong", "refused", "error")


def enter_environment(folder):
    """Goes on in the virtual environment with the newest packages."""
    python = os.path.join(folder, "venv", "bin", "python")
    if os.path.realpath(sys.prefix) == os.path.realpath(os.path.join(folder, "venv")):
        return
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", os.path.join(folder, "venv")], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", *PACKAGES], check=True)
    os.execv(python, [python, "-W", "ignore", *sys.argv])


def read_verdicts(text, by_name):
    """{directory: (verdict, reason)} of what `rondo test` printed."""
    verdicts = {}
    for line in text.splitlines():
        match = re.match(r"(passed|FAILED|skipped) +(\S+) +(.*)", line)
        if match and match[2] in by_name:
            is_wrong = match[1] == "FAILED" and ", output " in match[3]
            place = {"passed": "passed", "skipped": "refused"}.get(match[1], "wrong" if is_wrong else "error")
            verdicts[by_name[match[2]]] = (place, match[3])
    return verdicts


def run_tool(rondo, device, directories):
    by_name = {os.path.basename(path): path for path in directories}
    try:
        done = subprocess.run([rondo, "test", "--device", device, *directories], capture_output=True, text=True,
                              errors="replace", timeout=900)
        verdicts = read_verdicts(done.stdout, by_name)
    except subprocess.TimeoutExpired as late:
        verdicts = read_verdicts((late.stdout or b"").decode(errors="replace"), by_name)
    if len(directories) > 1:  # what a crash or a stop took along is asked again by itself
        for path in directories:
            if path not in verdicts:
                verdicts.update(run_tool(rondo, device, [path]))
        return verdicts
    return verdicts or {directories[0]: ("error", "no verdict")}


def run_rondo(rondo, device, directories):
    verdicts, names = {}, collections.defaultdict(list)
    for path in directories:
        names[os.path.basename(path)].append(path)
    for turn in range(max(map(len, names.values()))):  # names are told apart by folders
        once = [paths[turn] for paths in names.values() if len(paths) > turn]
        for first in range(0, len(once), CHUNK):
            verdicts.update(run_tool(rondo, device, once[first:first + CHUNK]))
    return verdicts


def run_peer(directories):
    """ONNX Runtime's verdicts; a process that dies is one error, and the next goes on behind it."""
    verdicts, todo = {}, list(directories)
    while todo:
        done = subprocess.run([sys.executable, "-W", "ignore", os.path.join(os.path.dirname(__file__), "peer.py")],
                              input="\n".join(todo), capture_output=True, text=True)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        verdicts.update({line["case"]: (line["verdict"], line["reason"]) for line in lines if "verdict" in line})
        left = [path for path in todo if path not in verdicts]
        if len(left) == len(todo) or (lines and "verdict" not in lines[-1]):
            verdicts[left[0]] = ("error", f"the process died: {done.returncode}")
        todo = [path for path in left if path not in verdicts]
    return verdicts


def find_bypassed(rondo, device, directories):
    """{op: cases} of the ops that run on the host between captured segments."""
    found = collections.Counter()
    for path in directories:
        done = subprocess.run([rondo, "inspect", "--device", device, os.path.join(path, "model.onnx")],
                              capture_output=True, text=True, errors="replace")
        found.update({line.split()[0] for line in done.stdout.splitlines()
                      if re.match(r"  \S+ +host ", line)})
    return found


def describe(path):
    """(opset, op) of a case; the op is that of its only node, or of the case that it expands."""
    import onnx
    model = onnx.load(os.path.join(path, "model.onnx"), load_external_data=False)
    opsets = {item.domain or "ai.onnx": item.version for item in model.opset_import}
    domain = "ai.onnx" if "ai.onnx" in opsets else sorted(opsets)[0]
    op = model.graph.node[0].op_type if len(model.graph.node) == 1 else None
    return ("" if domain == "ai.onnx" else domain + " ") + str(opsets[domain]), op


def name_ops(directories, facts):
    single = {os.path.basename(path): facts[path][1] for path in directories if facts[path][1]}
    ops = {}
    for path in directories:
        kind, name = path.split(os.sep)[-2:]
        base = re.sub(r"_expanded(_ver\d+)?$", "", name)
        ops[path] = (facts[path][1] or single.get(base) or "several ops") if kind == "node" else f"({kind})"
    return ops


def split_numbers(text):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def write_table(out, title, key, directories, ours, peers):
    groups = collections.defaultdict(list)
    for path in directories:
        groups[key[path]].append(path)
    out.write(f"\n| {title} | cases | passed | wrong | refused | error |" + (" ORT passed |" if peers else "") +
              "\n|---|---:|---:|---:|---:|---:|" + ("---:|" if peers else "") + "\n")
    whole = 0
    for name in sorted(groups, key=split_numbers):
        paths = groups[name]
        count = collections.Counter(ours[path][0] for path in paths)
        if title == "op" and count["passed"] == len(paths):
            whole += 1
            continue
        out.write(f"| {name} | {len(paths)} | " + " | ".join(str(count[place]) for place in PLACES) + " |")
        out.write(f" {sum(peers[path][0] == 'passed' for path in paths)} |\n" if peers else "\n")
    if title == "op":
        out.write(f"\nAll cases pass of {whole} other ops.\n")


def write_report(path, directories, ours, peers, bypassed, device):
    import onnx
    import onnxruntime
    facts = {case: describe(case) for case in directories}
    ops = name_ops(directories, facts)
    count = collections.Counter(ours[case][0] for case in directories)
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"# Cases of onnx {onnx.__version__}, {device}\n\nOf {len(directories)}: " +
                  ", ".join(f"{count[place]} {place}" for place in PLACES) + ".")
        if peers:
            count = collections.Counter(peers[case][0] for case in directories)
            out.write(f" ONNX Runtime {onnxruntime.__version__}: " +
                      ", ".join(f"{count[place]} {place}" for place in PLACES) + ".")
        out.write("\n")
        write_table(out, "opset", {case: facts[case][0] for case in directories}, directories, ours, peers)
        write_table(out, "op", ops, directories, ours, peers)
        out.write("\n## What does not pass\n\n")
        for case in directories:
            if ours[case][0] != "passed":
                out.write(f"- {'/'.join(case.split(os.sep)[-2:])}: {ours[case][0]}: {ours[case][1][:160]}\n")
        if bypassed:
            out.write("\n## Ops on the host in between\n\n" +
                      ", ".join(f"{op} {cases}" for op, cases in bypassed.most_common()) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--rondo", default="build/rondo")
    parser.add_argument("--device", default="host")
    parser.add_argument("--no-peer", action="store_true", help="run Rondo alone")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    enter_environment(arguments.folder)
    from cases import write_cases
    directories = write_cases(os.path.join(os.path.abspath(arguments.folder), "cases"))
    ours = run_rondo(os.path.realpath(arguments.rondo), arguments.device, directories)
    peers = None if arguments.no_peer else run_peer(directories)
    bypassed = None if arguments.device == "host" else find_bypassed(arguments.rondo, arguments.device, directories)
    report = os.path.join(arguments.folder, "report.md")
    write_report(report, directories, ours, peers, bypassed, arguments.device)
    with open(report, encoding="utf-8") as text:
        print(text.read().split("\n## What")[0])
    print(f"report: {report}")


if __name__ == "__main__":
    main()
