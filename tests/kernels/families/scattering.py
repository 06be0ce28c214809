"""ScatterNd and TensorScatterUpdate, Add, Sub, Max and Min."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BFLOAT16 = tf.bfloat16.as_numpy_dtype
REAL = (np.float32, np.float64, np.float16, BFLOAT16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
        np.uint32, np.uint64)
COMPLEX = (np.complex64, np.complex128)
PLACES = np.array([[1], [3], [1]], np.int32)


def ramp(*shape, dtype=np.float32):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def updates(dtype):
    values = np.array([[2, 200], [9, 7], [5, 250]])
    return values.astype(np.int64).astype(dtype) if np.dtype(dtype) != np.bool_ else values > 8


def cases():
    for op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin"):
        is_sum = op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub")
        for dtype in REAL + (COMPLEX if is_sum else ()):
            yield Case(op, [ramp(4, 2, dtype=dtype), PLACES, updates(dtype)])
        yield Case(op, [ramp(3, 2), np.array([[2, 1], [0, 0], [2, 1]], np.int64), np.array([8, -9, 10], np.float32)])
        yield Case(op, [ramp(2, 2, 3), np.array([[[1, 0]], [[0, 1]]], np.int32), -ramp(2, 1, 3)])
        yield Case(op, [ramp(2, 2), np.zeros((0, 1), np.int32), np.zeros((0, 2), np.float32)])
        yield Case(op, [np.array([1, np.nan, 3], np.float32), np.array([[0], [1], [2]], np.int32),
                        np.array([np.nan, 2, -np.inf], np.float32)])
        yield Case(op, [ramp(3), np.array([[5], [1], [-1]], np.int32), np.array([7, 8, 9], np.float32)],
                   {"bad_indices_policy": "IGNORE"})
    yield Case("TensorScatterUpdate", [np.array([True, False, True]), np.array([[1], [0]], np.int32),
                                       np.array([True, False])])
    yield Case("TensorScatterUpdate", [np.array([b"a", b"b", b""], object), np.array([[2], [0]], np.int32),
                                       np.array([b"cc", b"d"], object)])
    for dtype in (np.uint64, np.bool_) + COMPLEX:
        yield Case("ScatterNd", [PLACES, updates(dtype), np.array([5, 2], np.int32)])
    yield Case("ScatterNd", [np.array([[7], [1]], np.int32), np.array([7, 8], np.float32), np.array([3], np.int32)],
               {"bad_indices_policy": "IGNORE"})
    yield Case("GatherNd", [ramp(3, 2), np.array([[7], [1]], np.int32)], {"bad_indices_policy": "IGNORE"})
    words = np.array([b"a", b"bc", b"", b"d"], object)
    yield Case("ScatterNd", [np.array([[1], [3], [2], [1]], np.int32), words, np.array([5], np.int32)])
    yield Case("ScatterNd", [np.array([[1], [1]], np.int64), words.reshape(2, 2), np.array([3, 2], np.int64)])
    yield Case("ScatterNd", [np.array([[7], [1], [1], [-1]], np.int32), words, np.array([3], np.int32)],
               {"bad_indices_policy": "IGNORE"})
