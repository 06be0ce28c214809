"""Functions of one input, ClipByValue, CheckNumerics, Cast and Bitcast."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BFLOAT16 = tf.bfloat16.as_numpy_dtype
FLOATS = (np.float32, np.float64, np.float16, BFLOAT16)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan]


def cases():
    ramp = np.concatenate([np.linspace(-3, 3, 13), [0.1, 0.9, 2.5, -0.3], SPECIAL])
    finite = ramp[np.isfinite(ramp)]  # TensorFlow's erf of a 16-bit infinity is NaN.
    positive = np.concatenate([np.linspace(0.125, 9, 10), SPECIAL])
    unit = np.concatenate([np.linspace(-1, 1, 9), [np.nan]])
    domains = {
        "Abs": ramp, "Neg": ramp, "Square": ramp, "Sign": ramp, "Round": ramp, "Rint": ramp, "Floor": ramp, "Ceil": ramp,
        "Reciprocal": ramp, "Inv": ramp, "Exp": ramp, "Expm1": ramp, "Sin": ramp, "Cos": ramp, "Tan": ramp, "Atan": ramp,
        "Sinh": ramp, "Cosh": ramp, "Asinh": ramp, "Erf": finite, "Erfc": finite, "IsNan": ramp, "IsInf": ramp,
        "IsFinite": ramp, "Sqrt": positive, "Rsqrt": positive, "Log": positive, "Log1p": positive, "Asin": unit,
        "Acos": unit, "Atanh": unit, "Acosh": np.array([1, 1.5, 7, np.nan]),
    }
    for op, domain in domains.items():
        for dtype in FLOATS[:2] if op == "Rint" else FLOATS:
            yield Case(op, [domain.astype(dtype)])
    for op in ("Abs", "Neg", "Square", "Sign"):
        for dtype in (np.int8, np.int16, np.int32, np.int64):
            yield Case(op, [np.array([-7, -1, 0, 3, 11], dtype)])
    yield Case("Abs", [np.array([-2147483648, 2147483647], np.int32)])
    for op in ("Neg", "Exp"):
        yield Case(op, [np.zeros((3, 0, 2), np.float32)])
        yield Case(op, [np.float32(0.75)])
    yield Case("Sqrt", [np.linspace(0, 70, 641, dtype=np.float32).reshape(1, 641)])
    yield Case("OnesLike", [np.zeros((2, 3), np.float32)])
    for dtype in FLOATS + (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.bool_):
        yield Case("OnesLike", [np.zeros(3, dtype)])
        yield Case("ZerosLike", [np.ones((2, 1), dtype)])
    yield Case("ZerosLike", [np.ones((0, 1), np.complex128)])

    clipped = np.array([np.nan, -5, 5, 1, np.inf, -np.inf], np.float32)
    yield Case("ClipByValue", [clipped, np.float32(0), np.float32(2)])
    yield Case("ClipByValue", [clipped, np.float32(np.nan), np.float32(2)])
    yield Case("ClipByValue", [clipped, clipped - 1, clipped])
    yield Case("ClipByValue", [np.zeros((0, 2), np.float32), np.float32(0), np.float32(2)])
    for dtype in FLOATS[1:3] + (np.int8, np.int16, np.int32, np.int64, np.uint8):
        yield Case("ClipByValue", [np.array([0, 3, 99], dtype), dtype(1), dtype(50)])
    for dtype in FLOATS:
        yield Case("CheckNumerics", [np.array([1, 2.5]).astype(dtype)], {"message": "fine"})

    # Numbers that do not fit are the affair of the instruction set: x86 gives the smallest integer.
    numbers = np.array([0, -0.0, 1, 2.5, -1.75, 100, 127])
    types = FLOATS + (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_)
    for source in types:
        for target in types:
            values = np.abs(numbers) if np.dtype(source).kind == "u" else numbers
            # What casting a negative number to an unsigned type gives depends on the vector length.
            if np.dtype(target).kind == "u" and np.dtype(source).kind in "fV":
                values = np.abs(numbers)
            yield Case("Cast", [values.astype(source)], {"DstT": tf.as_dtype(target)})
    extreme = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 2147483648, -2147483648, 2147483520, 300.7], np.float32)
    for target in (tf.int32, tf.int64):
        yield Case("Cast", [extreme], {"DstT": target})
    yield Case("Cast", [extreme], {"DstT": tf.bool})
    yield Case("Cast", [extreme], {"DstT": tf.half})
    yield Case("Cast", [np.array([1e300, 1.0000000001, 1e-310])], {"DstT": tf.float32})
    yield Case("Cast", [np.array([2**62 + 1, -2**63, 2**24 + 1], np.int64)], {"DstT": tf.float32})
    yield Case("Cast", [np.array([2**64 - 1, 2**63], np.uint64)], {"DstT": tf.float64})
    yield Case("Cast", [np.arange(700, dtype=np.int16)], {"DstT": tf.uint8})
    yield Case("Cast", [np.zeros((0, 4), np.float32)], {"DstT": tf.int32})
    yield Case("Bitcast", [np.array([1, 2.5], np.float32)], {"type": tf.int32})
    yield Case("Bitcast", [np.array([1, 2.5], np.float32)], {"type": tf.uint8})
    yield Case("Bitcast", [np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint8)], {"type": tf.int32})
    for dtype in (np.complex64, np.complex128):
        pairs = np.array([1 + 2j, -3 + 1j, 5 - 4j, complex(np.nan, 1), complex(1, np.nan), 2 - 2j, 9j], dtype)
        yield Case("ClipByValue", [pairs, dtype(0), dtype(2)])
        yield Case("ClipByValue", [pairs, dtype(complex(np.nan, 3)), dtype(complex(2, np.nan))])
        yield Case("ClipByValue", [pairs, np.full(7, -1 + 0.5j, dtype), np.linspace(0, 3 + 1j, 7).astype(dtype)])
