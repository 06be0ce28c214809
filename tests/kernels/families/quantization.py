"""Dequantize, QuantizeV2, FakeQuantWithMinMaxArgs, FakeQuantWithMinMaxVars, FakeQuantWithMinMaxVarsPerChannel."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

TYPES = [(tf.qint8, np.int8), (tf.quint8, np.uint8), (tf.qint16, np.int16), (tf.quint16, np.uint16),
         (tf.qint32, np.int32)]
RANGES = [(-1.0, 1.0), (0.0, 6.0), (-3.3, 0.7), (-2.0, 0.0), (0.5, 0.5)]


def _codes(dtype):
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, info.max // 3, info.max // 2 + 1, info.max - 1, info.max, 0, 1, 100]
    return np.array(values, dtype)


def cases():
    f = np.float32
    for quantized, plain in TYPES:
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            for low, high in RANGES:
                codes = _codes(plain)
                if quantized == tf.qint32 and mode == "SCALED":
                    codes = codes[codes <= 2**30]  # Above, TensorFlow's conversion overflows to negative numbers.
                yield Case("Dequantize", [(codes, quantized), f(low), f(high)], {"mode": mode})
        yield Case("Dequantize", [(np.zeros((0, 2), plain), quantized), f(-1), f(1)])
    for narrow in (False, True):
        yield Case("Dequantize", [(_codes(np.int8), tf.qint8), f(-1), f(0.9)], {"mode": "SCALED", "narrow_range": narrow})
    yield Case("Dequantize", [(_codes(np.uint8), tf.quint8), f(-1), f(2)], {"mode": "MIN_COMBINED", "dtype": tf.bfloat16})
    for mode in ("MIN_COMBINED", "SCALED"):  # TensorFlow has no axis in the other mode.
        yield Case("Dequantize", [(np.arange(12, dtype=np.uint8).reshape(2, 3, 2), tf.quint8), np.array([-1, 0, -2], f),
                                  np.array([1, 6, 0.5], f)], {"mode": mode, "axis": 1})

    x = np.array([-4, -1, -0.5, -0.25, 0, 0.1, 0.25, 0.5, 1, 1.5, 3, 6, 7], f)
    for quantized, plain in TYPES:
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            for low, high in RANGES[:4]:
                if quantized != tf.qint32 or mode == "SCALED":
                    # At the upper end, TensorFlow's conversion to 32 bits overflows; the kernel clamps to the largest code.
                    inputs = x[x < 0.6] if quantized == tf.qint32 else x
                    yield Case("QuantizeV2", [inputs, f(low), f(high)], {"T": quantized, "mode": mode})
    for round_mode in ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"):
        for narrow in (False, True):
            yield Case("QuantizeV2", [np.array([0.5, 1.5, 2.5, -0.5, -1.5, -127, 127], f), f(-127), f(127)],
                       {"T": tf.qint8, "mode": "SCALED", "round_mode": round_mode, "narrow_range": narrow})
    yield Case("QuantizeV2", [x, f(0.5), f(0.5)], {"T": tf.quint8})
    yield Case("QuantizeV2", [x, f(0), f(0.5)], {"T": tf.quint8, "ensure_minimum_range": 0.75})
    yield Case("QuantizeV2", [np.zeros((0,), f), f(-1), f(1)], {"T": tf.quint8})
    yield Case("QuantizeV2", [np.linspace(-2, 2, 12).reshape(2, 3, 2).astype(f), np.array([-1, 0, -2], f),
                              np.array([1, 6, 0.5], f)], {"T": tf.qint8, "mode": "SCALED", "axis": 1})

    # Numbers between two codes, and numbers out of range. (At the upper end of 32 bits, see above.)
    for quantized, plain in TYPES[:4]:
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            steps = 2.0 ** (8 * np.dtype(plain).itemsize) - 1
            halves = ((np.arange(30) * 7 + 0.5) / steps * 4 - 3.3).astype(f)
            yield Case("QuantizeV2", [np.concatenate([halves, [np.inf, -np.inf, 1e30, -1e30]]).astype(f), f(-3.3),
                                      f(0.7)], {"T": quantized, "mode": mode})

    ramp = np.concatenate([np.linspace(-7, 7, 23), [np.inf, -np.inf]]).astype(f)
    for low, high in [(-6.0, 6.0), (0.0, 5.0), (-3.0, 0.0), (1.0, 5.0), (-5.0, -1.0), (-0.3, 2.2)]:
        for bits, narrow in [(8, False), (8, True), (2, False), (16, False), (4, True)]:
            yield Case("FakeQuantWithMinMaxArgs", [ramp], {"min": low, "max": high, "num_bits": bits, "narrow_range": narrow})
        yield Case("FakeQuantWithMinMaxVars", [ramp, f(low), f(high)], {"num_bits": 8})
    ties = ((np.arange(40) * 6 + 0.5) / 255 * 7.5 - 2.5).astype(f)
    for bits, narrow in ((8, False), (4, True)):
        attrs = {"num_bits": bits, "narrow_range": narrow}
        yield Case("FakeQuantWithMinMaxArgs", [ties], {"min": -2.5, "max": 5.0, **attrs})
        yield Case("FakeQuantWithMinMaxVars", [ties, f(-2.5), f(5)], attrs)
        yield Case("FakeQuantWithMinMaxVarsPerChannel", [ties.reshape(20, 2), np.array([-2.5, -2.5], f),
                                                         np.array([5, 4], f)], attrs)
    yield Case("FakeQuantWithMinMaxVars", [ramp, f(0), f(0)])
    yield Case("FakeQuantWithMinMaxVars", [np.zeros((2, 0), f), f(-1), f(1)])
    yield Case("FakeQuantWithMinMaxVarsPerChannel", [np.linspace(-7, 7, 24).reshape(2, 4, 3).astype(f),
                                                     np.array([-6, 0, -1], f), np.array([6, 4, 1], f)],
               {"num_bits": 6})
    yield Case("FakeQuantWithMinMaxVarsPerChannel", [np.array([1, 2, 3], f), np.array([-6, 0, -1], f),
                                                     np.array([6, 4, 1], f)], {"narrow_range": True})
