"""Relu and its variants, Sigmoid, Tanh, Softplus, Softsign, Softmax, LogSoftmax."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, 100, -100, 0.6, -0.65, 7, -20, 6, 5.5]


def cases():
    ramp = np.concatenate([np.linspace(-12, 12, 24), SPECIAL]).astype(np.float32)
    for op in ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "Softplus", "Softsign"):
        for dtype in (np.float32, np.float64, np.float16, tf.bfloat16.as_numpy_dtype):
            with np.errstate(over="ignore"):
                yield Case(op, [ramp.astype(dtype)])
        yield Case(op, [np.zeros((2, 0), np.float32)])
        yield Case(op, [np.float32(0.5)])
    for alpha in (0.0, 0.5, 1.5):
        yield Case("LeakyRelu", [ramp], {"alpha": alpha})
    for op in ("Relu", "Relu6"):
        for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16):
            yield Case(op, [np.array([0, 3, 5, 6, 7, 100, 127], dtype)])
        yield Case(op, [np.array([-7, -1, 0, 9], np.int32)])
    random = np.random.RandomState(1)
    for op in ("Softmax", "LogSoftmax"):
        for shape in [(5,), (2, 3), (2, 1), (0, 3), (3, 37), (2, 2, 2, 3)]:
            yield Case(op, [random.uniform(-5, 5, shape).astype(np.float32)])
        yield Case(op, [np.array([[1000, 999, -1000], [-1000, -1001, -1003]], np.float32)])
        yield Case(op, [random.uniform(-5, 5, (2, 3))])
        yield Case(op, [random.uniform(-5, 5, (2, 3)).astype(np.float16)])
        yield Case(op, [np.array([[1, np.nan, 2], [-np.inf, 0, 1]], np.float32)])
