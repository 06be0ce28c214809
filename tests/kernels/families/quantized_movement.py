"""QuantizedReshape, QuantizedConcat, QuantizedMaxPool, QuantizedAvgPool, QuantizedResizeBilinear."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def _codes(seed, shape, plain=np.uint8):
    info = np.iinfo(plain)
    return np.random.RandomState(seed).randint(info.min, info.max, size=shape).astype(plain)


TYPES = ((tf.quint8, np.uint8), (tf.qint32, np.int32))


def _concat(quantized, axis, values, ranges):
    f = np.float32
    return Case("QuantizedConcat", [np.int32(axis), *[(value, quantized) for value in values],
                                    *[f(low) for low, _ in ranges], *[f(high) for _, high in ranges]], {})


def cases():
    f = np.float32
    for quantized, plain in TYPES:
        codes = _codes(1, (2, 3, 4), plain)
        yield Case("QuantizedReshape", [(codes, quantized), np.array([4, -1], np.int32), f(-1), f(2)], {})
        yield Case("QuantizedReshape", [(codes, quantized), np.array([24], np.int64), f(-1), f(2)], {})
        yield Case("QuantizedReshape", [(codes[:, :0], quantized), np.array([0], np.int32), f(-1), f(2)], {})
        yield Case("QuantizedReshape", [(codes[0, 0, :1], quantized), np.zeros((0,), np.int32), f(-1), f(2)], {})

        every = np.arange(256, dtype=np.uint8) if plain == np.uint8 else _codes(9, (256,), plain)
        pairs = [((-1, 1), (-1, 1)), ((-1, 1), (0, 6)), ((-3.3, 0.7), (-1, 5)), ((1, 2), (3, 4)), ((-4, -3), (-2, -1)),
                 ((0, 0), (0, 1)), ((0, 0), (0, 0)), ((-1e-3, 2), (-300, 77))]
        for ranges in pairs:
            yield _concat(quantized, 0, [every, every[:100]], ranges)
        yield _concat(quantized, 1, [_codes(2, (2, 3, 2), plain), _codes(3, (2, 1, 2), plain),
                                     _codes(4, (2, 0, 2), plain)], [(-1, 1), (-2, 3), (-9, 9)])
        yield _concat(quantized, 3, [_codes(5, (1, 2, 2, 3), plain), _codes(6, (1, 2, 2, 4), plain)], [(0, 6), (0, 6)])
        yield _concat(quantized, 0, [_codes(7, (0,), plain), _codes(7, (0,), plain)], [(-1, 7), (-2, 4)])

        for low, high in ((-1, 1), (0, 6)):
            for size in ([3, 3], [7, 5], [4, 5], [8, 10], [1, 1], [2, 20]):
                for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
                    for channels in (1, 3, 4):
                        if channels != 3 and (low == 0 or len(attrs) == 1 and size[0] % 2):
                            continue
                        yield Case("QuantizedResizeBilinear", [(_codes(channels, (2, 4, 5, channels), plain), quantized),
                                                               np.array(size, np.int32), f(low), f(high)], attrs)
    for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        yield Case("QuantizedResizeBilinear", [np.linspace(-1, 1, 60).reshape(1, 4, 5, 3).astype(f),
                                               np.array([6, 9], np.int32), f(-1), f(1)], attrs)

    for op in ("QuantizedAvgPool", "QuantizedMaxPool"):
        for seed, (image, ksize, strides, padding) in enumerate([
                ((1, 4, 4, 3), (2, 2), (2, 2), "VALID"), ((2, 5, 7, 2), (3, 3), (2, 2), "SAME"),
                ((1, 5, 5, 67), (3, 2), (1, 3), "SAME"), ((1, 6, 4, 1), (3, 4), (1, 1), "VALID"),
                ((1, 1, 1, 2), (3, 3), (2, 2), "SAME"), ((1, 5, 5, 1), (1, 1), (2, 2), "SAME"),
                ((1, 8, 8, 5), (8, 8), (1, 1), "VALID"), ((1, 7, 7, 2), (2, 2), (3, 3), "SAME")]):
            yield Case(op, [(_codes(seed, image), tf.quint8), f(-1), f(3)],
                       {"ksize": [1, *ksize, 1], "strides": [1, *strides, 1], "padding": padding})
