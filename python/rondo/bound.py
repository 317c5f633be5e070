# SPDX-License-Identifier: Apache-2.0
"""Runs whose feeds and outputs are bound once."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from . import _raw
from ._library import Owned, Owner, check, encode, lib, make_error
from .tensors import OPTIONAL, SEQUENCE, STRING, Tensor, take_value

if TYPE_CHECKING:
    from .sessions import Session

__all__ = ["BoundRun"]


class BoundRun(Owned):
    """Feeds and outputs of a session, named and checked once: `session.bind_tensors(feeds)`.

        run = session.bind_tensors({"x": x})
        while True:
            x[:] = next_input()      # runs read what stands in the arrays
            y = run()[0]             # the outputs, in which the next run writes

    A value that numpy has to convert is copied when it is bound: bind arrays of the model's types.
    """

    def __init__(self, session: "Session", feeds: Mapping[str, Any],
                 output_names: Optional[Sequence[str]] = None, *,
                 out: Optional[Mapping[str, Any]] = None, on_device: bool = False) -> None:
        self._session, self._on_device = session, on_device
        self._names = list(session._choose_names(output_names, out))
        self._kept: dict[str, Any] = {}
        handle = ctypes.c_void_p()
        check(lib.rondo_bound_run_create(session._h, ctypes.byref(handle)))

        def destroy(address: int, lock: Any = session._lock) -> None:
            with lock:  # it waits for the executor's work
                lib.rondo_bound_run_destroy(address)

        self._own(Owner(handle.value, destroy, session._need()))
        self.set_feeds(feeds)
        fetches, self._targets = session._fetch(self._names, out, on_device)
        for binding in fetches[:len(self._names)]:
            with session._lock:
                check(lib.rondo_bound_run_set_fetch(self._h, binding.name,
                                                    ctypes.byref(binding.tensor)))

    def set_feeds(self, feeds: Mapping[str, Any]) -> None:
        """Binds these inputs to other values; the others stay."""
        bindings, kept = self._session._feed(feeds)
        for index, (name, binding) in enumerate(zip(feeds, bindings)):
            with self._session._lock:
                check(lib.rondo_bound_run_set_feed(self._h, binding.name,
                                                   ctypes.byref(binding.tensor)))
            self._kept[name] = (bindings, kept[index + 1])

    def _get(self, name: str, target: Any) -> Any:
        if target is not None:
            return target[0]
        tensor = _raw.rondo_tensor()
        raw = self._session._raw_names.get(name) or encode(name)
        check(lib.rondo_bound_run_get_fetch(self._h, raw, ctypes.byref(tensor)))
        if self._on_device and tensor.dtype not in (STRING, SEQUENCE, OPTIONAL):
            return Tensor._adopt(tensor, stream=self._session._stream)
        return take_value(tensor)

    def __call__(self) -> list[Any]:
        """Runs, waits, and gives the outputs. They share memory with those of the next call, unless
        the shape changes; copy what has to last."""
        with self._session._lock:
            status = lib.rondo_bound_run_run(self._h)
        if status:
            raise make_error(status)
        return [self._get(name, target) for name, target in zip(self._names, self._targets)]

    def run_async(self) -> None:
        """Puts a run on the session's stream; `session.wait()` waits for it, and `outputs` has what it
        leaves."""
        with self._session._lock:
            status = lib.rondo_bound_run_run_async(self._h, None)
        if status:
            raise make_error(status)

    @property
    def outputs(self) -> dict[str, Any]:
        """By name, as the last run left them."""
        return {name: self._get(name, target) for name, target in zip(self._names, self._targets)}
