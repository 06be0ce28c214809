"""Sparse tensors: empty rows, reshaping, order, slices, joining, and products with matrices."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

PLACES = np.array([[0, 1], [0, 3], [2, 0], [3, 1], [3, 2]], np.int64)
MIXED = PLACES[[3, 0, 4, 2, 1]]
SHAPE = np.array([5, 4], np.int64)
DTYPES = (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.bool_, np.complex64)
WORDS = np.array([b"a", b"", b"bc", b"d", b"e"], object)


def longs(*values):
    return np.array(values, np.int64)


def filled():
    for dtype in DTYPES:
        yield Case("SparseFillEmptyRows", [PLACES, np.arange(1, 6).astype(dtype), SHAPE, np.zeros((), dtype)])
    yield Case("SparseFillEmptyRows", [PLACES, WORDS, SHAPE, np.array(b"none", object)])
    yield Case("SparseFillEmptyRows", [MIXED, np.arange(5, dtype=np.int64), SHAPE, np.int64(-1)])
    yield Case("SparseFillEmptyRows", [PLACES[:2], np.arange(2, dtype=np.int64), longs(1, 4), np.int64(-1)])
    yield Case("SparseFillEmptyRows", [PLACES[:0], np.zeros(0, np.float32), longs(2, 3), np.float32(7)])
    yield Case("SparseFillEmptyRows", [PLACES[:0], np.zeros(0, np.float32), longs(0, 3), np.float32(7)])


def reshaped():
    for wanted in ((4, 5), (2, -1), (20,), (-1,), (2, 2, 5), (5, 4), (1, -1, 10)):
        yield Case("SparseReshape", [PLACES, SHAPE, longs(*wanted)])
    yield Case("SparseReshape", [PLACES[:0], SHAPE, longs(4, -1)])
    yield Case("SparseReshape", [PLACES[:0], longs(0, 4), longs(-1, 2)])


def moved():
    for dtype in DTYPES:
        values = np.arange(1, 6).astype(dtype)
        yield Case("SparseReorder", [MIXED, values, SHAPE])
        yield Case("SparseConcat", [PLACES, PLACES[:2], values, values[:2], SHAPE, longs(5, 6)], {"concat_dim": 1})
        yield Case("SparseSlice", [PLACES, values, SHAPE, longs(2, 1), longs(2, 2)])
    yield Case("SparseReorder", [MIXED, WORDS, SHAPE])
    yield Case("SparseReorder", [PLACES[:0], WORDS[:0], SHAPE])
    for axis in (0, -2, -1):
        yield Case("SparseConcat", [PLACES, PLACES[2:], WORDS, WORDS[2:], SHAPE, SHAPE], {"concat_dim": axis})
    for start, size in (((0, 0), (5, 4)), ((0, 0), (9, 9)), ((3, 0), (1, 2)), ((6, 0), (2, 4)), ((1, 1), (0, 3))):
        yield Case("SparseSlice", [PLACES, WORDS, SHAPE, longs(*start), longs(*size)])


def products():
    state = np.random.RandomState(1)
    for dtype in (np.float32, np.float64, np.int32, np.complex64, tf.bfloat16.as_numpy_dtype):
        yield Case("SparseTensorDenseMatMul", [PLACES, np.arange(1, 6).astype(dtype), SHAPE,
                                               state.randint(-3, 4, (4, 3)).astype(dtype)])
    values = np.array([1 + 2j, 3, 4 - 1j, 2, 1j], np.complex64)
    for a in (False, True):
        for b in (False, True):
            other = (state.randn(*((3, 5) if b else (5, 3))) if a else
                     state.randn(*((3, 4) if b else (4, 3))))
            other = (other + 1j * state.randn(*other.shape)).astype(np.complex64)
            yield Case("SparseTensorDenseMatMul", [PLACES.astype(np.int32) if a else PLACES, values, SHAPE, other],
                       {"adjoint_a": a, "adjoint_b": b})
    yield Case("SparseTensorDenseMatMul", [PLACES[:0], np.zeros(0, np.float32), SHAPE, np.ones((4, 3), np.float32)])


def cases():
    yield from filled()
    yield from reshaped()
    yield from moved()
    yield from products()
