"""Complex numbers, uint64, strings and other types besides floats and small integers."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BFLOAT16 = tf.bfloat16.as_numpy_dtype
COMPLEX = (np.complex64, np.complex128)
# In all quadrants, on the axes, small and large.
POINTS = np.array([1 + 2j, -0.5 + 0.25j, -1.5 - 1j, 0.75 - 2j, 0.5, 0.25j, -2, -3j, 1e-4 + 1e-4j, 3 - 4j])
UNARY = ("Neg", "Square", "Sign", "Sqrt", "Rsqrt", "Reciprocal", "Inv", "Exp", "Expm1", "Log", "Log1p", "Sin", "Cos",
         "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Sigmoid", "Tanh")
BINARY = ("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Pow", "SquaredDifference", "DivNoNan", "MulNoNan", "Xdivy",
          "Xlogy", "Xlog1py", "RsqrtGrad", "SqrtGrad", "SigmoidGrad", "TanhGrad")


def words(*shape):
    count = int(np.prod(shape, dtype=int))
    return np.array([b"w" * (i % 4) + bytes([97 + i]) for i in range(count)], object).reshape(shape)


def ints(*values):
    return np.array(values, np.int32)


def complex_elements():
    others = np.array([2 - 1j, 0.5j, -1 + 0.25j, 3, -0.5 - 2j, 1 + 1j, -1j, 0.25, 2 + 2j, -1 + 1j])
    for dtype in COMPLEX:
        for op in UNARY:
            yield Case(op, [POINTS.astype(dtype)])
            yield Case(op, [np.zeros((0, 2), dtype)])
        for op in BINARY:
            yield Case(op, [POINTS.astype(dtype), others.astype(dtype)])
            if op.endswith("Grad"):  # TensorFlow does not broadcast these.
                continue
            yield Case(op, [POINTS[:6].reshape(2, 3).astype(dtype), others[:2].reshape(2, 1).astype(dtype)])
            yield Case(op, [np.array(1 - 2j, dtype), others[:4].astype(dtype)])
        zeros = np.array([0, 0, 2, 1j], dtype), np.array([0, 2j, 1, 2], dtype)
        for op in ("Xdivy", "Xlogy", "Xlog1py"):
            yield Case(op, [*zeros])
        for op in ("DivNoNan", "MulNoNan"):
            yield Case(op, [zeros[1], zeros[0]])
        yield Case("Sign", [np.array([0, 3 + 4j], dtype)])
        for op in ("Equal", "NotEqual"):
            yield Case(op, [POINTS[:4].reshape(2, 2).astype(dtype), np.array([1 + 2j, 0.75 - 2j], dtype)])
        yield Case("AddN", [POINTS.astype(dtype)] * 3)
        yield Case("AddN", [np.tile(POINTS[:2], 520).astype(dtype)] * 2)
        yield Case("OnesLike", [POINTS[:3].astype(dtype)])
        yield Case("Where", [np.array([[0, 1j], [2, 0]], dtype)])
        yield Case("BiasAdd", [POINTS.reshape(5, 2).astype(dtype), np.array([1j, 2], dtype)])


def complex_reductions():
    random = np.random.RandomState(6)
    for dtype in COMPLEX:
        z = (random.uniform(-1, 1, (3, 40, 2)) + 1j * random.uniform(-1, 1, (3, 40, 2))).astype(dtype)
        for op in ("Sum", "Mean", "Prod", "EuclideanNorm"):
            for axes in (ints(1), ints(0, 2), ints(), ints(0, 1, 2)):
                yield Case(op, [z[:, :7] if op == "Prod" else z, axes])
            yield Case(op, [z.reshape(-1), ints(0)]) if op != "Prod" else Case(op, [z[:0], ints(0)])
        for op in ("Cumsum", "Cumprod"):
            yield Case(op, [z[:, :5], np.int32(1)])
            yield Case(op, [z[:, :5], np.int32(1)], {"exclusive": True, "reverse": True})
        yield Case("SegmentSum", [z[:, 0], ints(0, 0, 2)])
        yield Case("UnsortedSegmentSum", [z[:, 0], ints(1, 0, 1), np.int32(2)])
        a, b = z[0, :3], z[1, :2]
        yield Case("MatMul", [a, b])
        yield Case("MatMul", [a, np.ascontiguousarray(a)], {"transpose_a": True})
        for attrs in ({"adj_x": True}, {"adj_y": True}, {"adj_x": True, "adj_y": True}):
            x, y = (z[:, :2], z[:, 2:4])
            yield Case("BatchMatMulV2", [x, y], attrs)
            yield Case("BatchMatMul", [x, y], attrs)
    yield Case("Einsum", [z[0, :3], z[1, :2]], {"equation": "ij,jk->ik"})


def casts():
    z = np.array([1.5 + 2j, -0.25 - 1j, 7, 2.75j])
    real = (np.float32, np.float64, np.float16, BFLOAT16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
            np.uint32, np.uint64)
    for dtype in COMPLEX:
        for to in real + COMPLEX:
            if to != dtype:
                yield Case("Cast", [np.abs(z.real).astype(dtype) + z.imag.astype(dtype) * dtype(1j)], {"DstT": to})
        for source in real:
            yield Case("Cast", [np.array([0, 1, 100]).astype(source)], {"DstT": dtype})
        yield Case("Cast", [np.array([True, False])], {"DstT": dtype})


def unsigned():
    big = np.array([2**64 - 1, 5, 0], np.uint64)
    other = np.array([[5], [2**63]], np.uint64)
    for op in ("AddV2", "Sub", "Mul", "Div", "FloorDiv", "FloorMod", "TruncateDiv", "Maximum", "Minimum", "Less",
               "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield Case(op, [big, other])
        yield Case(op, [big[:0], np.uint64(1)])
    yield Case("FloorDiv", [big, np.uint64(2**64 - 1)])
    yield Case("FloorMod", [big, np.uint64(2**64 - 1)])
    for op in ("LeftShift", "RightShift"):
        yield Case(op, [big, np.array([3, 63, 1], np.uint64)])
    yield Case("Square", [np.array([2**33, 3], np.uint64)])
    yield Case("AddN", [big, big])
    rows = np.array([[2**64 - 1, 7, 2**63], [1, 2**63 + 1, 9]], np.uint64)
    for op in ("Sum", "Prod", "Max", "Min", "Mean", "EuclideanNorm"):
        yield Case(op, [rows if op in ("Max", "Min", "Sum", "Prod") else rows % np.uint64(1000), ints(0)])
        yield Case(op, [rows % np.uint64(1000), ints(1)])
    for op in ("Cumsum", "Cumprod"):
        yield Case(op, [rows, np.int32(1)])
    for op in ("ArgMax", "ArgMin"):
        yield Case(op, [rows, np.int32(1)])
    for output_type in (tf.int16, tf.uint16):
        yield Case("ArgMax", [rows, np.int32(1)], {"output_type": output_type})
    yield Case("TopKV2", [rows, np.int32(2)])
    yield Case("Where", [rows - np.uint64(7)])
    yield Case("BatchMatMulV2", [np.array([[[300, -200], [7, 30000]]], np.int16),
                                 np.array([[[250, 1], [-3, 9]]], np.int16)])
    short = np.array([2, 0], np.int16)
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    yield Case("GatherV2", [table, short[1:], np.int32(1)])
    yield Case("GatherNd", [table, short.reshape(2, 1)])


def strings_and_codes():
    for op in ("Equal", "NotEqual"):
        yield Case(op, [words(2, 3), words(3)])
        yield Case(op, [words(4), np.array(b"wb", object)])
        yield Case(op, [words(0), words(1)])
        yield Case(op, [words(2), words(3)], {"incompatible_shape_error": False})
    for dtype, kind in ((np.int8, tf.qint8), (np.uint8, tf.quint8), (np.int16, tf.qint16), (np.uint16, tf.quint16),
                        (np.int32, tf.qint32)):
        for op in ("Equal", "NotEqual"):
            yield Case(op, [(np.array([7, 100, 3], dtype), kind), (np.array([[7], [3]], dtype), kind)])
    yield Case("Add", [words(2, 3), words(3)])
    yield Case("Add", [words(0, 2), words(2)])
    yield Case("Add", [np.array(b"", object), words(2, 1)])


def halves():
    random = np.random.RandomState(8)
    corners = random.randint(0, 32, (12, 4)).astype(np.float16) / 32
    scores = random.permutation(12).astype(np.float16) / 16
    half = np.float16
    for dtype in (half, BFLOAT16):
        for start, limit, delta in ((0, 30, 0.1), (3, -2, -0.75), (1, 1, 2)):
            yield Case("Range", [dtype(start), dtype(limit), dtype(delta)])
    yield Case("NonMaxSuppressionV2", [corners, scores, np.int32(9), half(0.25)])
    yield Case("NonMaxSuppressionV3", [corners, scores, np.int32(9), half(0.25), half(0.125)])
    yield Case("NonMaxSuppressionV3", [corners, scores, np.int32(9), np.float32(0.25), np.float32(0.125)])
    for pads in (False, True):
        attrs = {"pad_to_max_output_size": pads}
        yield Case("NonMaxSuppressionV4", [corners, scores, np.int32(12), half(0.125), half(0.0625)], attrs)
        for sigma in (0, 0.5):
            yield Case("NonMaxSuppressionV5", [corners, scores, np.int32(12), half(0.125), half(0.0625), half(sigma)],
                       attrs)


def doubles():
    random = np.random.RandomState(9)

    def data(*shape):
        return random.uniform(-2, 2, shape)

    attrs = {"strides": [1, 2, 1, 1], "padding": "SAME"}
    image, weights, bias = data(1, 5, 4, 3), data(3, 2, 3, 4), data(4)
    for activation in ((), ("Relu",), ("Relu6",), ("Elu",), ("LeakyRelu",)):
        yield Case("_FusedConv2D", [image, weights, bias],
                   {**attrs, "num_args": 1, "TArgs": [tf.float64], "fused_ops": ["BiasAdd", *activation],
                    "epsilon": 0., "leakyrelu_alpha": 0.25})
    for mode in ("REFLECT", "SYMMETRIC"):
        paddings = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)
        convolution = {"strides": [1, 1, 1, 1], "padding": "VALID", "mode": mode}
        yield Case("FusedPadConv2D", [image, paddings, weights], convolution)
        yield Case("FusedResizeAndPadConv2D", [image, ints(7, 6), paddings, weights],
                   {**convolution, "resize_align_corners": mode == "REFLECT"})
    channels = [np.array(x, np.float64) for x in ([1, -1, .5], [4, 1, .25], [0, 1, 2], [1, .5, -2])]
    for scales in (True, False):
        yield Case("BatchNormWithGlobalNormalization", [data(1, 3, 2, 3), *channels],
                   {"variance_epsilon": 0.125, "scale_after_normalization": scales}, producer=8)


def cases():
    yield from complex_elements()
    yield from complex_reductions()
    yield from casts()
    yield from unsigned()
    yield from strings_and_codes()
    yield from halves()
    yield from doubles()
