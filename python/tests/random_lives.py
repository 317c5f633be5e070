# SPDX-License-Identifier: Apache-2.0
"""Random sequences of making, using and letting go of objects, with a count of what is left.

usage: random_lives.py STEPS [SEED]

The library's heap is counted by an allocator that this program compiles (needs cc; exit status 77
without). After each part everything is let go of in random order, and the blocks left must be those
that were left after the first part.
"""
import ctypes
import gc
import os
import random
import shutil
import subprocess
import sys
import tempfile

import numpy

import rondo
from rondo import _raw
from rondo._library import check, lib, new

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "tests/models/shortcut_mini/model.onnx")
COUNTER = r"""
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
atomic_long live;
void *take(void *data, size_t bytes, size_t alignment) {
    void *address = NULL;
    (void)data;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    if (posix_memalign(&address, alignment, bytes)) return NULL;
    ++live;
    return address;
}
void *move(void *data, void *address, size_t bytes) {
    (void)data;
    void *moved = realloc(address, bytes);
    if (!address && moved) ++live;
    return moved;
}
void give(void *data, void *address) { (void)data; if (address) { --live; free(address); } }
"""


def count_blocks():
    """Makes the library use a heap that counts; gives the counter."""
    if not shutil.which("cc"):
        print("skipped: no C compiler for the allocator that counts")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "counter.c")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(COUNTER)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", folder + "/counter.so", source], check=True)
        counter = ctypes.CDLL(folder + "/counter.so")
    allocator = new(_raw.rondo_allocator)
    for field, name in (("allocate", "take"), ("reallocate", "move"), ("free", "give")):
        kind = dict(_raw.rondo_allocator._fields_)[field]
        setattr(allocator, field, kind(ctypes.cast(getattr(counter, name), ctypes.c_void_p).value))
    check(lib.rondo_set_allocator(ctypes.byref(allocator)))
    return ctypes.c_long.in_dll(counter, "live")


class World:
    """Objects by kind, and what may happen to them."""

    def __init__(self, dice):
        self.dice, self.objects, self.seen = dice, {}, []
        self.model = open(MODEL, "rb").read()
        self.counts = {}

    def pick(self, kind):
        found = self.objects.get(kind)
        return self.dice.choice(found) if found else None

    def add(self, kind, thing):
        self.objects.setdefault(kind, []).append(thing)
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def device(self):
        return self.pick("device") or rondo.Device("host")

    def stream(self):
        found = self.pick("stream")
        if found is None:
            found = rondo.Stream(self.device())
            self.add("stream", found)
        return found

    # ---- what happens -------------------------------------------------------------------------

    def make_device(self):
        self.add("device", rondo.Device("host"))

    def make_stream(self):
        self.add("stream", rondo.Stream(self.device()))

    def make_event(self):
        self.add("event", self.stream().record_event(timed=self.dice.random() < 0.5))

    def make_pool(self):
        self.add("pool", rondo.Pool(self.device()))

    def make_block(self):
        pool = self.pick("pool") or rondo.Pool(self.device())
        block = pool.allocate(self.stream(), self.dice.choice((0, 64, 5000, 1 << 16)))
        self.add("block", block)
        if block.nbytes and self.dice.random() < 0.3:
            self.add("array", block.numpy())

    def make_generator(self):
        self.add("generator", rondo.Generator(self.device(), self.dice.randrange(100)))

    def make_tensor(self):
        kind = self.dice.randrange(3)
        if kind == 0:
            self.add("tensor", rondo.from_dlpack(numpy.ones(self.dice.randrange(1, 50), "f4")))
        elif kind == 1:
            self.add("tensor", rondo.empty(self.dice.randrange(50), "f4", self.device()))
        else:
            tensor = self.pick("tensor")
            if tensor is not None and not tensor.is_closed:
                self.add("array", numpy.from_dlpack(tensor))

    def make_arena(self):
        self.add("arena", rondo.Arena(self.device(), allows_any_order=True))

    def make_graph(self):
        stream = self.stream()
        arena = self.pick("arena") if self.dice.random() < 0.3 else None
        fails = self.dice.randrange(6)
        try:
            with rondo.capture(stream, arena=arena) as graph:
                for _ in range(self.dice.randrange(4)):
                    self.put(stream)
                if fails == 0:
                    raise KeyError("mine")
                if fails == 1:
                    stream.synchronize()
            self.add("graph", graph)
        except (KeyError, rondo.CaptureError) as error:
            assert fails < 2, error

    def put(self, stream):
        kind = self.dice.randrange(4)
        if kind == 0:
            stream.call_host(self.seen.append, self.dice.randrange(10))
        elif kind == 1:
            stream.fill(numpy.zeros(16, "u1"), 1)
        elif kind == 2:
            (self.pick("generator") or rondo.Generator(self.device())).uniform(
                stream, numpy.zeros(8, "f4"))
        else:
            pool = self.pick("pool") or rondo.Pool(self.device())
            block = pool.allocate(stream, 256)
            stream.fill(block, 3)
            if self.dice.random() < 0.5:
                block.close()

    def eager(self):
        self.put(self.stream())

    def replay(self):
        graph = self.pick("graph")
        if graph is not None:
            graph.replay(self.stream())

    def wait(self):
        self.stream().synchronize()

    def make_cache(self):
        self.add("cache", rondo.GraphCache(self.device(), policy="always_capture", entry_limit=2))

    def run_cache(self):
        cache = self.pick("cache")
        if cache is not None:
            n = self.dice.randrange(4)
            cache.run(n, self.stream(), lambda s: s.call_host(self.seen.append, n))

    def make_session(self):
        if self.dice.random() < 0.05:
            stream = self.stream() if self.dice.random() < 0.5 else None
            self.add("session", rondo.Session(self.model, device="host", stream=stream, threads=1))

    def run_session(self):
        session = self.pick("session")
        if session is not None and self.dice.random() < 0.2:
            out = session.run(None, {"x": numpy.ones((2, 8, 9, 12), "f4")}, on_device=True)
            self.add("tensor", out[0])

    def make_program(self):
        if self.dice.random() < 0.2:
            self.add("program", rondo.Program(self.model))
            self.add("builder", rondo.Builder(self.pick("program")))

    def make_step(self):
        """A program that trains: its session and what it was built from go in any order."""
        if self.dice.random() < 0.05:
            model = rondo.Builder()
            model.add_input("x", "float32", [2])
            model.add_parameter("w", numpy.ones(2, "f4"))
            model.add_output(model.add_node("Mul", "x", "w", outputs=["y"]))
            model = model.finish()
            builder = rondo.Builder(model)
            builder.add_output(builder.add_node("ReduceMean", "y", keepdims=0, outputs=["loss"]))
            builder.minimize("loss", self.dice.choice(("sgd", "adam")))
            self.add("builder", builder)
            if self.dice.random() < 0.7:
                session = rondo.Session(builder.finish(), "host", threads=1)
                session.run(["loss"], {"x": numpy.ones(2, "f4")})
                self.add("program", session.get_trained(model))
                self.add("step", session)

    def make_cycle(self):
        """Garbage that only the collector finds, in an order of its own."""
        stream = rondo.Stream("host")
        with rondo.capture(stream) as graph:
            stream.call_host(lambda: (stream, graph))
        knot = [stream, graph, rondo.Event("host"), rondo.Generator("host")]
        knot.append(knot)

    def let_go(self):
        for _ in range(3):
            kind = self.dice.choice(list(self.objects)) if self.objects else None
            found = self.objects.get(kind)
            if found:
                thing = found.pop(self.dice.randrange(len(found)))
                if self.dice.random() < 0.3 and hasattr(thing, "close"):
                    thing.close()
                    thing.close()

    def end(self):
        everything = [thing for found in self.objects.values() for thing in found]
        self.objects.clear()
        self.dice.shuffle(everything)
        while everything:
            everything.pop()
        gc.collect()

    def step(self):
        self.dice.choice(STEPS)(self)


STEPS = [World.make_device, World.make_stream, World.make_event, World.make_pool, World.make_block,
         World.make_generator, World.make_tensor, World.make_arena, World.make_graph, World.eager,
         World.replay, World.wait, World.make_cache, World.run_cache, World.make_session,
         World.run_session, World.make_program, World.make_step, World.make_cycle] + [World.let_go] * 6


def main():
    steps = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    live = count_blocks()
    dice = random.Random(seed)
    parts, left, made = 8, [], {}
    for part in range(parts + 1):
        world = World(dice)
        for _ in range(steps // parts if part else 200):
            world.step()
            rondo._host.failures.clear()
        for kind, count in world.counts.items():
            made[kind] = made.get(kind, 0) + count
        world.end()
        del world
        gc.collect()
        left.append(live.value)
    print(f"seed {seed}: {steps} steps, {sum(made.values())} objects ({made}); blocks left: {left}")
    assert max(left[1:]) <= left[0] + 8, "blocks are left behind"
    assert not rondo._host._keepers and len(rondo._host._by_key) == 0, "host functions are left"


if __name__ == "__main__":
    main()
