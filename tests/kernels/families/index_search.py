"""Elements found by their order, and flat indices resolved to positions."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

REAL = (np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16)


def ints(*values):
    return np.array(values, np.int32)


def cases():
    rows = np.array([[1, 3, 3, 7], [2, 4, 6, 8]])
    values = np.array([[3, 0, 9], [5, 8, 2]])
    for op in ("LowerBound", "UpperBound"):
        for dtype in (np.float32, np.float64, np.int32, np.int64):
            for out in (np.int32, np.int64):
                yield Case(op, [rows.astype(dtype), values.astype(dtype)], {"out_type": out})
        yield Case(op, [np.zeros((2, 0), np.float32), values.astype(np.float32)])
        yield Case(op, [np.zeros((2, 3), np.float32), np.zeros((2, 0), np.float32)])
    scores = np.array([[.1, .5, .2, .5], [.9, .3, np.nan, .1], [np.inf, .2, .4, .6], [.2, .8, .1, .7]], np.float32)
    for k in (0, 1, 2, 3):
        yield Case("InTopK", [scores, ints(3, 0, 1, 7)], {"k": k})
        yield Case("InTopKV2", [scores, np.array([2, 2, 0, 3], np.int64), np.int64(k)])
    state = np.random.RandomState(1)
    for dtype in REAL:
        for reverse in (False, True):
            yield Case("NthElement", [state.randint(0, 50, (2, 6)).astype(dtype), np.int32(1)], {"reverse": reverse})
    yield Case("NthElement", [np.array([3, 1, 2], np.float32), np.int32(2)])
    for dtype in (np.int32, np.int64):
        dims = np.array([3, 4, 5], dtype)
        yield Case("UnravelIndex", [np.array([0, 59, 22, 7], dtype), dims])
        yield Case("UnravelIndex", [dtype(33), dims])
