"""QuantizedConv2D and QuantizedMatMul."""

import os
import pickle
import subprocess
import sys

import numpy as np
import tensorflow as tf
from make_vectors import Case

# A filter of qint8 has a kernel in oneDNN alone, which a process takes or leaves as a whole. The filter is a constant there,
# as it is in a frozen graph.
WITH_ONEDNN = """
import pickle, sys
import tensorflow as tf
image, taps, a_min, a_max, b_min, b_max, stride, padding = pickle.load(sys.stdin.buffer)
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    fed = tf.compat.v1.placeholder(tf.quint8, image.shape)
    outputs = tf.raw_ops.QuantizedConv2D(
        input=fed, filter=tf.constant(taps, tf.qint8), min_input=a_min, max_input=a_max, min_filter=b_min, max_filter=b_max,
        strides=[1, stride, stride, 1], padding=padding)
    arrays = [array.view("i4") if array.dtype.names else array for array in session.run(list(outputs), {fed: image})]
sys.stdout.buffer.write(pickle.dumps(arrays))
"""

RANGES = [(-1, 1), (0, 6), (-3.3, 0.7), (-2, 0), (1, 5), (-0.01, 3)]


def _codes(seed, shape):
    return (np.random.RandomState(seed).randint(0, 256, size=shape).astype(np.uint8), tf.quint8)


def _conv(seed, image, taps, outputs, stride, padding, a=(-1, 2), b=(-0.5, 0.25)):
    f = np.float32
    return Case("QuantizedConv2D", [_codes(seed, image), _codes(seed + 100, (*taps, image[-1], outputs)), f(a[0]), f(a[1]),
                                    f(b[0]), f(b[1])],
                {"strides": [1, stride, stride, 1], "padding": padding, "out_type": tf.qint32})


def _signed_conv(seed, image, taps, outputs, stride, padding, a_max, b):
    f = np.float32
    codes = np.random.RandomState(seed).randint(-127, 128, size=(*taps, image[-1], outputs)).astype(np.int8)
    ranges = [f(0), f(a_max), f(b[0]), f(b[1])]

    def ask(*arrays):
        question = pickle.dumps((arrays[0], arrays[1], *map(float, arrays[2:]), stride, padding))
        answer = subprocess.run([sys.executable, "-c", WITH_ONEDNN], input=question, stdout=subprocess.PIPE, check=True,
                                env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1"}).stdout
        # oneDNN gives the range as vectors of one element.
        output, low, high = pickle.loads(answer)
        return [output, low.reshape(()), high.reshape(())]

    return Case("QuantizedConv2D", [_codes(seed, image), (codes, tf.qint8), *ranges],
                {"strides": [1, stride, stride, 1], "padding": padding, "out_type": tf.qint32}, ask)


def cases():
    f = np.float32
    for padding in ("SAME", "VALID"):
        yield _conv(1, (1, 5, 5, 3), (3, 3), 4, 1, padding)
        yield _conv(2, (2, 7, 6, 2), (3, 3), 5, 2, padding)
        yield _conv(3, (1, 6, 6, 8), (1, 1), 9, 1, padding)
        yield _conv(4, (1, 7, 8, 3), (1, 1), 2, 2, padding)
        yield _conv(5, (1, 9, 10, 1), (2, 3), 1, 3, padding)
        yield _conv(6, (1, 11, 12, 2), (2, 2), 3, 5, padding)  # Pixels are left over.
        yield _conv(26, (1, 6, 7, 2), (1, 1), 3, 5, padding)
        yield _conv(7, (1, 10, 9, 2), (1, 2), 3, 4, padding)
        yield _conv(8, (1, 5, 4, 35), (2, 2), 6, 1, padding)
        yield _conv(9, (1, 4, 4, 2), (4, 4), 3, 1, padding)
        for seed, a in enumerate(RANGES[:4] + RANGES[5:]):
            yield _conv(10 + seed, (1, 4, 3, 2), (3, 2), 3, 1, padding, a, RANGES[-1 - seed])
        yield _conv(20, (1, 4, 3, 2), (3, 2), 3, 1, padding, (1, 5), (-1, 1))  # No code represents 0.
    yield _conv(21, (1, 4, 3, 2), (3, 2), 3, 1, "VALID", (-5, -1), (2, 3))
    yield _conv(22, (1, 3, 3, 2), (5, 5), 2, 1, "SAME")
    yield _conv(23, (1, 3, 3, 1), (2, 2), 1, 1, "VALID", (0, 0), (-1, 1))

    for transpose_a in (False, True):
        for transpose_b in (False, True):
            for rows, depth, columns in ((1, 1, 1), (3, 5, 7), (1, 70, 9), (66, 3, 2), (2, 33, 13)):
                seed = rows + depth
                yield Case("QuantizedMatMul", [
                    _codes(seed, (depth, rows) if transpose_a else (rows, depth)),
                    _codes(seed + 1, (columns, depth) if transpose_b else (depth, columns)), f(-1), f(2), f(-3), f(0.5)],
                           {"transpose_a": transpose_a, "transpose_b": transpose_b})
    for a in RANGES:
        for b in RANGES:
            yield Case("QuantizedMatMul", [_codes(1, (2, 3)), _codes(2, (3, 2)), f(a[0]), f(a[1]), f(b[0]), f(b[1])], {})
    for padding in ("SAME", "VALID"):
        yield _signed_conv(30, (1, 5, 5, 3), (3, 3), 4, 1, padding, 6, (-1, 1))
        yield _signed_conv(31, (2, 7, 6, 2), (3, 3), 5, 2, padding, 0.7, (-2, 0.5))
        yield _signed_conv(32, (1, 9, 10, 1), (2, 3), 1, 3, padding, 1, (-0.1, 3))  # Pixels are left over.
        yield _signed_conv(33, (1, 4, 4, 35), (1, 1), 9, 1, padding, 255, (-127, 127))
