"""Ops that set or return a shape, and ops that forward a tensor."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def cases():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for wanted in ([24], [4, 6], [-1, 2], [2, -1, 2, 3], [1, 24, 1]):
        yield Case("Reshape", [array, np.array(wanted, np.int32)])
    yield Case("Reshape", [array, np.array([6, 4], np.int64)])
    yield Case("Reshape", [np.array([[5]], np.int64), np.zeros(0, np.int32)])
    yield Case("Reshape", [np.zeros((0, 3), np.float32), np.array([3, -1], np.int32)])
    ones = np.arange(6, dtype=np.int32).reshape(1, 2, 1, 3, 1)
    yield Case("Squeeze", [ones])
    yield Case("Squeeze", [ones], {"axis": [0, -1]})
    yield Case("Squeeze", [np.zeros((1, 0), np.bool_)])
    for axis in (0, 1, 2, -1, -3):
        yield Case("ExpandDims", [array[0], np.int32(axis)])
    yield Case("ExpandDims", [np.float32(1), np.array([0], np.int64)])
    for dtype in (tf.int32, tf.int64):
        yield Case("Shape", [array], {"out_type": dtype})
        yield Case("Size", [array], {"out_type": dtype})
        yield Case("ShapeN", [array, np.float32(0)], {"out_type": dtype})
    yield Case("Shape", [np.zeros((3, 0), np.int8)])
    yield Case("Shape", [np.float64(1)])
    yield Case("Size", [np.zeros((3, 0), np.int8)])
    yield Case("Rank", [array])
    yield Case("Rank", [np.float32(1)])
    for op in ("Identity", "Snapshot", "StopGradient", "PreventGradient"):
        yield Case(op, [array])
    yield Case("Identity", [np.array([1, 2], np.complex64)])
    yield Case("PlaceholderWithDefault", [array], {"shape": [None, 3, 4]})
    yield Case("IdentityN", [array, np.array([True]), np.zeros((0, 2), np.int64)])
    yield Case("GuaranteeConst", [array])
    for dtype in (tf.float32, tf.bool, tf.string):
        yield Case("Empty", [np.array([2, 3], np.int32)], {"dtype": dtype, "init": True})
    yield Case("Empty", [np.zeros(0, np.int32)], {"dtype": tf.int64, "init": True})
