# SPDX-License-Identifier: Apache-2.0
"""What would give wrong numbers in silence, or end the process, is refused by name."""
import copy
import os
import pickle
import tempfile
import threading
import time
import unittest
from fractions import Fraction

import numpy

import rondo

HERE = os.path.dirname(os.path.abspath(__file__))
VIT = os.path.join(HERE, "..", "..", "tests", "models", "vit_mini", "model.onnx")


def make_session(op, dtype, shape=("n",), second=None):
    builder = rondo.Builder()
    builder.add_input("x", dtype, list(shape))
    for number, name in enumerate(filter(None, (op, second))):
        builder.add_output(builder.add_node(name, "x", outputs=["yz"[number]]))
    return rondo.Session(builder.finish(), "host")


class Refusals(unittest.TestCase):
    def refuses(self, text, call, kind=rondo.InvalidError):
        with self.assertRaisesRegex(kind, text):
            call()

    def test_no_copies(self):
        """A copy would give up the same C object a second time."""
        stream = rondo.Stream("host")
        for thing in (stream, rondo.Graph("host"), rondo.Pool("host"), rondo.Generator("host"),
                      rondo.Event("host"), rondo.empty(2), rondo.open_device("host"), rondo.Builder(),
                      rondo.Program(VIT), rondo.Session(VIT, "host")):
            for call in (copy.copy, copy.deepcopy, pickle.dumps):
                self.refuses("neither copied nor pickled", lambda: call(thing), TypeError)
            thing.close()
            thing.close()

    def test_closed_objects_say_so(self):
        stream, graph, session = rondo.Stream("host"), rondo.Graph("host"), rondo.Session(VIT, "host")
        for thing in (stream, graph, session):
            thing.close()
        self.refuses("this Stream was closed", stream.synchronize, rondo.StateError)
        self.refuses("this Graph was closed", lambda: graph.stats, rondo.StateError)
        self.refuses("this Session was closed", session.wait, rondo.StateError)
        self.refuses("this Session was closed", lambda: session.stream, rondo.StateError)

    def test_close_frees_a_session(self):
        """Its own stream needs the executor, and is the session's alone."""
        freed, lib = [], rondo.sessions.lib
        destroy = lib.rondo_executor_destroy
        lib.rondo_executor_destroy = lambda handle: (freed.append(1), destroy(handle))
        try:
            session = rondo.Session(VIT, "host")
            session.close()
            self.assertEqual(freed, [1])
            session = rondo.Session(VIT, "host")
            stream = session.stream
            session.close()
            self.assertEqual(freed, [1])
            stream.synchronize()
            stream.close()
            self.assertEqual(freed, [1, 1])
        finally:
            lib.rondo_executor_destroy = destroy

    def test_close_waits_for_runs_of_other_threads(self):
        x, met = numpy.zeros((1, 3, 12, 12), "f4"), set()

        def go(session):
            try:
                while True:
                    session.run(None, {"x": x})
            except rondo.RondoError as error:
                met.add(str(error))

        for turn in range(10):
            session = rondo.Session(VIT, "host")
            threads = [threading.Thread(target=go, args=(session,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(turn * 1e-3)
            session.close()
            for thread in threads:
                thread.join()
        self.assertEqual(met, {"this Session was closed"})

    def test_outputs_are_written_where_they_were_asked_for(self):
        session, x = make_session("Neg", "float32", second="Abs"), numpy.array([-1, 2, -3, 4], "f4")
        for given, text in ((numpy.empty(4, ">f4"), "byte order"),
                            (numpy.empty(4, object), "numbers in"), (numpy.empty(4, "U5"), "numbers in")):
            self.refuses(text, lambda: session.run(None, {"x": x}, out={"y": given}))
        memory = numpy.zeros(6, "f4")
        self.refuses("'y' and 'z' have the same memory", lambda: session.run(
            None, {"x": x}, out={"y": memory[:4], "z": memory[2:]}))
        self.refuses("no mapping", lambda: session.run(None, {"x": x}, out=[memory]))
        self.refuses("no mapping", lambda: session.run(None, {"x": x}, out=memory))
        self.refuses("not a list", lambda: session.run(None, [x]))
        self.refuses("not a ndarray", lambda: session.run(None, x))
        empty = numpy.empty(0, "f4")
        session.run(None, {"x": empty}, out={"y": memory[2:2], "z": memory[2:2]})

    def test_read_only_memory_stays(self):
        array = numpy.arange(4, dtype="f4")
        tensor, stream = rondo.from_dlpack(array), rondo.Stream("host")
        tensor.is_read_only = True  # as of a read-only array, which numpy gives from 2.1 on
        other = rondo.from_dlpack(numpy.ones(4, "f4"))
        op, session = rondo.Op("Neg", other), make_session("Neg", "float32")
        for call in (lambda: stream.fill(tensor, 1), lambda: stream.copy(tensor, other),
                     lambda: other.copy_to(tensor, stream), lambda: op(stream, other, out=tensor),
                     lambda: session.run(None, {"x": other}, out={"y": tensor}),
                     lambda: rondo.Generator("host").normal(stream, tensor)):
            self.refuses("read-only", call)
        stream.synchronize()
        self.assertEqual(array.tolist(), [0, 1, 2, 3])

    def test_numbers_of_python_are_not_cut(self):
        session = make_session("Identity", "int64")
        for value, text in (([1.7, 2.9], "is f64, the model takes i64"), (["1"], "is string")):
            self.refuses(text, lambda: session.run(None, {"x": value}))
        self.assertEqual(session.run(None, {"x": [3, True]})[0].tolist(), [3, 1])
        self.assertEqual(session.run(None, {"x": []})[0].shape, (0,))
        for value in ([numpy.array([300])], [Fraction(1, 2)]):
            small = make_session("Identity", "int8", (1,) * numpy.ndim(value))
            self.refuses("int8 does not hold", lambda: small.run(None, {"x": value}))
        wide = make_session("Identity", "uint64")  # numpy makes reals of them
        self.assertEqual(wide.run(None, {"x": [1, 2**64 - 1]})[0].tolist(), [1, 2**64 - 1])
        flags = make_session("Identity", "bool")
        self.refuses("is i64, the model takes bool", lambda: flags.run(None, {"x": [2]}))
        self.assertEqual(flags.run(None, {"x": [1, 0]})[0].tolist(), [True, False])
        reals = make_session("Identity", "float32")
        self.assertEqual(reals.run(None, {"x": [1, 2.5, True]})[0].tolist(), [1, 2.5, 1])
        self.refuses("is string, the model takes f32", lambda: reals.run(None, {"x": ["1.5"]}))

    def test_strings_come_back_as_they_were(self):
        session = make_session("Identity", "string")
        got, = session.run(None, {"x": [b"\xff\xfe", "a\0b\0", "\u00e9"]})
        again, = session.run(None, {"x": got})
        self.assertEqual(again.tolist(), got.tolist())
        self.assertEqual(got[1], "a\0b\0")
        self.refuses("is i64, the model takes string", lambda: session.run(None, {"x": [1]}))
        self.assertEqual(got[0].encode(errors="surrogateescape"), b"\xff\xfe")

    def test_numbers_that_do_not_fit(self):
        """ctypes takes them and leaves the upper bits away."""
        for text, call in (
                ("thread_count cannot be 4294967296", lambda: rondo.Session(VIT, "host", threads=2**32)),
                ("seed cannot be -1", lambda: rondo.Session(VIT, "host", seed=-1)),
                ("memory_limit_bytes", lambda: rondo.Session(VIT, "host", memory_limit_bytes=2**64)),
                ("dimension 'batch' cannot be 1844", lambda: rondo.Session(
                    VIT, "host", dimensions={"batch": 2**64 + 2})),
                ("an extent of", lambda: rondo.empty((2**64 + 1,))),
                ("a seed cannot be", lambda: rondo.Generator("host", seed=2**64)),
                ("axis cannot be", lambda: rondo.Builder().add_node("Softmax", "x", axis=2**64)),
                ("axes: .* do not fit", lambda: rondo.Builder().add_node("X", "x", axes=[2**64])),
                ("three at most", lambda: rondo.Stream("host").launch(1, (1, 2, 3, 4), 1)),
                ("grid cannot be", lambda: rondo.Stream("host").launch(1, 2**32 + 1, 1)),
                ("an extent of", lambda: rondo.Builder().add_input("x", "f4", [2**64 + 1])),
                ("accumulate cannot be", lambda: rondo.Builder().minimize("loss", accumulate=2**64 + 1)),
                ("100 elements of 4 bytes in 32", lambda: rondo.Generator("host").normal(
                    rondo.Stream("host"), numpy.empty(8, "f4"), count=100))):
            self.refuses(text, call)
        self.refuses("'4'; give a whole number",
                     lambda: rondo.Session(VIT, "host", dimensions={"batch": "4"}), TypeError)

    def test_texts_do_not_end_early(self):
        session, x = rondo.Session(VIT, "host"), numpy.zeros((1, 3, 12, 12), "f4")
        with tempfile.TemporaryDirectory() as folder:
            self.refuses("no zero", lambda: session.save(os.path.join(folder, "a\0b")))
            self.assertEqual(os.listdir(folder), [])
        self.refuses("no zero", lambda: session.run(None, {"x\0": x}))
        self.refuses("no zero", lambda: rondo.Session(VIT, "host\0"))
        self.refuses("not 1", lambda: session.run(None, {1: x}), TypeError)

    def test_no_memory_that_is_gone(self):
        """What a scalar of numpy describes is a copy of it that nobody keeps."""
        stream = rondo.Stream("host")
        self.refuses("float32 is no memory", lambda: stream.copy(numpy.zeros(1, "f4"), numpy.float32(3)),
                     TypeError)
        with self.assertRaises(ValueError):
            rondo.from_dlpack(numpy.arange(3.0)).__array__(numpy.float32, copy=False)

    def test_keys_tell_graphs_apart(self):
        """repr() of a large array shows its ends alone."""
        cache, stream = rondo.GraphCache("host", policy="always_capture"), rondo.Stream("host")
        for key in (numpy.zeros(5000), ("step", numpy.zeros(5000)), [{"x": numpy.zeros(5000)}]):
            self.refuses("ndarray in a key", lambda: cache.run(key, stream, lambda s: None))
        for key in (numpy.array(1 / 3), rondo.empty(())):  # of one number not all digits, or none
            self.refuses("in a key", lambda: cache.run(key, stream, lambda s: None))
        out = numpy.zeros(1, "u1")
        for key in (numpy.float32(1.5), (1, ("f4", (2, 3)), out.ctypes.data), out.tobytes(),
                    (numpy.ndarray, numpy.dtype("f4"), numpy.float32)):
            self.assertEqual(cache.run(key, stream, lambda s: s.fill(out, 1)), "captured_and_replayed")
        stream.synchronize()

    def test_no_function_waits_for_its_own_stream(self):
        """It hung for ever."""
        stream = rondo.Stream("host")
        for wait in (stream.synchronize, stream.device.synchronize):
            stream.call_host(wait)
            self.refuses("a host function waits for its own stream", stream.synchronize, rondo.StateError)
        stream.synchronize()

    def test_learned_arguments_do_not_wrap(self):
        stream, seen = rondo.Stream("host"), []
        for kind, value in (("int64", 2**63), ("uint64", -1), ("uint64", numpy.int64(-1)), ("float32", 1e300)):
            learned = rondo.learn(lambda s, n: s.call_host(seen.append, n), {"n": kind}, "host")
            self.refuses("an argument cannot be", lambda: learned(stream, value))
        stream.call_host(seen.append, 2**70)
        stream.synchronize()
        self.assertEqual(seen[-1], 2**70)

    def test_blocks_stay_as_long_as_their_arrays(self):
        block = rondo.Pool("host").allocate(rondo.Stream("host"), 64)
        array = block.numpy("float32")
        block.close()
        del block
        array[:] = 1  # the pool was gone, and with it the memory
        self.assertEqual(array.sum(), 16)

    def test_no_objects_of_python(self):
        stream, objects = rondo.Stream("host"), numpy.array([object()], object)
        self.refuses("ndarray is no memory", lambda: stream.fill(objects, 0), TypeError)
        words = numpy.zeros(2, "i4")
        stream.fill(words, numpy.int32(-2), 4)
        stream.synchronize()
        self.assertEqual(words.tolist(), [-2, -2])

    def test_trainers_take_what_the_model_holds(self):
        builder = rondo.Builder()
        builder.add_input("ids", "int64", ["n"])
        builder.add_parameter("table", numpy.full((10, 3), 0.1, "f4"))
        builder.add_output(builder.add_node("Gather", "table", "ids", outputs=["scores"]))
        model, labels = builder.finish(), numpy.zeros(20, ">i4")

        def train(ids, **options):
            return rondo.Trainer(model, {"ids": ids, "label": labels}, epochs=1, device="host", **options)

        for ids in (numpy.full(20, 1.5), numpy.full(20, numpy.nan), numpy.full(20, 2**64 - 1, "u8")):
            self.refuses("takes int64, which has no", lambda: train(ids))
        for option in ("epochs", "batch", "accumulate", "lora", "seed", "warm_up"):
            self.refuses(f"{option} is 1.5", lambda: rondo.Trainer(model, {}, **{option: 1.5}), TypeError)
        self.refuses("lora is -1", lambda: train(numpy.zeros(20), lora=-1))
        self.refuses("not a list", lambda: rondo.Trainer(model, [labels]))
        self.assertEqual(len(train(numpy.full(20, 2.0)).fit()), 1)  # each is a whole number


if __name__ == "__main__":
    unittest.main()
