# SPDX-License-Identifier: Apache-2.0

"""Models as today's exporters, optimisers and quantisers write them, with random weights.

FAMILIES names functions; each yields (name, ONNX bytes, feeds) and needs what its first lines import.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from ideas import export_ideas
from makers import export_jax, export_learners, export_script
from modules import export_modules, export_varied
from narrow import export_narrow
from networks import export_networks
from ops import export_ops
from pieces import export_pieces

CALIBRATIONS = 3


def draw(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# ---- torch.onnx -------------------------------------------------------------------------------

def attend(torch, is_causal):
    class Attend(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.Linear(64, 192)
            self.last = torch.nn.Linear(64, 64)

        def forward(self, x, mask):
            batch, rows, _ = x.shape
            q, k, v = (part.view(batch, rows, 4, 16).transpose(1, 2) for part in self.parts(x).chunk(3, dim=-1))
            chosen = None if is_causal else mask[:, None, None, :]
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=chosen, is_causal=is_causal)
            return self.last(y.transpose(1, 2).reshape(batch, rows, 64))
    return Attend()


def first_of(torch, model, *names):
    """The model as a function of these inputs alone that gives its first output."""
    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *values):
            result = self.model(**dict(zip(names, values)), return_dict=True) if names else self.model(*values)
            return result if isinstance(result, torch.Tensor) else next(iter(result.values()))
    return First()


def list_torch(torch):
    import torchvision
    import transformers as hf
    from torch import nn
    image = torch.tensor(draw((1, 3, 224, 224)))
    ids = torch.tensor(np.random.default_rng(1).integers(0, 100, (2, 24)))
    mask = torch.ones(2, 24, dtype=torch.int64)
    mask[1, :5] = 0
    small = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=100)
    recurrent = nn.LSTM(16, 32, num_layers=2, bidirectional=True, batch_first=True)
    yield "mlp", nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 10)), (torch.tensor(draw((8, 32))),)
    yield "resnet18", torchvision.models.resnet18(), (image,)
    yield "mobilenet_v2", torchvision.models.mobilenet_v2(), (image,)
    yield "mobilenet_v3", torchvision.models.mobilenet_v3_small(), (image,)
    yield "vit", first_of(torch, hf.ViTModel(hf.ViTConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=64))), (image[:, :, :64, :64],)
    yield "lstm", recurrent, (torch.tensor(draw((2, 12, 16))),)
    yield "attention_masked", attend(torch, False), (torch.tensor(draw((2, 24, 64))), mask.bool())
    yield "attention_causal", attend(torch, True), (torch.tensor(draw((2, 24, 64))), mask.bool())
    yield "bert", first_of(torch, hf.BertModel(hf.BertConfig(**small, intermediate_size=128)), "input_ids",
                           "attention_mask"), (ids, mask)
    llama = hf.LlamaForCausalLM(hf.LlamaConfig(**small, num_key_value_heads=2, intermediate_size=128, use_cache=False))
    yield "llama", first_of(torch, llama, "input_ids", "attention_mask"), (ids, mask)
    gpt = hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=100, use_cache=False))
    yield "gpt2", first_of(torch, gpt, "input_ids", "attention_mask"), (ids, mask)


def export_torch(opsets=(18, 20, 23)):
    import torch
    torch.manual_seed(0)
    for name, module, values in list_torch(torch):
        if any(isinstance(part, torch.nn.BatchNorm2d) for part in module.modules()):
            module.train()
            with torch.no_grad():
                for seed in range(2):  # statistics that are not those of nothing
                    module(torch.tensor(draw((4, 3, 224, 224), seed)))
        module.eval()
        for opset in opsets:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.onnx")
                torch.onnx.export(module, values, path, dynamo=True, opset_version=opset, external_data=False,
                                  verbose=False)
                with open(path, "rb") as file:
                    data = file.read()
            ports = [port.name for port in onnx.load_from_string(data).graph.input]
            yield f"{name}_{opset}", data, {port: np.asarray(value) for port, value in zip(ports, values)}


# ---- onnxruntime's quantisers and optimiser ---------------------------------------------------

def quantise():
    from onnxruntime import quantization as q
    from onnxruntime.quantization import matmul_nbits_quantizer as bits
    from onnxruntime.quantization.shape_inference import quant_pre_process
    kinds = {"u8s8": (q.QuantType.QUInt8, q.QuantType.QInt8), "s8s8": (q.QuantType.QInt8, q.QuantType.QInt8),
             "u16u8": (q.QuantType.QUInt16, q.QuantType.QUInt8)}

    class Reader(q.CalibrationDataReader):
        def __init__(self, feeds):
            self.left = iter([{name: move(value, seed) for name, value in feeds.items()}
                              for seed in range(CALIBRATIONS)])

        def get_next(self):
            return next(self.left, None)

    def move(value, seed):
        return draw(value.shape, seed) if value.dtype == np.float32 else value

    for name, data, feeds in export_torch(opsets=(20,)):
        if name not in ("resnet18_20", "mobilenet_v2_20", "bert_20", "llama_20", "lstm_20"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "source.onnx"), os.path.join(folder, "target.onnx")
            with open(source, "wb") as file:
                file.write(data)
            quant_pre_process(source, source)
            q.quantize_dynamic(source, target)
            yield f"dynamic_{name}", read(target), feeds
            for kind, (of_values, of_weights) in kinds.items():
                q.quantize_static(source, target, Reader(feeds), quant_format=q.QuantFormat.QDQ, per_channel=True,
                                  activation_type=of_values, weight_type=of_weights)
                yield f"qdq_{kind}_{name}", read(target), feeds
            q.quantize_static(source, target, Reader(feeds), quant_format=q.QuantFormat.QOperator,
                              activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QUInt8)
            yield f"qoperator_{name}", read(target), feeds
            for form in (q.QuantFormat.QOperator, q.QuantFormat.QDQ):
                if name.startswith(("bert", "llama")):
                    config = bits.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False, quant_format=form)
                    model = bits.MatMulNBitsQuantizer(onnx.load(source), algo_config=config)
                    model.process()
                    yield f"bits4_{form.name.lower()}_{name}", model.model.model.SerializeToString(), feeds


def read(path):
    with open(path, "rb") as file:
        return file.read()


def optimise():
    from onnxruntime.transformers import optimizer
    for name, data, feeds in export_torch(opsets=(18,)):
        if name in ("bert_18", "gpt2_18", "vit_18"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "source.onnx")
                with open(path, "wb") as file:
                    file.write(data)
                try:
                    model = optimizer.optimize_model(path, model_type=name.split("_")[0], num_heads=4, hidden_size=64,
                                                     opt_level=0)
                except Exception as failure:  # the optimiser's own
                    print(f"onnxruntime cannot optimise {name}: {str(failure)[:120]}", file=sys.stderr)
                    continue
                yield f"optimised_{name}", model.model.SerializeToString(), feeds
                model.convert_float_to_float16(keep_io_types=True)
                yield f"optimised_half_{name}", model.model.SerializeToString(), feeds


# ---- scikit-learn -----------------------------------------------------------------------------

def export_sklearn():
    import skl2onnx
    from sklearn import (cluster, decomposition, discriminant_analysis, ensemble, impute, linear_model, mixture,
                         naive_bayes, neighbors, neural_network, preprocessing, svm, tree)
    x = draw((64, 6))
    classes = (x[:, 0] + x[:, 1] > 0).astype(np.int64) + (x[:, 2] > 0.5)
    classifiers = [linear_model.LogisticRegression(), linear_model.RidgeClassifier(), linear_model.SGDClassifier(),
                   svm.SVC(probability=True), svm.LinearSVC(), svm.NuSVC(nu=0.3), tree.DecisionTreeClassifier(),
                   ensemble.RandomForestClassifier(10), ensemble.GradientBoostingClassifier(n_estimators=10),
                   ensemble.HistGradientBoostingClassifier(max_iter=10), ensemble.AdaBoostClassifier(n_estimators=5),
                   ensemble.BaggingClassifier(n_estimators=3), neighbors.KNeighborsClassifier(),
                   naive_bayes.GaussianNB(), neural_network.MLPClassifier(max_iter=20),
                   discriminant_analysis.LinearDiscriminantAnalysis()]
    others = [linear_model.LinearRegression(), linear_model.PoissonRegressor(), svm.SVR(), tree.DecisionTreeRegressor(),
              ensemble.RandomForestRegressor(10), ensemble.GradientBoostingRegressor(n_estimators=10),
              neighbors.KNeighborsRegressor(), neural_network.MLPRegressor(max_iter=20)]
    transformers = [preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), preprocessing.PolynomialFeatures(),
                    preprocessing.KBinsDiscretizer(3, encode="onehot-dense"), preprocessing.PowerTransformer(),
                    preprocessing.QuantileTransformer(n_quantiles=16), preprocessing.Normalizer(),
                    decomposition.PCA(3), decomposition.TruncatedSVD(3), impute.SimpleImputer(), impute.KNNImputer(),
                    cluster.KMeans(3), mixture.GaussianMixture(2)]
    for model in classifiers + others + transformers:
        target = classes if model in classifiers else np.abs(x[:, 3]) if model in others else None
        model.fit(x, target)
        name = type(model).__name__
        options = {id(model): {"zipmap": False}} if model in classifiers else None
        try:
            try:
                data = skl2onnx.to_onnx(model, x[:1], options=options)
            except NameError:  # no probabilities, so no dictionaries of them
                data = skl2onnx.to_onnx(model, x[:1])
        except Exception as failure:  # the exporter's own
            print(f"skl2onnx cannot write {name}: {str(failure)[:120]}", file=sys.stderr)
            continue
        yield "sklearn_" + name, data.SerializeToString(), {data.graph.input[0].name: x[:16]}


# ---- Keras ------------------------------------------------------------------------------------

def export_keras():
    import tensorflow as tf
    import tf2onnx
    layers = tf.keras.layers
    nets = {
        "dense": ((32,), [layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax")]),
        "convolutions": ((32, 32, 3), [layers.Conv2D(16, 3, activation="relu"), layers.BatchNormalization(),
                                       layers.MaxPool2D(), layers.DepthwiseConv2D(3, padding="same"),
                                       layers.GlobalAveragePooling2D(), layers.Dense(10)]),
        "lstm": ((12, 16), [layers.LSTM(32, return_sequences=True), layers.GRU(16), layers.Dense(1)]),
    }
    for name, (shape, parts) in nets.items():
        model = tf.keras.Sequential([tf.keras.Input(shape), *parts])
        call = tf.function(model, input_signature=[tf.TensorSpec((None, *shape), tf.float32, name="x")])
        data, _ = tf2onnx.convert.from_function(call, input_signature=call.input_signature, opset=18)
        yield "keras_" + name, data.SerializeToString(), {"x": draw((2, *shape))}


FAMILIES = {"torch": export_torch, "quantise": quantise, "optimise": optimise, "sklearn": export_sklearn,
            "keras": export_keras, "networks": export_networks, "ops": export_ops, "narrow": export_narrow,
            "modules": export_modules, "varied": export_varied, "ideas": export_ideas,
            "jax": export_jax, "learners": export_learners, "script": export_script, "pieces": export_pieces}
