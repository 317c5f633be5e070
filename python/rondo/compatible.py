# SPDX-License-Identifier: Apache-2.0
"""The names of onnxruntime that a program with a changed import needs beside the session."""
from __future__ import annotations

import enum
import io
import os
from types import SimpleNamespace
from typing import Any, BinaryIO, Iterable, Mapping, Optional, Sequence, Union

from .device import devices

__all__ = ["ExecutionMode", "GraphOptimizationLevel", "RunOptions", "SessionOptions",
           "get_available_providers", "get_device"]


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL runs the model's own ops one by one; the others are the same here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Says nothing here: `branches` of a session is what it would be."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """The options of onnxruntime that mean something here; others may be set, and say nothing."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level: Any = None
        self.log_severity_level = 2
        self.dimensions: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        pass

    def add_free_dimension_override_by_name(self, name: str, extent: int) -> None:
        self.dimensions[name] = extent


class RunOptions:
    """For programs that pass onnxruntime's; nothing of them is looked at."""


def get_available_providers() -> list[str]:
    """As onnxruntime names them: CUDA where there is a usable GPU, and the processor."""
    gpus = any(d.available and d.name.startswith("cuda") for d in devices())
    return (["CUDAExecutionProvider"] if gpus else []) + ["CPUExecutionProvider"]


def get_device() -> str:
    return "GPU" if "CUDAExecutionProvider" in get_available_providers() else "CPU"


def choose_device(providers: Optional[Iterable[Any]],
                  provider_options: Optional[Sequence[Mapping[str, Any]]] = None) -> str:
    """What a list of onnxruntime's providers asks for: the first that Rondo has something for."""
    if providers is None:
        return "auto"
    for index, provider in enumerate(providers):
        options: Mapping[str, Any] = {}
        if isinstance(provider, (tuple, list)):
            provider, options = provider[0], provider[1] if len(provider) > 1 else {}
        elif provider_options and index < len(provider_options):
            options = provider_options[index] or {}
        if "CUDA" in provider or "Tensorrt" in provider or "TensorRT" in provider:
            name = f"cuda:{int(options.get('device_id', 0))}"
            if any(d.available and d.name == name for d in devices()):
                return name
        elif provider == "CPUExecutionProvider":
            return "host"
    return "auto"


# ---- what a file says about itself --------------------------------------------------------------


def _read_number(file: BinaryIO) -> Optional[int]:
    """A protobuf's variable-length number; None at the end."""
    number = shift = 0
    while byte := file.read(1):
        number |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return number
        shift += 7
    return None


def _read_fields(file: BinaryIO, end: int, wanted: Iterable[int]) -> Iterable[tuple[int, Any]]:
    """(field, number or bytes) of a message's wanted fields; others begin where the file stands, are
    passed over unread, and have the place of their end."""
    while file.tell() < end and (key := _read_number(file)) is not None:
        field, kind = key >> 3, key & 7
        if kind not in (0, 1, 2, 5):
            return  # no protobuf
        size = {0: 0, 1: 8, 2: -1, 5: 4}[kind]
        if kind == 0:
            yield field, _read_number(file) or 0
            continue
        if size < 0:
            size = _read_number(file) or 0
        last = file.tell() + size
        yield field, file.read(size) if field in wanted else last
        file.seek(last)


def _read_text(file: BinaryIO, end: int, field: int) -> str:
    for found, value in _read_fields(file, end, [field]):
        if found == field:
            return str(value, errors="replace")
    return ""


_TEXTS = {2: "producer_name", 3: "producer_version", 4: "domain", 6: "description"}


def read_metadata(source: Union[str, bytes]) -> SimpleNamespace:
    """What onnxruntime's ModelMetadata has, from the path of an ONNX file or its bytes."""
    found = SimpleNamespace(custom_metadata_map={}, graph_name="", version=0,
                            **dict.fromkeys(_TEXTS.values(), ""))
    with open(source, "rb") if isinstance(source, str) else io.BytesIO(source) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(0)
        for field, value in _read_fields(file, end, [*_TEXTS, 14]):
            if field in _TEXTS:
                setattr(found, _TEXTS[field], value.decode(errors="replace"))
            elif field == 5:
                found.version = value - (1 << 64) if value >> 63 else value  # an int64
            elif field == 7:
                found.graph_name = _read_text(file, value, 2)
            elif field == 14:
                key, text = (_read_text(io.BytesIO(value), len(value), part) for part in (1, 2))
                found.custom_metadata_map[key] = text
    return found
