"""Distinct slices along an axis, and the elements of one list that another does not have."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BOTH = ("UniqueV2", "UniqueWithCountsV2")


def cases():
    for op in BOTH:
        for dtype in (np.float32, np.float16, np.int8, np.int32, np.int64, np.bool_):
            yield Case(op, [np.array([3, 1, 3, 0, 1, 7]).astype(dtype), np.zeros(0, np.int64)])
        table = np.array([[[1, 2], [3, 4], [1, 2]], [[1, 2], [3, 4], [1, 2]], [[1, 0], [3, 4], [1, 0]]], np.int32)
        for axis in (0, 1, 2, -1):
            yield Case(op, [table, np.array([axis], np.int32)], {"out_idx": np.int64})
        yield Case(op, [np.array([b"b", b"", b"b"], object), np.array([0], np.int64)])
        yield Case(op, [np.array([[0., 1], [-0., 1]], np.float32), np.array([0], np.int64)])
    for dtype in (np.float32, np.float16, np.int8, np.int32, np.int64, np.uint8):
        for out in (np.int32, np.int64):
            yield Case("ListDiff", [np.array([1, 2, 3, 4, 5, 6, 3], dtype), np.array([1, 3, 5], dtype)],
                       {"out_idx": out})
    yield Case("ListDiff", [np.array([b"a", b"b", b"a"], object), np.array([b"b", b"c"], object)])
    yield Case("ListDiff", [np.zeros(0, np.float32), np.ones(2, np.float32)])
    yield Case("ListDiff", [np.ones(2, np.float32), np.zeros(0, np.float32)])
