# SPDX-License-Identifier: Apache-2.0
"""The trainer of the tool: a model, arrays, a loss; the same order of samples, the same numbers."""
from __future__ import annotations

import ctypes
import math
import os
import time
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import numpy

from . import _raw
from ._library import BadDataError, InvalidError, check, encode_path, lib, read_count
from .device import Device
from .programs import Builder, Program
from .sessions import Session
from .tensors import Tensor

__all__ = ["Epoch", "Trainer", "train"]

_MASK = (1 << 64) - 1
_LOSSES = ("cross_entropy", "mse", "bce")
_SETTINGS_BYTES = 1600  # of the variable "train.settings"


class Epoch:
    """What an epoch came to: number (from 1), loss, validation (None: nothing is held out), right
    (the share of labels that were met, of what is held out), seconds."""

    __slots__ = ("number", "loss", "validation", "right", "seconds")

    def __init__(self, number: int, loss: float, validation: Optional[float],
                 right: Optional[float], seconds: float) -> None:
        self.number, self.loss, self.validation = number, loss, validation
        self.right, self.seconds = right, seconds

    def __repr__(self) -> str:
        held = f", validation={self.validation:.6g}" if self.validation is not None else ""
        right = f", right={self.right:.4f}" if self.right is not None else ""
        return f"Epoch({self.number}, loss={self.loss:.6g}{held}{right})"


# ---- the order of samples -----------------------------------------------------------------------


def _draw(seed: int, count: int) -> Any:
    """splitmix64, as the tool has it: the first `count` numbers."""
    with numpy.errstate(over="ignore"):
        steps = numpy.arange(1, count + 1, dtype=numpy.uint64)
        z = numpy.uint64(seed & _MASK) + steps * numpy.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
    return z ^ (z >> numpy.uint64(31))


def _shuffle(order: list[int], seed: int) -> None:
    last = len(order) - 1
    if last < 1:
        return
    places = numpy.arange(last, 0, -1, dtype=numpy.uint64)
    others = (_draw(seed, last) % (places + numpy.uint64(1))).tolist()
    for place, other in zip(range(last, 0, -1), others):
        order[place], order[other] = order[other], order[place]


def _cast(array: Any, dtype: Any, name: str) -> Any:
    """In the model's type, where that has the values: reals may be rounded."""
    given = numpy.asarray(array)
    with numpy.errstate(invalid="ignore", over="ignore"):
        made = numpy.ascontiguousarray(given, dtype)
        if given.dtype == dtype or dtype.kind not in "iubfc" or given.dtype.kind not in "iubfc":
            return made
        kept = (made == given) if dtype.kind in "iub" else numpy.isfinite(made) | ~numpy.isfinite(given)
        # A cast that wraps keeps the bits: compare the signs, too.
        if given.dtype.kind in "iuf" and dtype.kind in "iu":
            kept &= (made < 0) == (given < 0)
    if not kept.all():
        raise InvalidError(f"Trainer: {name!r} is {given.dtype}, and the model takes {dtype}, which has "
                           f"no {given.reshape(-1)[int(numpy.argmin(kept))]}")
    return made


class _Data:
    """Arrays whose first axis counts samples; a part is held out."""

    def __init__(self, model: Program, arrays: Mapping[str, Any], target: Optional[str],
                 validation: float, batch: Optional[int], seed: int) -> None:
        inputs = {port.name: port for port in model.inputs}
        if target is None:
            others = [name for name in arrays if name not in inputs]
            if len(others) != 1:
                raise InvalidError("Trainer: say which array is the target: " + (
                    f"{', '.join(others)} are no inputs" if others else "all are inputs of the model"))
            target = others[0]
        missing = [name for name in (*inputs, target) if name not in arrays]
        if missing:
            raise InvalidError(f"Trainer: there is no array {missing[0]!r}")
        self.columns = {name: _cast(arrays[name], inputs[name].dtype, name) for name in inputs}
        wanted = numpy.asarray(arrays[target])
        self.target = self.columns["train.target"] = numpy.ascontiguousarray(
            wanted, wanted.dtype.newbyteorder("="))
        counts = {name: len(array) if array.ndim else 0 for name, array in self.columns.items()}
        if len(set(counts.values())) != 1:
            raise InvalidError(f"Trainer: numbers of samples differ: {counts}")
        fixed = [port.shape[0] for port in inputs.values()
                 if port.shape and isinstance(port.shape[0], int) and port.shape[0] > 0]
        if fixed and batch not in (None, fixed[0]):
            raise InvalidError(f"Trainer: batch={batch}: the model takes {fixed[0]} samples at once")
        self.target_name, self.is_fixed, self.drops = target, bool(fixed), False
        self.batch: int = fixed[0] if fixed else 32 if batch is None else batch
        self.count, self.seed = len(self.target), seed
        self.order = list(range(self.count))
        self.held = int(self.count * validation)
        if self.held:
            _shuffle(self.order, seed)
        if self.count - self.held < 1:
            raise InvalidError(f"Trainer: there are {self.count} samples; none is left to train with")

    def drop_rest(self) -> None:
        """Leaves out what fills no batch; what is held out becomes whole batches."""
        self.drops = True
        self.held -= self.held % self.batch
        if self.count - self.held < self.batch:
            raise InvalidError(f"Trainer: {self.count - self.held} samples are left to train with, "
                               f"and the model takes {self.batch} at once")

    def check_target(self, loss: str) -> None:
        """As the tool: nothing that no loss is of."""
        target = self.target
        if loss == "cross_entropy":
            if target.dtype.kind not in "iu":
                raise InvalidError(f"Trainer: the target is {target.dtype}; cross entropy takes "
                                   "labels, which are whole numbers")
            bad = target < 0
        else:
            bad = ~numpy.isfinite(target)
            if loss == "bce":
                bad = bad | (target < 0) | (target > 1)
        if bad.any():
            place = tuple(numpy.argwhere(bad)[0])
            raise BadDataError(f"Trainer: the target {self.target_name!r} has {target[place]} at "
                               f"sample {place[0]}, which {loss} does not take")

    def count_batches(self, is_held: bool) -> int:
        count = self.held if is_held else self.count - self.held
        return count // self.batch if self.drops else -(-count // self.batch)

    def list_samples(self, epoch: Optional[int]) -> list[int]:
        """Those of an epoch in their order; None: those that are held out."""
        trained = self.count - self.held
        if epoch is None:
            return self.order[trained:]
        samples = self.order[:trained]
        first = int(_draw(self.seed ^ 0x5851f42d4c957f2d, 1)[0])
        _shuffle(samples, first + epoch)
        return samples

    def take(self, samples: Sequence[int], index: int) -> tuple[dict[str, Any], int]:
        rows = samples[index * self.batch:(index + 1) * self.batch]
        return {name: array[rows] for name, array in self.columns.items()}, len(rows)


# ---- what must stay as it was -------------------------------------------------------------------


def _hash(pieces: Sequence[str]) -> int:
    """As the tool hashes names."""
    value = 0
    for piece in pieces:
        data = piece.encode() + b"\0"
        for at in range(0, len(data), 8):
            part = data[at:at + 8]
            fill = b"" if len(part) == 8 else len(part).to_bytes(8, "little")[len(part):]
            value = ((value ^ int.from_bytes(part + fill, "little")) * 0x9e3779b97f4a7c15) & _MASK
            value ^= value >> 29
    return value


def _shorten(names: Sequence[str]) -> str:
    if sum(len(name.encode()) + 1 for name in names) > 24 or any(
            character < " " for name in names for character in name):
        return f"of {len(names)} names, hash {_hash(names):016x}"
    return ",".join(names) or "-"


def _format(value: float) -> str:
    text = format(value, ".9g")
    return text if float(text) == value else format(value, ".17g")


def _compare(path: str, before: str, now: str) -> None:
    """As the tool: what a checkpoint was made with, "name value" a line; "?" is not known."""
    for old, new in zip(before.split("\n"), now.split("\n")):
        (name, _, value), (own_name, _, own) = old.rpartition(" "), new.rpartition(" ")
        if name != own_name or (value != own and "?" not in (value, own)):
            raise InvalidError(f"{path} was made with {old}, and this is {new}")


def _read_settings(path: Union[str, os.PathLike[str]]) -> str:
    struct = _raw.rondo_tensor()
    check(lib.rondo_checkpoint_read(encode_path(path), b"train.settings", ctypes.byref(struct)))
    return bytes(Tensor._adopt(struct).numpy()).rstrip(b"\0").decode()


# ---- the program --------------------------------------------------------------------------------


def _look_behind(model: Program, result: str, op: str) -> str:
    """What is compared where the model ends in `op`: what went into it; otherwise the result."""
    for node in model.nodes:
        if node.op == op and not node.domain and node.outputs[0] == result:
            return str(node.inputs[0])
    return result


def _add_wanted(builder: Builder, target: str, result: str) -> None:
    """The target, of the result's type and shape: [n] for a result of [n, 1] would be broadcast."""
    builder.add_node("CastLike", target, result, outputs=["train.typed"])
    builder.add_node("Shape", result, outputs=["train.extents"])
    builder.add_node("Reshape", "train.typed", "train.extents", outputs=["train.wanted"])


def _add_loss(model: Program, loss: str, result: Optional[str], target: Any) -> Builder:
    """A builder of the model with "train.target", "train.loss" and, of labels, "train.hits"."""
    builder = Builder(model)
    result = result if result is not None else model.outputs[0].name
    wanted = builder.add_input("train.target", target.dtype, [None, *target.shape[1:]])
    if loss == "cross_entropy":
        logits = _look_behind(model, result, "Softmax")
        logits = _look_behind(model, result, "LogSoftmax") if logits == result else logits
        builder.add_node("Cast", wanted, outputs=["train.labels"], to=7)
        builder.add_node("SoftmaxCrossEntropyLoss", logits, "train.labels", outputs=["train.loss"])
        builder.add_node("ArgMax", logits, outputs=["train.best"], axis=1, keepdims=0)
        builder.add_node("Equal", "train.best", "train.labels", outputs=["train.right"])
        builder.add_node("Cast", "train.right", outputs=["train.right.f32"], to=1)
        builder.add_node("ReduceSum", "train.right.f32", outputs=["train.hits"], keepdims=0)
    elif loss == "mse":
        _add_wanted(builder, wanted, result)
        builder.add_node("Sub", result, "train.wanted", outputs=["train.error"])
        builder.add_node("Mul", "train.error", "train.error", outputs=["train.square"])
        builder.add_node("ReduceMean", "train.square", outputs=["train.loss"], keepdims=0)
    else:  # of logits z: log(1 + e^z) - z * target
        logits = _look_behind(model, result, "Sigmoid")
        _add_wanted(builder, wanted, logits)
        builder.add_node("Softplus", logits, outputs=["train.soft"])
        builder.add_node("Mul", logits, "train.wanted", outputs=["train.product"])
        builder.add_node("Sub", "train.soft", "train.product", outputs=["train.each"])
        builder.add_node("ReduceMean", "train.each", outputs=["train.loss"], keepdims=0)
    builder.add_output("train.loss")
    if loss == "cross_entropy":
        builder.add_output("train.hits")
    return builder


class Trainer:
    """Trains a model with arrays, as `rondo train` does: to the same bits, and each goes on from the
    other's checkpoint.

    trainer = rondo.Trainer("model.onnx", {"image": images, "label": labels}, epochs=3)
    for epoch in trainer:                     # or trainer.fit()
        print(epoch)
    trainer.save("trained.onnx")

    model       a rondo.Program, or what one is made of
    data        an array for each input of the model, and the target; their first axis counts samples
    loss        "cross_entropy" (labels of classes), "mse", "bce" (chances). Behind a Softmax or
                Sigmoid at the end of the model it takes what went in there
    target      the array's name; None: the one that is no input
    result      the output that is compared with it; None: the first
    optimizer   "sgd", "momentum", "adam", "adamw", "adagrad"
    schedule    "constant", "cosine", "linear", over all epochs, down to the share `least_rate`;
                before it `warm_up` steps
    batch       samples a run; None: 32, or what the model takes at once. What fills no batch of such
                a model is left out, others each epoch
    validation  the share of the samples that is held out, and measured after each epoch
    dtype       "f16" scales the loss, "bf16" computes products in it; both keep weights of f32
    train       patterns of the parameters that are trained; lora: train adapters of that rank instead
    rows        patterns of tables whose rows change alone (rondo.Builder.minimize)
    options     others of rondo.Session

    An exception from within (KeyboardInterrupt, too) leaves the trainer after a whole batch: going on,
    or saving, works.
    """

    def __init__(self, model: Union[Program, str, os.PathLike[str], bytes], data: Mapping[str, Any], *,
                 loss: str = "cross_entropy", target: Optional[str] = None,
                 result: Optional[str] = None, optimizer: str = "adam",
                 learning_rate: float = 0.001, momentum: float = 0.9, weight_decay: float = 0.0,
                 schedule: str = "constant", least_rate: float = 0.0, warm_up: int = 0,
                 clip_norm: float = 0.0, clip_value: float = 0.0, epochs: int = 10,
                 batch: Optional[int] = None, accumulate: int = 1, validation: float = 0.1, dtype: Any = "f32",
                 train: Optional[Sequence[str]] = None, lora: int = 0,
                 recompute: Sequence[str] = (), rows: Sequence[str] = (),
                 device: Union[str, Device] = "auto",
                 seed: int = 0, **options: Any) -> None:
        if loss not in _LOSSES:
            raise InvalidError(f"Trainer: the loss {loss!r} is not among: {', '.join(_LOSSES)}")
        if optimizer not in ("sgd", "momentum", "adam", "adamw", "adagrad"):
            raise InvalidError(f"Trainer: {optimizer!r} is not among: sgd, momentum, adam, adamw, "
                               "adagrad")
        if not isinstance(data, Mapping):
            raise InvalidError(f"Trainer: data is a mapping of names to arrays, not a "
                               f"{type(data).__name__}")
        epochs, accumulate, warm_up, lora, seed = (
            read_count(value, f"Trainer: {name}") for name, value in (
                ("epochs", epochs), ("accumulate", accumulate), ("warm_up", warm_up), ("lora", lora),
                ("seed", seed)))
        batch = None if batch is None else read_count(batch, "Trainer: batch")
        if lora < 0:
            raise InvalidError(f"Trainer: lora is {lora}; a rank is at least 1, and 0 for none")
        if min(epochs, 1 if batch is None else batch, accumulate) < 1 or not 0 <= validation < 1:
            raise InvalidError("Trainer: epochs, batch and accumulate are at least 1, validation is a "
                               "share from 0 to below 1")
        self.model = model if isinstance(model, Program) else Program(model)
        self.epochs, self.runs, self.history = epochs, 0, list[Epoch]()
        self._data = _Data(self.model, data, target, validation, batch, seed)
        self._data.check_target(loss)
        self._loss, self._result = loss, result
        self._options = dict(options, dtype=dtype, device=device)
        self._is_scaled = str(dtype) in ("f16", "float16", "fp16", "half")
        if self._data.is_fixed or not self._takes_rest():
            self._data.drop_rest()
        batches = self._data.count_batches(False)
        if accumulate > batches:
            raise InvalidError(f"Trainer: accumulate={accumulate} is above the {batches} batches of "
                               "an epoch")
        taken = batches * epochs // accumulate
        self._told = self._tell(
            loss=loss, optimizer=optimizer, dtype=self._options["dtype"], rate=learning_rate,
            momentum=momentum, decay=weight_decay, clip_norm=clip_norm, clip_value=clip_value,
            schedule=schedule, least=least_rate, warm_up=warm_up, epochs=epochs,
            accumulate=accumulate, validation=validation, lora=lora, train=train or (), rows=rows)
        builder = _add_loss(self.model, loss, result, self._data.target)
        if lora > 0:
            builder.add_adapters(lora, train)
            train = ["*.lora_a", "*.lora_b"]
        builder.minimize(
            "train.loss", "sgd" if optimizer == "momentum" else optimizer, learning_rate,
            momentum=momentum if optimizer == "momentum" else 0.0, weight_decay=weight_decay,
            schedule=schedule, schedule_steps=max(1, taken - warm_up), schedule_least=least_rate,
            warmup_steps=warm_up, clip_norm=clip_norm, clip_value=clip_value,
            scale_loss=self._is_scaled, accumulate=accumulate, train=train, recompute=recompute,
            rows=rows)
        self._count_runs(builder)
        with builder, builder.finish() as program:
            self.session = Session(program, training=True, seed=seed, **self._options)

    def _takes_rest(self) -> bool:
        """Whether the model takes a smaller last batch: it may be free in its inputs alone."""
        data = self._data
        rest = [count % data.batch for count in (data.count - data.held, data.held)]
        if not any(rest) or data.count - data.held < data.batch:
            return True
        with _add_loss(self.model, self._loss, self._result, data.target) as builder, \
                builder.finish() as program, Session(program, "host") as session:
            for count in [data.batch] + [count for count in rest if count]:
                try:
                    session.output_shapes({name: array[:count]
                                           for name, array in data.columns.items()})
                except BadDataError:
                    return count == data.batch  # then it fits nothing, which a run says
        return True

    def _tell(self, *, loss: str, optimizer: str, dtype: Any, rate: float, momentum: float,
              decay: float, clip_norm: float, clip_value: float, schedule: str, least: float,
              warm_up: int, epochs: int, accumulate: int, validation: float, lora: int,
              train: Sequence[str], rows: Sequence[str]) -> str:
        """As the tool describes a training; model and data have no file here."""
        name = {"f32": "fp32", "float32": "fp32", "bf16": "bf16", "bfloat16": "bf16"}
        result = self._result if self._result is not None else self.model.outputs[0].name
        lines = [
            ("--loss", loss), ("--optimizer", optimizer),
            ("--dtype", "fp16" if self._is_scaled else name.get(str(dtype), str(dtype))),
            ("--learning-rate", _format(rate)), ("--momentum", _format(momentum)),
            ("--weight-decay", _format(decay)), ("--clip-norm", _format(clip_norm)),
            ("--clip-value", _format(clip_value)), ("--schedule", schedule), ("--step-factor", "0.1"),
            ("--step-epochs", 1), ("--least-rate", _format(least)), ("--warm-up", warm_up)]
        if schedule != "constant":
            lines.append(("--epochs (which the schedule follows)", epochs))
        lines += [
            ("--batch", self._data.batch), ("--accumulate", accumulate),
            ("--validation", _format(validation)), ("--seed", self._data.seed), ("--lora", lora),
            ("--train", _shorten(train)), ("--rows", _shorten(rows)),
            ("--target", _shorten([self._data.target_name])), ("--result", _shorten([result])),
            ("samples in --data", self._data.count),
            ("batches of an epoch", self._data.count_batches(False)),
            ("--data with the hash", "?"), ("MODEL with the hash", "?")]
        return "".join(f"{name} {value}\n" for name, value in lines)

    def _count_runs(self, builder: Builder) -> None:
        """In the program, so that checkpoints have it, and what they were made with."""
        settings = numpy.zeros(_SETTINGS_BYTES, numpy.uint8)
        told = self._told.encode()[:_SETTINGS_BYTES - 1]
        settings[:len(told)] = numpy.frombuffer(told, numpy.uint8)
        builder.add_variable("train.run", "int64", [], "constant")
        builder.add_variable("train.settings", start=settings)
        builder.add_parameter("train.one", numpy.array(1, numpy.int64))
        builder.add_node("Add", "train.run", "train.one", outputs=["train.run.next"])
        builder.set_update("train.run", "train.run.next")

    # ---- running ------------------------------------------------------------------------------

    @property
    def _fetches(self) -> list[str]:
        return ["train.loss", "train.hits"] if self._loss == "cross_entropy" else ["train.loss"]

    def __iter__(self) -> Iterator[Epoch]:
        """The epochs that are left, each when it was trained and measured."""
        batches = self._data.count_batches(False)
        while self.runs < batches * self.epochs:
            epoch = self._run_epoch(self.runs // batches, self.runs % batches)
            self.history.append(epoch)
            yield epoch

    def fit(self) -> list[Epoch]:
        """Trains all epochs that are left; gives what those of this trainer came to."""
        for _ in self:
            pass
        return self.history

    def _run_epoch(self, number: int, first: int) -> Epoch:
        begin, total, trained = time.monotonic(), 0.0, 0
        samples = self._data.list_samples(number)
        for index in range(first, self._data.count_batches(False)):
            feeds, count = self._data.take(samples, index)
            loss = float(self.session.run(["train.loss"], feeds)[0])
            self.runs += 1
            total, trained = total + loss * count, trained + count
            self._check_loss("the loss", loss)
        validation, right = self._measure() if self._data.held else (None, None)
        return Epoch(number + 1, total / max(1, trained), validation, right, time.monotonic() - begin)

    def _check_loss(self, what: str, loss: float) -> None:
        """A bad sample is not skipped in half precision, either: the loss has no scale."""
        if not math.isfinite(loss):
            raise BadDataError(f"{what} is {loss} after {self.runs} batches; look for NaN in the "
                               "data, or try a smaller learning_rate or clip_norm")

    def _measure(self) -> tuple[float, Optional[float]]:
        """Loss and share of met labels, of what is held out."""
        total = hits = 0.0
        samples = self._data.list_samples(None)
        with self.trained as trained, \
                _add_loss(trained, self._loss, self._result, self._data.target) as builder, \
                builder.finish() as program, Session(program, **self._options) as session:
            for index in range(self._data.count_batches(True)):
                feeds, count = self._data.take(samples, index)
                values = session.run(self._fetches, feeds)
                self._check_loss("the loss of what is held out", float(values[0]))
                total += float(values[0]) * count
                hits += float(values[1]) if len(values) > 1 else 0.0
        right = hits / len(samples) if self._loss == "cross_entropy" else None
        return total / len(samples), right

    # ---- what is kept -------------------------------------------------------------------------

    @property
    def trained(self) -> Program:
        """The model with its parameters as they are now, adapters added."""
        return self.session.get_trained(self.model)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the trained model as ONNX."""
        with self.trained as trained:
            trained.save(path)

    def save_checkpoint(self, path: Union[str, os.PathLike[str]]) -> None:
        self.session.save_checkpoint(path)

    def load_checkpoint(self, path: Union[str, os.PathLike[str]]) -> None:
        """Goes on from there, at the very batch; other options than those that it was made with are
        refused. The tool's is last.rondo in --checkpoint."""
        _compare(os.fsdecode(path), _read_settings(path), self._told)
        self.session.load_checkpoint(path)
        self.runs = int(self.session.get("train.run"))


def train(model: Union[Program, str, os.PathLike[str], bytes], data: Mapping[str, Any],
          **options: Any) -> Program:
    """The model, trained: a rondo.Trainer's fit() and trained."""
    trainer = Trainer(model, data, **options)
    trainer.fit()
    return trainer.trained
