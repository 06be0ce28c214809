"""Random numbers from a seed, or from a key and a counter; sampling of classes."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

FLOATS = (tf.float32, tf.float64, tf.float16, tf.bfloat16)
KEY, COUNTER = np.array([2**40 + 12345], np.uint64), np.array([2**64 - 2, 7], np.uint64)


def cases():
    seeds = np.array([1, 2], np.int64), np.array([-5, 2**62 + 3], np.int64), np.array([-1, 77], np.int32)
    for seed in seeds:
        for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
            for dtype in FLOATS:
                yield Case(op, [np.array([3, 7], np.int32), seed], {"dtype": dtype})
        for dtype in (np.int32, np.int64):
            limits = np.iinfo(dtype)
            for lowest, end in ((0, 10), (-7, 5), (limits.min, limits.max)):
                yield Case("StatelessRandomUniformInt", [np.array([11], np.int32), seed, dtype(lowest), dtype(end)])
        yield Case("StatelessRandomGetKeyCounter", [seed], outputs=2)
        yield Case("StatelessRandomGetKeyCounterAlg", [seed], outputs=2)
        for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
            yield Case("StatelessRandomUniformFullInt", [np.array([5, 3], np.int32), seed], {"dtype": dtype})
    for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"):
        for dtype in FLOATS:
            yield Case(op, [np.array([101], np.int64), KEY, COUNTER, np.int32(1)], {"dtype": dtype})
        yield Case(op, [np.array([2, 0], np.int32), KEY, COUNTER, np.int32(1)], {"dtype": tf.float32})
    for dtype in (np.int32, np.int64):
        limits = np.iinfo(dtype)
        for lowest, end in ((3, 10), (limits.min, limits.max)):
            yield Case("StatelessRandomUniformIntV2",
                       [np.array([9], np.int32), KEY, COUNTER, np.int32(1), dtype(lowest), dtype(end)])
    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        yield Case("StatelessRandomUniformFullIntV2", [np.array([9], np.int32), KEY, COUNTER, np.int32(1)],
                   {"dtype": tf.as_dtype(dtype)})
    for dtype in (np.float32, np.float64, np.float16):
        alpha = np.array([0.3, 1, 1.5, 20], dtype)
        yield Case("StatelessRandomGammaV2", [np.array([6, 4], np.int32), seeds[0], alpha])
        yield Case("StatelessRandomGammaV3", [np.array([2, 3, 4], np.int32), KEY, COUNTER, np.int32(1), alpha])
        yield Case("StatelessRandomGammaV3", [np.array([12], np.int32), KEY, COUNTER, np.int32(1), dtype(0.2)])
    logits = np.random.RandomState(1).uniform(-3, 3, (3, 6)).astype(np.float32)
    logits[1, 2] = -np.inf
    for output in (tf.int32, tf.int64):
        yield Case("StatelessMultinomial", [logits, np.int32(9), seeds[1]], {"output_dtype": output})
        yield Case("Multinomial", [logits, np.int32(7)], {"seed": 5, "seed2": 17, "output_dtype": output})
    yield Case("StatelessMultinomial", [logits.astype(np.float64), np.int32(0), seeds[0]])
    yield Case("StatelessMultinomial", [np.array([[1, 5, 3]], np.float16), np.int32(20), seeds[0]])
