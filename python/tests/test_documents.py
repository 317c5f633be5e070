# SPDX-License-Identifier: Apache-2.0
"""The snippets of README.md and docs/python.md run, each page's in one namespace."""
import contextlib
import io
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find_snippets(page):
    """(line, text, why it is not run here) of each python block."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as stream:
        lines = stream.read().split("\n")
    for start, line in enumerate(lines):
        if line == "```python":
            end = lines.index("```", start)
            needs = re.match(r"<!-- needs (.*) -->", lines[start - 1])
            yield start + 1, "\n".join(lines[start + 1:end]), needs.group(1) if needs else None


class Documents(unittest.TestCase):
    def check(self, page, least):
        count, namespace = 0, {}
        before = os.getcwd()
        os.chdir(ROOT)
        try:
            for line, text, needs in find_snippets(page):
                # Line numbers in tracebacks are the page's.
                code = compile("\n" * line + text, page, "exec")
                if needs is None:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(code, namespace)
                    count += 1
        finally:
            os.chdir(before)
        self.assertGreaterEqual(count, least)

    def test_readme(self):
        self.check("README.md", 1)

    def test_python_page(self):
        self.check("docs/python.md", 11)


if __name__ == "__main__":
    unittest.main()
