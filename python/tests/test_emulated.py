# SPDX-License-Identifier: Apache-2.0
"""On the emulated GPU: streams of others, tensors on a device, and the hooks of torch and cupy,
against stand-ins that call them as the documents of those libraries say."""
import contextlib
import ctypes
import gc
import os
import struct
import sys
import types
import unittest
import weakref

import numpy

import rondo

if not any(d.available and d.name == "cuda:0" for d in rondo.devices()):
    raise unittest.SkipTest("there is no GPU, and no emulated one (ctest -R emulated.python)")

cuda = ctypes.CDLL("libcuda.so.1")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def make_native():
    handle = ctypes.c_void_p()
    assert cuda.cuStreamCreate(ctypes.byref(handle), ctypes.c_uint(1)) == 0
    return handle.value


class Foreign:
    """A stream of another library."""

    def __init__(self):
        self.native = make_native()

    def __cuda_stream__(self):
        return 0, self.native


class Case(unittest.TestCase):
    def setUp(self):
        self.device = rondo.Device("cuda:0")
        context = ctypes.c_void_p()  # as a library does that makes streams by itself
        assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert cuda.cuCtxPushCurrent_v2(context) == 0

    def tearDown(self):
        cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


class Streams(Case):
    def test_streams_of_others(self):
        theirs = Foreign()
        memory = rondo.empty(16, "u4", self.device)
        for stream in (theirs, theirs.native):
            with rondo.capture(stream, device=self.device) as graph:
                graph.stream.fill(memory, 9, 4)
            graph.replay(theirs)
            graph.replay(theirs)
            graph.stream.synchronize()
            self.assertEqual(memory.numpy().tolist(), [9] * 16)
            template, executable = graph.native
            self.assertTrue(template and executable)
        ours = rondo.Stream(self.device)
        self.assertEqual(ours.__cuda_stream__(), (0, ours.native))
        self.assertEqual(rondo.Stream.wrap(theirs).device, self.device)

    def test_own_streams_come_back(self):
        """By way of another library a stream of Rondo's is itself, not a second one on its CUstream,
        which would outlive it in graphs."""
        ours = rondo.Stream(self.device)

        class Outside:
            def __cuda_stream__(self):
                return 0, ours.native

        self.assertIs(rondo.Stream.wrap(Outside()), ours)
        self.assertIs(rondo.Stream.wrap(ours.native), ours)
        with rondo.capture(Outside()) as graph:
            graph.stream.fill(rondo.empty(4, "u4", self.device), 1, 4)
        graph.replay(Outside())
        native = ours.native
        del ours, Outside
        graph.stream.synchronize()
        graph.close()
        del graph
        gc.collect()
        self.assertNotIn(native, rondo.device._own_streams)

    def test_capture_that_breaks_is_explained(self):
        with self.assertRaises(rondo.CaptureError) as caught:
            with rondo.capture(Foreign()) as graph:
                graph.stream.copy(rondo.empty(4, "f4", self.device), numpy.zeros(4, "f4"))
        self.assertTrue(caught.exception.cure)


CODE = b"""extern "C" __global__ void scale(float *out, const float *in, float factor, int count) {
    if (threadIdx.x < count) { out[threadIdx.x] = factor * in[threadIdx.x]; }
}"""


def compile_kernel(text, name):
    """A CUfunction, as another library makes one; its name may be one that the fake driver has, too."""
    nvrtc = ctypes.CDLL("libnvrtc.so.13")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None) == 0
    assert nvrtc.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"-arch=sm_90")) == 0
    assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    image = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetCUBIN(program, image) == 0
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
    return function


class Kernels(Case):
    def test_kernels_of_others(self):
        """Packed arguments through Rondo, and a list of parameters by the driver's own call."""
        function = compile_kernel(CODE, b"scale")
        x, y, z = (rondo.empty(16, "f4", self.device) for _ in range(3))
        theirs = Foreign()
        values = [ctypes.c_void_p(z.address), ctypes.c_void_p(y.address), ctypes.c_float(2),
                  ctypes.c_int(16)]
        with rondo.capture(theirs) as graph:
            graph.stream.fill(x, 0x3f800000, 4)
            graph.stream.launch(function.value, 1, 32,
                                struct.pack("=QQfi", y.address, x.address, 3.0, 16))
            node = graph.stream.last_node()
            assert cuda.cuLaunchKernel(
                function, *[ctypes.c_uint(n) for n in (1, 1, 1, 32, 1, 1, 0)],
                ctypes.c_void_p(theirs.native),
                (ctypes.c_void_p * 4)(*map(ctypes.addressof, values)), None) == 0
        graph.replay()
        graph.stream.synchronize()
        self.assertEqual((y.numpy().tolist(), z.numpy().tolist()), ([3] * 16, [6] * 16))
        graph.patch((node, rondo.Launch(function.value, 1, 32,
                                        struct.pack("=QQfi", y.address, x.address, 5.0, 8))))
        graph.replay()
        graph.stream.synchronize()
        self.assertEqual(z.numpy().tolist(), [10] * 8 + [6] * 8)


class Tensors(Case):
    def test_device_tensors(self):
        stream = rondo.Stream(self.device)
        tensor = rondo.empty((2, 3), "f4", self.device, stream)
        self.assertEqual(tensor.__dlpack_device__(), (2, 0))
        self.assertFalse(tensor.is_on_host)
        values = numpy.arange(6, dtype="f4").reshape(2, 3)
        stream.copy(tensor, values)
        numpy.testing.assert_array_equal(tensor.numpy(), values)
        interface = tensor.__cuda_array_interface__
        self.assertEqual((interface["data"][0], interface["shape"]), (tensor.address, (2, 3)))
        with self.assertRaises(rondo.InvalidError):
            rondo.from_dlpack(tensor)
        reader = rondo.Stream(self.device)
        shared = rondo.from_dlpack(tensor, reader)
        self.assertEqual((shared.address, shared.device), (tensor.address, "cuda:0"))
        shared.close()
        rondo.from_dlpack(tensor, -1).close()

    def test_pinned_memory(self):
        pool, stream = rondo.Pool(self.device, kind="pinned"), rondo.Stream(self.device)
        host = pool.allocate(stream, 64)
        host.numpy("u4")[:] = 5
        tensor = rondo.empty(16, "u4", self.device, stream)
        with rondo.capture(stream) as graph:
            stream.copy(tensor, host)
        graph.replay()
        self.assertEqual(tensor.numpy().tolist(), [5] * 16)

    def test_session(self):
        path = os.path.join(ROOT, "tests/models/shortcut_mini/model.onnx")
        x = numpy.random.default_rng(0).standard_normal((2, 8, 9, 12)).astype("f4")
        want, = rondo.Session(path, device="host").run(None, {"x": x})
        stream = rondo.Stream(self.device)
        session = rondo.Session(path, stream=stream)
        self.assertEqual(session.get_providers()[0], "CUDAExecutionProvider")
        inside = rondo.empty(x.shape, "f4", self.device, stream)
        stream.copy(inside, x)
        for feed in (x, inside, inside):
            y, = session.run(None, {"x": feed}, on_device=True)
            self.assertEqual(y.device, "cuda:0")
            numpy.testing.assert_allclose(y.numpy(), want, rtol=1e-3, atol=1e-4)
        run = session.run_async({"x": inside})
        numpy.testing.assert_allclose(run.outputs["y"].numpy(), want, rtol=1e-3, atol=1e-4)


# ---- stand-ins ----------------------------------------------------------------------------------


class FakeTorch(types.ModuleType):
    """What of torch the hooks use: the pluggable allocator is called as torch calls it."""

    def __init__(self):
        super().__init__("torch")
        fake = self
        self.pools, self.streams, self.early_deaths = [], [], []
        living = weakref.WeakValueDictionary()

        class Pluggable:
            def __init__(self, path, allocate, free):
                library = ctypes.CDLL(path)
                self.allocate, self.free = getattr(library, allocate), getattr(library, free)
                self.allocate.restype = ctypes.c_void_p
                self.allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
                self.free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]

            def allocator(self):
                return self

        class MemPool:
            def __init__(self, allocator):
                self.allocator, self.segments, self.id = allocator, [], (0, id(self))
                living[self.id] = self

            def __del__(self):
                if fake.pools:  # torch ends the process here
                    fake.early_deaths.append(self.id)
                for address, nbytes, native in self.segments:
                    self.allocator.free(address, nbytes, 0, native)

        class Stream(Foreign):
            __module__ = "torch.cuda.streams"

        @contextlib.contextmanager
        def use(stack, thing):
            stack.append(thing)
            try:
                yield
            finally:
                stack.pop()

        self.cuda = types.SimpleNamespace(
            memory=types.SimpleNamespace(CUDAPluggableAllocator=Pluggable), MemPool=MemPool,
            use_mem_pool=lambda pool, device: use(fake.pools, living[pool.id]), Stream=Stream,
            is_current_stream_capturing=lambda: False,
            stream=lambda stream: use(fake.streams, stream),
            ExternalStream=lambda native, device: types.SimpleNamespace(native=native, device=device))
        self.device = lambda kind, index: f"{kind}:{index}"
        self.is_multithreading = [True]
        self.autograd = types.SimpleNamespace(
            set_multithreading_enabled=lambda mode: use(fake.is_multithreading, mode))

    def empty(self, nbytes):
        """Takes a segment, as torch's allocator does."""
        pool, native = self.pools[-1], self.streams[-1].native
        address = pool.allocator.allocate(nbytes, 0, native)
        if not address:
            raise RuntimeError("CUDA out of memory")
        pool.segments.append((address, nbytes, native))
        return address


class Torch(Case):
    def setUp(self):
        super().setUp()
        self.torch = sys.modules["torch"] = FakeTorch()

    def tearDown(self):
        del sys.modules["torch"]
        super().tearDown()

    def test_allocations_are_the_graphs(self):
        from rondo.interop import torch as helper
        torch = self.torch
        stream = torch.cuda.Stream()
        with rondo.capture(stream) as graph:
            self.assertIs(torch.streams[-1], stream)
            self.assertIs(torch.is_multithreading[-1], False)
            address = torch.empty(4096)
            graph.stream.fill(address, 6, 4, 1024)
        self.assertEqual((torch.streams, torch.pools), ([], []))
        self.assertGreaterEqual(graph.stats.arena_live_bytes, 4096)
        graph.replay(stream)
        out = numpy.zeros(1024, "u4")
        graph.stream.copy(out, address, 4096, "device_to_host")
        graph.stream.synchronize()
        self.assertTrue((out == 6).all())
        count = helper._load().rondo_torch_get_segment_count
        self.assertEqual(count(), 1)
        graph.close()
        self.assertEqual(count(), 0)

    def test_memory_is_lent(self):
        """Another graph's: its pool of torch's is entered again, and goes with the last graph."""
        from rondo.interop import torch as helper
        torch = self.torch
        stream = torch.cuda.Stream()
        with rondo.capture(stream) as first:
            torch.empty(4096)
            pool = torch.pools[-1]
        with rondo.capture(stream, pool=first) as second:
            self.assertIs(torch.pools[-1], pool)
            torch.empty(8192)
        del pool
        count = helper._load().rondo_torch_get_segment_count
        first.close()
        gc.collect()
        self.assertEqual(count(), 2)
        second.replay()
        second.stream.synchronize()
        second.close()
        gc.collect()
        self.assertEqual(count(), 0)
        with self.assertRaisesRegex(rondo.InvalidError, "no memory of torch's to lend"):
            with rondo.capture(stream, pool=second):
                pass

    def test_pools_outlast_open_blocks(self):
        """torch ends the process where a pool dies while another one is in use."""
        from rondo.interop import torch as helper
        torch = self.torch
        stream = torch.cuda.Stream()
        for _ in range(3):
            with rondo.capture(stream) as graph:  # from the second on another graph dies in here
                gc.collect()
                graph.stream.fill(torch.empty(4096), 6, 4, 1024)
        try:
            with rondo.capture(stream):
                raise ValueError("a refused step")
        except ValueError as error:
            kept = error
        with rondo.capture(torch.cuda.Stream()):
            kept.__traceback__ = None
            graph = None
            gc.collect()
        self.assertEqual(torch.early_deaths, [])
        self.assertEqual(helper._load().rondo_torch_get_segment_count(), 0)

    def test_exception_leaves_nothing(self):
        from rondo.interop import torch as helper
        torch = self.torch
        for text in ("Offset increment outside graph capture encountered unexpectedly.",
                     "RNG op during graph capture but could not find the CUDAGraph object."):
            with self.assertRaises(rondo.UnsupportedError) as caught:
                with rondo.capture(torch.cuda.Stream()):
                    torch.empty(4096)
                    raise RuntimeError(text)
            self.assertIn("rondo.Generator", str(caught.exception))
        with self.assertRaises(RuntimeError):
            with rondo.capture(torch.cuda.Stream()):
                raise RuntimeError("another")
        self.assertEqual((torch.streams, torch.pools), ([], []))
        import gc
        del caught
        gc.collect()
        self.assertEqual(helper._load().rondo_torch_get_segment_count(), 0)

    def test_budget(self):
        pool = rondo.Pool(self.device, limit_bytes=1 << 20)
        with self.assertRaises(RuntimeError):
            with rondo.capture(self.torch.cuda.Stream(), pool=pool):
                self.torch.empty(1 << 24)

    def test_stream_of_ours(self):
        from rondo.interop import torch as helper
        stream = rondo.Stream(self.device)
        external = helper.external_stream(stream)
        self.assertEqual((external.native, external.device), (stream.native, "cuda:0"))
        self.assertIs(external.rondo_stream, stream)  # which must not go before it


class Cupy(Case):
    def test_allocations_are_the_graphs(self):
        current, allocators = [], []

        class Stream(Foreign):
            def __enter__(self):
                current.append(self)

            def __exit__(self, *_):
                current.pop()

        Stream.__module__ = "cupy.cuda.stream"

        @contextlib.contextmanager
        def using_allocator(allocate):
            allocators.append(allocate)
            try:
                yield
            finally:
                allocators.pop()

        cupy = types.ModuleType("cupy")
        cupy.cuda = types.SimpleNamespace(
            using_allocator=using_allocator, ExternalStream=lambda *a: a, Stream=Stream,
            UnownedMemory=lambda ptr, size, owner, device_id: types.SimpleNamespace(
                ptr=ptr, size=size, owner=owner, device_id=device_id),
            MemoryPointer=lambda memory, offset: (memory, offset))
        sys.modules["cupy"] = cupy
        try:
            with rondo.capture(Stream()) as graph:
                self.assertEqual(len(current), 1)
                memory, offset = allocators[-1](4096)
                graph.stream.fill(memory.ptr + offset, 8, 4, 1024)
            self.assertGreaterEqual(graph.stats.arena_live_bytes, 4096)
            del memory
            graph.replay()
            graph.stream.synchronize()
            from rondo.interop import cupy as helper
            stream = rondo.Stream(self.device)
            self.assertEqual(helper.external_stream(stream), (stream.native, 0))
        finally:
            del sys.modules["cupy"]


if __name__ == "__main__":
    unittest.main()
