# SPDX-License-Identifier: Apache-2.0
"""Programs built in code, training steps beside PyTorch's, and the trainer beside the tool's."""
import os
import subprocess
import tempfile
import unittest

import numpy as np

import rondo

STEPS, BATCH, WIDTHS = 6, 8, (5, 7, 3)
# What train_by_torch() gave with PyTorch 2.15: losses, and the sums of the weights then.
KEPT = {
    "adamw": ([1.13061142, 1.09927011, 1.14586568, 1.09588635, 1.11082149, 1.11547017],
              [-0.896981675, -0.93247413, 0.367008754, -0.0988729931]),
    "momentum": ([1.13061142, 1.09745157, 1.14128304, 1.11097229, 1.09360874, 1.12117076],
                 [-1.20832021, -0.8148099, 0.541469343, -0.0617370403]),
}
SETTINGS = {
    "adamw": dict(optimizer="adamw", learning_rate=0.05, weight_decay=0.1, clip_norm=0.5,
                  warmup_steps=2, warmup_start=0.25),
    "momentum": dict(optimizer="sgd", learning_rate=0.1, momentum=0.9, nesterov=True,
                     weight_decay=0.01, schedule="linear", schedule_steps=4, schedule_least=0.5),
}


def draw(seed, *shape):
    """The same numbers everywhere."""
    state, out = seed, []
    for _ in range(int(np.prod(shape))):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append((state >> 8) / 2**24 - 0.5)
    return np.array(out, np.float32).reshape(shape)


def make_weights():
    a, b, c = WIDTHS
    return {"w1": draw(1, a, b), "b1": draw(2, b), "w2": draw(3, b, c), "b2": draw(4, c)}


def make_batch(step):
    return draw(100 + step, BATCH, WIDTHS[0]), np.arange(step, step + BATCH, dtype=np.int64) % WIDTHS[2]


def make_model(batch="batch"):
    builder = rondo.Builder(name="net")
    builder.add_input("x", "float32", [batch, WIDTHS[0]])
    for name, value in make_weights().items():
        builder.add_parameter(name, value)
    builder.add_node("Gemm", "x", "w1", "b1", outputs=["hidden"])
    builder.add_node("Gelu", "hidden", outputs=["shaped"], approximate="tanh")
    builder.add_node("Gemm", "shaped", "w2", "b2", outputs=["scores"])
    builder.add_output("scores")
    return builder.finish()


def train_by_torch(kind):
    import torch
    w = {name: torch.nn.Parameter(torch.from_numpy(value)) for name, value in make_weights().items()}
    if kind == "adamw":
        optimizer = torch.optim.AdamW(w.values(), lr=0.05, weight_decay=0.1)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.25, 1.0, 2)
    else:
        optimizer = torch.optim.SGD(w.values(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.5, 4)
    losses = []
    for step in range(STEPS):
        x, labels = map(torch.from_numpy, make_batch(step))
        hidden = torch.nn.functional.gelu(x @ w["w1"] + w["b1"], approximate="tanh")
        loss = torch.nn.functional.cross_entropy(hidden @ w["w2"] + w["b2"], labels)
        optimizer.zero_grad()
        loss.backward()
        if kind == "adamw":
            torch.nn.utils.clip_grad_norm_(w.values(), 0.5)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, [value.double().sum().item() for value in w.values()]


class Training(unittest.TestCase):
    def make_step(self, model, **options):
        with rondo.Builder(model) as builder:
            builder.add_input("labels", "int64", [None])
            builder.add_output(builder.add_node("SoftmaxCrossEntropyLoss", "scores", "labels",
                                                outputs=["loss"]))
            builder.minimize("loss", **options)
            return rondo.Session(builder.finish(), "host", training=True)

    def test_steps_are_those_of_torch(self):
        for kind, options in SETTINGS.items():
            with self.subTest(kind):
                model = make_model()
                session = self.make_step(model, **options)
                losses = []
                for step in range(STEPS):
                    x, labels = make_batch(step)
                    losses.append(float(session.run(["loss"], {"x": x, "labels": labels})[0]))
                np.testing.assert_allclose(losses, KEPT[kind][0], rtol=2e-5)
                trained = session.get_trained(model)
                sums = [trained.parameters[name].astype(np.float64).sum() for name in make_weights()]
                np.testing.assert_allclose(sums, KEPT[kind][1], rtol=1e-4, atol=1e-5)
                self.assertTrue(session.times.was_replayed)
                # The model stays as it was; what is trained runs, and scores as the step would.
                np.testing.assert_array_equal(model.parameters["w1"], make_weights()["w1"])
                scores, = rondo.Session(trained, "host").run(None, {"x": make_batch(0)[0]})
                self.assertTrue(np.isfinite(scores).all())

    def test_what_torch_gives_is_kept(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("no torch")
        for kind, (losses, sums) in KEPT.items():
            now = train_by_torch(kind)
            np.testing.assert_allclose(now[0], losses, rtol=1e-5)
            np.testing.assert_allclose(now[1], sums, rtol=1e-5, atol=1e-6)

    def test_checkpoints_go_on_to_the_same_bits(self):
        model = make_model()
        sessions = [self.make_step(model, **SETTINGS["adamw"]) for _ in range(2)]

        def run(session, steps):
            for step in steps:
                x, labels = make_batch(step)
                session.run(["loss"], {"x": x, "labels": labels})

        run(sessions[0], range(6))
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/state"
            with self.make_step(model, **SETTINGS["adamw"]) as first:
                run(first, range(3))
                first.save_checkpoint(path)
            sessions[1].load_checkpoint(path)
            run(sessions[1], range(3, 6))
        for name in sessions[0].variables:
            np.testing.assert_array_equal(sessions[0].get(name), sessions[1].get(name), name)

    def test_gradients(self):
        builder = rondo.Builder()
        builder.add_input("x", "float32", [4])
        y = builder.add_node("Mul", "x", "x")
        gradient, = builder.add_gradients(y, ["x"])
        second, = builder.add_gradients(gradient, ["x"], outputs=["second"])
        for name in (gradient, second):
            builder.add_output(name)
        x = draw(9, 4)
        values = rondo.Session(builder.finish(), "host").run(None, {"x": x})
        np.testing.assert_array_equal(values[0], x + x)
        np.testing.assert_array_equal(values[1], np.full(4, 2, np.float32))

    def test_variables(self):
        builder = rondo.Builder()
        builder.add_variable("sum", start=np.zeros(3, np.float32))
        builder.add_variable("noise", "float32", [100], "normal", b=2.0, seed=5)
        builder.add_input("x", "float32", [3])
        builder.add_node("Add", "sum", "x", outputs=["next"])
        builder.set_update("sum", "next")
        builder.add_output(builder.add_node("ReduceMax", "noise", outputs=["most"], keepdims=0))
        with self.assertRaisesRegex(rondo.InvalidError, "needs its dtype"):
            builder.add_variable("nothing")
        program = builder.finish()
        self.assertEqual(program.variables, {"sum": "next", "noise": None})
        session = rondo.Session(program, "host")
        for _ in range(3):
            most = session.run(["most"], {"x": np.arange(3, dtype=np.float32)})[0]
        np.testing.assert_array_equal(session.get("sum"), [0, 3, 6])
        self.assertGreater(most, 2.0)
        session.set("sum", np.ones(3, np.float32))
        np.testing.assert_array_equal(session.get("sum"), [1, 1, 1])

    def test_parameters_as_variables(self):
        program = make_model().make_variables("w1")
        session = rondo.Session(program, "host")
        x = make_batch(0)[0]
        before, = session.run(None, {"x": x})
        session.set("w1", np.zeros(WIDTHS[:2], np.float32))
        self.assertFalse(np.array_equal(session.run(None, {"x": x})[0], before))


class Programs(unittest.TestCase):
    def test_what_a_program_has(self):
        program = make_model()
        self.assertEqual([port.name for port in program.inputs], ["x"])
        self.assertEqual(program.inputs[0].shape, ["batch", WIDTHS[0]])
        self.assertEqual([node.op for node in program.nodes], ["Gemm", "Gelu", "Gemm"])
        self.assertEqual(program.nodes[0].inputs, ["x", "w1", "b1"])
        self.assertEqual(list(program.parameters), ["w1", "b1", "w2", "b2"])
        self.assertIn("Gelu", program.describe())
        with tempfile.TemporaryDirectory() as folder:
            program.save(folder + "/net.onnx")
            again = rondo.Program(folder + "/net.onnx", dimensions={"batch": 2})
            self.assertEqual(again.inputs[0].shape, [2, WIDTHS[0]])
            session = rondo.Session(again, "host")
            again.close()  # the session keeps it
            x = make_batch(0)[0][:2]
            np.testing.assert_array_equal(session.run(None, {"x": x})[0],
                                          rondo.Session(program, "host").run(None, {"x": x})[0])

    def test_attributes(self):
        builder = rondo.Builder()
        builder.add_input("x", "float32", [2, 3])
        value = builder.add_node("Constant", value=np.float32([1, 2, 3]))
        y = builder.add_node("Add", "x", value)
        first, last = builder.add_node("Split", y, outputs=2, axis=1, num_outputs=2)
        builder.add_output(builder.add_node("Transpose", first, perm=[1, 0], outputs=["a"]))
        builder.add_output(builder.add_node("LeakyRelu", last, alpha=0.5, outputs=["b"]))
        with builder.place("cpu"):
            builder.add_output(builder.add_node("Clip", y, None, None, outputs=["c"], name="mine"))
        program = builder.finish()
        x = np.float32([[0, 0, 0], [-9, -9, -9]])
        a, b, c = rondo.Session(program, "host").run(None, {"x": x})
        np.testing.assert_array_equal(a, [[1, -8], [2, -7]])
        np.testing.assert_array_equal(b, [[3], [-3]])
        np.testing.assert_array_equal(c, x + np.float32([1, 2, 3]))
        self.assertEqual((program.nodes[-1].name, program.nodes[-1].place), ("mine", "cpu"))

    def test_refusals_name_what_is_wrong(self):
        builder = rondo.Builder()
        builder.add_input("x", "float32", [2])
        for call, message in (
                (lambda: builder.add_node("Nonsense", "x"), "Nonsense"),
                (lambda: builder.add_node("Relu", "y"), "y"),
                (lambda: builder.add_node("Relu", "x", axis=[1, "two"]), "axis"),
                (lambda: builder.add_input("x", "float32"), "x"),
                (lambda: builder.add_gradients("x", ["x"], outputs=["a", "b"]), "1 values"),
                (lambda: builder.minimize("x", learning_rate=-1.0), "learning_rate"),
                (lambda: builder.minimize("x", "lion"), "lion")):
            with self.assertRaisesRegex((rondo.RondoError), message):
                call()
        with self.assertRaisesRegex(TypeError, "no option 'speed'"):
            builder.minimize("x", speed=1)
        program = make_model()
        with self.assertRaisesRegex(rondo.InvalidError, "dimensions"):
            rondo.Session(program, "host", dimensions={"batch": 1})
        program.close()
        for call in (lambda: program.inputs, lambda: rondo.Session(program, "host"),
                     lambda: rondo.Builder(program)):
            with self.assertRaises(rondo.StateError):
                call()
        builder.close()
        with self.assertRaises(rondo.StateError):
            builder.finish()


def make_data(count=100):
    x = draw(7, count, WIDTHS[0])
    return {"x": x, "label": (x.sum(1) > 0).astype(np.int64) + (x[:, 0] > 0.2)}


class Trainers(unittest.TestCase):
    options = dict(epochs=3, batch=16, device="host", seed=3, learning_rate=0.02)

    def test_learns(self):
        trainer = rondo.Trainer(make_model(), make_data(400), **dict(self.options, epochs=12))
        epochs = list(trainer)
        self.assertEqual([e.number for e in epochs], list(range(1, 13)))
        self.assertLess(epochs[-1].validation, epochs[0].validation / 2)
        self.assertGreater(epochs[-1].right, 0.85)
        scores, = rondo.Session(trainer.trained, "host").run(None, {"x": make_data(400)["x"]})
        self.assertGreater((scores.argmax(1) == make_data(400)["label"]).mean(), 0.85)

    def test_goes_on_from_a_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = rondo.Trainer(make_model(), make_data(), **self.options)
            whole.fit()
            part = rondo.Trainer(make_model(), make_data(), **self.options)
            run, calls = part.session.run, []

            def stop(*arguments):
                calls.append(None)
                if len(calls) == 9:  # in the second epoch
                    raise KeyboardInterrupt
                return run(*arguments)

            part.session = _Stopping(part.session, stop)
            with self.assertRaises(KeyboardInterrupt):
                part.fit()
            self.assertEqual(part.runs, 8)
            part.save_checkpoint(folder + "/state")
            rest = rondo.Trainer(make_model(), make_data(), **self.options)
            rest.load_checkpoint(folder + "/state")
            self.assertEqual(rest.runs, 8)
            self.assertEqual(rest.fit()[-1].validation, whole.history[-1].validation)
            for name, value in whole.trained.parameters.items():
                np.testing.assert_array_equal(rest.trained.parameters[name], value, name)

    def test_is_the_tools_trainer(self):
        """The same bits as `rondo train`, which writes a checkpoint that is gone on from here."""
        tool = os.path.join(os.path.dirname(os.environ.get("RONDO_LIBRARY", "")), "rondo")
        if not os.access(tool, os.X_OK):
            self.skipTest("no tool beside the library")
        for loss, more in (("cross_entropy", {}), ("mse", dict(schedule="cosine", optimizer="adamw")),
                           ("bce", dict(optimizer="momentum", lora=2))):
            with self.subTest(loss), tempfile.TemporaryDirectory() as folder:
                data = make_data()
                if loss != "cross_entropy":
                    data["label"] = np.float32(data["label"][:, None] == np.arange(3))
                make_model().save(folder + "/net.onnx")
                np.savez(folder + "/data.npz", **data)
                flags = dict(loss=loss, epochs=2, batch=16, seed=3, learning_rate=0.02,
                             **{"momentum": 0.9} if "momentum" in more.values() else {}, **more)
                subprocess.run(
                    [tool, "train", folder + "/net.onnx", "--data", folder + "/data.npz", "--device",
                     "host", "--quiet", "--output", folder + "/tool.onnx", "--checkpoint",
                     folder + "/state"]
                    + [text for name, value in flags.items()
                       for text in ("--" + name.replace("_", "-"), str(value))], check=True)
                ours = rondo.Trainer(folder + "/net.onnx", data, device="host", **flags)
                ours.fit()
                theirs = rondo.Program(folder + "/tool.onnx").parameters
                for name, value in ours.trained.parameters.items():
                    np.testing.assert_array_equal(theirs[name], value, name)
                again = rondo.Trainer(folder + "/net.onnx", data, device="host", **flags)
                again.load_checkpoint(folder + "/state/last.rondo")
                self.assertEqual((again.runs, again.fit()), (ours.runs, []))
                np.testing.assert_array_equal(again.trained.parameters["w1"],
                                              ours.trained.parameters["w1"])
                ours.save_checkpoint(folder + "/state/last.rondo")  # and the tool goes on from it
                command = [tool, "train", folder + "/net.onnx", "--data", folder + "/data.npz",
                           "--device", "host", "--checkpoint", folder + "/state", "--resume"] + [
                    text for name, value in flags.items()
                    for text in ("--" + name.replace("_", "-"), str(value))]
                text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                self.assertIn("nothing to train", text)
                refused = subprocess.run(command + ["--seed", "4"], capture_output=True, text=True)
                self.assertEqual(refused.returncode, 2)
                self.assertIn("was made with --seed 3, and this is --seed 4", refused.stderr)

    def test_checkpoints_of_other_options_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/state"
            rondo.Trainer(make_model(), make_data(), **self.options).save_checkpoint(path)
            for change in (dict(seed=4), dict(batch=17), dict(learning_rate=0.03), dict(train=["w1"]),
                           dict(schedule="linear"), dict(dtype="f16"), dict(accumulate=2)):
                other = rondo.Trainer(make_model(), make_data(), **{**self.options, **change})
                with self.assertRaisesRegex(rondo.InvalidError, "was made with .* and this is"):
                    other.load_checkpoint(path)
            longer = rondo.Trainer(make_model(), make_data(), **dict(self.options, epochs=4))
            longer.load_checkpoint(path)

    def test_fixed_batches(self):
        """What fills no batch of a model of one size is left out, as by the tool."""
        tool = os.path.join(os.path.dirname(os.environ.get("RONDO_LIBRARY", "")), "rondo")
        here = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "cli")
        for name in ("classes_fixed", "classes_inside"):
            model, data = f"{here}/models/{name}.onnx", f"{here}/arrays/classes.npz"
            if not os.access(tool, os.X_OK) or not os.access(model, os.R_OK):
                self.skipTest("no tool beside the library, or no models")
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                subprocess.run([tool, "train", model, "--data", data, "--device", "host", "--quiet",
                                "--epochs", "2", "--output", folder + "/tool.onnx"], check=True)
                trainer = rondo.Trainer(model, dict(np.load(data)), epochs=2, device="host")
                trainer.fit()
                self.assertEqual(trainer.runs, 18)
                theirs = rondo.Program(folder + "/tool.onnx").parameters
                for key, value in trainer.trained.parameters.items():
                    np.testing.assert_array_equal(theirs[key], value, key)
        with self.assertRaisesRegex(rondo.InvalidError, "32 samples at once"):
            rondo.Trainer(f"{here}/models/classes_fixed.onnx", dict(np.load(data)), batch=16)

    def test_refusals(self):
        data = make_data()
        for change, options, message in (
                ({}, dict(loss="rank"), "rank"), ({}, dict(optimizer="best"), "best"),
                ({}, dict(batch=0), "at least 1"), ({}, dict(target="y"), "'y'"),
                ({"other": data["label"]}, {}, "say which array"),
                ({"label": data["label"][:5]}, {}, "numbers of samples"),
                ({"label": np.float32(data["label"])}, {}, "whole numbers"),
                ({"x": np.float32(data["x"] * np.inf)}, dict(epochs=1), "the loss is nan"),
                ({"x": np.float32(data["x"] * np.inf)}, dict(epochs=1, dtype="f16"), "the loss is nan"),
                ({"label": data["label"] - 1}, {}, "sample .* cross_entropy does not take"),
                ({"label": np.full((100, 3), 1.5, np.float32)}, dict(loss="bce"), "1.5 at sample 0"),
                ({"label": np.full((100, 3), np.nan, np.float32)}, dict(loss="mse"), "nan at sample 0"),
                ({}, dict(accumulate=7), "accumulate=7 is above the 6 batches"),
                ({}, dict(train=["none*"]), "none")):
            with self.assertRaisesRegex(rondo.RondoError, message):
                rondo.Trainer(make_model(), {**data, **change}, **{**self.options, **options}).fit()

    def test_train(self):
        before = make_model()
        after = rondo.train(before, make_data(), **dict(self.options, epochs=1, validation=0))
        self.assertFalse(np.array_equal(after.parameters["w2"], before.parameters["w2"]))


class _Stopping:
    """A session whose runs are watched."""

    def __init__(self, session, run):
        self._session, self.run = session, run

    def __getattr__(self, name):
        return getattr(self._session, name)


if __name__ == "__main__":
    unittest.main()
