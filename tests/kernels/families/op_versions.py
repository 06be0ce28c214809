"""Versions of ops whose other versions are in their own families: windows as inputs, mixed types, k as an attribute."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def ramp(*shape, dtype=np.float32):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def ints(*values):
    return np.array(values, np.int32)


def largest(k):
    """TensorFlow 2.21 imports TopK and cannot run it: its kernels need an attribute that the op does not have."""
    def ask(values):
        order = np.argsort(-values.astype(np.float64), axis=-1, kind="stable")[..., :k]
        return [np.take_along_axis(values, order, -1), order.astype(np.int32)]
    return ask


def pooling():
    state = np.random.RandomState(1)
    for padding in ("SAME", "VALID"):
        image = state.permutation(40).reshape(2, 4, 5, 1).astype(np.float32)
        yield Case("MaxPoolV2", [image, ints(1, 2, 3, 1), ints(1, 2, 1, 1)], {"padding": padding})
    for dtype in (np.float64, np.float16, np.int32, np.uint8):
        yield Case("MaxPoolV2", [ramp(1, 3, 3, 2, dtype=dtype), ints(1, 2, 2, 1), ints(1, 2, 2, 1)],
                   {"padding": "SAME"})


def products():
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.complex64):
        yield Case("BatchMatMulV3", [ramp(2, 2, 3, dtype=dtype), ramp(1, 3, 2, dtype=dtype)], {"Tout": dtype})
    yield Case("BatchMatMulV3", [ramp(3, 2), ramp(2, 2, 3)], {"Tout": np.float32, "adj_x": True, "adj_y": True})
    for a in (np.int8, np.uint8):
        for b in (np.int8, np.uint8):
            yield Case("BatchMatMulV3", [ramp(2, 2, 3, dtype=a) * 20, ramp(3, 2, dtype=b) * 21], {"Tout": np.int32})


def cases():
    yield from pooling()
    yield from products()
    for dtype in (np.float32, np.float16, np.int8, np.uint32, np.int64):
        yield Case("TopK", [np.array([[3, 1, 4, 1], [5, 9, 2, 9]], dtype)], {"k": 3}, ask=largest(3), producer=6)
    yield Case("TopK", [ramp(2, 3)], {"k": 0}, ask=largest(0), producer=6)
    for dtype in (np.float32, np.float64, np.int32, np.complex64):
        yield Case("ScatterNdNonAliasingAdd", [ramp(4, 2, dtype=dtype), ints(1, 3, 1).reshape(3, 1),
                                               ramp(3, 2, dtype=dtype)])
    for dtype in (np.uint8, np.float32, np.complex128):
        yield Case("ParallelDynamicStitch", [ints(2, 0), ints(1, 3), ramp(2, 2, dtype=dtype), ramp(2, 2, dtype=dtype)])
    yield Case("ParallelDynamicStitch", [ints(1, 0), np.array([b"x", b"y"], object)])
