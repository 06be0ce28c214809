"""FusedPadConv2D, FusedResizeAndPadConv2D, _FusedConv2D, _FusedDepthwiseConv2dNative and _FusedMatMul."""

import numpy as np
import tensorflow as tf
from families.convolution import numbers
from make_vectors import Case

ACTIVATIONS = {
    "Relu": tf.nn.relu, "Relu6": tf.nn.relu6, "Elu": tf.nn.elu, "Tanh": tf.tanh, "Sigmoid": tf.sigmoid,
    "LeakyRelu": lambda x: tf.nn.leaky_relu(x, 0.25),
}


def _composed(attrs, product):
    """What TensorFlow's fused CPU kernels lack (they have no groups, no NCHW, and Tanh and Sigmoid only for MatMul; the
    depthwise one has no CPU kernel at all) in its separate ops. `product` makes the convolution from image and filter."""

    def ask(image, weights, *args):
        nchw = attrs.get("data_format") == "NCHW"
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            image = np.transpose(image, [0, 2, 3, 1]) if nchw else image
            result = product(image, weights)
            if attrs["fused_ops"][0] == "BiasAdd":
                result = tf.nn.bias_add(result, args[0])
            else:
                scale, offset, mean, variance = args
                result = tf.nn.batch_normalization(result, mean, variance, offset, scale, attrs["epsilon"])
            for name in attrs["fused_ops"][1:]:
                result = ACTIVATIONS[name](result)
            result = session.run(result)
            return [np.transpose(result, [0, 3, 1, 2]) if nchw else result]

    return ask


def _args(seed, channels, fused_ops):
    if fused_ops[0] == "BiasAdd":
        return [numbers(seed, channels)]
    return [numbers(seed, channels), numbers(seed + 1, channels), numbers(seed + 2, channels),
            np.abs(numbers(seed + 3, channels)) + np.float32(0.25)]


def _fused(op, seed, image, filter_shape, *fused_ops, strides=(1, 1), dilations=(1, 1), padding="SAME", explicit=None,
           nchw=False, product=None):
    attrs = {
        "strides": [1, 1, *strides] if nchw else [1, *strides, 1],
        "dilations": [1, 1, *dilations] if nchw else [1, *dilations, 1],
        "padding": padding,
        "data_format": "NCHW" if nchw else "NHWC",
        "fused_ops": list(fused_ops),
        "epsilon": 0.5,
        "leakyrelu_alpha": 0.25,
    }
    if explicit:
        attrs["explicit_paddings"] = [0, 0, *explicit, 0, 0]
    n, h, w, c = image
    channels = filter_shape[3] if op == "_FusedConv2D" else filter_shape[2] * filter_shape[3]
    args = _args(seed + 2, channels, fused_ops)
    attrs["num_args"] = len(args)
    if op == "_FusedConv2D":
        attrs.update(TArgs=[tf.float32] * len(args), num_host_args=0)
    if product is None and op == "_FusedDepthwiseConv2dNative":
        # By groups, which have dilations too.
        product = lambda data, weights: tf.raw_ops.Conv2D(
            input=data, filter=weights.reshape(weights.shape[0], weights.shape[1], 1, -1), strides=[1, *strides, 1],
            dilations=[1, *dilations, 1], padding=padding)
    data = numbers(seed, *((n, c, h, w) if nchw else image))
    return Case(op, [data, numbers(seed + 1, *filter_shape), *args], attrs,
                ask=_composed(attrs, product) if product else None)


def _matmul(seed, m, k, n, *fused_ops, dtype=np.float32, transpose_a=False, transpose_b=False):
    a, b = numbers(seed, *((k, m) if transpose_a else (m, k))), numbers(seed + 1, *((n, k) if transpose_b else (k, n)))
    return Case("_FusedMatMul", [x.astype(dtype) for x in [a, b, numbers(seed + 2, n)]], {
        "fused_ops": list(fused_ops), "num_args": 1, "transpose_a": transpose_a, "transpose_b": transpose_b,
        "leakyrelu_alpha": 0.25})


def _padded(seed, image, filter_shape, margins, mode="REFLECT", strides=(1, 1), padding="VALID"):
    top, bottom, left, right = margins
    paddings = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
    return Case("FusedPadConv2D", [numbers(seed, *image), paddings, numbers(seed + 1, *filter_shape)],
                {"mode": mode, "strides": [1, *strides, 1], "padding": padding})


def _by_image(case):
    """Computes the images one by one, because TensorFlow 2.21 computes only the first image of a batch correctly."""

    def ask(images, *rest):
        op = getattr(tf.raw_ops, case.op)
        names = ["size", "paddings", "filter"][-len(rest):]
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            results = [op(input=image[np.newaxis], **dict(zip(names, rest)), **case.attrs) for image in images]
            return [np.concatenate(session.run(results))]

    case.ask = ask
    return case


def _resized(seed, image, size, filter_shape, margins, align_corners=False, **rest):
    case = _padded(seed, image, filter_shape, margins, **rest)
    case.op = "FusedResizeAndPadConv2D"
    case.inputs = [case.inputs[0], np.array(size, np.int32), *case.inputs[1:]]
    case.attrs["resize_align_corners"] = align_corners
    return case


def cases():
    conv = "_FusedConv2D"
    for i, name in enumerate([None, "Relu", "Relu6", "Elu", "LeakyRelu"]):
        behind = [name] if name else []
        yield _fused(conv, 10 + i, (1, 4, 4, 3), (3, 3, 3, 4), "BiasAdd", *behind)
        yield _fused(conv, 20 + i, (1, 4, 4, 3), (3, 2, 3, 4), "FusedBatchNorm", *behind, padding="VALID")
        yield _matmul(30 + i, 2, 5, 3, "BiasAdd", *behind)
    plain = lambda data, weights: tf.nn.conv2d(data, weights, 1, "SAME")
    for i, name in enumerate(["Tanh", "Sigmoid"]):
        yield _fused(conv, 40 + i, (1, 4, 4, 3), (3, 3, 3, 4), "BiasAdd", name, product=plain)
        yield _fused(conv, 42 + i, (1, 4, 4, 2), (1, 1, 2, 3), "FusedBatchNorm", name, product=plain)
        yield _matmul(44 + i, 2, 5, 3, "BiasAdd", name)
    yield _fused(conv, 50, (2, 7, 5, 2), (3, 3, 2, 3), "BiasAdd", "Relu", strides=(2, 1))
    yield _fused(conv, 51, (1, 7, 7, 2), (3, 3, 2, 2), "BiasAdd", "Relu6", dilations=(2, 2))
    yield _fused(conv, 52, (1, 4, 4, 2), (3, 3, 2, 3), "BiasAdd", "Elu", padding="EXPLICIT", explicit=(2, 0, 1, 3))
    yield _fused(conv, 53, (0, 4, 4, 2), (3, 3, 2, 3), "BiasAdd", "Relu")
    yield _fused(conv, 54, (1, 5, 4, 3), (1, 1, 3, 33), "BiasAdd", "Relu")  # More than a panel of the widest registers.
    yield _fused(conv, 55, (1, 5, 5, 2), (5, 5, 2, 3), "BiasAdd", padding="VALID")  # One pixel.
    yield _fused(conv, 56, (1, 4, 3, 2), (3, 3, 2, 3), "FusedBatchNorm", "Relu", nchw=True, product=plain)
    yield _fused(conv, 57, (1, 4, 4, 4), (3, 3, 2, 6), "BiasAdd", "LeakyRelu", product=plain)  # Two groups.
    special = _fused(conv, 58, (1, 2, 2, 1), (1, 1, 1, 2), "BiasAdd", "Relu", product=plain)
    special.inputs[0] = np.array([[[[np.nan], [1]], [[np.inf], [-np.inf]]]], np.float32)
    yield special

    depthwise = "_FusedDepthwiseConv2dNative"
    for i, name in enumerate([None, *ACTIVATIONS]):
        yield _fused(depthwise, 60 + i, (1, 4, 4, 3), (3, 3, 3, 1), "BiasAdd", *([name] if name else []))
    yield _fused(depthwise, 70, (2, 5, 4, 2), (3, 2, 2, 2), "FusedBatchNorm", "Relu6", strides=(2, 2))
    yield _fused(depthwise, 71, (1, 7, 8, 2), (3, 3, 2, 1), "BiasAdd", "Relu", dilations=(2, 2), padding="VALID")
    yield _fused(depthwise, 72, (1, 4, 5, 3), (3, 3, 3, 1), "BiasAdd", "Relu", nchw=True)
    yield _fused(depthwise, 73, (0, 4, 4, 2), (3, 3, 2, 1), "BiasAdd")

    yield _matmul(80, 3, 4, 2, "BiasAdd", "Relu", transpose_a=True)
    yield _matmul(81, 3, 4, 5, "BiasAdd", transpose_b=True)
    yield _matmul(82, 0, 3, 4, "BiasAdd", "Relu")
    yield _matmul(83, 2, 7, 37, "BiasAdd", "Relu")
    yield _matmul(84, 2, 5, 3, "BiasAdd", "Relu6", dtype=np.float16)
    yield _matmul(85, 2, 5, 3, "BiasAdd", dtype=tf.bfloat16.as_numpy_dtype)

    yield _padded(90, (1, 5, 5, 3), (3, 3, 3, 2), (1, 1, 2, 1))
    yield _padded(91, (1, 4, 5, 2), (3, 3, 2, 2), (4, 1, 0, 5), mode="SYMMETRIC")
    yield _by_image(_padded(92, (2, 5, 4, 2), (3, 3, 2, 2), (3, 2, 1, 3), strides=(2, 2), padding="SAME"))
    yield _padded(93, (1, 3, 3, 1), (2, 3, 1, 2), (0, 0, 0, 0), strides=(1, 2))
    yield _padded(94, (1, 1, 1, 2), (1, 1, 2, 2), (1, 1, 1, 1), mode="SYMMETRIC")
    infinite = _padded(95, (1, 2, 2, 1), (1, 1, 1, 1), (1, 0, 0, 1), padding="SAME")
    infinite.inputs[0] = np.array([[[[np.inf], [1]], [[np.nan], [-np.inf]]]], np.float32)
    yield infinite
    yield _resized(100, (1, 3, 4, 2), (6, 8), (3, 3, 2, 2), (1, 1, 1, 1))
    yield _resized(101, (1, 3, 4, 2), (7, 5), (3, 3, 2, 2), (0, 2, 1, 0), align_corners=True, mode="SYMMETRIC")
    yield _by_image(_resized(102, (2, 7, 6, 1), (4, 3), (2, 2, 1, 3), (3, 0, 0, 2), strides=(2, 1), padding="SAME"))
    yield _resized(103, (1, 4, 4, 1), (1, 1), (1, 1, 1, 1), (0, 0, 0, 0), align_corners=True)
