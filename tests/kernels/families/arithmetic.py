"""Binary arithmetic and AddN: types, broadcasting, special values."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BFLOAT16 = tf.bfloat16.as_numpy_dtype
FLOATS = (np.float32, np.float64, np.float16, BFLOAT16)
SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], np.float32)
# Every way in which two shapes broadcast: rows, columns, scalars, channels, both sides, none, nothing.
SHAPES = [
    ((), ()), ((3,), ()), ((), (2, 3)), ((5,), (5,)), ((1,), (4,)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 1), (1, 3)),
    ((2, 3, 4), (3, 1)), ((2, 1, 4), (1, 3, 1)), ((1, 2, 3, 2), (2, 2, 1, 1)), ((0, 3), (3,)), ((2, 0), (1, 1)),
    ((40, 5, 3), (3,)), ((7,), (90, 7)), ((30, 20), (30, 1)), ((4, 2, 1, 3), (4, 1, 5, 3)), ((1, 1), (1, 1, 1)),
]


def cases():
    random = np.random.RandomState(2)
    pairs = [a.reshape(-1) for a in np.meshgrid(SPECIAL, SPECIAL)]
    for shapes in SHAPES:
        x, y = (np.round(random.uniform(-9, 9, shape), 2).astype(np.float32) for shape in shapes)
        yield Case("Sub", [x, y])
    yield Case("Add", [np.zeros((2, 1, 3), np.int32), np.array([[[1], [2]]], np.int32)])
    anything = ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "FloorDiv", "FloorMod", "Maximum", "Minimum", "Pow",
                "SquaredDifference", "DivNoNan", "MulNoNan", "Xdivy", "Xlogy", "Xlog1py", "Atan2")
    for op in anything + ("Mod",):
        # The sign of a remainder that is infinite or NaN is the C library's affair.
        yield Case(op, pairs)
    for op in anything:
        for dtype in FLOATS[1:]:
            yield Case(op, [np.array([1, 2.5, 0.25, 4]).astype(dtype), np.array([3, 0.5, 2, -0.75]).astype(dtype)])
    whole = ("AddV2", "Sub", "Mul", "Div", "FloorDiv", "FloorMod", "Maximum", "Minimum", "SquaredDifference")
    x = np.array([7, -7, 7, -7, 0, 6, -128, 100])
    y = np.array([2, 2, -2, -2, 5, -3, 1, 100])
    for op in whole:
        yield Case(op, [x.astype(np.int32), y.astype(np.int32)])
        yield Case(op, [x.astype(np.int64), y.astype(np.int64)])
    for dtype in (np.int8, np.int16):
        for op in ("AddV2", "Sub", "Mul", "Div", "FloorDiv", "Maximum", "Minimum"):
            yield Case(op, [x.astype(dtype), y.astype(dtype)])
    big = np.array([255, 200, 3, 0])
    small = np.array([2, 201, 7, 5])
    for dtype in (np.uint8, np.uint16):
        for op in ("AddV2", "Sub", "Mul", "Div", "FloorDiv", "Maximum", "Minimum"):
            yield Case(op, [big.astype(dtype), small.astype(dtype)])
    yield Case("AddV2", [np.array([4000000000, 5], np.uint32), np.array([4000000000, 6], np.uint32)])
    yield Case("Mul", [np.array([2147483647, 65536], np.int32), np.array([2, 65536], np.int32)])
    yield Case("Pow", [np.array([2, -3, 0, 5, 7], np.int32), np.array([10, 3, 0, 0, 20], np.int32)])
    yield Case("TruncateDiv", [x.astype(np.int32), y.astype(np.int32)])
    for dtype in FLOATS:
        yield Case("TruncateDiv", [np.array([7, -7, 7.5, -7.5, 1, 3, 0, -1], dtype), np.array([2, 2, -2, -2, 3, 0, 3, 2], dtype)])
    yield Case("TruncateMod", [x.astype(np.int32), y.astype(np.int32)])
    yield Case("TruncateMod", [np.array([5, -5], np.float32), np.array([3, 3], np.float32)])
    for dtype in FLOATS[:2]:
        for op in ("RsqrtGrad", "SqrtGrad", "SigmoidGrad", "TanhGrad"):
            yield Case(op, [np.array([0.5, 2, -1], dtype), np.array([1, 3, 0.25], dtype)])
        for op in ("RsqrtGrad", "SqrtGrad"):
            yield Case(op, [np.array([0, np.inf, np.nan, 0], dtype), np.array([0, 0, 0, 2], dtype)])
    for dtype in FLOATS + (np.int32, np.int64, np.uint8):
        yield Case("AddN", [np.array([[1, 2], [3, 4]]).astype(dtype)] * 3)
    yield Case("AddN", [SPECIAL])
    yield Case("AddN", [np.linspace(0, 1, 3001, dtype=np.float32), np.linspace(1, 4, 3001, dtype=np.float32)])
    yield Case("AddN", [np.zeros((0, 2), np.float32)] * 2)
