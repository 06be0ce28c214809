"""Complex numbers made of parts that broadcast, and transposed with conjugation."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def ramp(*shape, dtype=np.float32):
    return (np.arange(1, 1 + np.prod(shape, dtype=int)) / 4).reshape(shape).astype(dtype)


def cases():
    for dtype, whole in ((np.float32, tf.complex64), (np.float64, tf.complex128)):
        for a, b in (((2, 3), (2, 3)), ((2, 3), ()), ((), (3,)), ((2, 1), (1, 3)), ((3,), (2, 3)), ((0, 3), (1,))):
            yield Case("Complex", [ramp(*a, dtype=dtype), -ramp(*b, dtype=dtype)], {"Tout": whole})
    for dtype in (np.complex64, np.complex128, np.float32, np.int16, np.bool_):
        values = ramp(2, 3, 2, dtype=dtype)
        values = values + (1j * ramp(2, 3, 2)).astype(dtype) if np.dtype(dtype).kind == "c" else values
        for order in ([1, 0, 2], [2, 1, 0], [0, 1, 2]):
            yield Case("ConjugateTranspose", [values, np.array(order, np.int32)])
    yield Case("ConjugateTranspose", [np.array([[b"a", b"b"]], object), np.array([1, 0], np.int64)])
