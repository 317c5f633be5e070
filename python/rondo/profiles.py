# SPDX-License-Identifier: Apache-2.0
"""Where the time of a region goes."""
from __future__ import annotations

import contextlib
import ctypes
from types import SimpleNamespace
from typing import Any, Iterator, Optional

from . import _raw
from ._library import (Owned, Owner, check, encode, get_list, get_record, get_text, lib, new, text,
                       to_record)
from .graphs import _value

__all__ = ["Profile"]


class Profile(Owned):
    """with rondo.Profile() as profile: takes down what happens in the block.

        print(profile)              # the table
        profile                     # in a notebook: the table as HTML
        profile.save("page.html")   # the page, a trace (.trace.json) or JSON, by the name's end

    source   of device times: "auto", "cupti", "events", "none"
    """

    __slots__ = ("title", "_is_running")

    def __init__(self, title: Optional[str] = None, *, source: str = "auto",
                 record_limit: int = 0) -> None:
        options = new(_raw.rondo_profile_options, source=_value("PROFILE_SOURCE", source),
                      record_limit=record_limit)
        handle = ctypes.c_void_p()
        check(lib.rondo_profile_create(ctypes.byref(options), ctypes.byref(handle)))
        self._own(Owner(handle.value, lib.rondo_profile_destroy))
        self.title, self._is_running = title, False

    def start(self) -> None:
        check(lib.rondo_profile_start(self._h))

    def stop(self) -> None:
        """Work that is still under way on devices does not count: synchronize before."""
        check(lib.rondo_profile_stop(self._h))

    def __enter__(self) -> "Profile":
        self.start()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        status = lib.rondo_profile_stop(self._h)
        if kind is None:
            check(status)

    @staticmethod
    @contextlib.contextmanager
    def event(name: str) -> Iterator[None]:
        """with Profile.event("step"): an event of the program's own; they nest."""
        check(lib.rondo_profile_begin(encode(name)))
        try:
            yield
        finally:
            lib.rondo_profile_end()

    @property
    def summary(self) -> SimpleNamespace:
        record = get_record(lib.rondo_profile_get_summary, _raw.rondo_profile_summary, self._h)
        return record

    def rows(self, by: str = "total", per_thread: bool = False) -> list[SimpleNamespace]:
        """The rows of the table: name, depth, calls, total_ns, cpu_ns, gpu_ns, min_ns, max_ns, ..."""
        key = _value("PROFILE_BY", by)
        rows = []
        for entry in get_list(lib.rondo_profile_get_rows, _raw.rondo_profile_row, self._h, key,
                              per_thread):
            row = to_record(entry)
            row.name, row.detail = text(entry.name), text(entry.detail)
            row.parent = None if row.parent == 2**64 - 1 else row.parent
            rows.append(row)
        return rows

    def write(self, format: str = "plain", by: str = "total", per_thread: bool = False,
              event: Optional[str] = None) -> str:
        """The report as "plain", "json", "trace" (Perfetto) or "html"."""
        options = new(_raw.rondo_profile_write_options, format=_value("PROFILE", format),
                      key=_value("PROFILE_BY", by), per_thread=per_thread,
                      title=encode(self.title) if self.title else None,
                      event=encode(event) if event else None)
        return get_text(lambda write: lib.rondo_profile_write(self._h, ctypes.byref(options), write,
                                                              None))

    def save(self, path: str, format: Optional[str] = None) -> None:
        if format is None:
            format = ("html" if path.endswith((".html", ".htm")) else
                      "trace" if path.endswith(".trace.json") else
                      "json" if path.endswith(".json") else "plain")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(self.write(format))

    def __str__(self) -> str:
        return self.write()

    def _repr_html_(self) -> str:
        cells = []
        for row in self.rows():
            times = "".join(f"<td style='text-align:right'>{value / 1e3:,.1f}</td>" for value in
                            (row.total_ns, row.cpu_ns, row.gpu_ns, row.min_ns, row.max_ns))
            name = _escape(row.name) + (f" <small>{_escape(row.detail)}</small>" if row.detail else "")
            cells.append(f"<tr><td style='text-align:left;padding-left:{1 + row.depth}em'>{name}</td>"
                         f"<td style='text-align:right'>{row.calls}</td>{times}</tr>")
        head = "".join(f"<th>{column}</th>" for column in
                       ("event", "calls", "total us", "CPU us", "GPU us", "min us", "max us"))
        title = f"<caption>{_escape(self.title)}</caption>" if self.title else ""
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody></table>"


def _escape(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
