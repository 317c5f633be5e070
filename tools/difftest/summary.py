# SPDX-License-Identifier: Apache-2.0

"""Counts over all cases, and their report."""
import collections
import datetime
import platform

import numpy
import onnx
import onnxruntime

OPSET_RANGES = ((9, 10), (11, 12), (13, 17), (18, 21))
OUTCOMES = ("equal", "known", "failed", "refused", "unsupported", "unchecked")


class Summary:
    def __init__(self, ops):
        self.ops = ops
        self.outcomes = collections.Counter()
        self.by_op = collections.defaultdict(collections.Counter)
        self.by_opset = collections.defaultdict(collections.Counter)
        self.known = collections.Counter()
        self.unsupported = collections.Counter()
        self.unchecked = collections.Counter()
        self.oracle_crashes = collections.Counter()
        self.attributes = set()
        self.failures = []  # (index, ops, findings)
        self.failed = {}    # index: report, which counts only at the end; a run that goes on repeats it
        self.finished = set()
        self.repeated = 0
        self.seconds = 0.0
        self.replayed = 0
        self.compared = collections.Counter()

    def add(self, index, report):
        self.finished.add(index)
        if report["outcome"] == "failed":
            self.failed[index] = report
            self.failures.append((index, [op for _, op in report["ops"]], report["findings"]))
        else:
            self.count(report)

    def repeat_failed(self):
        """Forgets the cases that failed, so that they are made again."""
        self.repeated += len(self.failures)
        self.finished -= {index for index, _, _ in self.failures}
        self.failures, self.failed = [], {}

    def finish(self, seconds):
        self.seconds += seconds
        for report in self.failed.values():
            self.count(report)
        self.outcomes["failed"] = len(self.failures)

    def count(self, report):
        outcome = report["outcome"]
        self.outcomes[outcome] += 1
        if outcome == "unmade":
            return
        self.replayed += report["replayed"]
        self.compared.update(report["compared"])
        key = report["ops"][0] if len(report["ops"]) == 1 else ("", "(graphs)")
        self.by_op[key][outcome] += 1
        if len(report["ops"]) == 1:
            for low, high in OPSET_RANGES:
                if low <= report["opset"] <= high:
                    self.by_opset[key][low, high] += outcome in ("equal", "known", "failed")
        if outcome in ("equal", "known", "failed"):
            self.attributes.update(tuple(pair) for pair in report["attributes"])
        self.known.update(report["known"])
        if outcome == "unsupported":
            self.unsupported[report["detail"]] += 1
        if outcome == "unchecked":
            self.unchecked[key[1]] += 1

    def add_crash(self, index, stage, kind, op):
        self.finished.add(index)
        if stage != "rondo":
            self.oracle_crashes[f"{op}: {kind} in {stage}"] += 1
            return
        self.failures.append((index, [op], [(kind, "rondo", "the process ended or hung")]))

    # ---- the report

    def list_failures(self, settings):
        return [f"{settings['seed']}:{index} {', '.join(names[:6])}: "
                + "; ".join(f"{kind} against {oracle}: {detail}" for kind, oracle, detail in found)
                for index, names, found in self.failures]

    def list_never_compared(self):
        """Ops without a compared case, and attributes that no compared case set."""
        compared = {op for op, counts in self.by_op.items()
                    if counts["equal"] + counts["known"] + counts["failed"] > 0}
        ops = [op for op in self.ops if op not in compared]
        attributes = []
        for domain, op in sorted(compared):
            if op == "(graphs)":
                continue
            names = {name for schema in onnx.defs.get_all_schemas_with_history()
                     if schema.name == op and schema.domain == domain and schema.since_version <= 21
                     for name in schema.attributes}
            attributes += [f"{op}.{name}" for name in sorted(names) if (op, name) not in self.attributes]
        return ops, attributes

    def write(self, settings, known_reasons, is_markdown):
        ops, attributes = self.list_never_compared()
        total = len(self.finished)
        lines = [
            f"- command: `{settings['command']}`",
            f"- seed {settings['seed']}, cases {settings['first']} to {settings['first'] + total - 1},"
            f" {self.seconds:.0f} s on {settings['workers']} workers"
            + (f"; {self.repeated} that failed were made again after a change" if self.repeated else ""),
            f"- device {settings['device']}{', half precision' if settings['half'] else ''};"
            f" {self.replayed} cases were replayed in their third run",
            f"- commit {settings['commit']}, {datetime.date.today()}, {settings['machine']},"
            f" Python {platform.python_version()}",
            f"- onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}, NumPy {numpy.__version__}",
            "",
            "| outcome | cases | meaning |",
            "|---|---:|---|",
        ]
        meanings = {"equal": "equal to every oracle that ran it", "known": "differs as named below",
                    "failed": "differs", "refused": "refused by Rondo and by both oracles",
                    "unsupported": "Rondo refuses by name", "unchecked": "no oracle ran it",
                    "unmade": "the draws made no case"}
        lines += [f"| {name} | {self.outcomes[name]} | {text} |" for name, text in meanings.items()]
        lines += ["", f"Compared with onnxruntime: {self.compared['onnxruntime']}, with the reference "
                  f"evaluator: {self.compared['reference']}.", ""]
        if self.failures:
            lines += ["## Failures", ""]
            lines += ["- " + line for line in self.list_failures(settings)[:100]]
            lines.append("")
        lines += ["## Named differences", "", "| name | cases | reason |", "|---|---:|---|"]
        lines += [f"| {name} | {count} | {known_reasons.get(name, '')} |"
                  for name, count in self.known.most_common()]
        unused = sorted(set(known_reasons) - set(self.known))
        lines += ["", "Never met: " + (", ".join(unused) or "none") + ".", ""]
        ranges = " | ".join(f"{low}-{high}" for low, high in OPSET_RANGES)
        lines += ["## Compared cases by op and opset", "", f"| op | {ranges} | refused | unsupported | unchecked |",
                  "|---|" + "---:|" * (len(OPSET_RANGES) + 3)]
        for key in sorted(self.by_op):
            counts = self.by_op[key]
            cells = [str(self.by_opset[key][r]) for r in OPSET_RANGES]
            if key[1] == "(graphs)":
                cells = [str(counts["equal"] + counts["known"] + counts["failed"])] + [""] * 3
            cells += [str(counts[name]) for name in ("refused", "unsupported", "unchecked")]
            lines.append(f"| {key[0] + '.' if key[0] else ''}{key[1]} | {' | '.join(cells)} |")
        lines += ["", f"Ops never compared ({len(ops)}): "
                  + (", ".join((d + "." if d else "") + op for d, op in ops) or "none") + ".",
                  "", f"Attributes never set in a compared case ({len(attributes)}): "
                  + (", ".join(attributes) or "none") + ".", ""]
        if self.unsupported:
            lines += ["## Refused as unsupported", ""]
            lines += [f"- {count} x {detail}" for detail, count in self.unsupported.most_common(120)]
        if self.oracle_crashes:
            lines += ["", "## Oracles that crashed", ""]
            lines += [f"- {count} x {text}" for text, count in self.oracle_crashes.most_common()]
        text = "\n".join(lines) + "\n"
        return text if is_markdown else text.replace("`", "")
