# SPDX-License-Identifier: Apache-2.0
"""Captures, graphs, nodes, pools, generators, caches and learned steps on the host."""
import contextlib
import ctypes
import threading
import unittest

import numpy

import rondo


class Case(unittest.TestCase):
    def setUp(self):
        self.device = rondo.Device("host")
        self.stream = rondo.Stream(self.device)
        self.seen = []

    def put(self, value):
        self.stream.call_host(self.seen.append, value)

    def drain(self):
        self.stream.synchronize()
        seen, self.seen[:] = list(self.seen), []
        return seen


class Captures(Case):
    def test_recorded_not_run_then_replayed(self):
        with rondo.capture(self.stream, label="two") as graph:
            self.put(1)
            self.put(2.5)
        self.assertEqual(self.drain(), [])
        graph.replay()
        graph.replay(self.stream)
        other = rondo.Stream(self.device)
        graph.replay(other)
        other.synchronize()
        self.assertEqual(self.drain(), [1, 2.5] * 3)
        self.assertEqual(graph.node_count, 2)
        self.assertEqual(graph.edges, [(0, 1)])
        self.assertEqual([n.kind for n in graph.nodes], ["host", "host"])
        self.assertEqual(graph.stats.replay_count, 3)
        self.assertIn("digraph", graph.dump())

    def test_new_stream_when_none_is_named(self):
        with rondo.capture(device="host") as graph:
            graph.stream.call_host(self.seen.append, 3)
        graph.replay()
        graph.stream.synchronize()
        self.assertEqual(self.drain(), [3])

    def test_what_breaks_a_capture_is_an_exception_with_cause_call_and_cure(self):
        with self.assertRaises(rondo.CaptureError) as caught:
            with rondo.capture(self.stream):
                with self.stream.label("layer"):
                    self.put(1)
                    with self.assertRaises(rondo.StateError):
                        self.stream.synchronize()
        error = caught.exception
        self.assertEqual(error.cause, "SYNCHRONIZE")
        self.assertEqual(error.call, "rondo_stream_synchronize")
        self.assertEqual(error.status, "STATE")
        self.assertEqual(error.label, "layer")
        self.assertIn("events", error.cure)
        self.assertEqual((error.last_node, error.last_node_index), ("append", 0))
        self.assertIn("cure:", str(error))
        self.check_usable()

    def test_exception_flies_through_and_leaves_nothing(self):
        for _ in range(3):
            with self.assertRaises(KeyError) as caught:
                with rondo.capture(self.stream):
                    self.put(1)
                    raise KeyError("mine")
            self.assertFalse(getattr(caught.exception, "__notes__", []))
            self.check_usable()

    def test_call_that_breaks_a_capture_raises_the_report(self):
        with self.assertRaises(rondo.CaptureError) as caught:
            with rondo.capture(self.stream):
                self.put(1)
                self.stream.synchronize()
        self.assertEqual(caught.exception.cause, "SYNCHRONIZE")
        self.assertIsInstance(caught.exception.__cause__, rondo.StateError)
        self.check_usable()

    def test_exception_through_a_broken_capture_carries_the_report(self):
        with self.assertRaises(KeyError) as caught:
            with rondo.capture(self.stream):
                self.put(1)
                with contextlib.suppress(rondo.StateError):
                    self.stream.synchronize()
                raise KeyError("mine")
        self.assertIn("SYNCHRONIZE", "".join(caught.exception.__notes__))
        self.check_usable()

    def check_usable(self):
        self.assertFalse(self.stream.is_recording)
        with rondo.capture(self.stream) as graph:
            self.put(7)
        graph.replay()
        self.assertEqual(self.drain(), [7])

    def test_graph_records_again_after_reset(self):
        graph = rondo.Graph(self.device)
        for value in (1, 2):
            with graph.capture(self.stream):
                self.put(value)
            graph.replay()
            with self.assertRaises(rondo.StateError):
                with graph.capture(self.stream):
                    pass
            graph.reset()
        self.assertEqual(self.drain(), [1, 2])

    def test_forked_stream_joins(self):
        other = rondo.Stream(self.device)
        with rondo.capture(self.stream) as graph:
            self.put(1)
            other.wait_stream(self.stream)
            other.call_host(self.seen.append, 2)
            self.stream.wait_stream(other)
            self.put(3)
        graph.replay()
        self.assertEqual(self.drain(), [1, 2, 3])

    def test_memory_of_a_graph_is_kept(self):
        def record():
            x, y = numpy.arange(1000, dtype="f4"), numpy.zeros(1000, "f4")
            with rondo.capture(self.stream) as graph:
                self.stream.copy(y, x)
                self.stream.call_host(lambda: self.seen.append(float(y.sum())))
            return graph

        graph = record()
        junk = [numpy.full(1000, -1, "f4") for _ in range(50)]
        graph.replay()
        self.assertEqual(self.drain(), [499500.0])
        del junk

    def test_bounds_are_looked_at(self):
        x = numpy.zeros(4, "f4")
        frozen = numpy.zeros(4, "f4")
        frozen.flags.writeable = False
        for wrong in (lambda: self.stream.copy(x, numpy.zeros(2, "f4"), 16),
                      lambda: self.stream.fill(x, 1, 4, 5),
                      lambda: self.stream.copy(x[::2], x),
                      lambda: self.stream.fill(frozen, 1),
                      lambda: self.stream.copy(0, 0)):
            self.assertRaises(rondo.InvalidError, wrong)
        self.assertRaises(TypeError, self.stream.copy, x, "text")

    def test_update_and_compare(self):
        x = numpy.zeros(4, "u4")
        graphs = []
        for value in (1, 2):
            with rondo.capture(self.stream) as graph:
                self.stream.fill(x, value, 4)
            graphs.append(graph)
        first, second = graphs
        self.assertEqual([d.field for d in first.compare(second)], ["fill_value"])
        self.assertIn("fill_value 1 before, 2 now", first.compare(second)[0].text)
        self.assertTrue(first.update(second).was_patched)
        first.replay()
        self.stream.synchronize()
        self.assertEqual(x.tolist(), [2] * 4)
        with self.assertRaises(rondo.StateError):
            second.replay()


class BetweenDevices(Case):
    def test_bytes_go_from_one_to_the_other(self):
        x, y = numpy.arange(8, dtype="i4"), numpy.zeros(8, "i4")
        self.stream.copy_between(self.device, y, rondo.Device("host"), x)
        self.stream.synchronize()
        self.assertEqual(x.tolist(), y.tolist())
        self.assertTrue(self.device.copies_directly_from(self.device))
        with self.assertRaises(rondo.InvalidError):
            self.stream.copy_between(self.device, y, self.device, x, 33)


class HostFunctions(Case):
    def test_exception_comes_out_of_the_wait(self):
        def fail():
            raise KeyError("boom")

        self.stream.call_host(fail)
        self.put(1)
        with self.assertRaises(KeyError):
            self.stream.synchronize()
        self.assertEqual(self.drain(), [1])

    def test_arguments(self):
        marker = object()
        self.stream.call_host(lambda *a: self.seen.append(a), 1, -2.5, marker, "text", 2**63 + 1, True)
        self.assertEqual(self.drain(), [(1, -2.5, marker, "text", 2**63 + 1, True)])

    def test_many_are_kept_until_they_ran(self):
        for index in range(3000):
            self.stream.call_host(lambda i=index: self.seen.append(i))
        self.assertEqual(self.drain(), list(range(3000)))


class Nodes(Case):
    def test_patch_and_toggle(self):
        x = numpy.zeros(4, "u4")
        with rondo.capture(self.stream) as graph:
            self.stream.fill(x, 1, 4)
            node = self.stream.last_node()
            self.put(5)
            call = self.stream.last_node()
        self.assertEqual(graph.index_of(node), 0)
        graph.patch((node, rondo.Fill(x, 3, 4)), (call, rondo.HostCall(self.seen.append, 6)))
        graph.replay()
        self.assertEqual(self.drain(), [6])
        self.assertEqual(x.tolist(), [3] * 4)
        x[:] = 0
        graph.disable(node)
        graph.replay()
        self.drain()
        self.assertEqual(x.tolist(), [0] * 4)
        graph.enable(node)
        graph.replay()
        self.drain()
        self.assertEqual(x.tolist(), [3] * 4)
        other = rondo.Graph(self.device)
        with self.assertRaises(rondo.StateError):
            other.patch((node, rondo.Fill(x, 3, 4)))

    def test_added_while_recording(self):
        x = numpy.zeros(4, "u4")
        with rondo.capture(self.stream) as graph:
            first = self.stream.add_node(rondo.Fill(x, 1, 4))
            self.stream.add_node(rondo.HostCall(self.seen.append, 5))
        self.assertEqual(graph.index_of(first), 0)
        graph.patch((first, rondo.Fill(x, 8, 4)))
        graph.replay()
        self.assertEqual(self.drain(), [5])
        self.assertEqual(x.tolist(), [8] * 4)
        with self.assertRaises(rondo.StateError):
            self.stream.add_node(rondo.Fill(x, 1, 4))
        with self.assertRaises(rondo.UnsupportedError):
            graph.measure_device_bytes()

    def test_many_patches_keep_no_more(self):
        words = [numpy.zeros(1000, "u4") for _ in range(3)]
        with rondo.capture(self.stream) as graph:
            self.stream.fill(words[0], 0, 4)
            node = self.stream.last_node()
        for n in range(3000):
            target = numpy.zeros(1000, "u4")
            graph.patch((node, rondo.Fill(target, n, 4)))
            graph.replay()
            if n % 100 == 0:
                self.stream.synchronize()
                self.assertTrue((target == n).all())
        self.stream.synchronize()
        graph.patch((node, rondo.Fill(words[1], 1, 4)))
        self.assertLessEqual(len(graph._keeps.retired._young) + len(graph._keeps.retired._old), 600)
        self.assertEqual(len(graph._keeps.patched), 1)

    def test_built_by_hand(self):
        x, y = numpy.zeros(4, "u4"), numpy.zeros(4, "u4")
        graph = rondo.Graph(self.device)
        with graph.build():
            a = graph.add(rondo.Fill(x, 4, 4))
            b = graph.add(rondo.Copy(y, x), after=[a])
            graph.add(rondo.HostCall(lambda: self.seen.append(y.tolist())), after=[b])
        graph.replay(self.stream)
        self.assertEqual(self.drain(), [[4] * 4])
        self.assertEqual(graph.edges, [(0, 1), (1, 2)])
        with self.assertRaises(ValueError):
            rondo.Graph(self.device).replay()
        outer = rondo.Graph(self.device)
        with outer.build():
            outer.add(rondo.Child(graph))
        outer.replay(self.stream)
        self.assertEqual(self.drain(), [[4] * 4])


    def test_work_stays_inside_its_memory(self):
        small, large = numpy.zeros(4, "u4"), numpy.zeros(64, "u4")
        address = small.ctypes.data
        graph = rondo.Graph(self.device)
        bad = [(rondo.Copy(small, large), "256 bytes, but one of the two has only 16"),
               (rondo.Copy(small, large, nbytes=17), "17 bytes"),
               (rondo.Copy(small, large, nbytes=-1), "-1"),
               (rondo.Copy(address, address + 8), "say how many bytes"),
               (rondo.Fill(small, 1, 4, count=5), "5 elements of 4 bytes in 16 bytes"),
               (rondo.Fill(small, 1, 4, count=-1), "-1"),
               (rondo.Fill(small, 1, 0), "0 bytes"),
               (rondo.Fill(address, 1, 4), "say how many elements")]
        with graph.build():
            for work, text in bad:
                with self.assertRaisesRegex(rondo.InvalidError, text):
                    graph.add(work)
            graph.add(rondo.Copy(large, small))
        for call, arguments, text in (
                (self.stream.copy, (small, large), "256 bytes"),
                (self.stream.copy, (small, large, -1), "-1"),
                (self.stream.fill, (small, 1, 4, 5), "5 elements"),
                (self.stream.fill, (small, 1, 4, -1), "-1"),
                (self.stream.fill, (small, 1, 0), "0 bytes")):
            with self.assertRaisesRegex(rondo.InvalidError, text):
                call(*arguments)


class Memory(Case):
    def test_blocks_of_a_capture_are_the_graphs(self):
        pool = rondo.Pool(self.device)
        with rondo.capture(self.stream) as graph:
            with pool.allocate(self.stream, 4000) as block:
                self.stream.fill(block, 7, 4)
                result = block.numpy("u4")
                self.stream.call_host(lambda a: self.seen.append(int(a.sum())), result)
        self.assertGreater(graph.stats.arena_reserved_bytes, 0)
        graph.replay()
        self.assertEqual(self.drain(), [7000])

    def test_sharing_an_arena(self):
        arena, pool, graphs, addresses = rondo.Arena(self.device), rondo.Pool(self.device), [], []
        for _ in range(2):
            with rondo.capture(self.stream, arena=arena) as graph:
                with pool.allocate(self.stream, 1 << 20) as block:
                    self.stream.fill(block, 1)
                    addresses.append(block.address)
            graphs.append(graph)
        self.assertEqual(addresses[0], addresses[1])
        self.assertEqual(arena.stats.graph_count, 2)
        arena.begin_round()
        for graph in graphs:
            graph.replay()
        self.drain()

    def test_stats_and_trim(self):
        pool = rondo.Pool(self.device)
        block = pool.allocate(self.stream, 1000)
        block.numpy()[:] = 3
        self.assertEqual(pool.stats.live_count, 1)
        block.close()
        self.stream.synchronize()
        self.assertEqual(pool.stats.live_count, 0)
        self.assertGreater(pool.trim(), 0)
        with self.assertRaises(rondo.StateError):
            block.numpy()

    def test_block_given_back_in_a_capture_that_fails(self):
        pool = rondo.Pool(self.device)
        block = pool.allocate(self.stream, 1000)
        with self.assertRaises(KeyError):
            with rondo.capture(self.stream):
                self.stream.fill(block, 1)
                block.close()
                raise KeyError("mine")
        self.stream.synchronize()
        self.assertEqual(pool.stats.live_count, 0)

    def test_limit(self):
        pool = rondo.Pool(self.device, limit_bytes=1 << 20)
        with self.assertRaises(MemoryError) as caught:
            pool.allocate(self.stream, 1 << 24)
        self.assertIsInstance(caught.exception, rondo.DeviceMemoryError)


class Random(Case):
    def test_replays_draw_on(self):
        draws = []
        for _ in range(2):  # the same numbers eagerly and by replays
            generator = rondo.Generator(self.device, seed=42)
            out = numpy.zeros(8, "f4")
            rows = []
            if not draws:
                for _ in range(3):
                    generator.normal(self.stream, out)
                    self.stream.synchronize()
                    rows.append(out.copy())
            else:
                with rondo.capture(self.stream) as graph:
                    generator.normal(self.stream, out)
                for _ in range(3):
                    graph.replay()
                    self.stream.synchronize()
                    rows.append(out.copy())
            draws.append(numpy.stack(rows))
        self.assertTrue((draws[0] == draws[1]).all())
        self.assertEqual(len({row.tobytes() for row in draws[0]}), 3)
        self.assertEqual(generator.state, (42, 6))

    def test_others(self):
        generator = rondo.Generator(self.device, seed=1)
        uniform, kept = numpy.zeros(1000, "f8"), numpy.zeros(1000, "f4")
        mask, words = numpy.zeros(1000, "u1"), numpy.zeros(4, "u4")
        generator.uniform(self.stream, uniform, -1.0, 1.0)
        generator.dropout(self.stream, numpy.ones(1000, "f4"), kept, 0.5, mask)
        generator.words(self.stream, words)
        flags = numpy.zeros(1000, "bool")
        generator.bernoulli(self.stream, flags, 0.25)
        each = numpy.zeros(1000, "f8")
        each[500:] = 1
        halves = numpy.full(1000, 7, "f4")
        generator.bernoulli(self.stream, halves, each)
        with self.assertRaises(rondo.InvalidError):
            generator.bernoulli(self.stream, halves, each[:10])
        self.stream.synchronize()
        self.assertEqual(halves.tolist(), each.tolist())
        self.assertTrue((uniform >= -1).all() and (uniform < 1).all() and uniform.std() > 0.5)
        self.assertTrue(((kept == 2) == (mask == 1)).all() and 400 < mask.sum() < 600)
        self.assertTrue(words.any() and 200 < flags.sum() < 300)
        with self.assertRaises(rondo.InvalidError):
            generator.dropout(self.stream, numpy.ones(10, "f4"), kept, 0.5)


class Learning(Case):
    def test_step_is_learned_and_patched(self):
        x, y = numpy.arange(16, dtype="f4"), numpy.zeros(16, "f4")

        def scale(to, of, rate):
            view = [numpy.frombuffer((ctypes.c_char * 64).from_address(a), "f4") for a in (to, of)]
            view[0][:] = view[1] * rate

        def step(stream, of, to, rate):
            stream.call_host(scale, to, of, rate)

        learned = rondo.learn(step, {"x": x, "y": y, "rate": rondo.Argument("float32", least=0.0,
                                                                           most=8.0)},
                              self.device, fallback="refuse")
        for rate in (2.0, 3.0, 0.5):
            learned.run(self.stream, x, y, rate)
            self.stream.synchronize()
            self.assertEqual(y.tolist(), (x * rate).tolist())
        other = numpy.ones(16, "f4")
        learned(self.stream, other, y, 4.0)
        self.stream.synchronize()
        self.assertEqual(y.tolist(), [4.0] * 16)
        report = learned.report
        self.assertEqual((report.state, report.refusal), ("proved", "NONE"))
        self.assertEqual(sorted(s.formula for s in learned.slots), ["(double)rate", "x", "y"])
        self.assertIn("rate", learned.describe())
        self.assertGreater(report.draw_count, 50)
        with self.assertRaises(rondo.InvalidError):
            learned.run(self.stream, x, y, 9.0)
        with self.assertRaises(rondo.InvalidError):
            learned.run(self.stream, x, y)

    def test_step_that_cannot_be_learned(self):
        count = [0]

        def step(stream, n):
            count[0] += 1
            stream.call_host(self.seen.append, count[0])

        learned = rondo.learn(step, {"n": "int64"}, self.device, fallback="refuse")
        with self.assertRaises(rondo.UnsupportedError):
            learned.run(self.stream, 1)
        self.assertEqual(learned.report.state, "refused")
        self.assertTrue(learned.report.advice)
        self.assertEqual(learned.findings[0].is_warning, False)

    def test_exception_of_the_step(self):
        def step(stream, n):
            raise KeyError("mine")

        learned = rondo.learn(step, {"n": "int32"}, self.device)
        with self.assertRaises(KeyError):
            learned.run(self.stream, 1)


class Caches(Case):
    def test_captured_then_replayed(self):
        cache = rondo.GraphCache(self.device, policy="always_capture")

        def step(stream, value):
            stream.call_host(self.seen.append, value)

        outcomes = [cache.run(("f4", n), self.stream, step, n) for n in (1, 2, 1, 1)]
        self.assertEqual(outcomes, ["captured_and_replayed", "captured_and_replayed", "replayed",
                                    "replayed"])
        self.assertEqual(self.drain(), [1, 2, 1, 1])
        self.assertTrue(cache.get_entry(("f4", 1)).has_graph)
        self.assertEqual(cache.stats.hit_count, 2)
        cache.forget(("f4", 1))
        with self.assertRaises(rondo.InvalidError):
            cache.get_entry(("f4", 1))

    def test_measured_runs_eagerly_first(self):
        cache = rondo.GraphCache(self.device)
        self.assertEqual(cache.run("k", self.stream, lambda s: s.call_host(self.seen.append, 1)),
                         "ran_eagerly")
        self.assertEqual(self.drain(), [1])

    def test_exception_of_the_step(self):
        cache = rondo.GraphCache(self.device, policy="always_capture")

        def fail(stream):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            cache.run("k", self.stream, fail)
        cache.run("k", self.stream, lambda s: s.call_host(self.seen.append, 1))
        self.assertEqual(self.drain(), [1])

    def test_evicted_graphs_are_let_go(self):
        cache = rondo.GraphCache(self.device, policy="always_capture", entry_limit=4)
        for n in range(40):
            cache.run(n, self.stream, lambda s, n=n: s.call_host(lambda: self.seen.append(n)))
        self.assertEqual(self.drain(), list(range(40)))
        self.assertLessEqual(len(cache._kept), 9)


class Events(Case):
    def test_order_and_time(self):
        gate = threading.Event()
        begin = self.stream.record_event(timed=True)
        self.stream.call_host(gate.wait, 10.0)
        end = self.stream.record_event(timed=True)
        self.assertFalse(end.is_complete)
        self.assertFalse(self.stream.is_idle)
        gate.set()
        end.synchronize()
        self.assertGreater(begin.elapsed_ns(end), 0)

    def test_what_is_no_stream(self):
        class Odd:
            def __cuda_stream__(self):
                return 1, 2, 3

        for wrong in ("text", None, True, Odd(), object()):
            with self.assertRaises(TypeError):
                rondo.Stream.wrap(wrong, "host")
        with self.assertRaises(rondo.UnsupportedError):
            rondo.Stream.wrap(4096, "host")
        with self.assertRaises(rondo.UnsupportedError):
            self.stream.__cuda_stream__()


class Errors(unittest.TestCase):
    def test_classes_by_status(self):
        with self.assertRaises(rondo.InvalidError) as caught:
            rondo.Device("toaster")
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIsInstance(caught.exception, rondo.RondoError)
        self.assertIn("host", str(caught.exception))
        if not any(d.available and d.name == "cuda:0" for d in rondo.devices()):
            with self.assertRaises(rondo.UnavailableError):
                rondo.Device("cuda")
        with self.assertRaises(rondo.UnavailableError):
            rondo.Session("no/such/file.onnx")
        with self.assertRaises(rondo.BadDataError):
            rondo.Session(b"\xff\xff\xff")

    def test_closed_objects_say_so(self):
        device = rondo.Device("host")
        stream = rondo.Stream(device)
        stream.close()
        stream.close()
        self.assertTrue(stream.is_closed)
        with self.assertRaises(rondo.StateError):
            stream.synchronize()
        with self.assertRaises(rondo.StateError):
            stream.handle


if __name__ == "__main__":
    unittest.main()
