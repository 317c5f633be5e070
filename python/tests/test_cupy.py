# SPDX-License-Identifier: Apache-2.0
"""The interfaces of the real cupy that the hooks use, as far as a machine without a GPU goes. Skipped
where cupy is not installed; python/tests/gpu_cupy.py is for a GPU."""
import gc
import sys
import unittest

import rondo
from rondo.interop import cupy as helper

try:
    import cupy
except ImportError:
    if __name__ == "__main__":
        print("skipped: cupy is not installed")
        sys.exit(77)
    raise unittest.SkipTest("cupy is not installed") from None


class Interfaces(unittest.TestCase):
    def test_blocks_go_back_with_the_last_reference(self):
        pool, stream = rondo.Pool("host"), rondo.Stream("host")
        allocate = helper.make_allocator(pool, stream)
        pointer = allocate(4096)
        part = pointer + 64
        self.assertEqual((pointer.mem.size, part.ptr - pointer.ptr), (4096, 64))
        self.assertEqual(pool.stats.live_count, 1)
        del pointer
        gc.collect()
        self.assertEqual(pool.stats.live_count, 1)
        del part
        gc.collect()
        self.assertEqual(pool.stats.live_count, 0)

    def test_allocator_is_the_threads(self):
        pool, stream = rondo.Pool("host"), rondo.Stream("host")
        with cupy.cuda.using_allocator(helper.make_allocator(pool, stream)):
            self.assertIs(type(cupy.cuda.get_allocator()).__name__ == "function", True)

    def test_streams(self):
        self.assertTrue(hasattr(cupy.cuda.Stream, "__cuda_stream__"))
        self.assertEqual(cupy.cuda.Stream.__module__.partition(".")[0], "cupy")


if __name__ == "__main__":
    unittest.main()
