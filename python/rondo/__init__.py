# SPDX-License-Identifier: Apache-2.0
"""Capture GPU work once, replay it at hardware speed; run ONNX models, eagerly and replayed."""
from . import _library, caches, device, graphs, learning, memory, ops, profiles, programs
from . import bound, randoms, sessions, tensors, training
from ._library import (BadDataError, CancelledError, CaptureError, DeviceMemoryError, DriverError,
                       HostMemoryError, InternalError, InvalidError, LostError, MismatchError,
                       RondoError, StateError, UnavailableError, UnsupportedError, log_to,
                       set_log_levels)
from .bound import BoundRun
from .caches import GraphCache
from .compatible import (ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions,
                         get_available_providers, get_device)
from .device import Device, Event, Stream, devices, open_device
from .graphs import Child, Copy, Fill, Graph, HostCall, Launch, Node, capture
from .learning import Argument, Learned, learn
from .memory import Arena, Block, Pool
from .ops import Op
from .profiles import Profile
from .programs import Builder, NodeArg, Program
from .randoms import Generator
from .sessions import InferenceSession, Run, Session
from .tensors import Tensor, empty, from_dlpack
from .training import Epoch, Trainer, train

__all__ = [
    "Arena", "Argument", "BadDataError", "Block", "BoundRun", "Builder", "CancelledError", "CaptureError", "Child",
    "Copy", "Device", "DeviceMemoryError", "DriverError", "Epoch", "Event", "ExecutionMode", "Fill", "Generator", "Graph",
    "GraphCache", "GraphOptimizationLevel", "HostCall", "HostMemoryError", "InferenceSession", "InternalError", "InvalidError", "Launch",
    "Learned", "LostError", "MismatchError", "Node", "NodeArg", "Op", "Pool", "Profile", "Program", "RondoError",
    "Run", "RunOptions", "Session", "SessionOptions", "StateError", "Stream", "Tensor", "Trainer",
    "UnavailableError",
    "UnsupportedError", "capture", "devices", "empty", "from_dlpack", "get_available_providers",
    "get_device", "learn", "log_to", "open_device", "set_log_levels", "train",
]

for _name in __all__:  # where users find them, in their messages and pickles too
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = "rondo"
del _name


def __getattr__(name: str) -> str:
    if name == "__version__":  # of the library, which is loaded for it
        return _library.text(_library.lib.rondo_version_get_text())
    raise AttributeError(f"module 'rondo' has no attribute {name!r}")
