# SPDX-License-Identifier: Apache-2.0
"""Objects in any order, forks, threads, and the end of the interpreter."""
import gc
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy

import rondo

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*arguments):
    return subprocess.run([sys.executable, "-X", "faulthandler", *arguments], capture_output=True,
                          text=True, timeout=280)


class Lives(unittest.TestCase):
    def test_random_sequences_leave_nothing(self):
        done = run(os.path.join(HERE, "random_lives.py"), "8000", "1")
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Prompt(unittest.TestCase):
    def test_objects_go_with_their_last_reference(self):
        """Without the collector."""
        gc.collect()
        gc.disable()
        try:
            stream = rondo.Stream("host")
            with rondo.capture(stream) as graph:
                stream.call_host(lambda: None)
            graph.replay()
            stream.synchronize()
            cache = rondo.GraphCache("host", policy="always_capture")
            cache.run(1, stream, lambda s: s.call_host(print))
            stream.synchronize()
            learned = rondo.learn(lambda s, n: s.call_host(abs, n), {"n": "int64"}, "host")
            learned(stream, 1)
            stream.synchronize()
            pool = rondo.Pool("host")
            things = [stream, graph, cache, learned, pool, pool.allocate(stream, 64),
                      rondo.Generator("host"), rondo.empty(4), rondo.Event("host")]
            marks = [weakref.ref(thing) for thing in things]
            del stream, graph, cache, learned, pool
            things.clear()
            self.assertEqual([mark() for mark in marks], [None] * len(marks))
        finally:
            gc.enable()


class InHostFunctions(unittest.TestCase):
    def test_garbage_found_there_is_destroyed_elsewhere(self):
        """Its stream would wait for itself."""
        class Knot:
            pass

        def collect():
            gc.collect()

        for _ in range(3):
            stream = rondo.Stream("host")
            knot = Knot()
            knot.stream, knot.knot = rondo.Stream("host"), knot
            with rondo.capture(knot.stream) as knot.graph:
                knot.stream.call_host(lambda knot=knot: None)
            gate = threading.Event()
            knot.graph.replay()
            knot.stream.call_host(gate.wait, 10.0)
            knot.stream.call_host(collect)  # on the worker of the stream that is garbage by then
            del knot
            gate.set()
            time.sleep(0.02)
            stream.call_host(collect)
            stream.synchronize()
        self.assertEqual(len(rondo._library.postponed), 0)

    def test_last_reference_there(self):
        stream, other = rondo.Stream("host"), [rondo.Stream("host")]
        gate = threading.Event()
        stream.call_host(gate.wait, 10.0)
        stream.call_host(other.clear)
        gate.set()
        stream.synchronize()
        self.assertEqual((other, len(rondo._library.postponed)), ([], 0))


class Ends(unittest.TestCase):
    def check(self, text, wanted=""):
        done = run("-c", "import rondo, numpy, threading, time\n" + text)
        self.assertEqual((done.returncode, done.stdout), (0, wanted), done.stderr)

    def test_work_is_done_before_the_interpreter_goes(self):
        self.check("s = rondo.Stream('host')\n"
                   "def slow():\n    time.sleep(0.05)\n    print('ran')\n"
                   "s.call_host(slow)\n", "ran\n")

    def test_objects_that_outlive_everything(self):
        self.check("import builtins\n"
                   "s = builtins.kept = rondo.Stream('host')\n"
                   "with rondo.capture(s) as g:\n    s.call_host(print, 'x')\n"
                   "builtins.graph = g\n"
                   "builtins.capsule = rondo.empty(4).__dlpack__()\n"
                   "builtins.array = rondo.empty(4).numpy()\n")

    def test_capture_that_is_open_at_the_end(self):
        self.check("s = rondo.Stream('host')\n"
                   "c = rondo.capture(s)\n"
                   "g = c.__enter__()\n"
                   "s.call_host(print, 'never')\n")


class Forks(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_child_may_let_go_and_begin_anew(self):
        stream = rondo.Stream("host")
        with rondo.capture(stream) as graph:
            stream.call_host(lambda: None)
        seen = []
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                for call in (stream.synchronize, graph.replay):
                    try:
                        call()
                        seen.append("ran")
                    except rondo.LostError:
                        seen.append("lost")
                graph.close()
                stream.close()
                fresh = rondo.Stream("host")
                fresh.call_host(lambda: seen.append("fresh"))
                fresh.synchronize()
                os.write(writer, ",".join(seen).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as stream_of_child:
            self.assertEqual(stream_of_child.read(), "lost,lost,fresh")
        os.waitpid(child, 0)
        graph.replay()
        stream.synchronize()


class Threads(unittest.TestCase):
    def test_each_thread_its_own(self):
        failures = []

        def work(number):
            try:
                stream = rondo.Stream("host")
                x = numpy.zeros(64, "u4")
                for k in range(30):
                    with rondo.capture(stream) as graph:
                        stream.fill(x, number * 100 + k, 4)
                        stream.call_host(lambda: None)
                    graph.replay()
                    stream.synchronize()
                    assert (x == number * 100 + k).all()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_error_of_one_thread_is_not_anothers(self):
        def fail():
            with self.assertRaises(rondo.InvalidError):
                rondo.Device("toaster")

        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        self.assertEqual(rondo._library.lib.rondo_error_get_last().contents.status in (0, 1, 2), True)


if __name__ == "__main__":
    unittest.main()
