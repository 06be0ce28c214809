"""Fourier transforms, the parts of complex numbers, and Einsum."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

F = np.float32


def _complex(random, shape, dtype):
    return (random.uniform(-2, 2, shape) + 1j * random.uniform(-2, 2, shape)).astype(dtype)


def cases():
    random = np.random.RandomState(1)
    for points in (1, 2, 3, 7, 8, 12, 30):
        for given in (points, points + 3):
            x = random.uniform(-2, 2, (2, given)).astype(F)
            yield Case("RFFT", [x, np.array([points], np.int32)])
            yield Case("IRFFT", [_complex(random, (2, given // 2 + 1), np.complex64), np.array([points], np.int32)],
                       {"Treal": tf.float32})
        for op in ("FFT", "IFFT"):
            yield Case(op, [_complex(random, (2, points), np.complex64)])
            yield Case(op, [_complex(random, (points,), np.complex128)])
    # Every kind of step: radices 2 to 5, a large radix, and a prime factor beyond it. 17 rows are two groups and a part of one.
    lengths = np.random.RandomState(2)
    for rows, points in ((1, 32), (1, 60), (1, 61), (1, 67), (17, 10), (10, 67)):
        x = lengths.uniform(-2, 2, (rows, points)).astype(F)
        yield Case("RFFT", [x, np.array([points], np.int32)])
        yield Case("IRFFT", [_complex(lengths, (rows, points // 2 + 1), np.complex64), np.array([points], np.int32)],
                   {"Treal": tf.float32})
        yield Case("IFFT", [_complex(lengths, (rows, points), np.complex64)])
    yield Case("RFFT", [random.uniform(-2, 2, (1, 2, 18)), np.array([16], np.int32)], {"Tcomplex": tf.complex128})
    yield Case("RFFT", [np.zeros((0, 8), F), np.array([8], np.int32)])
    for lines, points in ((1, 1), (2, 3), (3, 4), (4, 1), (1, 6), (5, 7)):
        x = random.uniform(-2, 2, (2, lines + 1, points + 2)).astype(F)
        z = _complex(random, (2, lines + 2, points // 2 + 2), np.complex64)
        yield Case("RFFT2D", [x, np.array([lines, points], np.int32)])
        yield Case("IRFFT2D", [z, np.array([lines, points], np.int32)])
        for op in ("FFT2D", "IFFT2D"):
            yield Case(op, [z])
    for op in ("FFT2D", "IFFT2D"):
        yield Case(op, [_complex(lengths, (2, 10, 20), np.complex64)])
    yield Case("RFFT2D", [random.uniform(-2, 2, (4, 6)), np.array([4, 6], np.int32)], {"Tcomplex": tf.complex128})
    yield Case("IRFFT2D", [_complex(random, (4, 4), np.complex128), np.array([4, 6], np.int32)], {"Treal": tf.float64})
    yield Case("FFT2D", [_complex(random, (3, 5), np.complex128)])
    yield Case("RFFT2D", [np.zeros((0, 2, 4), F), np.array([2, 4], np.int32)])
    for dtype, real in ((np.complex64, tf.float32), (np.complex128, tf.float64)):
        z = _complex(random, (2, 5), dtype)
        for op in ("Real", "Imag", "ComplexAbs", "Angle"):
            yield Case(op, [z], {"Tout": real})
            yield Case(op, [np.zeros((0,), dtype)], {"Tout": real})
        yield Case("Conj", [z])
        yield Case("Complex", [z.real.copy(), z.imag.copy()], {"Tout": tf.as_dtype(dtype)})

    shapes = {
        "ij,jk->ik": [(3, 4), (4, 5)], "ij,jk->ki": [(3, 4), (4, 5)], "ij->ji": [(3, 4)], "ij->": [(3, 4)],
        "ij->i": [(3, 4)], "ii->i": [(4, 4)], "ii->": [(4, 4)], "i,j->ij": [(3,), (4,)], "i,i->": [(5,), (5,)],
        "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "bqhd,bkhd->bhqk": [(2, 3, 2, 4), (2, 5, 2, 4)],
        "bhqk,bkhd->bqhd": [(2, 2, 3, 5), (2, 5, 2, 4)], "abc,cde->abde": [(2, 3, 4), (4, 2, 3)],
        "...ij,...jk->...ik": [(2, 1, 3, 4), (3, 4, 5)], "...i->i...": [(2, 3, 4)], "ij,kl->il": [(2, 3), (4, 5)],
        "ab,ab->ab": [(3, 100), (3, 100)], "a,a->a": [(0,), (0,)], "ij,jk->ik ": [(2, 0), (0, 3)],
        "i...,ij->...j": [(3, 2, 2), (3, 4)],
    }
    for equation, dims in shapes.items():
        yield Case("Einsum", [random.uniform(-1, 1, d).astype(F) for d in dims], {"equation": equation.strip()})
    for dtype in (np.float64, np.float16, np.int32, np.int64):
        values = [random.uniform(-4, 4, d).astype(dtype) for d in ((2, 3), (3, 4))]
        yield Case("Einsum", values, {"equation": "ij,jk->ik"})
