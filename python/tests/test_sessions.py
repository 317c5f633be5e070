# SPDX-License-Identifier: Apache-2.0
"""Models on the host, against their expected outputs, numpy and onnxruntime."""
import ctypes
import glob
import logging
import os
import tempfile
import threading
import time
import unittest

import numpy

import rondo
from rondo import _raw
from rondo._library import check, lib, new
from rondo.tensors import take_value

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SQUEEZENET = os.path.join(ROOT, "examples/models/squeezenet1_1/model.onnx")


def find(name):
    return os.path.join(ROOT, "tests/models", name, "model.onnx")


def load(path):
    """A plain tensor's .pb file."""
    struct = _raw.rondo_tensor()
    check(lib.rondo_tensor_load_onnx(path.encode(), ctypes.byref(struct)))
    return take_value(struct)


def make_feeds(session, sizes, seed=3):
    """Random inputs; `sizes` are the symbols' numbers."""
    random = numpy.random.default_rng(seed)
    feeds = {}
    for port in session.get_inputs():
        shape = [extent if isinstance(extent, int) else sizes.get(extent, 2)
                 for extent in port.shape]
        if port.dtype.kind == "f":
            feeds[port.name] = random.standard_normal(shape).astype(port.dtype)
        else:
            feeds[port.name] = random.integers(0, 3, shape).astype(port.dtype)
    return feeds


class Expected(unittest.TestCase):
    """The models that ship, with the outputs that stand beside them, eagerly and replayed."""

    NAMES = ["bert_mini", "branch_and_loop", "convnext_mini", "gpt_mini", "gpt2_mini", "lstm_tagger",
             "nan_through_conv_relu", "shortcut_mini", "unet_mini", "vit_mini", "found_rows"]

    def test_models(self):
        for name in self.NAMES:
            with self.subTest(name), rondo.Session(find(name), device="host") as session:
                folder = os.path.join(os.path.dirname(find(name)), "test_data_set_0")
                feeds = {port.name: load(f"{folder}/input_{i}.pb")
                         for i, port in enumerate(session.inputs)}
                wanted = [load(path) for path in sorted(glob.glob(folder + "/output_*.pb"))]
                for _ in range(3):
                    for got, want in zip(session.run(None, feeds), wanted):
                        self.assertEqual(got.dtype, want.dtype)
                        numpy.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
                self.assertTrue(session.stats.replay_run_count or name == "found_rows", name)


class Arrays(unittest.TestCase):
    """How an array lies in memory changes nothing; outputs are the caller's."""

    def test_layouts(self):
        with rondo.Session(find("unet_mini"), device="host") as session:
            feeds = make_feeds(session, {})
            (name, value), = feeds.items()
            wanted = session.run(None, feeds)[0]
            kept = wanted.copy()
            locked, wide = value.copy(), numpy.repeat(value, 2, -1)
            locked.flags.writeable = False
            for other in (locked, numpy.asfortranarray(value), wide[..., ::2], value.astype(">f4")):
                numpy.testing.assert_array_equal(session.run(None, {name: other})[0], kept)
            with self.assertRaisesRegex(rondo.UnsupportedError, "axes"):
                session.run(None, {name: value.reshape((1,) * 7 + value.shape)})
        numpy.testing.assert_array_equal(wanted, kept)
        wanted += 1

    def test_no_rows(self):
        with rondo.Session(find("found_rows"), device="host") as session:
            for _ in range(2):
                for port, got in zip(session.outputs, session.run(None, make_feeds(session, {"n": 0}))):
                    self.assertEqual(got.dtype, port.dtype)
                    self.assertEqual(got.size, 0, port.name)


@unittest.skipUnless(onnxruntime, "onnxruntime is not installed")
class BesideOnnxruntime(unittest.TestCase):
    """The same program with a changed import."""

    MODELS = {"bert_mini": {"batch": 2, "sequence": 7}, "convnext_mini": {"n": 1}, "vit_mini": {"batch": 3},
              "lstm_tagger": {}, "gpt_mini": {"batch": 2, "length": 5}, "unet_mini": {}, "shortcut_mini": {},
              "gpt2_mini": {}, "found_rows": {"n": 6}, "branch_and_loop": {}}

    def program(self, runtime, path, sizes):
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feeds = make_feeds(session, sizes) if runtime is rondo else self.feeds
        self.feeds = feeds
        meta = session.get_modelmeta()
        described = [meta.custom_metadata_map, meta.producer_name, meta.graph_name, meta.domain,
                     meta.description]
        names = [o.name for o in session.get_outputs()]
        described += [(i.name, i.type, i.shape) for i in session.get_inputs()]
        outputs = [(o.name, o.type) for o in session.get_outputs()]
        return described, outputs, session.run(names, feeds), session.run(None, feeds)

    def test_same_program(self):
        for name, sizes in self.MODELS.items():
            with self.subTest(name):
                ours = self.program(rondo, find(name), sizes)
                theirs = self.program(onnxruntime, find(name), sizes)
                self.assertEqual(ours[:2], theirs[:2])
                for got, want in zip(ours[2] + ours[3], theirs[2] + theirs[3]):
                    self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                    numpy.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4)

    def test_strings_and_providers(self):
        feeds = {"x": numpy.array([[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]], "f4")}
        ours = rondo.InferenceSession(find("flower_trees")).run(["label"], feeds)
        theirs = onnxruntime.InferenceSession(find("flower_trees")).run(["label"], feeds)
        self.assertEqual(ours[0].tolist(), theirs[0].tolist())
        self.assertEqual(rondo.get_available_providers()[-1], "CPUExecutionProvider")


class Running(unittest.TestCase):
    def setUp(self):
        self.session = rondo.Session(find("vit_mini"), device="host")
        self.x = numpy.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype("f4")
        self.y = self.session.run(None, {"x": self.x})[0]

    def same(self, y):
        numpy.testing.assert_array_equal(y, self.y)

    def test_ways_to_say_it(self):
        session = self.session
        self.same(session.run(["y"], {"x": self.x})[0])
        self.same(session.run({"x": self.x})[0])
        self.same(session(x=self.x)["y"])
        self.same(session.run(None, {"x": self.x.tolist()})[0])
        self.same(session.run(None, {"x": self.x.astype(">f4")})[0])
        big = numpy.zeros((2, 3, 12, 24), "f4")
        big[..., ::2] = self.x
        self.same(session.run(None, {"x": big[..., ::2]})[0])
        with open(find("vit_mini"), "rb") as stream:
            self.same(rondo.Session(stream.read(), device="cpu").run(None, {"x": self.x})[0])
        self.assertTrue(session.times.was_replayed)
        self.same(rondo.Session(find("vit_mini"), "host").run(None, {"x": self.x})[0])

    def test_trees_meet_rows_in_blocks(self):
        session = rondo.Session(find("flower_trees"), device="host")
        x = numpy.random.default_rng(3).uniform(0, 8, (71, 4)).astype("f4")  # two blocks and a rest
        x[5, 2] = numpy.nan
        together = session.run(None, {"x": x})
        alone = [session.run(None, {"x": row[None]}) for row in x]
        self.assertEqual(together[0].tolist(), [outputs[0][0] for outputs in alone])
        self.assertGreater(len(set(together[0].tolist())), 1)
        numpy.testing.assert_array_equal(together[1], numpy.concatenate([outputs[1] for outputs in alone]))

    def test_what_is_wrong_is_named(self):
        session, x = self.session, self.x
        self.same(session.run("y", {"x": x})[0])
        for kind, text, call in (
                (rondo.InvalidError, "\"x\" is None", lambda: session.run(None, {"x": None})),
                (rondo.InvalidError, "no output \"yy\"", lambda: session.run("yy", {"x": x})),
                (rondo.InvalidError, "out: 'z' is not .*: y$",
                 lambda: session.run(None, {"x": x}, out={"z": self.y})),
                (rondo.InvalidError, "out: 'z' is not", lambda: session.bind_tensors({"x": x}, out={"z": self.y})),
                (rondo.InvalidError, "names of outputs are texts, not 1", lambda: session.run([1], {"x": x})),
                (rondo.InvalidError, "y: an output is written to .* not to a list",
                 lambda: session.run(None, {"x": x}, out={"y": [0.0]})),
                (TypeError, "threads is '3'", lambda: rondo.Session(find("vit_mini"), threads="3")),
                (TypeError, "the path of an ONNX file.*None", lambda: rondo.Session(None)),
                (rondo.BadDataError, "", lambda: rondo.Session(b"no model"))):
            with self.assertRaisesRegex(kind, text):
                call()
        session.close()
        with self.assertRaisesRegex(rondo.StateError, "Session was closed"):
            session.run(None, {"x": x})
        flowers, memory = rondo.Session(find("flower_trees"), device="host"), numpy.empty(4, "f4")
        names = [port.name for port in flowers.outputs]
        one = dict(zip(names, (memory.view("i8")[:1], memory[:3].reshape(1, 3))))
        with self.assertRaisesRegex(rondo.InvalidError, f"'{names[0]}' and '{names[1]}' have the same memory"):
            flowers.run(None, {"x": numpy.zeros((1, 4), "f4")}, out=one)

    def test_names_of_onnxruntime(self):
        options = rondo.SessionOptions()
        options.add_free_dimension_override_by_name("batch", 2)
        options.graph_optimization_level = rondo.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = rondo.InferenceSession(find("bert_mini"), options, ["CPUExecutionProvider"])
        self.assertEqual(session.get_inputs()[0].shape[0], 2)
        path = os.path.join(tempfile.mkdtemp(), "named.onnx")
        with open(find("vit_mini"), "rb") as file:
            data = file.read() + bytes([14 << 3 | 2, 10, 10, 4]) + b"name" + bytes([18, 2]) + b"\xc3\xa4"
            data += bytes([5 << 3] + [0xfe] + [0xff] * 8 + [1])  # version -2
        with open(path, "wb") as file:
            file.write(data)
        for model in (path, data):
            meta = rondo.Session(model, device="host").get_modelmeta()
            self.assertEqual((meta.custom_metadata_map, meta.version), ({"name": "\u00e4"}, -2))
        with rondo.Program(data) as program, self.assertRaisesRegex(rondo.StateError, "its file"):
            rondo.Session(program, device="host").get_modelmeta()
        before, (folder, name) = os.getcwd(), os.path.split(path)
        try:
            os.chdir(folder)
            session = rondo.Session(name, device="host")
        finally:
            os.chdir(before)
        self.assertEqual(session.get_modelmeta().version, -2)
        with open(path, "wb") as file:
            file.write(data + bytes([5 << 3, 7]))
        with self.assertRaisesRegex(rondo.StateError, "is not the file any more"):
            session.get_modelmeta()

    def test_bound_runs(self):
        x = self.x.copy()
        run = self.session.bind_tensors({"x": x})
        for _ in range(4):
            self.same(run()[0])
        first = run()[0]
        x[:] = 0
        zeros = run()[0]
        self.assertTrue((zeros != self.y).any())
        numpy.testing.assert_array_equal(first, zeros)  # the same memory
        run.set_feeds({"x": self.x})
        self.same(run()[0])
        run.run_async()
        self.session.wait()
        self.same(run.outputs["y"])
        one = self.x[:1].copy()
        run.set_feeds({"x": one})
        self.assertEqual(run()[0].shape[0], 1)
        out = numpy.empty_like(self.y)
        run = self.session.bind_tensors({"x": self.x}, out={"y": out})
        self.assertIs(run()[0], out)
        self.same(out)
        with self.assertRaisesRegex(rondo.InvalidError, "no input"):
            run.set_feeds({"z": one})
        with self.assertRaisesRegex(rondo.InvalidError, "the model takes"):
            run.set_feeds({"x": one[0]})
        self.same(run()[0])
        self.session.close()
        self.same(run()[0])  # keeps what it needs

    def test_shapes_without_a_run_and_graphs(self):
        self.assertEqual(self.session.output_shapes({"x": self.x}), {"y": self.y.shape})
        session = rondo.Session(find("vit_mini"), device="host", keep_templates=True)
        for _ in range(2):
            session.run(None, {"x": self.x})
        graphs = session.dump_graphs("json")
        self.assertEqual(len(graphs), session.stats.segment_count)
        self.assertIn("MatMul", graphs[0])
        with self.assertRaisesRegex(rondo.StateError, "did not keep its template"):
            self.session.run(None, {"x": self.x})
            self.session.dump_graphs()

    def test_outputs_into_memory_of_the_callers(self):
        out = numpy.empty_like(self.y)
        result = self.session.run(None, {"x": self.x}, out={"y": out})
        self.assertIs(result[0], out)
        self.same(out)
        target = rondo.empty(self.y.shape, "f4")
        self.session.run(None, {"x": self.x}, out={"y": target})
        self.same(target.numpy())
        for wrong in (numpy.empty((1, 2), "f4"), numpy.empty_like(self.y).T):
            with self.assertRaises(rondo.InvalidError):
                self.session.run(None, {"x": self.x}, out={"y": wrong})

    def test_outputs_stand_for_themselves(self):
        first = self.session.run(None, {"x": self.x})[0]
        second = self.session.run(None, {"x": self.x * 0})[0]
        self.same(first)
        self.assertFalse(numpy.shares_memory(first, second))
        self.session.close()
        self.same(first)

    def test_dlpack_in_and_out(self):
        given = rondo.from_dlpack(self.x)
        self.assertEqual(given.address, self.x.ctypes.data)
        tensor, = self.session.run(None, {"x": given}, on_device=True)
        shared = numpy.from_dlpack(tensor)
        self.assertEqual(shared.ctypes.data, tensor.address)
        self.session.close()
        tensor.close()
        self.same(shared)

    def test_async_runs(self):
        runs = [self.session.run_async({"x": self.x * k}) for k in (0, 1)]
        self.same(runs[1].outputs["y"].numpy())
        self.assertTrue(runs[0].is_complete)
        zero = self.session.run(None, {"x": self.x * 0})[0]
        numpy.testing.assert_array_equal(runs[0].wait()[0].numpy(), zero)

    def test_on_the_callers_stream_and_recorded(self):
        device = rondo.Device("host")
        stream = rondo.Stream(device)
        session = rondo.Session(find("vit_mini"), stream=stream)
        self.assertIs(session.stream, stream)
        x, y = rondo.empty(self.x.shape, "f4", device), rondo.empty(self.y.shape, "f4", device)
        x.numpy()[:] = self.x
        session.run(None, {"x": x}, out={"y": y})
        y.numpy()[:] = 0
        seen = []
        with rondo.capture(device=device) as graph:
            session.record(graph.stream, {"x": x}, {"y": y})
            graph.stream.call_host(lambda: seen.append(float(numpy.abs(y.numpy()).sum())))
        self.assertEqual(y.numpy().sum(), 0)
        session.close()
        graph.replay()
        graph.stream.synchronize()
        self.same(y.numpy())
        self.assertEqual(len(seen), 1)

    def test_threads_share_a_session(self):
        failures = []

        def work(k):
            for _ in range(20):
                y, = self.session.run(None, {"x": self.x * k})
                want = self.y if k == 1 else zero
                if not (y == want).all():
                    failures.append(k)

        zero, = self.session.run(None, {"x": self.x * 0})
        threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1, 0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_mistakes_are_named(self):
        for feeds, part in (({}, "x"), ({"z": self.x}, "z"), ({"x": self.x, "z": self.x}, "z"),
                            ({"x": self.x[0]}, "x"), ({"x": self.x.astype("f8")}, "f64")):
            with self.assertRaises(rondo.InvalidError) as caught:
                self.session.run(None, feeds)
            self.assertIn(part, str(caught.exception))
        with self.assertRaises(rondo.InvalidError):
            self.session.run(["no such output"], {"x": self.x})
        with self.assertRaises(rondo.UnsupportedError):
            self.session.run(None, {"x": self.x.astype("longdouble")})
        with self.assertRaises(TypeError):
            rondo.Session(find("vit_mini"), nonsense=1)
        with self.assertRaises(rondo.InvalidError):
            rondo.Session(find("vit_mini"), graphs="sometimes")
        self.same(self.session.run(None, {"x": self.x})[0])

    def test_cancel(self):
        stop = threading.Event()

        def cancel():
            while not stop.is_set():
                self.session.cancel()
                time.sleep(0.0005)

        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            with self.assertRaises(rondo.CancelledError):
                for n in range(1, 3000):  # each batch is compiled, which a cancel ends
                    self.session.run(None, {"x": numpy.zeros((n, 3, 12, 12), "f4")})
        finally:
            stop.set()
            thread.join()
        self.same(self.session.run(None, {"x": self.x})[0])


class Kinds(unittest.TestCase):
    def test_strings_lists_and_optionals(self):
        session = rondo.Session(find("words_and_lists"), device="host")
        self.assertEqual([port.type for port in session.inputs],
                         ["tensor(string)", "seq(tensor(float))", "optional(tensor(float))"])
        self.assertEqual([port.type for port in session.outputs][-1], "optional(tensor(float))")
        folder = os.path.join(os.path.dirname(find("words_and_lists")), "test_data_set_0")
        words = load(f"{folder}/input_0.pb")
        items = [numpy.arange(n, dtype="f4") for n in (1, 3)]
        got = session(words=words, list=items, maybe=numpy.ones(3, "f4"))
        self.assertEqual(got["shouted"].dtype, object)
        self.assertIsInstance(got["grown"], list)
        for before, after in zip(items, got["negated"]):
            numpy.testing.assert_array_equal(after, -before)
        again = session(words=list(words), list=items, maybe=numpy.ones(3, "f4"))
        self.assertEqual(again["shouted"].tolist(), got["shouted"].tolist())

    def test_numbers_for_scalars_and_empty_arrays(self):
        session = rondo.Session(find("branch_and_loop"), device="host")
        y, turns = session.run(None, {"x": numpy.ones((3, 16), "f4"), "steps": 4})
        self.assertEqual(turns.shape, ())
        rows = rondo.Session(find("found_rows"), device="host").run(
            None, {"x": numpy.zeros((0, 4), "f4")})
        self.assertEqual(rows[0].shape[0], 0)

    def test_half_precision_and_dimensions(self):
        x = numpy.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype("f4")
        full = rondo.Session(find("vit_mini"), device="host", threads=1)
        half = rondo.Session(find("vit_mini"), device="host", dtype="f16", keep_f32=["Softmax*"],
                             dimensions={"batch": 2})
        numpy.testing.assert_allclose(half.run(None, {"x": x})[0], full.run(None, {"x": x})[0],
                                      rtol=0.1, atol=0.05)
        self.assertIn("batch=2", half.inspect())


class NarrowTypes(unittest.TestCase):
    """Elements that numpy has with ml_dtypes, through a graph that hands them on."""

    def test_there_and_back(self):
        ml_dtypes = self.need("ml_dtypes")
        values = [-1.0, 0.0, 1.0, 2.0]
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "complex64"):
            dtype = numpy.dtype(getattr(ml_dtypes, name, name))
            array = numpy.array([abs(v) for v in values] if name.startswith("u") else values).astype(dtype)
            struct = _raw.rondo_tensor()
            kept = rondo.tensors.put_array(struct, array, "x")
            check(lib.rondo_tensor_init(struct.dtype, ctypes.byref(struct.shape),
                                        ctypes.byref(copy := _raw.rondo_tensor())))
            ctypes.memmove(copy.data, struct.data, array.nbytes)
            if name == "int4":  # the library writes the low bits alone
                ctypes.c_ubyte.from_address(copy.data).value &= 15
            back = take_value(copy)
            self.assertEqual(back.dtype, dtype)
            numpy.testing.assert_array_equal(back.astype("f4" if name != "complex64" else dtype),
                                             array.astype("f4" if name != "complex64" else dtype))
            del kept

    def need(self, name):
        try:
            return __import__(name)
        except ImportError:
            self.skipTest(f"{name} is not installed")


def save(path, inputs, op, output, variable=None):
    """A model of one op, made in code: its inputs are f32 [1], the last one perhaps a variable that
    starts at 5 and becomes the output."""
    builder, program = ctypes.c_void_p(), ctypes.c_void_p()
    check(lib.rondo_builder_create(None, ctypes.byref(builder)))
    for name in inputs:
        port = new(_raw.rondo_port, name=name, dtype=_raw.RONDO_DTYPE_F32, rank=1)
        port.extent[0] = 1
        if name == variable:
            start = new(_raw.rondo_start, kind=_raw.RONDO_START_CONSTANT, a=5)
            check(lib.rondo_builder_add_variable(builder, ctypes.byref(port), ctypes.byref(start)))
        else:
            check(lib.rondo_builder_add_input(builder, ctypes.byref(port)))
    check(lib.rondo_builder_add_node(builder, op, (ctypes.c_char_p * len(inputs))(*inputs),
                                     len(inputs), (ctypes.c_char_p * 1)(output), 1, None))
    if variable:
        check(lib.rondo_builder_set_update(builder, variable, output))
    else:
        check(lib.rondo_builder_add_output(builder, output, None))
    check(lib.rondo_builder_finish(builder, ctypes.byref(program)))
    lib.rondo_builder_destroy(builder)
    check(lib.rondo_program_save_onnx(program, path.encode()))
    lib.rondo_program_destroy(program)


class States(unittest.TestCase):
    def test_bound_state(self):
        session = rondo.Session(find("gpt_mini"), device="host")
        session.bind("present", "past")
        fresh = rondo.Session(find("gpt_mini"), device="host")
        past = numpy.zeros((2, 2, 1, 4, 0, 32), "f4")
        session.set("past", past)
        for position in range(4):
            feeds = {"ids": numpy.array([[position]]), "position": numpy.array([[position]])}
            logits, = session.run(["logits"], feeds)
            want, past = fresh.run(["logits", "present"], {**feeds, "past": past})
            numpy.testing.assert_allclose(logits, want, rtol=1e-5, atol=1e-6)
        numpy.testing.assert_allclose(session.get("past"), past, rtol=1e-5, atol=1e-6)

    def test_reserved_state_does_not_move(self):
        session = rondo.Session(find("gpt_mini"), device="host")
        session.bind("present", "past")
        session.reserve("past", 2 * 2 * 4 * 64 * 32 * 4)
        session.set("past", numpy.zeros((2, 2, 1, 4, 0, 32), "f4"))
        held = set()
        for position in range(4):
            session.run(["logits"], {"ids": [[position]], "position": [[position]]})
            held.add(session.stats.state_bytes)
        self.assertEqual(len(held), 1)
        self.assertGreaterEqual(held.pop(), 2 * 2 * 4 * 64 * 32 * 4)
        with self.assertRaises(rondo.InvalidError):
            session.reserve("position", 4)

    def test_variables_are_kept_reset_and_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "counter.onnx")
            save(path, [b"step", b"count"], b"Add", b"next", variable=b"count")
            session = rondo.Session(path, device="host")
            self.assertEqual(session.variables, {"count": "next"})
            for _ in range(3):
                session.run(None, {"step": numpy.array([2], "f4")})
            self.assertEqual(session.get("count").tolist(), [11])
            session.save(path)
            session.reset_variables()
            session.run(None, {"step": numpy.array([2], "f4")})
            self.assertEqual(session.get("count").tolist(), [7])
            later = rondo.Session(path, device="host")
            later.run(None, {"step": numpy.array([1], "f4")})
            self.assertEqual(later.get("count").tolist(), [12])
        self.assertEqual(rondo.Session(find("vit_mini"), device="host").variables, {})

    def test_weights(self):
        session = rondo.Session(find("vit_mini"), device="host")
        with self.assertRaises(rondo.InvalidError):
            session.get("no such weight")


class Looking(unittest.TestCase):
    def test_inspect_and_profile(self):
        session = rondo.Session(SQUEEZENET, device="host")
        feeds = make_feeds(session, {"batch": 1})
        plan = session.inspect(feeds)
        self.assertIn("segment 0", plan)
        self.assertTrue(plan._repr_svg_().lstrip().startswith("<"))
        self.assertIn("{", session.inspect(format="json"))
        profile = session.profile(feeds, runs=3)
        self.assertIn("Event summary", str(profile))
        names = [row.name for row in profile.rows()]
        self.assertIn("run", names)
        self.assertEqual(next(row.calls for row in profile.rows() if row.name == "run"), 3)
        page = profile._repr_html_()
        self.assertTrue(page.startswith("<table>") and "run" in page)
        self.assertIn("<html", profile.write("html"))
        self.assertGreater(profile.summary.total_ns, 0)
        with self.assertRaises(rondo.StateError):
            print(session.self_check_report)
        check_report = session.self_check(feeds)
        self.assertFalse(check_report.is_different)
        self.assertEqual(session.self_check_report, check_report)

    def test_placements(self):
        session = rondo.Session(SQUEEZENET, device="host")
        feeds = make_feeds(session, {"batch": 1})
        placements = session.list_placements(feeds)
        self.assertEqual({p.place for p in placements}, {"cpu"})
        self.assertEqual({p.kind for p in placements}, {"op", "tensor"})
        self.assertIn("Conv", {p.type for p in placements})

    def test_training_is_a_choice_of_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dropout.onnx")
            save(path, [b"x"], b"Dropout", b"y")
            session = rondo.Session(path, device="host", seed=3)
        feeds = {"x": numpy.ones(1, "f4")}
        for is_training in (False, True, False):
            session.set_training(is_training)
            values = {float(session.run(None, feeds)[0][0]) for _ in range(40)}
            self.assertEqual(values, {0.0, 2.0} if is_training else {1.0})

    def test_messages_go_to_a_logger(self):
        logger = logging.getLogger("test_of_rondo")
        rondo.set_log_levels("info,executor=debug")
        try:
            with self.assertLogs(logger, "DEBUG") as seen:
                rondo.log_to(logger)
                session = rondo.Session(SQUEEZENET, device="host", graphs="on")
                session.run(None, make_feeds(session, {"batch": 1}))
            count = len(seen.records)
            rondo.log_to(None)
        finally:
            rondo.log_to(None)
            rondo.set_log_levels(os.environ.get("RONDO_LOG", "warning"))
        record = seen.records[0]
        self.assertTrue(count and record.name.startswith("test_of_rondo."))
        self.assertTrue(record.pathname.endswith(".c") and record.lineno > 0 and record.getMessage())
        self.assertLess(abs(record.created - time.time()), 60)


if __name__ == "__main__":
    unittest.main()
