"""MatMul and BatchMatMul."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def numbers(seed, *shape, dtype=np.float32):
    values = np.random.RandomState(seed).randint(-8, 9, size=shape)
    return values.astype(dtype) if np.issubdtype(dtype, np.integer) else (values / 4).astype(dtype)


def cases():
    for seed, (transpose_a, transpose_b) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        for dtype in (np.float32, np.float64, np.int32):
            a, b = numbers(seed, 3, 5, dtype=dtype), numbers(seed + 9, 5, 4, dtype=dtype)
            yield Case("MatMul", [a.T if transpose_a else a, b.T if transpose_b else b],
                       {"transpose_a": transpose_a, "transpose_b": transpose_b})
    yield Case("MatMul", [numbers(1, 1, 7), numbers(2, 7, 35)])
    yield Case("MatMul", [numbers(1, 17, 3), numbers(2, 3, 1)])
    yield Case("MatMul", [numbers(1, 0, 3), numbers(2, 3, 4)])
    yield Case("MatMul", [numbers(1, 2, 0), numbers(2, 0, 3)])
    yield Case("MatMul", [numbers(1, 2, 3, dtype=np.int64), numbers(2, 3, 2, dtype=np.int64)])
    yield Case("MatMul", [numbers(1, 2, 3, dtype=np.float16), numbers(2, 3, 2, dtype=np.float16)])
    yield Case("MatMul", [numbers(1, 2, 3, dtype=tf.bfloat16.as_numpy_dtype),
                          numbers(2, 3, 2, dtype=tf.bfloat16.as_numpy_dtype)])
    yield Case("MatMul", [np.array([[np.nan, 1], [np.inf, 0]], np.float32), np.array([[1, 0], [2, 1]], np.float32)])
    for op in ("BatchMatMul", "BatchMatMulV2"):
        for adj_x, adj_y in [(False, False), (True, False), (False, True), (True, True)]:
            x, y = numbers(3, 2, 3, 4), numbers(4, 2, 4, 2)
            yield Case(op, [np.swapaxes(x, 1, 2) if adj_x else x, np.swapaxes(y, 1, 2) if adj_y else y],
                       {"adj_x": adj_x, "adj_y": adj_y})
    yield Case("BatchMatMulV2", [numbers(5, 2, 1, 3, 2), numbers(6, 4, 2, 3)])
    yield Case("BatchMatMulV2", [numbers(5, 3, 2), numbers(6, 2, 2, 2)])
    yield Case("BatchMatMulV2", [numbers(5, 2, 1, 3), numbers(6, 1, 3, 2)])
    yield Case("BatchMatMulV2", [numbers(5, 0, 2, 3), numbers(6, 1, 3, 2)])
    yield Case("BatchMatMulV2", [numbers(5, 2, 2, 3, dtype=np.int32), numbers(6, 2, 3, 2, dtype=np.int32)])
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8):
        yield Case("Cross", [np.array([[1, 2, 3], [7, 5, 9]], dtype), np.array([[4, 6, 5], [2, 11, 3]], dtype)])
    yield Case("Cross", [np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)])
