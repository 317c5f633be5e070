#!/usr/bin/env python3
"""Writes tools/onnx_versions.txt: every op of ONNX's own domains, its versions, and what each changed.

usage: onnx_versions.py --write      the table of the onnx package that is installed (newest: pip
                                     install -U onnx, in a virtual environment outside the tree)
       onnx_versions.py --compare    says where that package and the table differ; 1 where they do

A line is `domain name version[:change,...] ...`, oldest version first. A change is one of: types
(element types are more or fewer), inputs, outputs (count, names or which may be left out), +NAME,
-NAME, ~NAME (an attribute is new, gone, or has another type, default or need), deprecated, text (the
schema is as before: what changed stands in its description, which must be read). test_op_documentation
holds the registry against the table.
SPDX-License-Identifier: Apache-2.0
"""
import difflib
import pathlib
import sys

import onnx
from onnx import defs

TABLE = pathlib.Path(__file__).with_name("onnx_versions.txt")
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")


def describe_ports(ports):
    return [(port.name, port.option, port.min_arity) for port in ports]


def describe_attributes(schema):
    return {
        name: (attribute.type, attribute.required, attribute.default_value.SerializeToString())
        for name, attribute in schema.attributes.items()
    }


# The types of each port in turn: names of constraints change without meaning anything.
def list_types(schema):
    named = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    ports = list(schema.inputs) + list(schema.outputs)
    return [named.get(port.type_str, frozenset([port.type_str])) for port in ports]


def compare_schemas(before, after):
    changes = []
    if after.deprecated and not before.deprecated:
        return ["deprecated"]
    old, new = describe_ports(before.inputs), describe_ports(after.inputs)
    changes += ["inputs"] if old != new else []
    old, new = describe_ports(before.outputs), describe_ports(after.outputs)
    changes += ["outputs"] if old != new else []
    old, new = describe_attributes(before), describe_attributes(after)
    changes += [f"+{name}" for name in sorted(new.keys() - old.keys())]
    changes += [f"-{name}" for name in sorted(old.keys() - new.keys())]
    changes += [f"~{name}" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    changes += ["types"] if list_types(before) != list_types(after) else []
    return changes or ["text"]


def make_table():
    ops = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS:
            ops.setdefault((schema.domain or "ai.onnx", schema.name), []).append(schema)
    newest = ", ".join(f"{d or 'ai.onnx'} {defs.onnx_opset_version() if d == '' else v}"
                       for d, v in sorted((d, max(s.since_version for (o, _), l in ops.items()
                                                  for s in l if o == (d or "ai.onnx")))
                                          for d in DOMAINS))
    lines = [
        "# Made by tools/onnx_versions.py --write from ONNX's schemas (Apache-2.0).",
        f"# onnx {onnx.__version__}: {newest}, IR {onnx.IR_VERSION}",
    ]
    for (domain, name), schemas in sorted(ops.items()):
        schemas.sort(key=lambda schema: schema.since_version)
        words = [str(schemas[0].since_version)]
        for before, after in zip(schemas, schemas[1:]):
            words.append(f"{after.since_version}:{','.join(compare_schemas(before, after))}")
        lines.append(f"{domain} {name} {' '.join(words)}")
    return lines


def main():
    lines = make_table()
    if sys.argv[1:] == ["--write"]:
        TABLE.write_text("\n".join(lines) + "\n")
        return 0
    if sys.argv[1:] != ["--compare"]:
        sys.exit(__doc__)
    known = TABLE.read_text().splitlines()
    difference = list(difflib.unified_diff(known, lines, "the table", f"onnx {onnx.__version__}",
                                           lineterm="", n=0))
    print("\n".join(difference) if difference else "the table and the package agree")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
