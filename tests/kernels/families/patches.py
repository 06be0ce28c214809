"""The pixels under each position of a sliding window: ExtractImagePatches."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

DTYPES = (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8)


def image(*shape, dtype=np.float32):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def cases():
    for padding in ("SAME", "VALID"):
        for window, stride, rate in (((3, 3), (1, 1), (1, 1)), ((2, 3), (2, 1), (1, 1)), ((2, 2), (1, 2), (2, 1)),
                                     ((1, 1), (2, 2), (1, 1)), ((3, 2), (3, 3), (1, 2))):
            yield Case("ExtractImagePatches", [image(2, 4, 5, 1)],
                       {"ksizes": [1, *window, 1], "strides": [1, *stride, 1], "rates": [1, *rate, 1],
                        "padding": padding})
    for dtype in DTYPES:
        yield Case("ExtractImagePatches", [image(1, 3, 3, 2, dtype=dtype)],
                   {"ksizes": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "rates": [1, 1, 1, 1], "padding": "SAME"})
    for shape in ((0, 3, 3, 1), (1, 3, 3, 0)):
        yield Case("ExtractImagePatches", [image(*shape)],
                   {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"})
