# SPDX-License-Identifier: Apache-2.0
"""The reference page of the Python package, from its sources: nothing is imported."""
import ast
import os
import re


def signature(node, name=None):
    arguments = ast.unparse(node.args)
    for first in ("self, ", "cls, ", "self", "cls"):
        if arguments.startswith(first):
            arguments = arguments[len(first):]
            break
    returns = " -> " + ast.unparse(node.returns) if node.returns else ""
    text = "%s(%s)%s" % (name or node.name, arguments, "" if name else returns)
    if len(text) <= 90:
        return text
    depth, pieces = 0, []  # one argument a line
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        pieces.append("(\n    " if letter == "(" and depth == 1 and i == text.index("(") else letter)
        if letter == "," and depth == 1:
            pieces.append("\n   ")
    return "".join(pieces)


def is_public(name):
    return not name.startswith("_")


def describe(node, names=()):
    """A docstring; its lines `name   text` are a list. Words of code stay words to Markdown."""
    out = []
    for line in (ast.get_docstring(node) or "").split("\n"):
        found = re.match(r"(\w+(?:, \w+)*)( +)(\S.*)", line)
        is_in_list = bool(out) and out[-1].startswith(("- ", "  "))
        is_argument = found and (len(found[2]) > 1 or is_in_list and found[1] in names)
        text = (found[3] if is_argument else line).replace("<", "\\<").replace("*", "\\*")
        if is_argument and not is_in_list:
            out.append("")
        out.append("- `%s`: %s" % (found[1], text) if is_argument else
                   "  " + text.strip() if line.startswith("  ") else text)
    return out


def write_class(node, out):
    body = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    init = next((n for n in body if n.name == "__init__"), None)
    bases = ", ".join(ast.unparse(b) for b in node.bases if is_public(ast.unparse(b).split(".")[-1]))
    out += ["## " + node.name, "", "```{index} single: rondo.%s" % node.name, "```", "", "```python"]
    out += [signature(init, node.name) if init else "class %s%s" % (node.name, "(%s)" % bases if bases else "")]
    out += ["```", ""] + describe(node, [a.arg for a in init.args.args + init.args.kwonlyargs] if init else ()) + [""]
    for method in body:
        if not is_public(method.name):
            continue
        is_property = any(ast.unparse(d) == "property" for d in method.decorator_list)
        if any(ast.unparse(d).endswith(".setter") for d in method.decorator_list):
            continue
        returns = ": " + ast.unparse(method.returns) if is_property and method.returns else ""
        out += ["```python", method.name + returns if is_property else signature(method), "```", ""]
        out += describe(method) + [""]


def make_page(folder):
    modules = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".py") and file != "_raw.py":
            with open(os.path.join(folder, file), encoding="utf-8") as stream:
                modules[file] = ast.parse(stream.read())
    public = next(ast.literal_eval(n.value) for n in modules["__init__.py"].body
                  if isinstance(n, ast.Assign) and n.targets[0].id == "__all__")
    found = {n.name: n for tree in modules.values() for n in tree.body
             if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and n.name in public}
    for tree in modules.values():  # another name of a class
        found.update({n.targets[0].id: found[n.value.id] for n in tree.body if isinstance(n, ast.Assign)
                      and isinstance(n.targets[0], ast.Name) and isinstance(n.value, ast.Name)
                      and n.targets[0].id in public and n.value.id in found})
    missing = set(public) - set(found)
    if missing:
        raise SystemExit("tools/site: python/rondo exports what it does not define: %s" % sorted(missing))
    out = ["# Python reference", "",
           "Made from the sources of [python/rondo](../python/rondo/). [How it is used](../docs/python.md).", ""]
    errors = []
    for name in sorted(public, key=str.lower):
        node = found[name]
        if node.name != name:
            out += ["## " + name, "", "Another name of [%s](#%s)." % (node.name, node.name.lower()), ""]
        elif isinstance(node, ast.ClassDef) and name.endswith("Error") and name not in ("RondoError", "CaptureError"):
            text = (ast.get_docstring(node) or "").split("\n")[0].replace("*", "\\*")
            bases = ", ".join(ast.unparse(b) for b in node.bases)
            errors.append("| `%s` | %s | %s |" % (name, bases, text))
        elif isinstance(node, ast.ClassDef):
            write_class(node, out)
        else:
            out += ["## " + name, "", "```{index} single: rondo.%s" % name, "```", "", "```python",
                    signature(node), "```", ""] + describe(node) + [""]
    out += ["## Errors", "", "| exception | is also | when |", "|---|---|---|"] + errors
    return "\n".join(out) + "\n"
