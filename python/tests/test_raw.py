# SPDX-License-Identifier: Apache-2.0
"""The raw layer is what the headers say, and has the compiler's sizes and values."""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from rondo import _raw
from rondo._library import lib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CC = os.environ.get("CC", "cc").split()


@unittest.skipUnless(shutil.which(CC[0]), "no C compiler")
class Generated(unittest.TestCase):
    def test_file_is_what_the_headers_say(self):
        script = os.path.join(ROOT, "python", "generate_raw.py")
        done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_layouts_and_values_are_the_compilers(self):
        rows = []
        structs = {name: kind for name, kind in vars(_raw).items()
                   if name.startswith("rondo_") and isinstance(kind, type)
                   and issubclass(kind, (ctypes.Structure, ctypes.Union))}
        for name, kind in structs.items():
            rows.append((f"sizeof({name})", ctypes.sizeof(kind)))
            rows += [(f"offsetof({name}, {field[0]})", getattr(kind, field[0]).offset)
                     for field in kind._fields_]
        rows += [(name, value) for name, value in vars(_raw).items()
                 if name.startswith("RONDO_") and isinstance(value, int)]
        self.assertGreater(len(structs), 50)
        self.assertGreater(len(rows), 800)
        lines = "\n".join(f'    printf("%lld\\n", (long long)({text}));' for text, _ in rows)
        source = ("#include <stdio.h>\n#include <stddef.h>\n#include <rondo/models.h>\n"
                  f"int main(void) {{\n{lines}\n    return 0;\n}}\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "layout.c")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(source)
            program = os.path.join(folder, "layout")
            subprocess.run([*CC, "-w", "-I", os.path.join(ROOT, "include"), "-o", program, path],
                           check=True)
            said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        for (text, here), there in zip(rows, said.split()):
            self.assertEqual(here, int(there), text)

    def test_every_function_is_in_the_library(self):
        for name in _raw.FUNCTIONS:
            self.assertTrue(callable(getattr(lib, name)), name)


if __name__ == "__main__":
    unittest.main()
