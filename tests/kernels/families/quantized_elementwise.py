"""QuantizedAdd, QuantizedMul, QuantizedBiasAdd, QuantizedRelu, QuantizedRelu6, QuantizedReluX."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

RANGES = [(-1, 1), (0, 6), (-3.3, 0.7), (-2, 0), (1, 5), (-5, -1), (0, 1e-3), (-3e4, 100)]


def _codes(seed, shape, plain=np.uint8):
    info = np.iinfo(plain)
    return np.random.RandomState(seed).randint(info.min, info.max + 1, size=shape).astype(plain)


def _relu(op, codes, quantized, low, high):
    """Uses the equivalent op, because TensorFlow defines QuantizedReluX but has no kernel for it."""
    def ask(*_):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            place = tf.compat.v1.placeholder(quantized, codes.shape)
            result = getattr(tf.raw_ops, op)(features=place, min_features=low, max_features=high, out_type=quantized)
            return session.run(list(result), {place: codes.astype(quantized.as_numpy_dtype)})
    return ask


def cases():
    f = np.float32
    every = np.arange(256, dtype=np.uint8)
    for op in ("QuantizedAdd", "QuantizedMul"):
        def case(x, y, x_range, y_range):
            return Case(op, [(x, tf.quint8), (y, tf.quint8), f(x_range[0]), f(x_range[1]), f(y_range[0]),
                             f(y_range[1])], {"Toutput": tf.qint32})
        for i, x_range in enumerate(RANGES):
            for j, y_range in list(enumerate(RANGES))[i % 3::3]:
                size = 5 + i + j
                yield case(_codes(i, (size,)), _codes(j + 20, (size,)), x_range, y_range)
        for x_range, y_range in ((RANGES[0], RANGES[2]), (RANGES[7], RANGES[4])):
            yield case(every, every[::-1].copy(), x_range, y_range)
            yield case(every, np.array(77, np.uint8), x_range, y_range)
            yield case(np.array([[201]], np.uint8), every, x_range, y_range)
            yield case(np.array([9], np.uint8), np.array(250, np.uint8), x_range, y_range)
            yield case(_codes(1, (2, 3, 4)), _codes(2, (4,)), x_range, y_range)
            yield case(_codes(3, (3, 4)), _codes(4, (2, 3, 4)), x_range, y_range)
            yield case(_codes(5, (2, 1, 3)), _codes(6, (1, 3)), x_range, y_range)
        yield case(_codes(7, (0,)), _codes(8, (0,)), RANGES[0], RANGES[1])
        yield case(_codes(7, (0, 2)), np.array(1, np.uint8), RANGES[0], RANGES[1])

    for quantized, plain in ((tf.quint8, np.uint8), (tf.qint8, np.int8)):
        for i, x_range in enumerate(RANGES):
            for j, b_range in list(enumerate(RANGES))[i % 3::3]:
                shape = [(2, 3), (1, 2, 2, 5), (4, 1), (2, 2, 7)][(i + j) % 4]
                yield Case("QuantizedBiasAdd", [(_codes(i, shape, plain), quantized),
                                                (_codes(j + 9, shape[-1:], plain), quantized), f(x_range[0]),
                                                f(x_range[1]), f(b_range[0]), f(b_range[1])], {"out_type": tf.qint32})
        yield Case("QuantizedBiasAdd", [(_codes(1, (0, 3), plain), quantized), (_codes(2, (3,), plain), quantized),
                                        f(-1), f(1), f(-2), f(2)], {"out_type": tf.qint32})
        yield Case("QuantizedBiasAdd", [(_codes(1, (2, 3), plain), quantized), (_codes(2, (3,), plain), quantized),
                                        f(0), f(0), f(-2), f(2)], {"out_type": tf.qint32})
        yield Case("QuantizedBiasAdd", [(_codes(1, (2, 3), plain), quantized), (_codes(2, (3,), plain), quantized),
                                        f(3), f(3), f(2), f(2)], {"out_type": tf.qint32})

    sums = np.array([-2**31, -2**30, -100000, -1, 0, 1, 77, 2**20, 2**30, 2**31 - 1], np.int32)
    for low, high in RANGES + [(0, 0), (2, 2), (-100, 255), (0, 5.99)]:
        for quantized, codes in ((tf.quint8, every[::5]), (tf.qint32, sums)):
            for op in ("QuantizedRelu", "QuantizedRelu6"):
                yield Case(op, [(codes, quantized), f(low), f(high)], {"out_type": quantized})
            for most, op in ((6.0, "QuantizedRelu6"), (1e9, "QuantizedRelu")) if low < high else ():
                yield Case("QuantizedReluX", [(codes, quantized), f(most), f(low), f(high)], {"out_type": quantized},
                           ask=_relu(op, codes, quantized, low, high))
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        yield Case(op, [(np.zeros((2, 0), np.uint8), tf.quint8), f(-1), f(1)], {"out_type": tf.quint8})
