"""Ops that move elements: joining, splitting, slicing, permuting, repeating, padding, blocks, indices, filling."""

import itertools

import numpy as np
import tensorflow as tf
from make_vectors import Case

# One type for each element size.
SIZES = (np.uint8, np.float16, np.float32, np.int64, np.complex128)


def ints(*values):
    return np.array(values, np.int32)


def ramp(*shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def joining():
    for axis in (0, 1, 2, -1):
        yield Case("Pack", [ramp(2, 3), -ramp(2, 3), ramp(2, 3) + 50], {"axis": axis})
        yield Case("Unpack", [ramp(2, 2, 2)], {"num": 2, "axis": axis % 3 - 1})
    yield Case("Pack", [np.int32(5), np.int32(7)])
    yield Case("Pack", [np.zeros((0, 3), np.float32)] * 2, {"axis": 1})
    yield Case("Unpack", [ramp(3)], {"num": 3})
    yield Case("Unpack", [ramp(4, 0, 2)], {"num": 2, "axis": 2})
    for axis in (0, 1, 2, -1):
        shapes = [(2, 2, 3)] * 3
        for i, size in enumerate((1, 4, 0)):
            shapes[i] = tuple(size if d == axis % 3 else n for d, n in enumerate(shapes[i]))
        parts = [ramp(*shape) + 100 * i for i, shape in enumerate(shapes)]
        yield Case("ConcatV2", parts + [np.int32(axis)])
        yield Case("Concat", [np.int32(axis % 3)] + parts)
    for dtype in SIZES + (np.bool_,):
        yield Case("ConcatV2", [ramp(2, 2, dtype=dtype), ramp(2, 1, dtype=dtype), np.int64(1)])
        yield Case("Pack", [ramp(3, dtype=dtype), ramp(3, dtype=dtype)], {"axis": 1})
    for axis in (0, 1, -1):
        yield Case("Split", [np.int32(axis), ramp(4, 2, 6)], {"num_split": 2})
    yield Case("Split", [np.int32(0), ramp(3)], {"num_split": 1})
    yield Case("Split", [np.int32(0), ramp(0, 2)], {"num_split": 3})
    for sizes in ((1, 5), (0, 6), (-1, 2), (2, -1)):
        yield Case("SplitV", [ramp(2, 6), np.array(sizes, np.int64), np.int32(1)], {"num_split": 2})
    yield Case("SplitV", [ramp(4, 3), ints(3, 1), np.int32(-2)], {"num_split": 2})


def slicing():
    for begin, size in (((0, 0, 0), (2, 3, 4)), ((1, 0, 2), (1, 2, 1)), ((0, 1, 1), (-1, -1, 2)), ((2, 0, 0), (0, 3, 4))):
        yield Case("Slice", [ramp(2, 3, 4), ints(*begin), np.array(size, np.int32)])
    for dtype in SIZES:
        yield Case("Slice", [ramp(3, 5, dtype=dtype), np.array([1, 1], np.int64), np.array([2, 3], np.int64)])
        yield Case("StridedSlice", [ramp(3, 5, dtype=dtype), ints(2, 4), ints(-4, 0), ints(-1, -2)])
        yield Case("ReverseV2", [ramp(3, 2, dtype=dtype), ints(1)])
    array = ramp(3, 4, 5)
    bounds = (-6, -2, 0, 4, 9)
    for begin, end in itertools.product(bounds, bounds):
        for stride in (1, 2, -3):
            yield Case("StridedSlice", [ramp(5), ints(begin), ints(end), ints(stride)])
    for name in ("begin_mask", "end_mask"):
        for stride in (1, -2):
            yield Case("StridedSlice", [array, ints(1, 2, 1), ints(2, 3, 4), ints(stride, stride, 1)], {name: 3})
    yield Case("StridedSlice", [array, ints(1, 1), ints(2, 3), ints(1, 1)], {"ellipsis_mask": 1})
    yield Case("StridedSlice", [array, ints(0, 9, 1), ints(0, 9, 3), ints(1, 1, 1)],
               {"ellipsis_mask": 2, "shrink_axis_mask": 1})
    yield Case("StridedSlice", [array, ints(0, 0, 1), ints(0, 0, 2), ints(1, 1, 1)],
               {"new_axis_mask": 1, "ellipsis_mask": 2})
    yield Case("StridedSlice", [array, ints(1, 0, 2), ints(2, 0, 3), ints(1, 1, 1)],
               {"new_axis_mask": 2, "shrink_axis_mask": 4})
    yield Case("StridedSlice", [array, ints(-1, 1), ints(0, 2), ints(1, 1)], {"shrink_axis_mask": 3})
    yield Case("StridedSlice", [array, ints(-1), ints(0), ints(1)], {"shrink_axis_mask": 1, "begin_mask": 1})
    yield Case("StridedSlice", [ints(7, 8, 9), ints(1), ints(2), ints(1)], {"shrink_axis_mask": 1})
    yield Case("StridedSlice", [ramp(0, 3), ints(0, 1), ints(5, 2), ints(1, 1)])
    yield Case("StridedSlice", [array, np.array([1], np.int64), np.array([3], np.int64), np.array([2], np.int64)])
    for axes in ((), (0,), (1, 2), (-1, 0)):
        yield Case("ReverseV2", [array, np.array(axes, np.int32)])
    yield Case("Reverse", [array, np.array([True, False, True])])
    yield Case("ReverseV2", [ramp(0, 2), ints(0)])


def permuting():
    for rank in (1, 2, 3, 4):
        for order in list(itertools.permutations(range(rank)))[::2 if rank == 4 else 1]:
            yield Case("Transpose", [ramp(*(2, 3, 4, 5)[:rank], dtype=np.uint8), np.array(order, np.int32)])
    for dtype in SIZES:
        yield Case("Transpose", [ramp(9, 5, dtype=dtype), ints(1, 0)])
    yield Case("Transpose", [ramp(33, 35, dtype=np.uint8), ints(1, 0)])
    yield Case("Transpose", [ramp(5, 7, 6, dtype=np.int8), np.array([2, 0, 1], np.int64)])
    yield Case("Transpose", [ramp(2, 0, 3), ints(2, 1, 0)])
    yield Case("Transpose", [np.float32(2), np.zeros(0, np.int32)])
    yield Case("InvertPermutation", [ints(2, 0, 1)])
    yield Case("InvertPermutation", [np.array([0, 1], np.int64)])
    for multiples in ((1, 1), (2, 1), (1, 3), (2, 3), (0, 2)):
        yield Case("Tile", [ramp(2, 3), np.array(multiples, np.int32)])
    for dtype in SIZES:
        yield Case("Tile", [ramp(2, dtype=dtype), np.array([3], np.int64)])
        yield Case("BroadcastTo", [ramp(2, 1, dtype=dtype), ints(2, 3)])
    yield Case("Tile", [np.float32(4), np.zeros(0, np.int32)])
    yield Case("BroadcastTo", [np.float32(4), ints(2, 0)])
    yield Case("BroadcastTo", [ramp(1, 3, 1), np.array([2, 4, 3, 2], np.int64)])


def padding():
    for paddings in (((0, 0), (0, 0)), ((1, 0), (0, 2)), ((2, 1), (1, 3))):
        yield Case("Pad", [ramp(2, 3) + 1, np.array(paddings, np.int32)])
        yield Case("PadV2", [ramp(2, 3) + 1, np.array(paddings, np.int64), np.float32(-9)])
    yield Case("Pad", [ramp(0, 2), np.array([[1, 1], [0, 1]], np.int32)])
    yield Case("Pad", [np.float32(3), np.zeros((0, 2), np.int32)])
    yield Case("Pad", [ramp(1, 3, 3, 2) + 1, np.array([[0, 0], [1, 2], [2, 0], [0, 1]], np.int32)])
    for dtype in SIZES:
        yield Case("Pad", [ramp(2, dtype=dtype) + 1, np.array([[1, 2]], np.int32)])
    for mode, most in (("REFLECT", 2), ("SYMMETRIC", 3)):
        for before, after in ((0, 0), (1, 0), (0, 2), (most, most)):
            yield Case("MirrorPad", [ramp(3, 4), np.array([[before, after], [after, before]], np.int32)], {"mode": mode})
        yield Case("MirrorPad", [ramp(2, 3, 2, dtype=np.int64), np.array([[0, 0], [1, 1], [1, 0]], np.int64)],
                   {"mode": mode})


def blocks():
    for block in (2, 3):
        yield Case("SpaceToDepth", [ramp(2, 6, 12, 2)], {"block_size": block})
        yield Case("DepthToSpace", [ramp(2, 2, 3, 2 * block * block)], {"block_size": block})
    # TensorFlow's CPU kernels support only NHWC, so the channels are transposed.
    for op, shape in (("SpaceToDepth", (1, 3, 4, 6)), ("DepthToSpace", (1, 8, 2, 3))):
        def nchw(x, op=op):
            function = tf.raw_ops.__dict__[op]
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                return [session.run(tf.transpose(function(input=x.transpose(0, 2, 3, 1), block_size=2), [0, 3, 1, 2]))]
        yield Case(op, [ramp(*shape)], {"block_size": 2, "data_format": "NCHW"}, ask=nchw)
    for paddings in (((0, 0), (0, 0)), ((1, 1), (2, 1))):
        yield Case("SpaceToBatchND", [ramp(2, 4, 3, 2) + 1, ints(2, 3), np.array(paddings, np.int32)])
        yield Case("BatchToSpaceND", [ramp(12, 4, 3, 2) + 1, ints(2, 3), np.array(paddings, np.int32)])
        yield Case("SpaceToBatch", [ramp(1, 4, 5 if paddings[1][0] else 6, 2) + 1, np.array(paddings, np.int32)],
                   {"block_size": 2})
        yield Case("BatchToSpace", [ramp(4, 4, 3, 2) + 1, np.array(paddings, np.int32)], {"block_size": 2})
    yield Case("SpaceToBatchND", [ramp(1, 5), ints(3), np.array([[0, 1]], np.int64)])
    yield Case("BatchToSpaceND", [ramp(3, 2), np.array([3], np.int64), np.array([[0, 1]], np.int32)])
    yield Case("SpaceToBatchND", [ramp(0, 4), ints(2), np.array([[0, 0]], np.int32)])


def indexing():
    params = ramp(3, 4, 5)
    for axis in (0, 1, 2, -1):
        yield Case("GatherV2", [params, ints(2, 0, 2), np.int32(axis)])
        yield Case("GatherV2", [params, np.array([[1, 0]], np.int64), np.int64(axis)])
    yield Case("GatherV2", [params, np.int32(1), np.int32(1)])
    yield Case("GatherV2", [params, np.zeros((0, 2), np.int32), np.int32(1)])
    yield Case("GatherV2", [params, np.array([[1, 0], [3, 3], [2, 1]], np.int32), np.int32(1)], {"batch_dims": 1})
    yield Case("GatherV2", [params, np.array([[1, 0], [4, 3], [2, 1]], np.int32), np.int32(2)], {"batch_dims": 1})
    yield Case("Gather", [params, ints(1, 1)])
    for dtype in SIZES:
        yield Case("GatherV2", [ramp(3, 2, dtype=dtype), ints(2, 1), np.int32(0)])
        yield Case("GatherV2", [ramp(3, 2, dtype=dtype), ints(1), np.int32(1)])
        yield Case("GatherNd", [ramp(3, 2, dtype=dtype), np.array([[2, 1], [0, 0]], np.int32)])
    yield Case("GatherNd", [params, np.array([[2, 1], [0, 0], [1, 3]], np.int64)])
    yield Case("GatherNd", [params, np.array([[[2]], [[0]]], np.int32)])
    yield Case("GatherNd", [params, np.zeros((2, 0), np.int32)])
    yield Case("GatherNd", [params, np.zeros((0, 2), np.int32)])
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8):
        yield Case("ScatterNd", [np.array([[1], [3], [1]], np.int32), np.array([5, 6, 7]).astype(dtype), ints(5)])
    yield Case("ScatterNd", [np.array([[1, 0], [0, 1]], np.int64), ramp(2, 3) + 1, np.array([2, 2, 3], np.int64)])
    yield Case("ScatterNd", [np.zeros((0, 1), np.int32), np.zeros((0, 2), np.float32), ints(3, 2)])


def filling():
    for dtype in SIZES + (np.bool_,):
        yield Case("Fill", [ints(2, 3), dtype(1)])
    yield Case("Fill", [np.zeros(0, np.int32), np.float32(2)])
    yield Case("Fill", [np.array([0, 4], np.int64), np.float32(2)])
    for start, limit, delta in ((0, 5, 1), (2, 9, 3), (9, 2, -3), (3, 3, 1)):
        for dtype in (np.int32, np.int64, np.float32, np.float64):
            yield Case("Range", [dtype(start), dtype(limit), dtype(delta)])
    for delta in (0.1, 0.3, 0.7):
        yield Case("Range", [np.float32(0), np.float32(1), np.float32(delta)])
    yield Case("LinSpace", [np.float32(0), np.float32(1), np.int32(7)])
    yield Case("LinSpace", [np.float64(3), np.float64(-1), np.int64(4)])
    yield Case("LinSpace", [np.float32(3), np.float32(5), np.int32(1)])
    for axis in (-1, 0, 1):
        yield Case("OneHot", [np.array([[0, 2], [-1, 3]], np.int32), np.int32(3), np.float32(5), np.float32(-1)],
                   {"axis": axis})
    yield Case("OneHot", [np.int64(1), np.int32(3), True, False])
    yield Case("OneHot", [np.array([1, 0], np.uint8), np.int32(2), np.int64(7), np.int64(0)])
    yield Case("OneHot", [np.zeros((0,), np.int32), np.int32(3), np.float32(1), np.float32(0)])
    yield Case("OneHot", [np.array([1], np.int32), np.int32(0), np.float32(1), np.float32(0)])


def cases():
    for group in (joining, slicing, permuting, padding, blocks, indexing, filling):
        yield from group()
