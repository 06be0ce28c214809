#!/usr/bin/env python3
"""Writes the models of models/ with TensorFlow: checkpoints and SavedModels, with TensorFlow's results.

    make_models.py [NAME...]        (all when none is named; needs TensorFlow 2)

Each folder holds the model, and in `case/` an NPY file `in.<input>.npy` for each input of the signature and one
`out.<output>.npy` for each of its outputs.
"""
import os
import pathlib
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2  # noqa: E402

v1 = tf.compat.v1
HERE = pathlib.Path(__file__).resolve().parent / "models"
MODELS = {}


def model(write):
    MODELS[write.__name__] = write
    return write


def fresh(name):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "case").mkdir(parents=True)
    return folder


def record(folder, inputs, outputs):
    for prefix, tensors in (("in", inputs), ("out", outputs)):
        for name, value in tensors.items():
            np.save(folder / "case" / f"{prefix}.{name}.npy", np.asarray(value))


def rng():
    return np.random.default_rng(7)


def save_module(name, module, signature, inputs):
    """Writes a TF2 SavedModel of `module` and the results of its signature."""
    folder = fresh(name)
    tf.saved_model.save(module, str(folder), signatures=signature)
    loaded = tf.saved_model.load(str(folder))
    answers = loaded.signatures["serving_default"](**{k: tf.constant(v) for k, v in inputs.items()})
    record(folder, inputs, {k: v.numpy() for k, v in answers.items()})
    (folder / "fingerprint.pb").unlink(missing_ok=True)


# --- TensorFlow 1 ----------------------------------------------------------------------------------------------------


def dense_graph(use_resource, partitioner=None):
    """x [?,4] -> scores [?,3]."""
    x = v1.placeholder(tf.float32, [None, 4], "x")
    with v1.variable_scope("net", use_resource=use_resource, partitioner=partitioner):
        w = v1.get_variable("w", [4, 8], initializer=v1.zeros_initializer())
        b = v1.get_variable("b", [8], initializer=v1.zeros_initializer())
        scale = v1.get_variable("scale", [8, 3], initializer=v1.zeros_initializer())
    hidden = tf.nn.relu(tf.matmul(x, w) + b, name="hidden")
    return x, tf.matmul(hidden, tf.convert_to_tensor(scale), name="scores")


def save_checkpoint(name, version, use_resource, partitioner=None, averages=False, train=False, text=False):
    """Writes the graph alone, in one form, and a checkpoint with its MetaGraph."""
    folder = fresh(name)
    with tf.Graph().as_default(), v1.Session() as session:
        x, scores = dense_graph(use_resource, partitioner)
        if train:
            v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(scores * scores))
        if averages:
            tf.train.ExponentialMovingAverage(0.5).apply(v1.trainable_variables())
        graph = session.graph.as_graph_def()
        v1.train.write_graph(graph, str(folder), "graph.pbtxt" if text else "graph.pb", as_text=text)
        random = rng()
        for variable in v1.global_variables():
            variable.load(random.standard_normal(variable.shape).astype(np.float32), session)
        value = random.standard_normal((5, 4)).astype(np.float32)
        v1.train.Saver(write_version=version).save(session, str(folder / "model.ckpt"))
        (folder / "checkpoint").unlink()
        record(folder, {"x": value}, {"scores": session.run(scores, {x: value})})
        if averages:
            averaged = {v.op.name: session.run(v.op.name + "/ExponentialMovingAverage:0")
                        for v in v1.trainable_variables()}
            hidden = np.maximum(value @ averaged["net/w"] + averaged["net/b"], 0)
            np.save(folder / "case" / "average.scores.npy", hidden @ averaged["net/scale"])


@model
def tf1_checkpoint_v1():
    save_checkpoint("tf1_checkpoint_v1", v1.train.SaverDef.V1, use_resource=False, text=True)


@model
def tf1_checkpoint_v2():
    save_checkpoint("tf1_checkpoint_v2", v1.train.SaverDef.V2, use_resource=True, train=True)


@model
def tf1_partitioned():
    save_checkpoint("tf1_partitioned", v1.train.SaverDef.V2, use_resource=False,
                    partitioner=v1.fixed_size_partitioner(3))


@model
def tf1_average():
    save_checkpoint("tf1_average", v1.train.SaverDef.V2, use_resource=False, averages=True)


@model
def tf1_saved_model():
    folder = fresh("tf1_saved_model")
    shutil.rmtree(folder)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        flag = v1.placeholder(tf.bool, [], "flag")
        with v1.variable_scope("", use_resource=True):
            w = v1.get_variable("w", [4, 3], initializer=v1.random_normal_initializer(seed=1))
            table = v1.get_variable("table", [6, 3], initializer=v1.random_normal_initializer(seed=2),
                                    partitioner=v1.fixed_size_partitioner(2))
        v1.disable_control_flow_v2()
        chosen = v1.cond(flag, lambda: tf.matmul(x, w), lambda: tf.matmul(x, w + 1.0))
        _, looped = v1.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v + tf.reduce_sum(w)), [0, chosen])
        rows = tf.gather(tf.convert_to_tensor(table), [0, 4, 5, 1])
        y = tf.identity(looped + tf.reduce_sum(rows, axis=0), name="y")
        session.run(v1.global_variables_initializer())
        value = rng().standard_normal((2, 4)).astype(np.float32)
        v1.saved_model.simple_save(session, str(folder), {"x": x, "flag": flag}, {"y": y})
        (folder / "case").mkdir()
        record(folder, {"x": value, "flag": np.array(True)}, {"y": session.run(y, {x: value, flag: True})})


# --- TensorFlow 2 ----------------------------------------------------------------------------------------------------


@model
def tf2_cnn():
    tf.keras.utils.set_random_seed(1)
    net = tf.keras.Sequential([
        tf.keras.Input((8, 8, 2)),
        tf.keras.layers.Conv2D(3, 3, padding="same"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.ReLU(),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(3, activation="softmax"),
    ])
    net.layers[1].moving_mean.assign([0.1, -0.2, 0.3])
    net.layers[1].moving_variance.assign([1.1, 0.7, 2.0])
    folder = fresh("tf2_cnn")
    net.export(str(folder), verbose=False)
    value = rng().standard_normal((2, 8, 8, 2)).astype(np.float32)
    answers = tf.saved_model.load(str(folder)).signatures["serving_default"](tf.constant(value))
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"].structured_input_signature[1]
    record(folder, {next(iter(signature)): value}, {k: v.numpy() for k, v in answers.items()})
    (folder / "fingerprint.pb").unlink(missing_ok=True)


@model
def tf2_lstm():
    tf.keras.utils.set_random_seed(2)
    net = tf.keras.Sequential([tf.keras.Input((5, 3)), tf.keras.layers.LSTM(4), tf.keras.layers.Dense(2)])
    folder = fresh("tf2_lstm")
    net.export(str(folder), verbose=False)
    value = rng().standard_normal((2, 5, 3)).astype(np.float32)
    loaded = tf.saved_model.load(str(folder))
    signature = loaded.signatures["serving_default"].structured_input_signature[1]
    answers = loaded.signatures["serving_default"](tf.constant(value))
    record(folder, {next(iter(signature)): value}, {k: v.numpy() for k, v in answers.items()})
    (folder / "fingerprint.pb").unlink(missing_ok=True)


class Transformer(tf.Module):
    """An attention block over token ids."""

    def __init__(self, width=4, heads=2, words=11):
        super().__init__()
        r = rng()
        make = lambda *shape: tf.Variable(r.standard_normal(shape).astype(np.float32) * 0.5)  # noqa: E731
        self.words = make(words, width)
        self.query, self.key, self.value, self.out = (make(width, width) for _ in range(4))
        self.up, self.down = make(width, 8), make(8, width)
        self.gain, self.bias = make(width), make(width)
        self.heads = heads

    def norm(self, x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * self.gain + self.bias

    def split(self, x):
        shape = tf.shape(x)
        return tf.transpose(tf.reshape(x, [shape[0], shape[1], self.heads, -1]), [0, 2, 1, 3])

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "ids")])
    def serve(self, ids):
        x = tf.gather(self.words, ids)
        q, k, v = (self.split(tf.einsum("bsd,de->bse", x, m)) for m in (self.query, self.key, self.value))
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 2.0)
        mixed = tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), tf.shape(x))
        x = self.norm(x + tf.einsum("bsd,de->bse", mixed, self.out))
        hidden = tf.nn.gelu(tf.einsum("bsd,de->bse", x, self.up))
        return {"encoded": self.norm(x + tf.einsum("bsd,de->bse", hidden, self.down))}


@model
def tf2_transformer():
    module = Transformer()
    save_module("tf2_transformer", module, module.serve, {"ids": np.array([[1, 5, 9], [0, 2, 10]], np.int32)})


class Flow(tf.Module):
    """Variables that are read in loops, conditions, cases and calls."""

    def __init__(self):
        super().__init__()
        r = rng()
        self.w = tf.Variable(r.standard_normal((3, 3)).astype(np.float32) * 0.5, name="w")
        self.b = tf.Variable(r.standard_normal(3).astype(np.float32), name="b")
        self.c = tf.Variable(r.standard_normal(3).astype(np.float32), name="c")
        self.unused = tf.Variable([1.0], name="unused")

    @tf.function(reduce_retracing=True)
    def step(self, x):
        return tf.tanh(tf.matmul(x, self.w) + self.b)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x"), tf.TensorSpec([], tf.int32, "n")])
    def serve(self, x, n):
        def body(i, value):
            value = tf.cond(tf.equal(i % 2, 0), lambda: self.step(value), lambda: value + self.c)
            return i + 1, value

        _, x = tf.while_loop(lambda i, _: i < n, body, [0, x])
        x = tf.switch_case(n % 3, [lambda: x * self.b, lambda: self.step(x), lambda: x - self.c])
        return {"y": tf.identity(x, name="answer"), "total": tf.reduce_sum(x)}


@model
def tf2_control_flow():
    module = Flow()
    value = rng().standard_normal((2, 3)).astype(np.float32)
    save_module("tf2_control_flow", module, module.serve, {"x": value, "n": np.array(4, np.int32)})


class Vocabulary(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(rng().standard_normal((4, 2)).astype(np.float32), name="w")
        keys = tf.constant(["red", "green", "blue"])
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, tf.constant([0, 1, 2], tf.int64)), 3)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def serve(self, words):
        return {"rows": tf.gather(self.w, self.table.lookup(words))}


@model
def tf2_table():
    module = Vocabulary()
    save_module("tf2_table", module, module.serve, {"words": np.array([b"blue", b"pink", b"red"])})
    for file in (HERE / "tf2_table" / "case").iterdir():
        file.unlink()  # The tools read no NPY files of strings: frozen_models_test.cc has the results.


class FileVocabulary(tf.Module):
    def __init__(self, path):
        super().__init__()
        index = tf.lookup.TextFileIndex
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER), -1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def serve(self, words):
        return {"ids": self.table.lookup(words)}


@model
def tf2_asset_table():
    path = HERE / "vocabulary.txt"
    path.write_text("red\nlight blue\ngreen\n")
    module = FileVocabulary(str(path))
    save_module("tf2_asset_table", module, module.serve, {"words": np.array([b"green", b"pink", b"light blue"])})
    path.unlink()
    for file in (HERE / "tf2_asset_table" / "case").iterdir():
        file.unlink()


@model
def tf2_asset_offset():
    """A layer whose file of words is numbered from 1: `offset` of the initialiser."""
    path = HERE / "words.txt"
    path.write_text("red\nlight blue\ngreen\n")
    words = tf.keras.Input((2,), dtype="string")
    net = tf.keras.Model(words, tf.keras.layers.StringLookup(vocabulary=str(path))(words))
    folder = fresh("tf2_asset_offset")
    net.export(str(folder), verbose=False)
    path.unlink()
    (folder / "fingerprint.pb").unlink(missing_ok=True)
    shutil.rmtree(folder / "case")


class Counting(tf.Module):
    def __init__(self):
        super().__init__()
        self.calls = tf.Variable(0.0, name="calls")

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, "x")])
    def serve(self, x):
        self.calls.assign_add(1.0)
        return {"y": x * self.calls}


@model
def tf2_assigns():
    module = Counting()
    save_module("tf2_assigns", module, module.serve, {"x": np.array([1, 2], np.float32)})


def save_calls(name, folder, inputs):
    """Records `out.` for the first call of the signature, and `call_1.` and `call_2.` for the next two."""
    loaded = tf.saved_model.load(str(folder)).signatures["serving_default"]
    for prefix in ("out", "call_1", "call_2"):
        for key, value in loaded(**{k: tf.constant(v) for k, v in inputs.items()}).items():
            np.save(folder / "case" / f"{prefix}.{key}.npy", value.numpy())
    record(folder, inputs, {})
    (folder / "fingerprint.pb").unlink(missing_ok=True)


class Stateful(tf.Module):
    """A state that is read and written, a counter in a branch, and an average that only training reads."""

    def __init__(self):
        super().__init__()
        self.state = tf.Variable(rng().standard_normal((2, 3)).astype(np.float32), name="state")
        self.weights = tf.Variable(rng().standard_normal((3, 3)).astype(np.float32), name="weights")
        self.count = tf.Variable(4, dtype=tf.int64, name="count")
        self.average = tf.Variable([1.0, 2.0, 3.0], name="average")

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, "x")])
    def serve(self, x):
        self.average.assign_sub(0.1 * (self.average - tf.reduce_mean(x, 0)))
        mixed = tf.tanh(x + tf.matmul(self.state, self.weights))
        self.state.assign(mixed)
        if tf.reduce_sum(mixed) > 0:
            self.count.assign_add(2)
        return {"y": mixed * 2.0, "count": self.count.read_value(), "row": tf.gather(self.state, [1])}


@model
def tf2_state():
    folder = fresh("tf2_state")
    module = Stateful()
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    save_calls("tf2_state", folder, {"x": rng().standard_normal((2, 3)).astype(np.float32)})


@model
def tf2_random_layers():
    """Layers of Keras that act at random in an exported model: their seeds are variables that each call changes."""
    tf.keras.utils.set_random_seed(3)
    image = tf.keras.Input((6, 6, 2), name="image")
    x = tf.keras.layers.RandomFlip(seed=1)(image)
    x = tf.keras.layers.RandomTranslation(0.3, 0.3, seed=2)(x)
    net = tf.keras.Model(image, tf.keras.layers.Conv2D(2, 3)(x))
    folder = fresh("tf2_random_layers")
    net.export(str(folder), verbose=False)
    save_calls("tf2_random_layers", folder, {"image": rng().standard_normal((2, 6, 6, 2)).astype(np.float32)})


class Unknown(tf.Module):
    """An op that only TensorFlow knows, in a function, in a branch of it, and beside variables."""

    def __init__(self):
        super().__init__()
        self.scale = tf.Variable([0.5, 2.0], name="scale")

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, "x")])
    def serve(self, x):
        inner = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.math.special.bessel_j0(x * self.scale), lambda: x - self.scale)
        return {"y": tf.math.special.bessel_j0(inner) + self.scale}


@model
def tf2_unknown_op():
    module = Unknown()
    save_module("tf2_unknown_op", module, module.serve, {"x": np.array([1, 2], np.float32)})


@model
def text():
    """Writes messages of other models as text: a SavedModel, a MetaGraph and its SaverDef."""
    folder = HERE / "text"
    folder.mkdir(exist_ok=True)
    saved = saved_model_pb2.SavedModel.FromString((HERE / "tf2_control_flow" / "saved_model.pb").read_bytes())
    (folder / "tf2_control_flow.pbtxt").write_text(text_format.MessageToString(saved))
    meta = meta_graph_pb2.MetaGraphDef.FromString((HERE / "tf1_partitioned" / "model.ckpt.meta").read_bytes())
    (folder / "tf1_partitioned.meta").write_text(text_format.MessageToString(meta))
    (folder / "tf1_partitioned.saver").write_text(text_format.MessageToString(meta.saver_def))


if __name__ == "__main__":
    for chosen in sys.argv[1:] or MODELS:
        MODELS[chosen]()
        size = sum(f.stat().st_size for f in (HERE / chosen).rglob("*") if f.is_file())
        print(f"{chosen}: {size:,} bytes")
