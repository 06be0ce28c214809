#!/usr/bin/env python3
"""Makes models of families that the recorded ones do not contain, for run.py: families.py FOLDER [NAME ...].

    .peers/venv/bin/python tests/bench/peers/families.py .peers/families
    python3 tests/bench/peers/run.py --shared .peers/families

Writes FOLDER/models/NAME with the files of a recorded model: frozen graph, spec.json, inputs and TensorFlow's outputs. The
weights are random with fixed seeds and scaled so that activations keep their magnitude. Sizes and layers are those of the
published architectures. Models that exist are kept.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2


class Layers:
    """Layers with random weights, as functions of tensors."""

    def __init__(self, seed, data_format="NHWC"):
        self.random = np.random.default_rng(seed)
        self.format = data_format

    def normal(self, shape, fan_in, gain=2.0):
        return tf.constant((self.random.standard_normal(shape) * np.sqrt(gain / fan_in)).astype(np.float32))

    def near(self, value, count, spread=0.1):
        return tf.constant((value + spread * self.random.standard_normal(count)).astype(np.float32))

    def channels(self, x):
        return int(x.shape[1 if self.format == "NCHW" else -1])

    def window(self, height, width):
        return [1, 1, height, width] if self.format == "NCHW" else [1, height, width, 1]

    def conv(self, x, outputs, kernel=3, stride=1, activation=tf.nn.relu, groups=1, dilation=1, padding="SAME"):
        height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        inputs = self.channels(x)

        def one(piece, count):
            fan_in = height * width * inputs // groups
            weights = self.normal([height, width, inputs // groups, count], fan_in)
            return tf.nn.conv2d(piece, weights, self.window(stride, stride), padding, self.format,
                                self.window(dilation, dilation))

        if groups == 1:
            y = one(x, outputs)
        else:  # As TensorFlow 1 and exporters write grouped convolutions.
            axis = 1 if self.format == "NCHW" else 3
            y = tf.concat([one(piece, outputs // groups) for piece in tf.split(x, groups, axis)], axis)
        y = self.batch_norm(y)
        return activation(y) if activation else y

    def batch_norm(self, x):
        count = self.channels(x)
        return tf.compat.v1.nn.fused_batch_norm(x, self.near(1, count), self.near(0, count), self.near(0, count),
                                                tf.abs(self.near(1, count)), data_format=self.format,
                                                is_training=False)[0]

    def depthwise(self, x, kernel=3, stride=1, activation=tf.nn.relu6):
        count = self.channels(x)
        weights = self.normal([kernel, kernel, count, 1], kernel * kernel)
        y = tf.nn.depthwise_conv2d(x, weights, self.window(stride, stride), "SAME", self.format)
        y = self.batch_norm(y)
        return activation(y) if activation else y

    def pool(self, x, size, stride, padding="SAME", average=False):
        function = tf.compat.v1.nn.avg_pool if average else tf.compat.v1.nn.max_pool
        return function(x, self.window(size, size), self.window(stride, stride), padding, self.format)

    def dense(self, x, outputs, activation=None, gain=1.0):
        y = tf.linalg.matmul(x, self.normal([int(x.shape[-1]), outputs], int(x.shape[-1]), gain)) + self.near(0, outputs)
        return activation(y) if activation else y

    def layer_norm(self, x):
        count = int(x.shape[-1])
        mean = tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-12) * self.near(1, count) + self.near(0, count)


def encoder(seed, length, layers, width, heads, wide):
    def build(ids):
        made = Layers(seed)
        words = made.normal([8000, width], 1, 0.05)
        x = tf.gather(words, ids) + made.normal([1, length, width], 1, 0.05)
        x = made.layer_norm(x)
        mask = (1.0 - tf.cast(tf.reshape(tf.not_equal(ids, 0), [1, 1, 1, length]), tf.float32)) * -10000.0
        each = width // heads
        for _ in range(layers):
            def split(y):
                return tf.transpose(tf.reshape(y, [1, length, heads, each]), [0, 2, 1, 3])
            rows = tf.reshape(x, [length, width])
            query, key, value = (split(made.dense(rows, width)) for _ in range(3))
            scores = tf.matmul(query, key, transpose_b=True) * (1.0 / np.sqrt(each)).astype(np.float32) + mask
            mixed = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3]), [length, width])
            rows = made.layer_norm(rows + made.dense(mixed, width))
            hidden = made.dense(rows, wide)
            hidden = hidden * 0.5 * (1.0 + tf.math.erf(hidden * np.float32(1 / np.sqrt(2))))
            rows = made.layer_norm(rows + made.dense(hidden, width))
            x = tf.reshape(rows, [1, length, width])
        return made.dense(tf.reshape(x[:, 0, :], [1, width]), width, tf.nn.tanh)
    return build, ([1, length], tf.int32)


def recurrent(kind, unroll):
    models = []

    def make():
        tf.keras.utils.set_random_seed(11)
        cell = {"lstm": tf.keras.layers.LSTM, "gru": tf.keras.layers.GRU}[kind]
        return tf.keras.Sequential([tf.keras.Input((64, 80)), cell(256, return_sequences=True, unroll=unroll),
                                    cell(256, unroll=unroll), tf.keras.layers.Dense(30, activation="softmax")])

    def build(x):
        if not models:
            with tf.init_scope():  # Variables are made once, outside of the graph.
                models.append(make())
        return tf.reshape(models[0](x), [1, 30])  # A shape that is known before a run.
    return build, ([1, 64, 80], tf.float32)


def resnet(x):
    made = Layers(21, "NCHW")
    x = made.pool(made.conv(x, 64, 7, 2), 3, 2)
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            short = x if block else made.conv(x, 4 * width, 1, stride, None)
            y = made.conv(made.conv(made.conv(x, width, 1), width, 3, stride), 4 * width, 1, 1, None)
            x = tf.nn.relu(short + y * 0.3)
    return tf.nn.softmax(made.dense(tf.reduce_mean(x, [2, 3]), 1000))


def resnext(x):
    made = Layers(22)
    x = made.pool(made.conv(x, 64, 7, 2), 3, 2)
    for stage, (width, blocks) in enumerate([(128, 2), (256, 2), (512, 2)]):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            short = x if block else made.conv(x, 2 * width, 1, stride, None)
            y = made.conv(made.conv(made.conv(x, width, 1), width, 3, stride, groups=32), 2 * width, 1, 1, None)
            x = tf.nn.relu(short + y * 0.3)
    return tf.nn.softmax(made.dense(tf.reduce_mean(x, [1, 2]), 1000))


def shufflenet(x):
    made = Layers(23)
    x = made.pool(made.conv(x, 24, 3, 2), 3, 2)

    def shuffle(y, groups):
        _, height, width, channels = y.shape
        y = tf.reshape(y, [1, height, width, groups, channels // groups])
        return tf.reshape(tf.transpose(y, [0, 1, 2, 4, 3]), [1, height, width, channels])

    for stage, (width, blocks) in enumerate([(240, 4), (480, 8), (960, 4)]):
        for block in range(blocks):
            stride = 1 if block else 2
            inputs = int(x.shape[3])
            outputs = width - inputs if stride == 2 else width
            y = made.conv(x, width // 4, 1, groups=3 if stage or block else 1)
            y = made.depthwise(shuffle(y, 3), 3, stride, None)
            y = made.conv(y, outputs, 1, 1, None, groups=3)
            x = tf.nn.relu(tf.concat([made.pool(x, 3, 2, average=True), y], 3) if stride == 2 else x + y * 0.3)
    return tf.nn.softmax(made.dense(tf.reduce_mean(x, [1, 2]), 1000))


def unet(x):
    made = Layers(24)
    kept = []
    for width in (32, 64, 128, 256):
        x = made.conv(made.conv(x, width), width)
        kept.append(x)
        x = made.pool(x, 2, 2)
    x = made.conv(made.conv(x, 512), 512)
    for width in (256, 128, 64, 32):
        _, height, across, channels = x.shape
        weights = made.normal([2, 2, width, channels], channels)
        x = tf.nn.conv2d_transpose(x, weights, [1, 2 * height, 2 * across, width], 2)
        x = made.conv(made.conv(tf.concat([kept.pop(), x], 3), width), width)
    return tf.nn.sigmoid(made.conv(x, 1, 1, 1, None))


def backbone(made, x):
    """Returns MobileNet-like feature maps with strides of 8, 16 and 32."""
    x = made.depthwise(made.conv(x, 32, 3, 2, tf.nn.relu6))
    x = made.conv(x, 16, 1, 1, None)
    maps = []
    for width, blocks, stride in [(24, 2, 2), (32, 3, 2), (64, 3, 2), (96, 2, 1), (160, 3, 2)]:
        for block in range(blocks):
            inputs = int(x.shape[3])
            y = made.conv(x, 6 * inputs, 1, 1, tf.nn.relu6)
            y = made.conv(made.depthwise(y, 3, 1 if block else stride), width, 1, 1, None)
            x = x + y * 0.3 if block else y
        if width in (32, 96, 160):
            maps.append(x)
    return maps


def suppress(boxes, scores, most):
    """Returns detections of one image: the best boxes of each class, and their scores."""
    kept_boxes, kept_scores = [], []
    for label in range(int(scores.shape[1])):
        kept = tf.image.non_max_suppression(boxes, scores[:, label], most, 0.5, 0.3)
        kept_boxes.append(tf.pad(tf.gather(boxes, kept), [[0, most - tf.size(kept)], [0, 0]]))
        kept_scores.append(tf.pad(tf.gather(scores[:, label], kept), [[0, most - tf.size(kept)]]))
    best = tf.math.top_k(tf.concat(kept_scores, 0), most)
    # Shapes that are known before a run, as the engines' interfaces want them.
    return (tf.reshape(tf.gather(tf.concat(kept_boxes, 0), best.indices), [most, 4]), tf.reshape(best.values, [most]))


def decode(made, maps, anchors, classes, size, suppresses=True):
    boxes, scores, corners = [], [], []
    for level in maps:
        side = int(level.shape[1])
        boxes.append(tf.reshape(made.conv(level, 4 * anchors, 3, 1, None), [-1, 4]))
        scores.append(tf.reshape(made.conv(level, classes * anchors, 3, 1, None), [-1, classes]))
        at = (np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), -1) + 0.5) * size / side
        at = np.repeat(at.reshape(-1, 1, 2), anchors, 1).reshape(-1, 2)
        extent = np.tile(np.linspace(1.5, 4, anchors)[:, None] * size / side, (side * side, 2))
        corners.append(np.concatenate([at, extent], 1))
    anchor = tf.constant(np.concatenate(corners).astype(np.float32))
    offset, score = tf.concat(boxes, 0) * 0.1, tf.nn.sigmoid(tf.concat(scores, 0) - 1.0)
    centre = offset[:, :2] * anchor[:, 2:] + anchor[:, :2]
    half = tf.exp(tf.minimum(offset[:, 2:], 2.0)) * anchor[:, 2:] / 2
    corner = tf.concat([centre - half, centre + half], 1)
    return suppress(corner, score, 50) if suppresses else (corner, score)


def ssd(x):
    made = Layers(25)
    return decode(made, backbone(made, x), 6, 8, 300)


def efficientdet(x):
    made = Layers(26)

    def swish(y):
        return y * tf.nn.sigmoid(y)

    maps = [made.conv(level, 64, 1, 1, None) for level in backbone(made, x)]
    for _ in range(3):
        # A bidirectional pyramid: down from the coarsest, then up again, with weights that are normalised in the graph.
        for order in (range(len(maps) - 2, -1, -1), range(1, len(maps))):
            for i in order:
                other = maps[i + 1] if order.step == -1 else maps[i - 1]
                sides = [int(maps[i].shape[1]), int(maps[i].shape[2])]
                moved = (tf.compat.v1.image.resize_nearest_neighbor(other, sides) if order.step == -1 else
                         made.pool(other, 3, 2))
                share = tf.nn.relu(made.near(1, 2))
                share = share / (tf.reduce_sum(share) + 1e-4)
                y = swish(maps[i] * share[0] + moved * share[1])
                maps[i] = made.conv(made.depthwise(y, activation=None), 64, 1, 1, None)
    towers = []
    for level in maps:
        for _ in range(3):
            level = swish(made.conv(made.depthwise(level, activation=None), 64, 1, 1, None))
        towers.append(level)
    return decode(made, towers, 9, 8, 320)


def keywords(samples):
    """A keyword spotter: log-mel spectrogram of one second, then depthwise separable convolutions."""
    made = Layers(27)
    frames = tf.signal.frame(samples, 480, 320)
    frames = frames * tf.signal.hann_window(480)
    # The transform as matrix products, as converters for small devices write it.
    angle = 2 * np.pi * np.outer(np.arange(480), np.arange(257)) / 512
    real, imaginary = (tf.matmul(frames, tf.constant(part.astype(np.float32)[None]))
                       for part in (np.cos(angle), -np.sin(angle)))
    power = real * real + imaginary * imaginary
    mel = tf.matmul(power, tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 20.0, 7600.0)[None])
    x = tf.math.log(mel + 1e-6)[..., None]
    x = made.conv(x, 64, (10, 4), 2)
    for _ in range(4):
        x = made.conv(made.depthwise(x, activation=tf.nn.relu), 64, 1)
    return tf.nn.softmax(made.dense(tf.reduce_mean(x, [1, 2]), 12))


def waves(x):
    """A temporal network of dilated and strided 1-D convolutions."""
    made = Layers(28)
    for i, width in enumerate([64, 64, 128, 128, 256, 256]):
        y = tf.nn.conv1d(x, made.normal([5, int(x.shape[2]), width], 5 * int(x.shape[2])), 2 if i % 2 else 1, "SAME")
        x = tf.nn.relu(tf.nn.bias_add(y, made.near(0, width)))
    for dilation in (1, 2, 4):
        y = tf.nn.conv1d(x, made.normal([3, 256, 256], 3 * 256), 1, "SAME", dilations=dilation)
        x = x + tf.nn.relu(tf.nn.bias_add(y, made.near(0, 256))) * 0.3
    return tf.nn.softmax(made.dense(tf.reduce_mean(x, 1), 10))


def image(side, channels_first=False):
    return ([1, 3, side, side] if channels_first else [1, side, side, 3], tf.float32)


# By name: the function from input to outputs, and the input's shape and type.
MODELS = {
    **{f"bert_base_{length}": encoder(1, length, 12, 768, 12, 3072) for length in (32, 128, 384)},
    **{f"minilm_{length}": encoder(2, length, 6, 384, 12, 1536) for length in (32, 128, 384)},
    "keras_lstm": recurrent("lstm", False),
    "keras_lstm_unrolled": recurrent("lstm", True),
    "keras_gru": recurrent("gru", False),
    "keras_gru_unrolled": recurrent("gru", True),
    "resnet50_nchw": (resnet, image(224, True)),
    "resnext": (resnext, image(224)),
    "shufflenet": (shufflenet, image(224)),
    "unet": (unet, image(128)),
    "ssd_nms": (ssd, image(300)),
    "efficientdet_nms": (efficientdet, image(320)),
    "keyword_spotter": (keywords, ([1, 16000], tf.float32)),
    "waves_1d": (waves, ([1, 2048, 9], tf.float32)),
}


def freeze(build, shape, dtype):
    """Returns the frozen graph, and the names of its input and outputs."""
    function = tf.function(build, input_signature=[tf.TensorSpec(shape, dtype, name="input")])
    frozen = convert_variables_to_constants_v2(function.get_concrete_function(), lower_control_flow=False)
    names = [output.name.split(":")[0] for output in frozen.outputs]
    return frozen.graph.as_graph_def(), frozen.inputs[0].name.split(":")[0], names


def some_input(shape, dtype, seed):
    random = np.random.default_rng(seed)
    if dtype == tf.int32:
        ids = random.integers(1, 8000, shape)
        ids[:, shape[1] - shape[1] // 4:] = 0  # Padding.
        return ids.astype(np.int32)
    return random.uniform(-1, 1, shape).astype(np.float32)


def write(name, folder):
    build, (shape, dtype) = MODELS[name]
    graph, feed, fetches = freeze(build, shape, dtype)
    folder.mkdir(parents=True, exist_ok=True)
    with tf.Graph().as_default() as loaded:
        tf.import_graph_def(graph, name="")
    with tf.compat.v1.Session(graph=loaded) as session:
        for run in range(2):
            value = some_input(shape, dtype, run)
            np.save(folder / f"input_{run}.npy", value)
            for port, array in enumerate(session.run([fetch + ":0" for fetch in fetches], {feed + ":0": value})):
                np.save(folder / f"output_{run}_{port}.npy", array)
    spec = {"inputs": [{"name": feed, "shape": shape, "dtype": dtype.name}], "outputs": fetches,
            "source": "tests/bench/peers/families.py"}
    (folder / "spec.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")
    # Written last: a folder with a graph is complete.
    (folder / "model.pb").write_bytes(graph.SerializeToString())


def main():
    if len(sys.argv) < 2 or set(sys.argv[2:]) - set(MODELS):
        sys.exit(f"usage: families.py FOLDER [{' '.join(MODELS)}]")
    for name in sys.argv[2:] or MODELS:
        folder = pathlib.Path(sys.argv[1]) / "models" / name
        if not (folder / "model.pb").exists():
            print(f"families: {name}", file=sys.stderr, flush=True)
            tf.keras.backend.clear_session()
            write(name, folder)


if __name__ == "__main__":
    main()
