"""Networks with random weights for quantization.py, with architectures that no pass was tuned on.

The weights have the properties that make trained weights hard to quantise: channels of different magnitude (the result of
folding a batch norm), heavy tails, channels and tensors of zeros, biases, and activations with nonzero means.
"""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


class Builder:
    """Adds layers with random weights to the default graph."""

    def __init__(self, seed, spread=1.0, heavy=False):
        self.random = np.random.default_rng(seed)
        self.spread = spread  # Standard deviation of the logarithm of a channel's magnitude.
        self.heavy = heavy
        self.count = 0

    def weights(self, shape, fan_in, channels_at):
        draw = self.random.standard_t(4, shape) / np.sqrt(2) if self.heavy else self.random.standard_normal(shape)
        size = np.exp(self.spread * self.random.standard_normal(shape[channels_at]))
        size /= np.sqrt(np.mean(size * size))
        size[self.random.random(len(size)) < 0.03] = 0  # Channels of zeros, as in trained networks.
        view = [1] * len(shape)
        view[channels_at] = -1
        self.count += 1
        return tf1.constant((draw * size.reshape(view) * np.sqrt(2 / fan_in)).astype(np.float32),
                            name=f'layer_{self.count}/weights')

    def bias(self, x, channels):
        value = (0.3 * self.random.standard_normal(channels)).astype(np.float32)
        return tf.nn.bias_add(x, tf1.constant(value, name=f'layer_{self.count}/bias'))

    def conv(self, x, channels, kernel=1, stride=1, activation=tf.nn.relu):
        fan_in = kernel * kernel * int(x.shape[3])
        w = self.weights([kernel, kernel, int(x.shape[3]), channels], fan_in, 3)
        y = self.bias(tf.nn.conv2d(x, w, stride, 'SAME'), channels)
        return activation(y) if activation else y

    def depthwise(self, x, kernel=3, stride=1, activation=tf.nn.relu6):
        channels = int(x.shape[3])
        w = self.weights([kernel, kernel, channels, 1], kernel * kernel, 2)
        y = self.bias(tf.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], 'SAME'), channels)
        return activation(y) if activation else y

    def up(self, x, channels):
        w = self.weights([4, 4, channels, int(x.shape[3])], 4 * int(x.shape[3]), 2)
        shape = [1, 2 * int(x.shape[1]), 2 * int(x.shape[2]), channels]
        return tf.nn.relu(self.bias(tf.nn.conv2d_transpose(x, w, shape, 2, 'SAME'), channels))

    def dense(self, x, channels, activation=None, transpose=False):
        fan_in = int(x.shape[-1])
        w = self.weights([channels, fan_in] if transpose else [fan_in, channels], fan_in, 0 if transpose else 1)
        y = self.bias(tf.matmul(x, w, transpose_b=transpose), channels)
        return activation(y) if activation else y

    def norm(self, x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        gamma = tf1.constant((1 + 0.3 * self.random.standard_normal(int(x.shape[-1]))).astype(np.float32))
        return (x - mean) * tf.math.rsqrt(variance + 1e-6) * gamma


def image(size):
    return tf1.placeholder(tf.float32, [1, size, size, 3], name='input')


def inverted_residuals(build):
    x = build.conv(image(96), 16, 3, 2, tf.nn.relu6)
    for channels, stride in ((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1), (80, 1)):
        y = build.conv(x, 6 * int(x.shape[3]), activation=tf.nn.relu6)
        y = build.conv(build.depthwise(y, 3, stride), channels, activation=None)
        x = x + y if y.shape == x.shape else y
    return build.dense(tf.reduce_mean(build.conv(x, 640), [1, 2]), 100)


def squeeze_and_excite(build):
    swish = lambda v: v * tf.sigmoid(v)
    x = build.conv(image(64), 24, 3, 2, swish)
    for channels, stride in ((32, 2), (32, 1), (64, 2), (64, 1), (64, 1)):
        y = build.depthwise(build.conv(x, 4 * int(x.shape[3]), activation=swish), 5, stride, swish)
        gate = tf.reduce_mean(y, [1, 2], keepdims=True)
        gate = build.conv(build.conv(gate, 16), int(y.shape[3]), activation=tf.sigmoid)
        y = build.conv(y * gate, channels, activation=None)
        x = x + y if y.shape == x.shape else y
    return build.conv(x, 20, activation=None)


def residual(build):
    x = build.conv(image(64), 32, 7, 2)
    for channels in (32, 64, 128):
        for block in range(3):
            stride = 2 if block == 0 and channels > 32 else 1
            y = build.conv(build.conv(x, channels, 3, stride), channels, 3, activation=None)
            skip = x if y.shape == x.shape else build.conv(x, channels, 1, stride, None)
            x = tf.nn.relu(skip + 0.5 * y)
    return build.dense(tf.reshape(x, [1, -1]), 10)


def encoder_decoder(build):
    skips, x = [], build.conv(image(64), 16, 3)
    for channels in (32, 64, 128):
        skips.append(x)
        x = build.conv(build.conv(x, channels, 3, 2), channels, 3)
    for skip in reversed(skips):
        x = build.conv(tf.concat([build.up(x, int(skip.shape[3])), skip], 3), int(skip.shape[3]), 3)
    return tf.sigmoid(build.conv(x, 1, activation=None))


def dense_blocks(build):
    x = build.conv(image(48), 24, 3, 2)
    for _ in range(2):
        for _ in range(6):
            y = build.conv(build.conv(x, 48), 12, 3)
            x = tf.concat([x, y], 3)
        x = tf.nn.avg_pool2d(build.conv(x, int(x.shape[3]) // 2), 2, 2, 'VALID')
    return build.dense(tf.reduce_mean(x, [1, 2]), 50)


def attention(build):
    width, heads, length = 128, 4, 32
    ids = tf1.placeholder(tf.int32, [length], name='input')
    table = build.weights([500, width], width, 0)
    positions = tf1.constant(0.1 * build.random.standard_normal([length, width]).astype(np.float32))
    x = tf.gather(table, ids) * 8 + positions
    for _ in range(4):
        y = build.norm(x)
        q, k, v = (tf.transpose(tf.reshape(build.dense(y, width, transpose=t), [length, heads, -1]), [1, 0, 2])
                   for t in (False, True, False))
        mixed = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.sqrt(width / heads)), v)
        x = x + build.dense(tf.reshape(tf.transpose(mixed, [1, 0, 2]), [length, width]), width)
        x = x + build.dense(build.dense(build.norm(x), 4 * width, lambda u: tf.nn.relu(u)), width)
    return build.dense(build.norm(x), 60)


ARCHITECTURES = (inverted_residuals, squeeze_and_excite, residual, encoder_decoder, dense_blocks, attention)


def models():
    """Yields (name, graph, feeds), where each of the feeds is a value of the placeholder 'input'; the output is 'output'."""
    for make in ARCHITECTURES:
        for seed, (spread, heavy) in enumerate(((0.3, False), (1.0, False), (1.5, True))):
            with tf1.Graph().as_default() as graph:
                tf.identity(make(Builder(seed, spread, heavy)), name='output')
                tensor = graph.get_tensor_by_name('input:0')
                random = np.random.default_rng(100 + seed)
                if tensor.dtype == tf.int32:
                    feeds = [random.integers(0, 500, tensor.shape).astype(np.int32) for _ in range(3)]
                else:
                    feeds = [random.random(tensor.shape).astype(np.float32) * 2 - 1 for _ in range(3)]
                name = f'{make.__name__} {spread:g}{" heavy" if heavy else ""}'
                yield name, graph.as_graph_def(), feeds
