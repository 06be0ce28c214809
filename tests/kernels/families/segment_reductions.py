"""Rows with the same number, reduced to one row: sorted, unsorted, and chosen by indices."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BFLOAT16 = tf.bfloat16.as_numpy_dtype
REAL = (np.float32, np.float64, np.float16, BFLOAT16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
        np.uint32, np.uint64)
FLOATS = (np.float32, np.float64, np.float16, BFLOAT16)
ROWS = np.array([[3, 1], [2, 5], [7, 4], [1, 6], [2, 2]])


def ints(*values):
    return np.array(values, np.int32)


def cases():
    for op in ("Max", "Min", "Prod", "Mean"):
        for dtype in REAL:
            yield Case("Segment" + op, [ROWS.astype(dtype), ints(0, 0, 2, 2, 3)])
            if op != "Mean":
                yield Case("UnsortedSegment" + op, [ROWS.astype(dtype), ints(3, 0, -1, 0, 3), np.int32(5)])
        yield Case("Segment" + op, [np.zeros((0, 2), np.float32), np.zeros(0, np.int64)])
        yield Case("Segment" + op, [np.array([-2, -7, -1], np.float32), np.array([1, 1, 1], np.int64)])
        if op != "Mean":
            yield Case("UnsortedSegment" + op, [ROWS[:4].reshape(2, 2, 2).astype(np.float32),
                                                ints(1, 0, 1, 1).reshape(2, 2), np.int64(3)])
            yield Case("UnsortedSegment" + op, [np.zeros((2, 0), np.float32), ints(0, 1), np.int32(3)])
            yield Case("UnsortedSegment" + op, [np.zeros((0, 2), np.float32), ints(), np.int32(2)])
    yield Case("SegmentMean", [np.array([-3, -4, 200], np.int32), ints(0, 0, 1)])
    for op in ("Sum", "Mean", "SqrtN"):
        for dtype in FLOATS + ((np.int32, np.int64, np.uint8) if op == "Sum" else ()):
            yield Case("SparseSegment" + op, [ROWS.astype(dtype), ints(4, 0, 0, 2), ints(0, 0, 2, 2)])
        yield Case("SparseSegment" + op, [ROWS.astype(np.float32), np.array([1, 1, 3], np.int64),
                                          np.array([1, 1, 1], np.int64)])
        yield Case("SparseSegment" + op, [ROWS.astype(np.float32), ints(), ints()])
        yield Case("SparseSegment" + op, [ROWS[:, 0].astype(np.float32), ints(2, 1), ints(0, 1)])
