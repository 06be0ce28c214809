"""BitwiseAnd, BitwiseOr, BitwiseXor, LeftShift, RightShift, Invert and PopulationCount."""

import numpy as np
from make_vectors import Case

TYPES = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)


def cases():
    for dtype in TYPES:
        info = np.iinfo(dtype)
        x = np.array([info.min, info.max, 0, 1, 85, 3], dtype)
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            yield Case(op, [x.reshape(6, 1), x])
        # Also by more bits than there are, and by less than none where the type has such numbers.
        by = np.array([0, 1, 4, 7, 8, 15, 31, 33, 63, 64, 100, info.min if info.min else 2], dtype)
        for op in ("LeftShift", "RightShift"):
            yield Case(op, [x.reshape(6, 1), by])
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"):
        yield Case(op, [np.int8(-100), np.int8(3)])
        yield Case(op, [np.arange(-64, 65, dtype=np.int8), np.int8(4)])
        yield Case(op, [np.int32(77), np.arange(7, dtype=np.int32)])
        yield Case(op, [np.zeros((0, 3), np.int16), np.ones(3, np.int16)])
    for dtype in TYPES + (np.uint64,):
        info = np.iinfo(dtype)
        for op in ("Invert", "PopulationCount"):
            yield Case(op, [np.array([[info.min, info.max, 0], [1, 85, 3]], dtype)])
    yield Case("Invert", [np.zeros((0, 3), np.int16)])
