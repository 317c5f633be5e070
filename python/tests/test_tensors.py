# SPDX-License-Identifier: Apache-2.0
"""DLPack in and out, by both forms, and numpy's protocols."""
import gc
import sys
import unittest
import weakref

import numpy

import rondo

NEW_NUMPY = int(numpy.__version__.split(".")[0]) >= 2


class Old:
    """A producer of the old form alone, with the keywords that it knows."""

    def __init__(self, array, keywords=()):
        self.array, self.keywords = array, keywords

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        if set(options) - set(self.keywords):
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__()


class FromOthers(unittest.TestCase):
    def test_bytes_are_shared_and_kept(self):
        for wrap in (lambda a: a, Old, lambda a: Old(a, ("stream",))):
            array = numpy.arange(6, dtype="i8").reshape(2, 3)
            tensor = rondo.from_dlpack(wrap(array))
            self.assertEqual(tensor.address, array.ctypes.data)
            self.assertEqual((tensor.shape, tensor.dtype, tensor.device), ((2, 3), "int64", "host"))
            count = sys.getrefcount(array)
            tensor.numpy()[0, 0] = 9
            self.assertEqual(array[0, 0], 9)
            tensor.close()
            gc.collect()
            self.assertLess(sys.getrefcount(array), count)

    def test_every_type(self):
        for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16",
                     "bool")[
                :None if NEW_NUMPY else -1]:
            array = numpy.ones((2, 2), name)
            tensor = rondo.from_dlpack(array)
            self.assertEqual(tensor.dtype, array.dtype)
            numpy.testing.assert_array_equal(numpy.from_dlpack(tensor), array)

    def test_names_of_types_are_numpys(self):
        for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "bool",
                     "int32", "float64", numpy.float16, numpy.dtype("u8"), float):
            self.assertEqual(rondo.empty(3, name).dtype, numpy.dtype(name))
        for name, bytes_ in (("bf16", 2), ("bfloat16", 2), ("f16", 2), ("half", 2), ("float8_e5m2", 1)):
            self.assertEqual(rondo.empty(3, name).nbytes, 3 * bytes_)
        with self.assertRaises(rondo.InvalidError):
            rondo.empty(3, "nonsense")

    @unittest.skipUnless(NEW_NUMPY, "numpy 1 hands out nothing that is read-only")
    def test_read_only_stays_so(self):
        array = numpy.ones(3, "f4")
        array.flags.writeable = False
        tensor = rondo.from_dlpack(array)
        self.assertTrue(tensor.is_read_only)
        self.assertFalse(tensor.numpy().flags.writeable)
        with self.assertRaises(BufferError):
            tensor.__dlpack__()
        self.assertFalse(numpy.from_dlpack(tensor).flags.writeable)

    def test_what_is_refused(self):
        with self.assertRaises(rondo.InvalidError):
            rondo.from_dlpack(numpy.ones((4, 4), "f4").T[1:])
        with self.assertRaises(BufferError):  # numpy's own word
            rondo.from_dlpack(numpy.ones(3, "longdouble"))
        with self.assertRaises(rondo.RondoError):
            rondo.from_dlpack(numpy.ones((1,) * 9, "f4"))


class Ops(unittest.TestCase):
    def test_eager_and_recorded(self):
        stream = rondo.Stream("host")
        a = rondo.from_dlpack(numpy.arange(6, dtype="f4").reshape(2, 3))
        b = rondo.from_dlpack(numpy.ones((3, 4), "f4"))
        multiply = rondo.Op("MatMul", a, b, device="host")
        self.assertEqual(multiply.outputs, [((2, 4), numpy.dtype("float32"))])
        y = multiply(stream, a, b)
        stream.synchronize()
        self.assertEqual(y.numpy().tolist(), [[3] * 4, [12] * 4])
        out = rondo.empty((2, 4), "float32", "host")
        with rondo.capture(stream) as graph:
            self.assertIs(multiply(stream, a, b, out=[out]), out)
        b.numpy()[:] = 2
        graph.replay()
        stream.synchronize()
        self.assertEqual(out.numpy().tolist(), [[6] * 4, [24] * 4])
        with self.assertRaises(rondo.InvalidError):
            multiply(stream, a)
        with self.assertRaises(rondo.InvalidError):
            multiply(stream, b, a)

    def test_constants_attributes_and_several_outputs(self):
        stream = rondo.Stream("host")
        x = rondo.from_dlpack(numpy.array([[3, 1, 2], [5, 9, 7]], "f4"))
        top = rondo.Op("TopK", x, [2], outputs=2, axis=1, largest=0)
        values, indices = top(stream, x, None)
        moved = rondo.Op("Transpose", x, perm=[1, 0])(stream, x)
        leaky = rondo.Op("LeakyRelu", x, alpha=0.5)(stream, x)
        empty = rondo.Op("Clip", x, None, numpy.float32(4))(stream, x, None, None)
        stream.synchronize()
        self.assertEqual(values.numpy().tolist(), [[1, 2], [5, 7]])
        self.assertEqual(indices.numpy().tolist(), [[1, 2], [0, 2]])
        self.assertEqual(moved.numpy().tolist(), x.numpy().T.tolist())
        self.assertEqual(leaky.numpy().tolist(), x.numpy().tolist())
        self.assertEqual(empty.numpy().max(), 4)
        with self.assertRaises(rondo.UnsupportedError):
            rondo.Op("NoSuchOp", x)
        with self.assertRaises(rondo.InvalidError):
            rondo.Op("Transpose", x, perm=[1, "0"])


class ToOthers(unittest.TestCase):
    def test_capsules_nobody_takes_are_freed(self):
        array = numpy.ones(1000, "f4")
        mark = weakref.ref(array)
        tensor = rondo.from_dlpack(array)
        for version in (None, (1, 0)):
            capsule = tensor.__dlpack__(max_version=version)
            del capsule
        del array, tensor
        gc.collect()
        self.assertIsNone(mark())

    def test_empty_and_scalars(self):
        for shape in ((), (0,), (3, 0, 2), (1,)):
            tensor = rondo.empty(shape, "f8")
            self.assertEqual(tensor.numpy().shape, shape)
            self.assertEqual(numpy.from_dlpack(tensor).shape, shape)

    def test_array_of_a_closed_tensor_lives(self):
        tensor = rondo.empty(1000, "u4")
        array = tensor.numpy()
        array[:] = 7
        tensor.close()
        gc.collect()
        junk = [rondo.empty(1000, "u4").numpy() for _ in range(20)]
        self.assertTrue((array == 7).all())
        del junk
        with self.assertRaises(rondo.StateError):
            tensor.numpy()

    def test_wishes(self):
        tensor = rondo.empty(4)
        with self.assertRaises(BufferError):
            tensor.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        self.assertFalse(hasattr(tensor, "__cuda_array_interface__"))

    def test_copy_in_stream_order(self):
        stream = rondo.Stream("host")
        source, target = rondo.empty(8, "i4", stream=stream), rondo.empty(8, "i4", stream=stream)
        stream.fill(source, 5, 4)
        source.copy_to(target, stream)
        self.assertEqual(numpy.from_dlpack(target).tolist(), [5] * 8)  # waits for the stream


if __name__ == "__main__":
    unittest.main()
