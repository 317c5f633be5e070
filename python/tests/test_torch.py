# SPDX-License-Identifier: Apache-2.0
"""With the real torch, as far as a processor goes: tensors both ways, and the interfaces that the
hooks use. Skipped where torch is not installed; python/tests/gpu_torch.py is for a GPU."""
import gc
import inspect
import os
import sys
import unittest
import weakref

import numpy

import rondo
from rondo.interop import torch as helper

try:
    import torch
except ImportError:
    if __name__ == "__main__":
        print("skipped: torch is not installed")
        sys.exit(77)
    raise unittest.SkipTest("torch is not installed") from None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "tests/models/vit_mini/model.onnx")


class Tensors(unittest.TestCase):
    def test_both_ways(self):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
                      torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn):
            x = torch.ones(2, 3).to(dtype)
            tensor = rondo.from_dlpack(x)
            self.assertEqual((tensor.address, tensor.shape), (x.data_ptr(), (2, 3)))
            back = torch.from_dlpack(tensor)
            self.assertEqual((back.data_ptr(), back.dtype), (x.data_ptr(), dtype))
        self.assertEqual(rondo.empty(3, torch.bfloat16).nbytes, 6)

    def test_bytes_live_as_long_as_the_last(self):
        x = torch.ones(1000)
        mark = weakref.ref(x.untyped_storage())
        tensor = rondo.from_dlpack(x)
        back = torch.from_dlpack(tensor)
        tensor.close()
        del tensor
        self.assertEqual(back.sum().item(), 1000)
        y = torch.from_dlpack(rondo.empty(1000, "f4"))
        gc.collect()
        y.fill_(3)
        self.assertEqual(y.sum().item(), 3000)
        del x, back
        gc.collect()
        self.assertIsNone(mark())

    def test_what_torch_refuses(self):
        with self.assertRaises(BufferError):
            rondo.from_dlpack(torch.ones(3, requires_grad=True))
        with self.assertRaises(rondo.InvalidError):
            rondo.from_dlpack(torch.ones(3, 4).T[1:])

    def test_signs_that_are_not_in_memory_are_refused(self):
        conjugate = torch.tensor([1 + 2j]).conj()
        target = torch.zeros(1, dtype=torch.complex64)
        negative = conjugate.imag
        for tensor, cure in ((negative, "resolve_neg"), (conjugate, "resolve_conj")):
            with rondo.capture(device="host") as graph:
                with self.assertRaisesRegex(rondo.InvalidError, cure):
                    graph.stream.copy(target, tensor)
            with self.assertRaisesRegex(rondo.InvalidError, cure):
                rondo.from_dlpack(tensor)
        self.assertEqual(rondo.from_dlpack(negative.resolve_neg()).numpy(), [-2])

    def test_session(self):
        session = rondo.Session(MODEL, device="host")
        x = torch.randn(2, 3, 12, 12)
        want, = session.run(None, {"x": x.numpy()})
        out = torch.empty(want.shape)
        self.assertIs(session.run(None, {"x": x}, out={"y": out})[0], out)
        numpy.testing.assert_array_equal(out.numpy(), want)
        tensor, = session.run(None, {"x": x}, on_device=True)
        numpy.testing.assert_array_equal(torch.from_dlpack(tensor).numpy(), want)

    def test_copies_in_a_graph(self):
        x, y = torch.arange(6.0), torch.zeros(6)
        with rondo.capture(device="host") as graph:
            graph.stream.copy(y, x)
        graph.replay()
        graph.stream.synchronize()
        self.assertTrue(torch.equal(x, y))
        with self.assertRaises(rondo.InvalidError):
            graph.stream.copy(torch.zeros(4, 4).T, x)


class Interfaces(unittest.TestCase):
    """That they are there, in the form that rondo.interop.torch uses."""

    def test_allocator(self):
        allocator = torch.cuda.memory.CUDAPluggableAllocator(
            helper.allocator_path(), "rondo_torch_allocate", "rondo_torch_free")
        self.assertIsNotNone(allocator.allocator())
        self.assertIn("device", inspect.signature(torch.cuda.use_mem_pool).parameters)
        self.assertEqual(next(iter(inspect.signature(torch.cuda.MemPool.__init__).parameters)), "self")
        self.assertTrue(hasattr(torch.cuda.ExternalStream, "__mro__"))

    def test_backward_on_this_thread(self):
        import threading
        seen = []
        with torch.autograd.set_multithreading_enabled(False):
            x = torch.ones(3, requires_grad=True)
            y = (x * 2).sum()
            y.register_hook(lambda g: seen.append(threading.get_ident()))
            y.backward()
        self.assertEqual(seen, [threading.get_ident()])


if __name__ == "__main__":
    unittest.main()
