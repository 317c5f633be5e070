# SPDX-License-Identifier: Apache-2.0

"""One case through the oracles and through Rondo, and what differs."""
import dataclasses
import tomllib

import numpy as np

import compare
import oracles
import values
from case import make_model
from library import F16, F32, Refused


@dataclasses.dataclass
class Finding:
    """One difference. kind: refused, values, shape, dtype, replay, modes, crash, hang."""
    kind: str
    oracle: str
    detail: str
    output: str = ""
    bad: object = None
    got: object = None
    want: object = None
    known: str = ""


@dataclasses.dataclass
class Result:
    """outcome: equal, known, failed, refused (by all), unsupported, unchecked (no oracle ran it)."""
    outcome: str
    findings: list = dataclasses.field(default_factory=list)
    detail: str = ""
    replayed: bool = False
    compared: tuple = ()  # the oracles that gave a result to compare with
    expected: object = None


def is_within(finding, relative):
    """All within a part of the output's largest: the oracle computed in a narrower type."""
    got, want = finding.got.astype(np.float64), finding.want.astype(np.float64)
    largest = np.max(np.abs(want[np.isfinite(want)]), initial=0.0)
    return bool(np.all(np.abs(got - want)[finding.bad] <= relative * largest))


def take_numbers(array, where):
    """The numbers that differ; None where there are none: strings, shapes."""
    return None if where is None or array.dtype == values.STRING else array[where].astype(np.float64)


class KnownDifferences:
    """The named differences of a file; see the text at its head."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.entries = tomllib.load(file).get("difference", [])
        for entry in self.entries:
            entry["code"] = compile(entry.get("when", "True"), entry["name"], "eval")

    def find(self, case, finding, is_backed=False):
        """The name of the difference, or nothing. `is_backed`: the other oracle agrees with Rondo."""
        for entry in self.entries:
            if finding.oracle != entry["oracle"] or finding.kind not in entry.get("kinds", ["values"]):
                continue
            for node in case.nodes:
                if node.op in entry["ops"] and self.holds(entry, case, node, finding,
                                                                          is_backed):
                    return entry["name"]
        return ""

    def holds(self, entry, case, node, finding, is_backed):
        arrays = [case.get_array(name) for name in node.inputs]
        given = [a for a in case.get_arrays() if a.dtype in compare.FLOATS]
        facts = {
            "np": np, "op": node.op, "opset": case.opset, "x": arrays, "case": case,
            "attr": lambda name, default=None: node.attrs.get(name, default),
            "dtype": None if not arrays or arrays[0] is None else arrays[0].dtype.name,
            "has_nan": any(np.isnan(a.astype(np.float64)).any() for a in given),
            "has_inf": any(np.isinf(a.astype(np.float64)).any() for a in given),
            "has_empty": any(a.size == 0 for a in case.get_arrays()),
            "is_single": len(case.nodes) == 1, "is_backed": is_backed, "detail": finding.detail,
            "output": node.outputs.index(finding.output) if finding.output in node.outputs else -1,
            "got": finding.got, "want": finding.want, "bad": finding.bad,
            "got_bad": take_numbers(finding.got, finding.bad),
            "want_bad": take_numbers(finding.want, finding.bad),
        }
        facts["within"] = lambda relative: is_within(finding, relative)
        try:
            # One scope, so that comprehensions inside see the facts too.
            return bool(eval(entry["code"], facts))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return False


def pair_arrays(case, got, want):
    """Output, place in it, and the arrays there; one of them is None where the other has none."""
    for output in case.outputs:
        ours, theirs = values.flatten(got[output]), values.flatten(want[output])
        for place in {**ours, **theirs}:
            yield output, output + place, ours.get(place), theirs.get(place)


def compare_outputs(case, oracle, got, want, is_half_mode):
    findings = []
    for output, name, g, w in pair_arrays(case, got, want):
        if g is None or w is None:
            findings.append(Finding("shape", oracle, f"{name} is there in one alone", output))
            continue
        if g.shape != w.shape:
            findings.append(Finding("shape", oracle, f"{name}: {g.shape} for {w.shape}", output))
            continue
        if g.dtype != w.dtype:
            # NumPy code widens here and there; ONNX Runtime's types are the standard's.
            if oracle != "reference" or compare.get_class(g.dtype) != compare.get_class(w.dtype):
                findings.append(Finding("dtype", oracle, f"{name}: {g.dtype} for {w.dtype}", output))
                continue
            with np.errstate(all="ignore"):
                w = w.astype(g.dtype)
        if case.is_drawn:
            continue
        bad = compare.find_bad(g, w, case.tolerance, case.floor, is_half_mode)
        if bad.any():
            text = (f"{name}: {int(bad.sum())} of {bad.size} differ, first "
                    f"{g[bad].flat[0]} for {w[bad].flat[0]}")
            findings.append(Finding("values", oracle, text, output, bad, g, w))
    return findings


def perturb(case, rng):
    """The case with its float inputs moved by a few units in the last place."""
    moved = case.copy()
    for arrays in (moved.feeds, moved.constants):
        for name, array in arrays.items():
            if isinstance(array, np.ndarray) and array.dtype in compare.FLOATS:
                unit = np.finfo(np.float32).eps if array.itemsize >= 4 else 2.0 ** -8
                noise = rng.choice([-2.0, -1.0, 1.0, 2.0], array.shape) * unit
                arrays[name] = np.asarray(array * (1.0 + noise)).astype(array.dtype)
    return moved


def is_ill_conditioned(case, finding):
    """Whether the oracle's own result moves as much, where the inputs move by a rounding error: a
    graph that cancels, or steps (Floor) next to a step, says nothing about who is right."""
    rng = np.random.default_rng([case.seed, case.index, 1])
    oracle = finding.oracle if finding.oracle in oracles.NAMES else "onnxruntime"
    settled = ~finding.bad
    with np.errstate(all="ignore"):
        difference = np.abs(finding.got.astype(np.float64) - finding.want.astype(np.float64))
        for _ in range(6):
            moved = perturb(case, rng)
            other = oracles.run_oracle(oracle, make_model(moved), moved)
            if not isinstance(other, dict) or other[finding.output].shape != finding.want.shape:
                continue
            change = np.abs(other[finding.output].astype(np.float64) - finding.want.astype(np.float64))
            appeared = np.isfinite(other[finding.output].astype(np.float64)) != \
                np.isfinite(finding.want.astype(np.float64))
            settled |= (difference <= 30.0 * change) | appeared
    return bool(settled.all())


# Of one op alone, only these magnify rounding without bounds: a spread divides by next to nothing.
CANCELS = ("GroupNormalization", "InstanceNormalization", "LayerNormalization", "MeanVarianceNormalization")


class Checker:
    def __init__(self, library, known, uses_half=False, note_stage=lambda stage: None):
        self.library = library
        self.known = known
        self.dtype = F16 if uses_half else F32
        self.note_stage = note_stage

    def check(self, case):
        model = make_model(case)
        wanted = {}
        for name in oracles.NAMES:
            self.note_stage(name)
            wanted[name] = oracles.run_oracle(name, model, case)
        self.note_stage("rondo")
        result = self.judge(case, model.SerializeToString(), wanted)
        doubted = {(f.oracle, f.output) for f in result.findings}
        for finding in result.findings:
            others = [name for name in result.compared if name != finding.oracle]
            is_backed = finding.oracle in oracles.NAMES and others != [] and \
                all((name, finding.output) not in doubted for name in others)
            finding.known = self.known.find(case, finding, is_backed)
        if len(case.nodes) > 1:
            self.excuse_graph(case, result)
        elif case.nodes[0].op in CANCELS:
            self.excuse_cancelling(case, result)
        if result.findings:
            is_known = all(finding.known for finding in result.findings)
            result.outcome = "known" if is_known else "failed"
        return result

    def excuse_graph(self, case, result):
        """In a graph the small habits of an oracle add up: one that stands alone against Rondo and
        the other proves nothing, and neither does a graph that magnifies rounding."""
        doubted = {(f.oracle, f.output) for f in result.findings if f.oracle in oracles.NAMES}
        for finding in result.findings:
            others = [name for name in result.compared if name != finding.oracle]
            if finding.known or finding.oracle not in oracles.NAMES:
                continue
            if others and all((name, finding.output) not in doubted for name in others):
                finding.known = "oracle-alone-on-graph"
        self.excuse_cancelling(case, result)

    def excuse_cancelling(self, case, result):
        for finding in result.findings:
            if not finding.known and finding.kind == "values" and finding.want.dtype in compare.FLOATS and \
                    is_ill_conditioned(case, finding):
                finding.known = "ill-conditioned"

    def judge(self, case, model, wanted):
        accepted = tuple(n for n in oracles.NAMES if isinstance(wanted[n], dict))
        expected = wanted[accepted[0]] if accepted else None
        try:
            results, replayed = self.library.run(model, case.feeds, case.outputs, 3, self.dtype)
        except Refused as refusal:
            if refusal.status == "UNSUPPORTED":
                return Result("unsupported", detail=refusal.message, expected=expected)
            if not accepted:
                return Result("refused", detail=refusal.message)
            findings = [Finding("refused", name, str(refusal)) for name in accepted]
            return Result("failed", findings, str(refusal), expected=expected)
        findings = []
        for name in accepted:
            findings += compare_outputs(case, name, results[0], wanted[name], self.dtype == F16)
        findings += self.compare_modes(case, model, results)
        detail = "" if accepted else wanted["onnxruntime"]
        return Result("equal" if accepted else "unchecked", findings, detail, replayed, accepted,
                      expected)

    def compare_modes(self, case, model, results):
        """Replays equal the first run bit for bit; the plain references agree with the kernels."""
        findings = []
        for turn, result in enumerate(results[1:], 2):
            for output, name, first, again in pair_arrays(case, results[0], result):
                if not case.is_drawn and not compare.is_same(first, again):
                    findings.append(Finding("replay", "eager", f"run {turn} differs in {name}", output))
        if self.dtype == F32 and case.index % 3 == 0 and not case.is_drawn:
            try:
                plain, _ = self.library.run(model, case.feeds, case.outputs, 1, op_by_op=True)
            except Refused as refusal:
                return findings + [Finding("modes", "plain", str(refusal))]
            for finding in compare_outputs(case, "plain", results[0], plain[0], False):
                finding.detail = "optimised against op by op: " + finding.detail
                findings.append(finding)
        return findings
