"""Bands of diagonals of matrices, and diagonals of tensors."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

ALIGNS = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


def ramp(*shape, dtype=np.float32):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def k_of(lower, upper):
    return np.int32(lower) if lower == upper else np.array([lower, upper], np.int32)


def band_shape(rows, columns, lower, upper):
    longest = min(rows + min(upper, 0), columns - max(lower, 0))
    return (longest,) if lower == upper else (upper - lower + 1, longest)


def bands(version, attrs):
    for rows, columns, lower, upper in ((3, 4, 0, 0), (3, 4, -1, 2), (4, 3, 1, 1), (4, 3, -3, -2), (2, 5, 0, 3),
                                        (3, 3, -2, 2), (1, 4, 1, 3)):
        k, band = k_of(lower, upper), band_shape(rows, columns, lower, upper)
        yield Case("MatrixDiagPart" + version, [ramp(2, rows, columns), k, np.float32(-7)], attrs)
        yield Case("MatrixSetDiag" + version, [ramp(2, rows, columns), -ramp(2, *band), k], attrs)
        yield Case("MatrixDiag" + version, [ramp(2, *band), k, np.int32(rows), np.int32(columns), np.float32(-7)], attrs)


def cases():
    yield from bands("V2", {})
    for align in ALIGNS:
        yield from bands("V3", {"align": align})
    for rows, columns in ((-1, -1), (3, -1), (-1, 4), (2, -1), (-1, 3)):
        for k in (np.int32(0), np.int32(1), np.int32(-1)):
            sizes = (max(rows, 2 - min(0, int(k))) if rows > 0 else -1,
                     max(columns, 2 + max(0, int(k))) if columns > 0 else -1)
            yield Case("MatrixDiagV3", [ramp(2), k, np.int32(sizes[0]), np.int32(sizes[1]), np.float32(0)])
    for dtype in (np.float64, np.float16, np.int8, np.int32, np.int64, np.bool_, np.complex64):
        yield Case("MatrixDiagPart", [ramp(3, 2, dtype=dtype)])
        yield Case("MatrixDiagPartV3", [ramp(3, 2, dtype=dtype), np.array([-1, 0], np.int32), np.zeros((), dtype)])
        yield Case("MatrixSetDiagV3", [ramp(2, 2, dtype=dtype), np.zeros((2, 2), dtype), np.array([0, 1], np.int32)])
    for shape in ((2, 3, 3), (0, 2, 2), (2, 0), (2, 2, 5)):
        yield Case("MatrixDiagPart", [ramp(*shape)])
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.complex128):
        yield Case("Diag", [ramp(3, dtype=dtype)])
        yield Case("DiagPart", [ramp(3, 3, dtype=dtype)])
    yield Case("Diag", [ramp(2, 3)])
    yield Case("Diag", [ramp(0)])
    yield Case("DiagPart", [ramp(2, 3, 2, 3)])
