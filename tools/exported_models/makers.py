# SPDX-License-Identifier: Apache-2.0

"""Models of other exporters: jax2onnx, Hummingbird, CatBoost, PyTorch's older one (of TorchScript)."""
import io
import os
import sys
import tempfile

import numpy as np
import onnx


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def export_each(maker, makes):
    """(name, bytes, feeds) of functions that return bytes and feeds; one that its maker refuses is told."""
    for name, make in makes.items():
        try:
            data, feeds = make()
        except ImportError:
            raise
        except Exception as failure:  # the exporter's own
            print(f"{maker} cannot write {name}: {str(failure)[:120]}", file=sys.stderr)
            continue
        yield f"{maker}_{name}", data, feeds


# ---- jax2onnx ---------------------------------------------------------------------------------

def export_jax():
    import jax
    import jax.numpy as jnp
    import jax2onnx
    lax = jax.lax
    makes = {
        "while": (lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 1.5 + 1, x), [(5,)]),
        "fori": (lambda x: lax.fori_loop(0, 7, lambda i, c: c + jnp.sin(c) * i, x), [(4, 3)]),
        "scan": (lambda x: lax.scan(lambda c, t: (c + t, c * t), jnp.zeros((3,)), x)[1], [(9, 3)]),
        "cond": (lambda x: lax.cond(jnp.sum(x) > 0, lambda v: v * 2, jnp.exp, x), [(4,)]),
        "sort": (lambda x: (jnp.sort(x), jnp.argsort(x), *lax.top_k(x, 3)), [(4, 9)]),
        "conv": (lambda x, w: lax.conv_general_dilated(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), [(2, 15, 17, 3), (3, 3, 3, 8)]),
        "conv_transpose": (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), [(1, 7, 7, 4), (3, 3, 4, 5)]),
        "windows": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
                    [(2, 15, 15, 4)]),
        "scatter": (lambda x, u: x.at[1:5, 2].set(u), [(8, 4), (4,)]),
        "fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), [(3, 16)]),
        "gradient": (jax.grad(lambda x: jnp.sum(jnp.tanh(x @ jnp.ones((4, 4))) ** 2)), [(3, 4)]),
        "attention": (lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), [(2, 10, 4, 16)] * 3),
    }

    def make(function, shapes):
        model = jax2onnx.to_onnx(function, shapes)
        feeds = {port.name: draw(*shape, seed=i) for i, (port, shape) in enumerate(zip(model.graph.input, shapes))}
        return model.SerializeToString(), feeds
    yield from export_each("jax", {name: lambda how=how: make(*how) for name, how in makes.items()})


# ---- trees and the like -----------------------------------------------------------------------

def export_learners():
    import catboost
    import hummingbird.ml
    import torch
    from sklearn import ensemble, linear_model, naive_bayes, neural_network
    x = draw(200, 6)
    classes = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5)
    newer = torch.onnx.export

    def export_older(*values, **options):  # the newer one does not follow Hummingbird's modules
        options.pop("enable_onnx_checker", None)
        return newer(*values, **{**options, "dynamo": False, "opset_version": 17})

    def hummingbird_of(model, target):
        torch.onnx.export = export_older
        try:
            made = hummingbird.ml.convert(model.fit(x, target), "onnx", x[:4]).model
        finally:
            torch.onnx.export = newer
        return made.SerializeToString(), {made.graph.input[0].name: x[:16]}

    def catboost_of(model, target):
        model.fit(x, target)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            model.save_model(path, format="onnx")
            made = onnx.load(path)
        return made.SerializeToString(), {made.graph.input[0].name: x[:16]}

    quiet = {"verbose": 0, "allow_writing_files": False}
    for maker, models in {
        hummingbird_of: [(ensemble.RandomForestClassifier(20, max_depth=5), classes),
                         (ensemble.GradientBoostingClassifier(n_estimators=10), classes),
                         (ensemble.HistGradientBoostingRegressor(max_iter=10), x[:, 2]),
                         (linear_model.LogisticRegression(), classes), (naive_bayes.GaussianNB(), classes),
                         (neural_network.MLPClassifier(max_iter=20), classes)],
        catboost_of: [(catboost.CatBoostRegressor(iterations=200, **quiet), x[:, 2]),
                      (catboost.CatBoostRegressor(iterations=30, loss_function="Quantile", **quiet), x[:, 2])],
    }.items():
        kind = maker.__name__.split("_")[0]
        yield from export_each(kind, {f"{type(model).__name__}_{i}": lambda m=maker, a=(model, target): m(*a)
                                      for i, (model, target) in enumerate(models)})


# ---- TorchScript ------------------------------------------------------------------------------

def export_script():
    import torch
    import torch_script
    torch.manual_seed(0)

    def make(module, values, opset):
        names = [f"x{i}" for i in range(len(values))]
        data = io.BytesIO()
        torch.onnx.export(module.eval(), values, data, dynamo=False, opset_version=opset, input_names=names)
        ports = {port.name for port in onnx.load_from_string(data.getvalue()).graph.input}
        return data.getvalue(), {name: value.numpy() for name, value in zip(names, values) if name in ports}
    yield from export_each("script", {name: lambda how=how: make(*how)
                                      for name, how in torch_script.list_modules().items()})
