#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes rondo/_raw.py, the declarations of the C API for ctypes, from the public headers.

usage: generate_raw.py [--check] [OUTPUT]     default: rondo/_raw.py beside this script

The headers are preprocessed by cc (or $CC), so that macros count as the compiler sees them, and what
remains is parsed: the headers use a small part of C. A declaration that is not understood is an
error. --check writes nothing, and fails when the file is not what would be written.
"""
import ast
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(os.path.dirname(HERE), "include")
HEADER = "rondo/models.h"

PLAIN = {
    "void": None, "char": "c_char", "int": "c_int", "_Bool": "c_bool", "float": "c_float",
    "double": "c_double", "int8_t": "c_int8", "uint8_t": "c_uint8", "int16_t": "c_int16",
    "uint16_t": "c_uint16", "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64",
    "uint64_t": "c_uint64", "size_t": "c_size_t",
}
TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|(0[xX][0-9a-fA-F]+|\d+)[uUlL]*|(\.\.\.|<<|.))", re.S)


def preprocess(*flags):
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-std=c17", "-E", *flags, "-I" + INCLUDE, "-x", "c", "-"]
    text = f'#include "{HEADER}"\n'
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def own_lines(text):
    """The lines that come from the library's own headers."""
    keep, lines = False, []
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            keep = "/rondo/" in marker.group(1)
        elif keep:
            lines.append(line)
    return "\n".join(lines)


def tokenise(text):
    tokens, place = [], 0
    while text[place:].strip():
        match = TOKEN.match(text, place)
        tokens.append(match.group(1) or match.group(2) or match.group(3))
        place = match.end()
    return tokens


class Parser:
    def __init__(self, tokens):
        self.tokens, self.place = tokens, 0
        self.constants, self.types, self.functions = {}, [], []
        self.structs, self.opaque, self.aliases, self.callbacks = {}, set(), {}, set()

    def peek(self, ahead=0):
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else None

    def take(self, expected=None):
        token = self.peek()
        if token is None or (expected is not None and token != expected):
            near = " ".join(self.tokens[max(0, self.place - 12):self.place + 6])
            raise SystemExit(f"generate_raw.py: {expected} was expected, not {token}, near: {near}")
        self.place += 1
        return token

    def accept(self, token):
        if self.peek() == token:
            self.place += 1
            return True
        return False

    def skip_attributes(self):
        while self.accept("__attribute__"):
            depth = 0
            while True:
                depth += {"(": 1, ")": -1}.get(self.take(), 0)
                if depth == 0:
                    break

    # ---- types -------------------------------------------------------------------------------

    def parse_base(self):
        while self.peek() in ("const", "extern", "struct"):
            self.take()
        name = self.take()
        while self.accept("const"):
            pass
        return name

    def resolve(self, name, stars):
        """The ctypes expression of `name` followed by `stars` asterisks."""
        if stars and name == "char":
            name, stars = "c_char_p", stars - 1
        elif stars and (name == "void" or name in self.opaque):
            name, stars = "c_void_p", stars - 1
        elif name in PLAIN:
            name = PLAIN[name]
        elif name in self.aliases:
            name = self.aliases[name]
        elif name not in self.structs and name not in self.callbacks:
            raise SystemExit(f"generate_raw.py: the type {name} is not known")
        for _ in range(stars):
            name = f"POINTER({name})"
        return str(name)

    def parse_declarator(self, base):
        """One name with what surrounds it; gives (name, type, is_array)."""
        stars = 0
        while self.peek() in ("*", "const", "restrict"):
            stars += self.take() == "*"
        if self.peek() == "(" and self.peek(1) == "*":
            self.take(), self.take()
            name = self.take()
            self.take(")")
            arguments = self.parse_arguments()
            result = self.resolve(base, stars)
            return name, f"CFUNCTYPE({', '.join([result, *(t for _, t in arguments)])})", False
        name = self.take() if re.match(r"[A-Za-z_]", self.peek() or "") else ""
        lengths = []
        while self.accept("["):
            lengths.append(self.parse_constant(("]",)))
            self.take("]")
        kind = "c_char" if lengths and base == "char" and not stars else self.resolve(base, stars)
        for length in reversed(lengths):
            kind = f"{kind} * {length}"
        return name, kind, bool(lengths)

    def parse_arguments(self):
        self.take("(")
        arguments = []
        if self.peek() == "void" and self.peek(1) == ")":
            self.take()
        while not self.accept(")"):
            if arguments:
                self.take(",")
            if self.accept("..."):
                raise SystemExit("generate_raw.py: variable arguments are not understood")
            name, kind, is_array = self.parse_declarator(self.parse_base())
            if is_array:
                kind = f"POINTER({kind.rsplit(' * ', 1)[0]})"
            arguments.append((name, kind))
        return arguments

    def parse_constant(self, ends):
        """A constant expression up to one of `ends`, which is left."""
        text, depth = "", 0
        while depth or self.peek() not in ends:
            token = self.take()
            depth += {"(": 1, ")": -1}.get(token, 0)
            text += str(self.constants.get(token, token))
        return evaluate(text)

    # ---- declarations ------------------------------------------------------------------------

    def parse_enum(self):
        self.take("enum")
        self.take("{")
        value = -1
        while not self.accept("}"):
            name = self.take()
            value = self.parse_constant((",", "}")) if self.accept("=") else value + 1
            self.constants[name] = value
            self.accept(",")
        self.take(";")

    def parse_compound(self, kind):
        tag = self.take()
        if not self.accept("{"):
            name = self.take()
            self.take(";")
            if name not in self.structs:
                self.opaque.add(name)
            return
        fields = []
        self.structs[tag] = kind
        while not self.accept("}"):
            base = self.parse_base()
            while True:
                name, type_, _ = self.parse_declarator(base)
                fields.append((name, type_))
                if not self.accept(","):
                    break
            self.take(";")
        name = self.take()
        self.take(";")
        if name != tag:
            raise SystemExit(f"generate_raw.py: {tag} and {name} are two names of one struct")
        self.types.append((name, kind, fields))

    def parse_typedef(self):
        self.take("typedef")
        if self.peek() in ("struct", "union"):
            kind = self.take()
            if self.peek(1) in ("{",) or self.peek(2) == ";":
                return self.parse_compound(kind)
        base = self.parse_base()
        name, kind, _ = self.parse_declarator(base)
        self.take(";")
        if kind.startswith("CFUNCTYPE"):
            self.callbacks.add(name)
            self.types.append((name, "callback", kind))
        else:
            self.aliases[name] = kind
        return None

    def parse_function(self):
        self.skip_attributes()
        base = self.parse_base()
        self.skip_attributes()
        stars = 0
        while self.accept("*"):
            stars += 1
        self.skip_attributes()
        name = self.take()
        arguments = self.parse_arguments()
        self.skip_attributes()
        self.take(";")
        kinds = ["c_void_p" if kind in self.callbacks else kind for _, kind in arguments]
        self.functions.append((name, self.resolve(base, stars), kinds))

    def parse(self):
        while self.peek() is not None:
            if self.accept(";"):
                continue
            if self.peek() == "typedef":
                self.parse_typedef()
            elif self.peek() == "enum":
                self.parse_enum()
            else:
                self.parse_function()


OPERATIONS = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.LShift: lambda a, b: a << b, ast.BitOr: lambda a, b: a | b,
}


def evaluate(text):
    def walk(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -walk(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            return OPERATIONS[type(node.op)](walk(node.left), walk(node.right))
        raise SystemExit(f"generate_raw.py: {text} is no constant that is understood")
    return walk(ast.parse(text.strip(), mode="eval").body)


def read_macros():
    """Macros of the library that stand for numbers."""
    found = {}
    for line in preprocess("-dM").splitlines():
        match = re.match(r"#define (RONDO_\w+) (.+)$", line)
        if match:
            found[match.group(1)] = re.sub(r"U?INT64_C\((\w+)\)", r"\1", match.group(2))
    for _ in range(3):
        for name, text in found.items():
            found[name] = re.sub(r"RONDO_\w+", lambda m: found.get(m.group(0), m.group(0)), text)
    return {name: int(evaluate(text)) for name, text in sorted(found.items())
            if re.fullmatch(r"[0-9xXa-fA-F()+*<| -]+", text)}


def read_maps():
    """The texts of lists that the headers keep as X macros: {value: (name, text, ...)}."""
    maps = {}
    folder = os.path.join(INCLUDE, "rondo")
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), encoding="utf-8") as stream:
            text = stream.read()
        for name, body in re.findall(r"#define (RONDO_\w+)_MAP\(X\)((?:.*\\\n)*.*)", text):
            body = body.replace("\\\n", " ")
            rows = {}
            for entry in re.findall(r'X\(((?:[^()"]|"[^"]*"|\([^()]*\))*)\)', body):
                short, value = (part.strip() for part in entry.split(",")[:2])
                texts = ["".join(re.findall(r'"([^"]*)"', part))
                         for part in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', entry) if '"' in part]
                rows[int(value)] = (short, *texts)
            maps[name] = rows
    return maps


def write(parser, macros, maps):
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        '"""The C API for ctypes. Written by generate_raw.py from the headers: do not edit."""',
        "# fmt: off",
        "# ruff: noqa",
        "from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_bool, c_char, c_char_p, c_double,",
        "                    c_float, c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint8,",
        "                    c_uint16, c_uint32, c_uint64, c_void_p)",
        "",
    ]
    for name, value in {**parser.constants, **macros}.items():
        lines.append(f"{name} = {value}")
    for name, rows in maps.items():
        lines += ["", f"{name}_TEXTS = {{"]
        lines += [f"    {value}: {texts!r}," for value, texts in rows.items()] + ["}"]
    for name, kind, content in parser.types:
        if kind == "callback":
            lines += ["", f"{name} = {content}"]
            continue
        base = {"struct": "Structure", "union": "Union"}[kind]
        lines += ["", "", f"class {name}({base}):", "    pass", "", "", f"{name}._fields_ = ["]
        lines += [f'    ("{field}", {type_}),' for field, type_ in content] + ["]"]
    lines += ["", "# What a function gives (None: nothing), and what it takes.", "FUNCTIONS = {"]
    for name, result, kinds in parser.functions:
        lines.append(f'    "{name}": ({result}, ({"".join(kind + ", " for kind in kinds).rstrip()})),')
    return "\n".join([*lines, "}", ""])


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    output = arguments[0] if arguments else os.path.join(HERE, "rondo", "_raw.py")
    parser = Parser(tokenise(own_lines(preprocess())))
    parser.parse()
    text = write(parser, read_macros(), read_maps())
    if "--check" in sys.argv[1:]:
        with open(output, encoding="utf-8") as stream:
            if stream.read() != text:
                sys.exit(f"{output} is not what the headers say: run python/generate_raw.py")
        return
    with open(output, "w", encoding="utf-8") as stream:
        stream.write(text)


if __name__ == "__main__":
    main()
