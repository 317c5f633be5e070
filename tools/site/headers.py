# SPDX-License-Identifier: Apache-2.0
"""The reference pages of the C headers: their comments and declarations as Markdown.

The rules of the comments are those that tools/doxygen_filter.awk follows for the man pages."""
import re

LABELS = "Shapes|Units|Returns|Errors|Ownership|Threads|Capture|Cost|Source"
FENCE = "\f"  # stands before a line of the experimental fence
EXPERIMENTAL = ("*Experimental: there where the program defines `RONDO_EXPERIMENTAL`; "
                "may change in any release.*")
NAME = re.compile(r"\b(?:rondo|RONDO)_\w+\b")


def is_noise(line):
    return bool(re.match(r"#(ifndef|ifdef|endif|include|if |else|undef|pragma)|#define RONDO_\w+_H\b"
                         r"|RONDO_EXTERN_C_|// clang-format|// SPDX-License", line))


def find_name(code):
    """The name that a declaration gives, as people look for it."""
    text = re.sub(r"//[^\n]*", "", code)
    for pattern in (r"#define (\w+)", r"typedef struct \w+ \{.*\} (\w+);", r"typedef [^;{]*\(\*(\w+)\)\(",
                    r"typedef [^;({]*?(\w+);", r"\b(rondo_\w+)\(", r"\b(RONDO_\w+)"):
        found = re.search(pattern, text, re.S)
        if found:
            return found.group(1)
    return None


def parse(text):
    """(kind, comment lines, code lines) in order; kinds: top, group, note, declaration, experimental."""
    lines, is_fenced = [], False
    for line in text.split("\n"):  # what the fence holds is marked, one declaration after the other
        is_fenced = is_fenced and not re.match(r"#endif  // RONDO_EXPERIMENTAL", line)
        if line.startswith("#if defined(RONDO_EXPERIMENTAL)"):
            is_fenced = True
        elif not is_noise(line):
            lines.append(FENCE + line if is_fenced and "RONDO_API" in line else line)
    items, comment, at = [], [], 0

    def give_comment():
        if not comment:
            return
        kind = "top" if not items else "group" if comment[0].startswith(" ---- ") else "note"
        items.append((kind, comment[:], []))
        comment.clear()

    while at < len(lines):
        line = lines[at]
        if line.startswith("//"):
            if line.startswith("// ---- "):
                give_comment()
            comment.append(line[2:])
            at += 1
        elif not line.strip():
            give_comment()
            at += 1
        else:
            code, depth = [], 0
            while at < len(lines) and (depth or lines[at].strip() and not (code and lines[at].startswith("//"))):
                bare = re.sub(r"//.*", "", lines[at])
                depth += bare.count("{") + bare.count("(") - bare.count("}") - bare.count(")")
                code.append(lines[at])
                at += 1
            if any(line.startswith(FENCE) for line in code):
                code = [line.replace(FENCE, "") for line in code]
                items.append(("experimental", comment[:], code))
            else:
                items.append(("declaration", comment[:], code))
            comment.clear()
    give_comment()
    return items


class Writer:
    """Markdown of comments; `homes` says on which page each name stands."""

    def __init__(self, homes, headers):
        self.homes, self.headers, self.labels = homes, headers, set()

    def escape(self, text):
        parts = re.split(r"(`[^`]*`)", text)
        return "".join(part if part.startswith("`") else self.link(
            re.sub(r"([*<>\[\]#|{}])", r"\\\1", part)) for part in parts)

    def link(self, text):
        text = NAME.sub(lambda m: "{ref}`%s <c-%s>`" % (m[0], m[0]) if m[0] in self.homes else m[0], text)
        return re.sub(r"\brondo/(\w+)\.h\b", lambda m: "{doc}`rondo/%s.h </reference/c/%s>`" % (m[1], m[1])
                      if m[1] in self.headers else m[0], text)

    def comment(self, lines):
        out, was_blank, in_code, in_list, in_arguments = [], True, False, False, False
        for line in lines:
            rest = line.strip()
            indent = len(line) - len(line.lstrip())
            if not rest:
                if not in_code:
                    in_list = in_arguments = False
                out.append("")
                was_blank = True
                continue
            if indent >= 3 and (in_code or was_blank) and not rest.startswith("- ") and not in_list:
                if not in_code:
                    out += ["", "```c"]
                in_code, was_blank = True, False
                out.append(line[3:])
                continue
            if in_code:
                while out and not out[-1]:
                    out.pop()
                out += ["```", ""]
                in_code = False
            label = re.match(r"(%s): *(.*)" % LABELS, rest)
            argument = re.match(r"([a-z_0-9]+)  +(\S.*)", rest)
            if label:
                out += ["", "**%s**: %s" % (label[1], self.escape(label[2]))]
                in_list = in_arguments = False
            elif indent == 1 and argument and (was_blank or in_arguments):
                out.append("- `%s`: %s" % (argument[1], self.escape(argument[2])))
                in_list = in_arguments = True
            elif rest.startswith("- "):
                out += ([""] if not in_list else []) + ["- " + self.escape(rest[2:])]
                in_list = True
            elif re.search(r"  (Threads|Capture): ", rest):
                at = re.search(r"  (Threads|Capture): ", rest)
                out += [self.escape(rest[:at.start()]), "", "**%s**: %s" % (at[1], self.escape(rest[at.end():]))]
            else:
                out.append(("  " if in_list else "") + self.escape(rest))
            was_blank = False
        if in_code:
            out.append("```")
        return out

    def page(self, name, items):
        out, seen, in_group = ["# rondo/%s.h" % name, ""], set(), False
        for kind, comment, code in items:
            if kind == "top":
                first = re.sub(r"^ rondo/\w+\.h — ", " ", comment[0])
                out += self.comment([first[:2].upper() + first[2:]] + comment[1:])
                out += ["", "```c", "#include <rondo/%s.h>" % name, "```"]
            elif kind == "group":
                in_group = True
                title = comment[0].strip(" -")
                out += ["", "## " + self.escape(title[:1].upper() + title[1:]).replace("`", ""), ""]
                out += self.comment(comment[1:])
            elif kind == "note":
                out += [""] + self.comment(comment)
            else:
                title = find_name("\n".join(code))
                out.append("")
                if title and title not in seen:
                    seen.add(title)
                    names = [n for n in declared(code) if self.homes.get(n) == name and n not in self.labels]
                    self.labels.update(names)
                    out += ["(c-%s)=" % n for n in names]
                    out += ["%s %s" % ("###" if in_group else "##", title.replace("_", "\\_")), ""]
                    out += ["```{index} %s" % title, "```", ""]
                out += ["```c"] + show(code) + ["```", ""]
                out += self.comment(comment)
                if kind == "experimental":
                    out += ["", EXPERIMENTAL]
            out.append("")
        return "\n".join(out) + "\n"


def show(code):
    """A declaration without its macros; a prototype is laid out anew, as they took width."""
    if not any("RONDO_API" in line for line in code):
        return code
    text = re.sub(r"RONDO_API |RONDO_MUST_USE ", "", " ".join(" ".join(code).split()))
    out = []
    for prototype in text.split("; "):
        prototype = prototype.rstrip(";") + ";"
        if len(prototype) > 90:
            head, arguments = prototype.split("(", 1)
            prototype = head + "(\n    " + re.sub(r", (?![^()]*\))", ",\n    ", arguments[:-2]) + ");"
        out += prototype.split("\n")
    return out


def declared(code):
    """Names that a declaration is the home of: its own, and the values of an enum."""
    text = re.sub(r"//[^\n]*", "", "\n".join(code))
    names = [find_name("\n".join(code))] if find_name("\n".join(code)) else []
    for body in re.findall(r"enum \w*\s*\{(.*?)\}", text, re.S):
        names += re.findall(r"\b(RONDO_\w+)", body)
    return list(dict.fromkeys(names))


def make_pages(texts):
    """texts: {header name: text}; gives {header name: Markdown}."""
    parsed = {name: parse(text) for name, text in texts.items()}
    homes = {}
    for name, items in parsed.items():
        for kind, _, code in items:
            if code:
                for word in declared(code):
                    # A type that is only announced, for the sake of a pointer, has its home elsewhere.
                    is_announced = re.match(r"typedef struct (\w+) \1;", code[0]) and "//" in code[0]
                    if word not in homes and not is_announced:
                        homes[word] = name
    writer = Writer(homes, texts)
    return {name: writer.page(name, items) for name, items in parsed.items()}
