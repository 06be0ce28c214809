"""QuantizeAndDequantize, QuantizeAndDequantizeV2, V3 and V4."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def cases():
    ranges = [(-1, 1), (0, 6), (-3.3, 0.7), (-2, 0), (0.5, 2), (-3, -1), (0, 0), (-1, 127 / 128)]
    for plain in (np.float32, np.float64):
        x = np.concatenate([np.linspace(-4, 7, 34), [0.5, 1.5, -0.5, 1e30, -1e30]]).astype(plain)
        for low, high in ranges:
            low, high = plain(low), plain(high)
            for signed in (True, False):
                for attrs in ({}, {"round_mode": "HALF_UP"}, {"narrow_range": True, "num_bits": 4}, {"num_bits": 16}):
                    yield Case("QuantizeAndDequantizeV2", [x, low, high],
                               {"signed_input": signed, "range_given": True, **attrs})
                yield Case("QuantizeAndDequantizeV4", [x, low, high], {"signed_input": signed, "range_given": True})
                yield Case("QuantizeAndDequantizeV3", [x, low, high, np.int32(5)],
                           {"signed_input": signed, "range_given": True, "narrow_range": bool(high == 6)})
        for num_bits in (1, 2, 8, 33, 61):
            yield Case("QuantizeAndDequantizeV2", [x[:37], plain(0), plain(0)], {"num_bits": num_bits})
            yield Case("QuantizeAndDequantizeV3", [x[:37], plain(0), plain(0), np.int32(num_bits)],
                       {"range_given": False})
        for values in ([0, 0, 0], [3, 1, 2], [-1, -5], [], [7]):
            yield Case("QuantizeAndDequantizeV2", [np.array(values, plain), plain(0), plain(0)], {})
            yield Case("QuantizeAndDequantizeV4", [np.array(values, plain), plain(0), plain(0)],
                       {"signed_input": False, "round_mode": "HALF_UP"})
        cube = np.linspace(-3, 5, 24).reshape(2, 3, 4).astype(plain)
        for axis, count in ((0, 2), (1, 3), (2, 4)):
            low, high = np.linspace(-2, 0, count).astype(plain), np.linspace(1, 3, count).astype(plain)
            for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
                # TensorFlow requires a given range to be a vector in one check and a scalar in another.
                yield Case(op, [cube, low, high], {"axis": axis, "range_given": False})
            for given in (True, False):
                yield Case("QuantizeAndDequantizeV3", [cube, low, high, np.int32(8)],
                           {"axis": axis, "range_given": given})
        # TensorFlow keeps the first version for old graphs.
        yield Case("QuantizeAndDequantize", [x], {"signed_input": True, "num_bits": 8, "range_given": True,
                                                  "input_min": -1.5, "input_max": 2.0}, producer=20)
        yield Case("QuantizeAndDequantize", [x[:37]], {"signed_input": False, "num_bits": 4, "range_given": False,
                                                       "input_min": 0.0, "input_max": 0.0}, producer=20)
