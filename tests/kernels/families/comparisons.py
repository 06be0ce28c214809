"""Comparisons, logic, Select, SelectV2 and Where."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BFLOAT16 = tf.bfloat16.as_numpy_dtype
NUMBERS = (np.float32, np.float64, np.float16, BFLOAT16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
           np.uint32)


def cases():
    special = np.array([0, -0.0, 1, np.inf, -np.inf, np.nan], np.float32)
    pairs = [a.reshape(-1) for a in np.meshgrid(special, special)]
    for op in ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"):
        yield Case(op, pairs)
        for dtype in NUMBERS:
            yield Case(op, [np.array([[1, 2, 3]]).astype(dtype), np.array([[2], [3]]).astype(dtype)])
        yield Case(op, [np.zeros((0, 3), np.float32), np.zeros((3,), np.float32)])
        yield Case(op, [np.arange(900, dtype=np.int32).reshape(300, 3), np.array([5, 400, 899], np.int32)])
    for op in ("Equal", "NotEqual"):
        yield Case(op, [np.array([True, False]), np.array([[True], [False]])])
        yield Case(op, [np.zeros(2, np.float32), np.zeros(2, np.float32)], {"incompatible_shape_error": False})
        yield Case(op, [np.zeros(2, np.float32), np.zeros(3, np.float32)], {"incompatible_shape_error": False})
    for op in ("LogicalAnd", "LogicalOr"):
        yield Case(op, [np.array([True, False, True, False]), np.array([True, True, False, False])])
        yield Case(op, [np.array([[True], [False]]), np.array([True, False, False])])
        yield Case(op, [np.array(True), np.zeros((2, 0), np.bool_)])
    yield Case("LogicalNot", [np.array([[True, False]])])
    yield Case("LogicalNot", [np.array(False)])

    condition = np.array([[True, False, True], [False, False, True]])
    for dtype in NUMBERS + (np.complex64, np.complex128, np.bool_):
        t = np.array([[1, 0, 3], [4, 5, 6]]).astype(dtype)
        yield Case("SelectV2", [condition, t, np.array([7, 0, 9]).astype(dtype)])
    t = np.arange(6, dtype=np.float32).reshape(2, 3)
    yield Case("SelectV2", [np.array([[True], [False]]), t, np.float32(-1)])
    yield Case("SelectV2", [np.array(True), np.float32(3), t])
    yield Case("SelectV2", [np.array([True, False]), np.float32(3), np.ones((2, 1, 1), np.float32)])
    yield Case("SelectV2", [np.array([True]), np.zeros((0, 2), np.float32), np.float32(1)])
    yield Case("SelectV2", [np.array([True]), np.ones((2, 1), np.float32), np.zeros((1, 3), np.float32)])
    yield Case("Select", [condition, t, -t])
    yield Case("Select", [np.array([True, False]), t, -t])
    yield Case("Select", [np.array(False), t, -t])
    yield Case("Select", [np.array([True, False]), np.arange(12, dtype=np.int64).reshape(2, 3, 2),
                          np.zeros((2, 3, 2), np.int64)])
    for array in (condition, np.array([[0, 1.5], [np.nan, -0.0]], np.float32), np.array([0, 3, 0, 4], np.int32),
                  np.zeros((0, 3), np.bool_), np.zeros((2, 3), np.bool_), np.ones((2, 2, 1), np.int8),
                  np.array([0, 1], np.float64), np.array([0, 1], np.int64), np.array([0, 1], np.uint8)):
        yield Case("Where", [array])
