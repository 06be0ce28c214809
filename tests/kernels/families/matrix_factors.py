"""Square matrices factored and inverted."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def matrices(state, *shape, dtype):
    values = state.randint(-4, 5, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        values += 1j * state.randint(-4, 5, shape)
    return values + 6 * np.eye(shape[-1], dtype=dtype)


def cases():
    state = np.random.RandomState(1)
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        for shape in ((3, 3), (2, 2, 2), (1, 1)):
            x = matrices(state, *shape, dtype=dtype)
            yield Case("Cholesky", [x @ np.conj(np.swapaxes(x, -1, -2))])
            yield Case("MatrixDeterminant", [x])
            for adjoint in (False, True):
                yield Case("MatrixInverse", [x], {"adjoint": adjoint})
                for lower in (False, True):
                    yield Case("MatrixTriangularSolve", [x, matrices(state, *shape, dtype=dtype)],
                               {"adjoint": adjoint, "lower": lower})
    yield Case("MatrixTriangularSolve", [matrices(state, 2, 3, 3, dtype=np.float32),
                                         state.randn(2, 3, 4).astype(np.float32)])
    yield Case("MatrixDeterminant", [np.array([[1, 2], [2, 4]], np.float32)])
    yield Case("MatrixDeterminant", [np.zeros((2, 0, 0), np.float32)])
    for op in ("Cholesky", "MatrixInverse"):
        yield Case(op, [np.zeros((0, 2, 2), np.float32)])
        yield Case(op, [np.zeros((2, 0, 0), np.float32)])
