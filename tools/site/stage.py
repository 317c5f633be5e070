# SPDX-License-Identifier: Apache-2.0
"""Lays out what Sphinx reads: the documents of the tree with their links turned to pages of the site,
the references made from headers, Python sources and help texts, and the plots of measured results.

    python3 tools/site/stage.py FOLDER      in the root of the tree; FOLDER is made anew

docs/site/ holds what is for the site alone. All else is where it was, and stays the one source."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp_reference  # noqa: E402
import headers  # noqa: E402
import plots  # noqa: E402
import python_reference  # noqa: E402

PROJECT = {"README.md": "project/readme.md", "CHANGELOG.md": "project/changelog.md",
           "CONTRIBUTING.md": "project/contributing.md", "SECURITY.md": "project/security.md",
           "findings/README.md": "project/findings.md"}
LEXERS = {".c": "c", ".h": "c", ".cu": "cuda", ".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".sh": "sh",
          ".rs": "rust", ".toml": "toml", ".awk": "awk"}
COMMANDS = "devices run bench profile test inspect tune train compare completion".split()


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


class Stage:
    def __init__(self, folder):
        self.folder = folder
        self.documents = {}   # path in the tree: page
        self.wanted = []      # other files and folders that pages link to
        self.pages = set()

    def write(self, page, text):
        path = os.path.join(self.folder, page)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        self.pages.add(page)

    def place(self, path):
        """The page of a file or folder of the tree."""
        if path in self.documents:
            return self.documents[path]
        if path.rstrip("/") == "bench/results":
            return "results/index.md"
        if path.rstrip("/") == "include/rondo":
            return "reference/c/index.md"
        header = re.fullmatch(r"include/rondo/(\w+)\.h", path)
        if header:
            return "reference/c/%s.md" % header[1]
        if path not in self.wanted:
            self.wanted.append(path)
        return "source/%s.md" % (path.rstrip("/") + ("/index" if os.path.isdir(path) else ""))

    def turn(self, text, path, page):
        """Links and inclusions of the document at `path` as those of `page`."""
        def to_page(target):
            name, hash_mark, anchor = target.partition("#")
            if not name or re.match(r"[a-z]+:", target):
                return target
            full = os.path.normpath(os.path.join(os.path.dirname(path), name))
            if not os.path.exists(full):
                raise SystemExit("tools/site: %s links to %s, which is not there" % (path, target))
            return os.path.relpath(self.place(full), os.path.dirname(page) or ".") + hash_mark + anchor

        def to_file(match):
            full = os.path.normpath(os.path.join(os.path.dirname(path), match[2]))
            if not os.path.exists(full):
                raise SystemExit("tools/site: %s includes %s, which is not there" % (path, match[2]))
            start = os.path.dirname(os.path.join(self.folder, page))
            return match[1] + os.path.relpath(full, start)

        out, in_code = [], False
        for line in text.split("\n"):
            if line.startswith(("```", "    ```")):
                line = re.sub(r"^(```\{literalinclude\} )(\S+)", to_file, line)
                in_code = not in_code
            elif not in_code:
                line = re.sub(r"(?<=\]\()([^)\s]+)(?=\))", lambda m: to_page(m[1]), line)
            out.append(line)
        return "\n".join(out)

    def find_documents(self):
        for folder, _, files in os.walk("docs/site"):
            for file in files:
                path = os.path.join(folder, file)
                if file.endswith(".md"):
                    self.documents[path] = os.path.relpath(path, "docs/site")
        for file in sorted(os.listdir("docs")):
            if file.endswith(".md"):
                self.documents["docs/" + file] = "docs/" + file
        for folder in ("core/", "models/"):
            for file in sorted(os.listdir("bench/results/" + folder)):
                if file.endswith(".md"):
                    self.documents["bench/results/" + folder + file] = "results/" + folder + file
        self.documents.update(PROJECT)

    def write_documents(self):
        drawn = plots.draw_all("bench/results")
        drawn["picture"] = read("docs/site/picture.svg")
        for path, page in sorted(self.documents.items()):
            text = self.turn(read(path), path, page)
            # A figure of the site's own: <!-- figure NAME -->, drawn at this time.
            text = re.sub(r"<!-- figure ([\w-]+) -->", lambda m: "```{raw} html\n%s\n```" % drawn.pop(m[1]), text)
            self.write(page, text)
        if drawn:
            raise SystemExit("tools/site: no page shows %s" % ", ".join(sorted(drawn)))

    def write_results_index(self):
        out = ["# Measured results", "",
               "Each page has the command, the machine and the date. [Plots of the main ones](../measured.md).", ""]
        for path, page in sorted(self.documents.items()):
            if page.startswith("results/"):
                title = next(line[2:] for line in read(path).split("\n") if line.startswith("# "))
                out.append("- [%s](%s)" % (title, page[len("results/"):]))
        self.write("results/index.md", "\n".join(out + ["", "```{toctree}", ":hidden:", ":glob:", "", "*/*", "```", ""]))

    def write_headers(self):
        texts = {file[:-2]: read("include/rondo/" + file) for file in sorted(os.listdir("include/rondo"))
                 if file.endswith(".h")}
        for name, text in headers.make_pages(texts).items():
            self.write("reference/c/%s.md" % name, text)
        out = ["# C reference", "",
               "The headers' own comments. What holds for every call stands in [rondo/rondo.h](rondo.md); "
               "{ref}`all names <genindex>`.", ""]
        seen = []
        for name in ("rondo", "models"):
            out += ["## rondo/%s.h" % name, ""]
            for line in texts[name].split("#define RONDO_", 1)[1].split("\n"):
                include = re.match(r'#include "rondo/(\w+)\.h" *(?:// *(.*))?', line)
                if include and include[1] not in seen:
                    seen.append(include[1])
                    out.append("- [%s.h](%s.md)%s" % (include[1], include[1], ": " + include[2] if include[2] else ""))
                elif line.startswith("// ") and not line.startswith(("// clang", "// SPDX")):
                    out += ["", line[3:], ""]
        rest = [name for name in texts if name not in seen + ["rondo"]]
        out += ["", "## Others", ""] + ["- [%s.h](%s.md)" % (name, name) for name in rest]
        self.write("reference/c/index.md",
                   "\n".join(out + ["", "```{toctree}", ":hidden:", ":glob:", "", "*", "```", ""]))

    def write_tool(self):
        out = ["# The tool's options", "",
               "What `rondo COMMAND --help` prints; a test compares these texts with the tool. "
               "[How it is used](../docs/tool.md).", ""]
        for command in [""] + COMMANDS + ["environment"]:
            if command != "environment":
                out += ["## rondo" + (" " + command if command else ""), ""]
            else:
                out += ["## Environment variables", ""]
            path = "tests/cli/golden/help%s.txt" % ("_" + command if command else "")
            out += ["```text", read(path).rstrip("\n"), "```", ""]
        self.write("reference/tool.md", "\n".join(out))

    def write_made(self, page, text):
        """A page whose links are those of a document in a folder of the tree's root."""
        self.write(page, self.turn(text, page, page))

    def write_sources(self):
        """Files that pages link to, as they are; folders as lists of what pages link to in them."""
        for path in self.wanted:  # grows while folders are written
            page = self.place(path)
            title = path.replace("_", "\\_")
            if os.path.isdir(path):
                names = sorted(n for n in os.listdir(path) if not n.startswith((".", "__pycache__", "target")))
                full = [os.path.join(path, n) for n in names]
                texts = [f for f in full if os.path.isfile(f) and os.path.splitext(f)[1] in LEXERS]
                links = [os.path.relpath(self.place(f), os.path.dirname(page)) for f in texts]
                lines = ["- [%s](%s)" % (os.path.basename(f), link) for f, link in zip(texts, links)]
                lines += ["- %s" % os.path.basename(f) for f in full if f not in texts]
                self.write(page, "\n".join(["---", "orphan: true", "---", "# %s/" % title, ""] + lines) + "\n")
                continue
            lexer = LEXERS.get(os.path.splitext(path)[1], "text")
            if lexer == "text" and "bash" in read(path)[:40]:
                lexer = "bash"
            start = os.path.dirname(os.path.join(self.folder, page))
            self.write(page, "---\norphan: true\n---\n# %s\n\n```{literalinclude} %s\n:language: %s\n```\n" % (
                title, os.path.relpath(path, start), lexer))

    def write_all(self):
        self.find_documents()
        self.write_documents()
        self.write_results_index()
        self.write_headers()
        self.write_tool()
        self.write_made("reference/python.md", python_reference.make_page("python/rondo"))
        self.write_made("reference/cpp.md", cpp_reference.make_page(read("include/rondo/rondo.hpp")))
        self.write_sources()


def main():
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    stage = Stage(folder)
    stage.write_all()
    print("%d pages" % len(stage.pages))


if __name__ == "__main__":
    main()
