"""Sum and other reductions, L2Loss, ArgMax, ArgMin, TopKV2, Cumsum, Cumprod."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BFLOAT16 = tf.bfloat16.as_numpy_dtype
FLOATS = (np.float32, np.float64, np.float16, BFLOAT16)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8)


def axes(*values):
    return np.array(values, np.int32)


def cases():
    random = np.random.RandomState(3)
    four = np.round(random.uniform(-4, 4, (2, 3, 4, 5)), 3).astype(np.float32)
    for mask in range(16):
        yield Case("Sum", [four, axes(*[d for d in range(4) if mask >> d & 1])], {"keep_dims": mask % 3 == 0})
    number_ops = ("Sum", "Mean", "Prod", "Max", "Min")
    for op in number_ops:
        for keep_dims in (False, True):
            yield Case(op, [four, axes(1, -1)], {"keep_dims": keep_dims})
            yield Case(op, [four, axes(0, 2)], {"keep_dims": keep_dims})
        yield Case(op, [four, axes()])
        yield Case(op, [four, np.int32(-2)])
        yield Case(op, [four, np.array([3], np.int64)])
        yield Case(op, [np.float32(3), axes()])
        yield Case(op, [np.zeros((0, 3), np.float32), axes(0)])
        yield Case(op, [np.zeros((3, 0), np.float32), axes(1)])
        yield Case(op, [np.zeros((3, 0), np.float32), axes(0)])
        yield Case(op, [np.array([[1, np.nan, 2], [3, np.inf, 0], [-np.inf, 2, 1]], np.float32), axes(0)])
        yield Case(op, [np.array([[1, np.nan, 2], [3, np.inf, 0], [-np.inf, 2, 1]], np.float32), axes(1)])
        for dtype in FLOATS[1:]:
            yield Case(op, [np.array([[1, 2], [0.5, 4], [-1, 3]]).astype(dtype), axes(0)])
        for dtype in INTEGERS:
            yield Case(op, [np.array([[1, 2, 3], [5, 4, 9]], dtype), axes(1)])
            yield Case(op, [np.array([[1, 2, 3], [5, 4, 9]], dtype), axes(0)])
    for op in ("Max", "Min"):
        nan_late = np.tile(np.arange(40, dtype=np.float32), (2, 1))
        nan_late[1, 37] = np.nan
        yield Case(op, [nan_late, axes(1)])
        yield Case(op, [np.full((2, 3), -np.inf, np.float32), axes(1)])
    yield Case("Mean", [np.array([-1, -2, 0, 0], np.int32), axes(0)])
    yield Case("Sum", [np.array([2147483647, 1], np.int32), axes(0)])
    for op in ("Sum", "Mean", "Max"):
        yield Case(op, [random.randint(-99, 99, (1, 7, 7, 300)).astype(np.float32), axes(1, 2)], {"keep_dims": True})
        yield Case(op, [random.randint(-99, 99, (3, 1000)).astype(np.float32), axes(1)])
    yield Case("Sum", [np.ones((600,), np.float16), axes(0)])
    yield Case("EuclideanNorm", [four, axes(1, 3)])
    for op in ("All", "Any"):
        array = np.array([[True, False, True], [True, True, True], [False, False, False]])
        yield Case(op, [array, axes(0)])
        yield Case(op, [array, axes(-1)], {"keep_dims": True})
        yield Case(op, [array, axes(0, 1)])
        yield Case(op, [np.zeros((0, 2), np.bool_), axes(0)])
        yield Case(op, [np.ones((2, 50), np.bool_), axes(1)])
    for dtype in FLOATS:
        yield Case("L2Loss", [np.array([[1, 2], [3, -0.5]]).astype(dtype)])
    yield Case("L2Loss", [np.zeros((0,), np.float32)])

    arrays = [np.array([[1, 5, 5, 2], [7, -3, 0, 7]]), np.arange(24).reshape(2, 3, 4) % 7]
    for op in ("ArgMax", "ArgMin"):
        for dtype in FLOATS + INTEGERS:
            for array in arrays:
                yield Case(op, [array.astype(dtype), np.int32(1)])
        for axis in (0, 2, -1):
            yield Case(op, [arrays[1].astype(np.float32), np.int32(axis)], {"output_type": tf.int32})
        yield Case(op, [np.array([[1, np.nan, 3], [np.nan, 1, np.nan], [-np.inf, np.inf, 1]], np.float32), np.int32(1)])
        yield Case(op, [np.zeros((0, 3), np.float32), np.int64(1)])
        yield Case(op, [random.randint(0, 50, (3, 300)).astype(np.float32), np.int32(0)])
    for dtype in FLOATS + INTEGERS:
        yield Case("TopKV2", [np.array([[1, 5, 5, 2], [7, 3, 0, 7]]).astype(dtype), np.int32(3)])
    yield Case("TopKV2", [np.array([3, 1, 2], np.float32), np.int32(0)])
    yield Case("TopKV2", [np.array([3, 1, 2], np.float32), np.int32(3)])
    yield Case("TopKV2", [random.permutation(200).astype(np.float32).reshape(2, 1, 100), np.int32(5)])

    for op in ("Cumsum", "Cumprod"):
        for exclusive in (False, True):
            for reverse in (False, True):
                yield Case(op, [np.arange(1, 13, dtype=np.float32).reshape(2, 3, 2), np.int32(1)],
                           {"exclusive": exclusive, "reverse": reverse})
        for axis in (0, -1):
            yield Case(op, [np.arange(1, 7, dtype=np.int32).reshape(2, 3), np.int32(axis)])
        for dtype in FLOATS[1:] + INTEGERS:
            yield Case(op, [np.array([1, 2, 3]).astype(dtype), np.int32(0)])
        yield Case(op, [np.zeros((2, 0), np.float32), np.int32(0)])
