# SPDX-License-Identifier: Apache-2.0
"""The reference page of rondo.hpp: its classes and functions without their bodies, with their comments."""
import re

# What every owner has alike: moves, no copies, an end.
ALIKE = re.compile(r"operator=\(|&&other\)|~\w+\(|= delete;|using Owner::Owner;")


def strip_bodies(lines, indent):
    """Members at an indent without bodies and private parts; comments stay."""
    margin, out, is_public, at = " " * indent, [], True, 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if re.match(r" *(public|private|protected):", line):
            is_public = "public" in line
            continue
        if not line.strip():
            if out and out[-1]:
                out.append("")
            continue
        if not line.startswith(margin) or line[indent] in " }":
            continue  # inside of a body, its end, or an initialiser
        # A member ends where a line of its own does: in ; or {.
        member = [line]
        while not re.search(r"[;{}]$|^ *//", member[-1]) and at < len(lines):
            member.append(lines[at])
            at += 1
        if member[-1].endswith("{") or "{}" in member[-1]:
            while at < len(lines) and not lines[at].startswith(margin + "}"):
                at += 1
            text = re.sub(r"\)( const)?( noexcept)?\s*:\s.*", r")\1\2", "\n".join(member), flags=re.S)
            member = [re.sub(r" *\{\}?$", "", text.rstrip()).rstrip() + ";"]
        text = "\n".join(member)
        if is_public and not ALIKE.search(text):
            out.append(text)
    return out


def tidy(lines):
    """No blank lines one behind another, and no comment whose member was left out."""
    out = []
    for line in lines:
        if not line and (not out or not out[-1]):
            continue
        out.append(line)
    while out and (not out[-1] or out[-1].lstrip().startswith("//")):
        out.pop()
    return out


def make_page(text):
    lines = text.split("\n")
    out = ["# C++ reference", "", "`#include <rondo/rondo.hpp>`: its classes and functions, without bodies, and without the moves and ends "
           "that all owners have. [How it is used](../docs/cpp.md), [the header as it is](../include/rondo/rondo.hpp).", ""]
    comment, at, depth, count = [], 0, 0, 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("namespace detail"):
            depth = 1
        elif line.startswith("}  // namespace detail"):
            depth = 0
        if depth or at < 40 and not line.startswith("// ----"):
            continue
        group = re.match(r"// -+ (.*?) -+$", line)
        if group:
            out += ["## " + group[1][:1].upper() + group[1][1:], ""]
            comment = []
        elif line.startswith("//"):
            comment.append(line[2:].strip())
        elif line.startswith(("template", "class ", "struct ")) and line.strip():
            head = [line]
            while not re.search(r"[{;]$", head[-1]):
                head.append(lines[at])
                at += 1
            found = re.search(r"(?:class|struct) (?:\[\[nodiscard\]\] )?(\w+)[^;]*\{$", "\n".join(head), re.S)
            body = []
            while head[-1].endswith("{") and not lines[at].startswith("}"):
                body.append(lines[at])
                at += 1
            if found:
                count += 1
                out += ["### " + found[1], "", " ".join(comment), "", "```cpp"]
                out += head + tidy(strip_bodies(body, 4)) + ["};", "```", ""]
            comment = []
        elif not line.strip():
            comment = []
    if count < 10:
        raise SystemExit("tools/site: only %d classes were found in rondo.hpp" % count)
    return "\n".join(out) + "\n"
