"""QuantizedInstanceNorm, and requantization with a range for each channel."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

F = np.float32


def _norms():
    random = np.random.RandomState(3)
    for shape in ((1, 3, 3, 2), (2, 5, 4, 3), (1, 1, 1, 2), (3, 2, 2, 1)):
        codes = (random.randint(0, 256, shape).astype(np.uint8), tf.quint8)
        for low, high in ((-1, 1), (0, 6), (-1e-3, 2e-3)):
            for attrs in ({}, {"output_range_given": True, "given_y_min": -1., "given_y_max": 2.},
                          {"variance_epsilon": 0.5, "min_separation": 4.}):
                yield Case("QuantizedInstanceNorm", [codes, F(low), F(high)], attrs)
    constant = (np.full((1, 2, 2, 1), 9, np.uint8), tf.quint8)
    yield Case("QuantizedInstanceNorm", [constant, F(0), F(1)])


def _requantizations():
    random = np.random.RandomState(4)
    for shape, spread in (((1, 3, 3, 2), 2**31), ((2, 2, 3, 5), 2**20), ((1, 4, 4, 1), 5000)):
        for low in (-spread, 0):
            codes = (random.randint(low, spread, shape).astype(np.int32), tf.qint32)
            ends = random.uniform(1, 9, (2, shape[3])).astype(F)
            ranges = [-ends[0], ends[1]]
            for clip in (1e30, 0.01):
                yield Case("RequantizationRangePerChannel", [codes, *ranges], {"clip_value_max": clip})
            for out_type, bottom, top in ((tf.qint8, -3, 3), (tf.qint8, -9e-3, 5e-3), (tf.quint8, 0, 4),
                                          (tf.quint8, 0, 9e-3)):
                yield Case("RequantizePerChannel", [codes, *ranges, F(bottom), F(top)], {"out_type": out_type})
    ends = np.array([-2**31 + 200, 9 - 2**30, -1, 0, 1, 2**31 - 200, 2**23, -2**23], np.int32).reshape(1, 2, 2, 2)
    yield Case("RequantizationRangePerChannel", [(ends, tf.qint32), F([-1, -2]), F([1, 1])], {"clip_value_max": 1e30})
    steps = ((np.arange(-260, 261) + np.array([[-0.5], [0], [0.5]])) / 127 * 2**31 / 4).reshape(1, 1, -1, 1)
    for out_type, bottom in ((tf.qint8, -1), (tf.quint8, 0)):
        yield Case("RequantizePerChannel", [(steps.astype(np.int32), tf.qint32), F([-4]), F([4]), F(bottom), F(1)],
                   {"out_type": out_type})


def cases():
    yield from _norms()
    yield from _requantizations()
