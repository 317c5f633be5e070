# SPDX-License-Identifier: Apache-2.0
"""CuPy on Rondo's streams and memory.

with rondo.capture(cupy.cuda.Stream(non_blocking=True)) does what `recording` says. cupy.random is
not safe in a capture: its generators keep their state on the host, and each replay would draw the
same. Draw with rondo.Generator into an array instead.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional

from .._library import InvalidError
from ..device import Stream
from ..graphs import Graph
from ..memory import Pool

__all__ = ["external_stream", "recording", "make_allocator"]


def external_stream(stream: Stream) -> Any:
    """A stream of Rondo's as cupy's: with external_stream(stream): ..."""
    import cupy
    native = stream.__cuda_stream__()[1]
    make = getattr(cupy.cuda.Stream, "from_external", None)  # from 14.0 on
    return make(stream) if make is not None else cupy.cuda.ExternalStream(native, _index(stream))


def _index(stream: Stream) -> int:
    return int(stream.device.name.partition(":")[2] or 0)


def make_allocator(pool: Pool, stream: Stream) -> Callable[[int], Any]:
    """An allocator for cupy.cuda.using_allocator: blocks of the pool, for the stream."""
    import cupy
    index = _index(stream)

    def allocate(nbytes: int) -> Any:
        block = pool.allocate(stream, nbytes)
        memory = cupy.cuda.UnownedMemory(block.address, nbytes, block, index)
        return cupy.cuda.MemoryPointer(memory, 0)

    return allocate


@contextlib.contextmanager
def recording(foreign: Any, stream: Stream, graph: Graph, pool: Optional[Pool]) -> Iterator[None]:
    """In the block `foreign` is cupy's current stream, and what cupy allocates is taken from the
    pool, which on a stream that records is memory of the graph."""
    import cupy
    if isinstance(pool, Graph):
        raise InvalidError("pool: a rondo.Pool; graphs share what cupy frees by arena=")
    pool = pool or Pool(stream.device)
    with foreign, cupy.cuda.using_allocator(make_allocator(pool, stream)):
        yield
    graph._keeps.memory = (pool,)
