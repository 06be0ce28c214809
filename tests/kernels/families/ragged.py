"""Ragged tensors: ranges, gathering, and conversion to dense and sparse tensors."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def cases():
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        for kind in (tf.int32, tf.int64):
            yield Case("RaggedRange", [np.array([0, 5, 8, 3], dtype), np.array([3, 0, 8, 10], dtype),
                                       np.array([1, -2, 1, 3], dtype)], {"Tsplits": kind})
            yield Case("RaggedRange", [dtype(0), np.array([3, 0, 2], dtype), dtype(1)], {"Tsplits": kind})
        yield Case("RaggedRange", [dtype(2), dtype(7), dtype(2)])
    outer, inner = np.array([0, 2, 2, 3], np.int64), np.array([0, 1, 4, 6], np.int64)
    values = np.arange(12, dtype=np.float32).reshape(6, 2)
    texts = np.array([b"a", b"b", b"c", b"d", b"e", b"f"], object)
    for kind in (np.int32, np.int64):
        for given in (values, texts):
            yield Case("RaggedGather", [inner.astype(kind), given, np.array([2, 0, 2], np.int32)],
                       {"OUTPUT_RAGGED_RANK": 1})
            yield Case("RaggedGather", [inner.astype(kind), given, np.array([[1, 0], [2, 2]], np.int64)],
                       {"OUTPUT_RAGGED_RANK": 2})
            yield Case("RaggedGather", [outer.astype(kind), inner.astype(kind), given, np.array([2, 1, 0, 0], np.int32)],
                       {"OUTPUT_RAGGED_RANK": 2})
            yield Case("RaggedTensorToSparse", [inner.astype(kind), given])
            yield Case("RaggedTensorToSparse", [outer.astype(kind), inner.astype(kind), given])
    splits = {"row_partition_types": ["ROW_SPLITS"]}
    for shape in (np.array([-1, -1], np.int64), np.array([2, 5], np.int32), np.array([5, 2], np.int64)):
        yield Case("RaggedTensorToTensor", [shape, texts, np.array(b"-", object), inner], splits)
        yield Case("RaggedTensorToTensor", [shape, np.arange(6), np.int64(-1), inner], splits)
        ids = [shape, np.arange(6).astype(np.float32), np.float32(9), np.int64(4), np.array([0, 1, 1, 1, 3, 3], np.int64)]
        yield Case("RaggedTensorToTensor", ids, {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]})
    two = {"row_partition_types": ["ROW_SPLITS", "ROW_SPLITS"]}
    yield Case("RaggedTensorToTensor", [np.array([-1, -1, -1], np.int64), texts, np.array(b"", object), outer, inner], two)
    yield Case("RaggedTensorToTensor", [np.array([4, 3, 2], np.int64), texts, np.array(b"", object), outer, inner], two)
    yield Case("RaggedTensorToTensor", [np.array([-1, -1, 2], np.int64), values, np.array([7, 8], np.float32), inner], splits)
    yield Case("RaggedTensorToTensor", [np.array([-1, 2, -1, -1], np.int64), values, np.float32(3), outer, inner], two)
    yield Case("RaggedTensorToTensor", [np.array([-1, -1, -1], np.int64), texts, np.array(b"", object), np.int64(3), np.array([0, 0, 2], np.int64),
                                        np.array([0, 1, 1, 1, 2, 2], np.int64)],
               {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"]})
