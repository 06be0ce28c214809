"""Convolution and pooling of volumes; Bucketize, EnsureShape and MatrixSolve."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def _dilated(x, w):
    """Uses a filter with zeros between its taps, because TensorFlow's kernel has no dilations."""
    wide = np.zeros((3, 2, 4, *w.shape[3:]), w.dtype)
    wide[::2, :, ::3] = w
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return [session.run(tf.nn.conv3d(x, wide, [1] * 5, "VALID"))]


def volumes():
    random = np.random.RandomState(41)
    for dtype in (np.float32, np.float64):
        x = random.uniform(-1, 1, (2, 4, 5, 6, 2)).astype(dtype)
        w = random.uniform(-1, 1, (2, 3, 2, 2, 3)).astype(dtype)
        for padding in ("SAME", "VALID"):
            for strides in ([1, 1, 1, 1, 1], [1, 2, 1, 3, 1]):
                attrs = {"strides": strides, "padding": padding}
                yield Case("Conv3D", [x, w], attrs)
                out = tf.nn.conv3d(tf.zeros(x.shape), tf.zeros(w.shape), strides, padding).shape
                yield Case("Conv3DBackpropInputV2", [np.array(x.shape, np.int32), w, random.uniform(-1, 1, out).astype(dtype)],
                           attrs)
    x = random.uniform(-1, 1, (1, 5, 5, 5, 4)).astype(np.float32)
    yield Case("Conv3D", [x, random.uniform(-1, 1, (2, 2, 2, 4, 2)).astype(np.float32)],
               {"strides": [1] * 5, "padding": "VALID", "dilations": [1, 2, 1, 3, 1]}, ask=_dilated)
    for op in ("AvgPool3D", "MaxPool3D"):
        for padding in ("SAME", "VALID"):
            for window in ([1, 2, 2, 2, 1], [1, 3, 1, 2, 1]):
                for strides in ([1] * 5, [1, 2, 2, 2, 1]):
                    yield Case(op, [x], {"ksize": window, "strides": strides, "padding": padding})


def others():
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        yield Case("Bucketize", [np.array([[-5, 0, 1], [2, 3, 100]], dtype)], {"boundaries": [0.0, 1.5, 2.0]})
    yield Case("Bucketize", [np.array([1.0], np.float32)], {"boundaries": []})
    yield Case("EnsureShape", [np.zeros((2, 3), np.float32)], {"shape": [None, 3]})
    random = np.random.RandomState(42)
    for dtype in (np.float32, np.float64):
        matrix = (random.uniform(-1, 1, (2, 3, 3)) + 2 * np.eye(3)).astype(dtype)
        right = random.uniform(-1, 1, (2, 3, 2)).astype(dtype)
        for adjoint in (False, True):
            yield Case("MatrixSolve", [matrix, right], {"adjoint": adjoint})
    yield Case("MatrixSolve", [np.array([[2, 1j], [0, 1]], np.complex64), np.array([[1], [1j]], np.complex64)],
               {"adjoint": True})


def cases():
    yield from volumes()
    yield from others()
