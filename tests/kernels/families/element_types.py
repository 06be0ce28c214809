"""The element types beyond float: 16-bit floats, doubles and integers in windows and products, strings that move."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BFLOAT16 = tf.bfloat16.as_numpy_dtype
NARROW = (np.float16, BFLOAT16)


def data(seed, shape, dtype, low=-4, high=5):
    """Returns small integers, whose products and sums are exact in every type, in any order of additions."""
    return np.random.RandomState(seed).randint(low, high, size=shape).astype(dtype)


def fractions(seed, shape, dtype):
    return np.random.RandomState(seed).uniform(-1, 1, size=shape).astype(dtype)


def windows(make):
    """Yields convolutions of each kind whose images and filters are make(seed, shape)."""
    attrs = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    yield Case("Conv2D", [make(1, (1, 5, 4, 3)), make(2, (3, 3, 3, 4))], attrs)
    yield Case("Conv2D", [make(3, (2, 4, 3, 5)), make(4, (1, 1, 5, 2))], {"strides": [1, 1, 1, 1], "padding": "VALID"})
    yield Case("Conv2D", [make(5, (0, 4, 3, 5)), make(6, (1, 1, 5, 2))], {"strides": [1, 1, 1, 1], "padding": "VALID"})
    yield Case("Conv2D", [make(7, (1, 6, 7, 2)), make(8, (2, 3, 2, 3))],
               {"strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 2, 1, 1]})
    yield Case("Conv2DBackpropInput", [np.array([1, 6, 5, 2], np.int32), make(9, (3, 3, 2, 3)), make(10, (1, 3, 3, 3))],
               attrs)


def depthwise(make):
    for seed, multiplier, stride, padding in ((11, 1, 1, "SAME"), (12, 2, 2, "VALID")):
        yield Case("DepthwiseConv2dNative", [make(seed, (1, 5, 6, 3)), make(seed + 50, (3, 3, 3, multiplier))],
                   {"strides": [1, stride, stride, 1], "padding": padding})


def poolings(op, make):
    for seed, shape, size, stride, padding in ((21, (2, 5, 4, 3), 2, 2, "SAME"), (22, (1, 4, 4, 1), 3, 1, "VALID"),
                                               (23, (0, 4, 4, 2), 2, 2, "SAME")):
        yield Case(op, [make(seed, shape)],
                   {"ksize": [1, size, size, 1], "strides": [1, stride, stride, 1], "padding": padding})


def batch_norms():
    channels = [np.array(x, np.float32) for x in ([1, .5, -2], [0, 1, 2], [1, -1, .25], [4, 1, .5])]
    for dtype in NARROW:
        for op in ("FusedBatchNormV2", "FusedBatchNormV3"):
            yield Case(op, [data(31, (2, 3, 2, 3), dtype), *channels], {"is_training": False, "epsilon": 0.001},
                       outputs=1)
        yield Case("FusedBatchNormV3", [data(32, (2, 3, 2, 3), dtype), *channels[:2], np.zeros(0, np.float32),
                                        np.zeros(0, np.float32)], {"is_training": True, "epsilon": 0.001}, outputs=1)
    # Powers of 2, since TensorFlow rounds each step to 16 bits.
    channels = [np.array(x, np.float16) for x in ([1, -1, .5], [4, 1, .25], [0, 1, 2], [1, .5, -2])]
    yield Case("BatchNormWithGlobalNormalization", [data(33, (1, 3, 2, 3), np.float16), *channels],
               {"variance_epsilon": 0.0, "scale_after_normalization": True}, producer=8)


def words(*shape):
    count = int(np.prod(shape, dtype=int))
    return np.array([b"w" * (i % 4) + bytes([97 + i]) for i in range(count)], object).reshape(shape)


def ints(*values):
    return np.array(values, np.int32)


def strings():
    yield Case("Gather", [words(4), ints(3, 0, 3)])
    yield Case("GatherV2", [words(2, 3), np.array([[2, 0]], np.int64), np.int32(1)])
    yield Case("GatherNd", [words(2, 3), ints(1, 2, 0, 0).reshape(2, 2)])
    yield Case("ConcatV2", [words(2, 2), words(2, 1), np.int32(1)])
    yield Case("Concat", [np.int32(0), words(1, 2), words(2, 2)])
    yield Case("Pack", [words(2), words(2)], {"axis": 1})
    yield Case("Unpack", [words(2, 3)], {"num": 3, "axis": 1})
    yield Case("Split", [np.int32(0), words(4)], {"num_split": 2})
    yield Case("SplitV", [words(5), np.array([1, 4], np.int64), np.int32(0)], {"num_split": 2})
    yield Case("Slice", [words(3, 3), ints(1, 0), ints(2, 2)])
    yield Case("StridedSlice", [words(5), ints(4), ints(0), ints(-2)])
    yield Case("StridedSlice", [words(2, 2), ints(1), ints(2), ints(1)], {"shrink_axis_mask": 1})
    yield Case("ReverseV2", [words(2, 3), ints(1)])
    yield Case("Reverse", [words(2, 3), np.array([True, False])])
    yield Case("Transpose", [words(2, 3), ints(1, 0)])
    yield Case("Tile", [words(2, 1), ints(1, 3)])
    yield Case("Tile", [words(0), ints(2)])
    yield Case("BroadcastTo", [words(2, 1), ints(2, 3)])
    yield Case("Pad", [words(2), ints(1, 2).reshape(1, 2)])
    yield Case("PadV2", [words(2), ints(1, 0).reshape(1, 2), np.array(b"-", object)])
    yield Case("MirrorPad", [words(3), ints(1, 1).reshape(1, 2)], {"mode": "REFLECT"})
    yield Case("Fill", [ints(2, 2), np.array(b"x", object)])
    yield Case("ZerosLike", [words(2)])
    yield Case("OneHot", [ints(1, 0, 5), np.int32(2), np.array(b"on", object), np.array(b"off", object)])
    yield Case("Select", [np.array([True, False]), words(2), words(2)[::-1]])
    yield Case("SelectV2", [np.array([[True], [False]]), words(2), np.array(b"no", object)])
    yield Case("SpaceToDepth", [words(1, 2, 2, 1)], {"block_size": 2})
    yield Case("DepthToSpace", [words(1, 1, 1, 4)], {"block_size": 2})


def cases():
    for dtype in NARROW:
        yield from windows(lambda seed, shape: data(seed, shape, dtype))
        yield from windows(lambda seed, shape: fractions(seed, shape, dtype))
        # No fractions here: TensorFlow rounds each sum of a depthwise convolution to 16 bits, we round the last.
        yield from depthwise(lambda seed, shape: data(seed, shape, dtype))
    yield from windows(lambda seed, shape: fractions(seed, shape, np.float64))
    yield from depthwise(lambda seed, shape: fractions(seed, shape, np.float64))
    yield from windows(lambda seed, shape: data(seed, shape, np.int32, -2**30, 2**30))
    for dtype in NARROW + (np.float64,):
        yield from poolings("AvgPool", lambda seed, shape: fractions(seed, shape, dtype))
        yield from poolings("MaxPool", lambda seed, shape: fractions(seed, shape, dtype))
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16):
        limits = np.iinfo(dtype)
        yield from poolings("MaxPool", lambda seed, shape: np.random.RandomState(seed).randint(
            limits.min, limits.max, size=shape, dtype=dtype))
    yield from batch_norms()
    yield from strings()
