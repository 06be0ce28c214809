"""Random numbers of seeded nodes."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def cases():
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
            yield Case(op, [np.array([3, 7], np.int32)], {"dtype": dtype, "seed": 87654321, "seed2": 42})
        yield Case(op, [np.array([2, 0], np.int64)], {"dtype": tf.float32, "seed": 1})
        yield Case(op, [np.zeros(0, np.int32)], {"dtype": tf.float32, "seed2": 5})
        yield Case(op, [np.array([6], np.int64)], {"dtype": tf.float32, "seed": -3, "seed2": 2**40 + 7})
        yield Case(op, [np.array([101], np.int64)], {"dtype": tf.float32, "seed": 9, "seed2": 9})
    for dtype in (np.int32, np.int64):
        limits = np.iinfo(dtype)
        for low, high in ((0, 10), (-7, -6), (limits.min, limits.max)):
            yield Case("RandomUniformInt", [np.array([11], np.int32), dtype(low), dtype(high)], {"seed": 3, "seed2": 4})
    yield Case("RandomUniformInt", [np.array([0, 3], np.int32), np.int32(1), np.int32(1)], {"seed": 3})
