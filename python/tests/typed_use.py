# SPDX-License-Identifier: Apache-2.0
"""What mypy --strict sees of the package: python/test_wheel has it read this, not run it."""
from typing import Any

import rondo


def capture(stream: rondo.Stream, values: list[float]) -> int:
    with rondo.capture(stream, label="typed") as graph:
        stream.call_host(values.append, 1.0)
        node: rondo.Node = stream.last_node()
    graph.disable(node)
    graph.replay()
    count: int = graph.node_count
    return count


def run(session: rondo.Session, feeds: dict[str, Any]) -> list[Any]:
    names: list[str] = [port.name for port in session.get_outputs()]
    try:
        return session.run(names, feeds)
    except rondo.CaptureError as error:
        cause: str = error.cause
        raise SystemExit(cause) from error


def learn(step: Any, device: rondo.Device) -> str:
    learned: rondo.Learned = rondo.learn(step, {"n": "int64"}, device)
    tensor: rondo.Tensor = rondo.empty((2, 3), "float32", device)
    kind, number = tensor.__dlpack_device__()
    return learned.describe() + str(kind + number)


def train(path: str, data: dict[str, Any]) -> dict[str, Any]:
    trainer = rondo.Trainer(path, data, loss="mse", epochs=2)
    losses: list[float] = [epoch.loss for epoch in trainer]
    builder = rondo.Builder(trainer.trained)
    loss: str = builder.add_input("loss", "float32", [None, len(losses)])
    builder.minimize(loss, "adamw", 1e-3, weight_decay=0.1)
    program: rondo.Program = builder.finish()
    return program.parameters
