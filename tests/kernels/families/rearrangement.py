"""Ops that roll, cut, number, segment and stitch elements."""

import numpy as np
from make_vectors import Case


def ints(*values):
    return np.array(values, np.int32)


def ramp(*shape, dtype=np.float32):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def rolls():
    for dtype in (np.uint8, np.float16, np.float32, np.int64, np.complex128):
        yield Case("Roll", [ramp(3, 4, dtype=dtype), np.int32(1), np.int32(1)])
    yield Case("Roll", [ramp(2, 3, 4), ints(1, -5, 2), ints(0, 1, 2)])
    yield Case("Roll", [ramp(2, 3, 4), np.array([1, 1], np.int64), np.array([1, 1], np.int64)])
    yield Case("Roll", [ramp(5), ints(-2**31), ints(-1)])
    yield Case("Roll", [ramp(0, 3), np.int32(2), np.int32(0)])
    yield Case("Roll", [np.array([b"a", b"", b"cc"], object), np.int32(1), np.int32(0)])


def bands():
    for lower, upper in ((0, 0), (-1, 0), (0, -1), (1, 2), (3, 4), (-1, -1), (2, 0)):
        yield Case("MatrixBandPart", [ramp(3, 4), np.int64(lower), np.int64(upper)])
        yield Case("MatrixBandPart", [ramp(2, 4, 3), np.int64(lower), np.int64(min(upper, 3))])
    yield Case("MatrixBandPart", [ramp(0, 3), np.int64(0), np.int64(0)])
    yield Case("MatrixBandPart", [np.ones((3, 3), bool), np.int32(0), np.int32(1)])


def diagonals():
    for dtype in (np.float32, np.float64, np.int8, np.int64, np.complex64, bool):
        yield Case("MatrixDiag", [ramp(2, 3, dtype=dtype)])
    yield Case("MatrixDiag", [ramp(4)])
    yield Case("MatrixDiag", [ramp(0, 2)])
    for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 4), (2, 2, 3, 2), (0, 3)):
        yield Case("MatrixSetDiag", [ramp(*shape), -ramp(*shape[:-2], min(shape[-2:]))])
    yield Case("MatrixSetDiag", [ramp(2, 2, dtype=np.int16), -ramp(2, dtype=np.int16)])


def reversed_sequences():
    for sequence, batch in ((1, 0), (0, 1), (2, 0), (2, 1), (0, 2)):
        lengths = np.array([0, 2, 1, 2][:(2, 3, 4)[batch]], np.int64)
        yield Case("ReverseSequence", [ramp(2, 3, 4), lengths], {"seq_dim": sequence, "batch_dim": batch})
    yield Case("ReverseSequence", [ramp(2, 3, dtype=np.uint8), ints(3, 1)], {"seq_dim": 1, "batch_dim": 0})
    yield Case("ReverseSequence", [ramp(0, 3), np.zeros(0, np.int64)], {"seq_dim": 1, "batch_dim": 0})


def broadcasts():
    for dtype in (np.int32, np.int64):
        for a, b in (((2, 3), (2, 3)), ((2, 1), (3,)), ((), (4, 5)), ((1,), ()), ((0, 3), (1, 1)), ((1, 4), (7, 1, 4))):
            yield Case("BroadcastArgs", [np.array(a, dtype), np.array(b, dtype)])


def uniques():
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
                  np.uint32, np.uint64):
        yield Case("Unique", [np.array([3, 1, 3, 0, 1, 7], dtype)])
    yield Case("Unique", [np.array([0., -0., 2., np.inf, np.inf], np.float32)], {"out_idx": np.int64})
    yield Case("Unique", [np.zeros(0, np.float32)])
    yield Case("Unique", [np.array([b"b", b"", b"a", b"b", b""], object)])
    yield Case("Unique", [np.array([True, True, False])])
    yield Case("UniqueWithCounts", [np.array([3, 1, 3, 0, 1, 3], np.int64)], {"out_idx": np.int64})
    yield Case("UniqueWithCounts", [np.array([b"x", b"y", b"x"], object)])


def segments():
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
                  np.uint32, np.uint64):
        yield Case("SegmentSum", [ramp(5, 2, dtype=dtype), ints(0, 0, 2, 2, 3)])
        yield Case("UnsortedSegmentSum", [ramp(5, 2, dtype=dtype), ints(3, 0, -1, 0, 3), np.int32(5)])
    yield Case("SegmentSum", [ramp(0, 2), np.zeros(0, np.int64)])
    yield Case("SegmentSum", [ramp(3), np.array([1, 1, 1], np.int64)])
    yield Case("UnsortedSegmentSum", [ramp(2, 2, 3), ints(1, 0, 1, 1).reshape(2, 2), np.int64(2)])
    yield Case("UnsortedSegmentSum", [ramp(2, 2), np.array([0, 1], np.int64), np.int32(2)])
    yield Case("UnsortedSegmentSum", [ramp(2, 0), ints(0, 1), np.int32(3)])
    for dtype in (np.uint8, np.float16, np.float32, np.int64, np.complex128, np.bool_):
        yield Case("DynamicPartition", [ramp(4, 2, dtype=dtype), ints(2, 0, 2, 0)], {"num_partitions": 3})
    yield Case("DynamicPartition", [ramp(2, 2), ints(0, 1, 1, 0).reshape(2, 2)], {"num_partitions": 2})
    yield Case("DynamicPartition", [np.array([b"a", b"b", b""], object), ints(1, 0, 1)], {"num_partitions": 2})
    yield Case("DynamicPartition", [ramp(0), ints()], {"num_partitions": 2})
    for dtype in (np.uint8, np.float16, np.float32, np.int64, np.complex128):
        yield Case("DynamicStitch", [ints(2, 0), ints(1, 3), ramp(2, 2, dtype=dtype), ramp(2, 2, dtype=dtype)])
    yield Case("DynamicStitch", [np.int32(1), ints(0, 1, 1, 2).reshape(2, 2), ramp(3), ramp(2, 2, 3)])
    yield Case("DynamicStitch", [ints(1, 0), np.array([b"x", b"y"], object)])
    yield Case("DynamicStitch", [ints(), ramp(0, 2)])


def cases():
    yield from segments()
    yield from rolls()
    yield from bands()
    yield from diagonals()
    yield from reversed_sequences()
    yield from broadcasts()
    yield from uniques()
