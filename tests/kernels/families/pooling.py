"""AvgPool, MaxPool and MaxPoolWithArgmax."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def _pool(op, seed, image, ksize, strides, padding, explicit=None, nchw=False):
    attrs = {
        "ksize": [1, 1, *ksize] if nchw else [1, *ksize, 1],
        "strides": [1, 1, *strides] if nchw else [1, *strides, 1],
        "padding": padding,
        "data_format": "NCHW" if nchw else "NHWC",
    }
    if explicit:
        attrs["explicit_paddings"] = [0, 0, *explicit, 0, 0]
    n, h, w, c = image
    data = np.random.RandomState(seed).randint(-9, 9, size=(n, c, h, w) if nchw else image).astype(np.float32)
    ask = None
    if nchw:  # TensorFlow's CPU kernels compute NHWC only.
        def ask(x):
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                arguments = {"input" if op == "MaxPool" else "value": np.transpose(x, [0, 2, 3, 1])}
                result = getattr(tf.raw_ops, op)(ksize=[1, *ksize, 1], strides=[1, *strides, 1], padding=padding,
                                                 **arguments)
                return [np.transpose(session.run(result), [0, 3, 1, 2])]
    return Case(op, [data], attrs, ask=ask)


def _with_argmax():
    random = np.random.RandomState(10)
    for shape, size, stride, padding in (((2, 5, 4, 3), 2, 2, "SAME"), ((1, 4, 4, 1), 3, 1, "VALID"),
                                         ((2, 3, 3, 2), 3, 2, "SAME"), ((1, 5, 5, 1), 1, 2, "SAME")):
        image = random.randint(-3, 3, shape).astype(np.float32)
        attrs = {"ksize": [1, size, size, 1], "strides": [1, stride, stride, 1], "padding": padding}
        yield Case("MaxPoolWithArgmax", [image], attrs)
        yield Case("MaxPoolWithArgmax", [image], {**attrs, "Targmax": tf.int32, "include_batch_in_index": True})
    attrs = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
    for dtype in (np.float64, np.float16, tf.bfloat16.as_numpy_dtype, np.int8, np.int16, np.int32, np.int64, np.uint8,
                  np.uint16, np.uint32, np.uint64):
        yield Case("MaxPoolWithArgmax", [random.randint(0, 9, (2, 4, 4, 2)).astype(dtype)], attrs)
    nan = np.nan
    special = np.array([[nan, 1, 2, nan], [3, nan, nan, nan], [-np.inf, -np.inf, nan, 4]], np.float32)
    yield Case("MaxPoolWithArgmax", [special.reshape(1, 3, 4, 1)], {**attrs, "padding": "SAME"})


def cases():
    for op in ("AvgPool", "MaxPool"):
        yield _pool(op, 1, (1, 4, 4, 3), (2, 2), (2, 2), "VALID")
        yield _pool(op, 2, (2, 5, 7, 2), (3, 3), (2, 2), "SAME")
        yield _pool(op, 3, (1, 5, 5, 19), (3, 2), (1, 3), "SAME")
        yield _pool(op, 4, (1, 6, 4, 1), (3, 4), (1, 1), "VALID")
        yield _pool(op, 5, (1, 1, 1, 2), (3, 3), (2, 2), "SAME")
        yield _pool(op, 6, (1, 5, 5, 1), (1, 1), (2, 2), "SAME")
        yield _pool(op, 7, (0, 4, 4, 2), (2, 2), (2, 2), "SAME")
        yield _pool(op, 8, (1, 5, 4, 3), (2, 3), (2, 1), "SAME", nchw=True)
    yield _pool("MaxPool", 9, (1, 4, 4, 2), (3, 3), (2, 2), "EXPLICIT", explicit=(1, 0, 2, 1))
    nan, inf = np.nan, np.inf
    special = np.array([[1, nan, 2, 3], [4, 5, nan, nan], [inf, 1, -inf, -inf], [2, -inf, -inf, -inf]], np.float32)
    for op in ("AvgPool", "MaxPool"):
        yield Case(op, [special.reshape(1, 4, 4, 1)],
                   {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"})
    yield from _with_argmax()
