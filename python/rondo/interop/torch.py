# SPDX-License-Identifier: Apache-2.0
"""PyTorch on Rondo's streams and memory.

with rondo.capture(torch.cuda.Stream()) does what `recording` says. What cannot be made safe:

    torch's random numbers   its generators are advanced by replays of torch's own CUDAGraph alone,
                             so torch refuses them in a capture that it did not begin, and the
                             block ends with UnsupportedError; draw with rondo.Generator into a
                             tensor instead
    a capture of torch's     is torch's: Rondo does not record inside torch.cuda.graph
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from typing import Any, Iterator, Optional, Union

from .._library import InvalidError, UnavailableError, UnsupportedError, check, lib
from ..device import Stream
from ..graphs import Graph
from ..memory import Pool

__all__ = ["external_stream", "recording", "allocator_path"]

_helper: Optional[ctypes.CDLL] = None
# What torch says of random numbers in a capture that is not its own, by version.
_RANDOM = ("RNG op during graph capture", "Offset increment outside graph capture",
           "CUDA generator not in capture mode", "Attempt to increase offset for a CUDA generator")


def allocator_path() -> str:
    """The library with rondo_torch_allocate and rondo_torch_free, for CUDAPluggableAllocator."""
    path = os.path.join(os.path.dirname(lib.load()._name), "librondo_torch.so")
    if not os.path.exists(path):
        raise UnavailableError(f"there is no {path}, which hands pools to torch; it is built with the "
                               "package (the target rondo_torch)")
    return path


def _load() -> ctypes.CDLL:
    global _helper
    if _helper is None:
        helper = ctypes.CDLL(allocator_path())
        helper.rondo_torch_attach.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                                              ctypes.c_void_p]
        helper.rondo_torch_detach.argtypes = [ctypes.c_void_p]
        helper.rondo_torch_detach.restype = None
        helper.rondo_torch_get_segment_count.restype = ctypes.c_size_t
        _helper = helper
    return _helper


def external_stream(stream: Stream) -> Any:
    """A stream of Rondo's as torch's: with torch.cuda.stream(external_stream(stream)): ..."""
    import torch
    external = torch.cuda.ExternalStream(stream.__cuda_stream__()[1],
                                         device=torch.device("cuda", _index(stream)))
    external.rondo_stream = stream  # what torch does not keep
    return external


def _index(stream: Stream) -> int:
    return int(stream.device.name.partition(":")[2] or 0)


# A MemPool of torch's that dies while any is in use, or a capture is under way, ends the process: the
# destructor asserts that there is none. So one whose graph is collected in another graph's block (the
# name behind `as` is given a new graph there) waits for the end of the last open block.
_lock = threading.RLock()  # a collection may come while it is held
_open_blocks = 0           # guarded by _lock
_dead: list[Any] = []      # guarded by _lock


class _Memory:
    """What `recording` leaves on a graph: a pool of torch's, its allocator, the pool behind them.

    torch's contexts are given this, which has what they read of a pool: its id. So no frame and no
    traceback of theirs keeps the pool itself."""

    def __init__(self, pool: Pool) -> None:
        import torch
        allocator = torch.cuda.memory.CUDAPluggableAllocator(
            allocator_path(), "rondo_torch_allocate", "rondo_torch_free")
        torch_pool = torch.cuda.MemPool(allocator.allocator())
        self.pool, self.id = pool, torch_pool.id
        self._parts = [torch_pool, allocator, pool]

    def __del__(self) -> None:
        if hasattr(self, "_parts"):
            with _lock:
                _dead.append(self._parts)
                del self._parts
                _bury()


def _bury() -> None:
    """Lets dead pools go where nothing records; _lock is held."""
    torch = sys.modules.get("torch")  # None: the interpreter ends
    if _open_blocks == 0 and _dead and torch and not torch.cuda.is_current_stream_capturing():
        _dead.clear()


@contextlib.contextmanager
def _block() -> Iterator[None]:
    global _open_blocks
    with _lock:
        _open_blocks += 1
    try:
        yield
    finally:
        with _lock:
            _open_blocks -= 1
            _bury()


def _get_memory(graph: Graph) -> _Memory:
    """What `recording` has left on a graph."""
    memory = graph._keeps.memory
    if not isinstance(memory, _Memory):
        raise InvalidError("pool: the graph has no memory of torch's to lend; it is closed, or was not "
                           "captured on a stream of torch's")
    return memory


@contextlib.contextmanager
def recording(foreign: Any, stream: Stream, graph: Graph,
              pool: Union[Pool, Graph, None]) -> Iterator[None]:
    """In the block `foreign` is torch's current stream, and what torch allocates is taken from the
    pool, which on a stream that records is memory of the graph. It stays until the graph is reset.

    pool   of another graph: what torch has freed there, and new memory.

    torch routes the allocations of this thread alone, so backward passes run on it, too. This comes
    before the capture's begin: torch keeps pools that are entered inside of captures by its graphs.
    """
    import torch
    helper = _load()
    memory = _get_memory(pool) if isinstance(pool, Graph) else _Memory(pool or Pool(stream.device))
    check(helper.rondo_torch_attach(stream.native, _index(stream), stream.handle, memory.pool.handle))
    try:
        with (_block(), torch.cuda.stream(foreign), torch.autograd.set_multithreading_enabled(False),
              torch.cuda.use_mem_pool(memory, device=_index(stream))):
            yield
    except RuntimeError as error:
        if any(part in str(error) for part in _RANDOM):
            raise UnsupportedError(
                "torch's random numbers cannot be recorded: its generators are advanced by torch's own "
                "graphs alone; draw with rondo.Generator into a tensor (docs/python.md)") from error
        raise
    finally:
        helper.rondo_torch_detach(stream.handle)
    graph._keeps.memory = memory
