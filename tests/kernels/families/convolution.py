"""Conv2D, DepthwiseConv2dNative and Conv2DBackpropInput."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def numbers(seed, *shape):
    """Returns quarters in [-2, 2]: sums of their products are exact in float in any order."""
    return (np.random.RandomState(seed).randint(-8, 9, size=shape) / 4).astype(np.float32)


def _swap(op, attrs):
    """Computes NCHW by way of NHWC, the only layout of TensorFlow's CPU kernels."""
    attrs = dict(attrs, data_format="NHWC")
    for key in ("strides", "dilations"):
        if key in attrs:
            n, c, h, w = attrs[key]
            attrs[key] = [n, h, w, c]
    if attrs.get("explicit_paddings"):
        p = attrs["explicit_paddings"]
        attrs["explicit_paddings"] = p[0:2] + p[4:8] + p[2:4]

    def ask(*inputs):
        inputs = list(inputs)
        if op == "Conv2DBackpropInput":
            n, c, h, w = inputs[0]
            inputs[0] = np.array([n, h, w, c], np.int32)
            image = 2
        else:
            image = 0
        inputs[image] = np.transpose(inputs[image], [0, 2, 3, 1])
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            if op == "Conv2DBackpropInput":
                result = tf.raw_ops.Conv2DBackpropInput(
                    input_sizes=inputs[0], filter=inputs[1], out_backprop=inputs[2], **attrs)
            else:
                result = getattr(tf.raw_ops, op)(input=inputs[0], filter=inputs[1], **attrs)
            return [np.transpose(session.run(result), [0, 3, 1, 2])]

    return ask


def _conv(op, seed, image, filter_shape, strides=(1, 1), dilations=(1, 1), padding="SAME", explicit=None, nchw=False):
    attrs = {
        "strides": [1, 1, *strides] if nchw else [1, *strides, 1],
        "dilations": [1, 1, *dilations] if nchw else [1, *dilations, 1],
        "padding": padding,
        "data_format": "NCHW" if nchw else "NHWC",
    }
    if explicit:
        attrs["explicit_paddings"] = [0, 0, 0, 0, *explicit] if nchw else [0, 0, *explicit, 0, 0]
    n, h, w, c = image
    data = numbers(seed, *((n, c, h, w) if nchw else image))
    return Case(op, [data, numbers(seed + 1, *filter_shape)], attrs, ask=_swap(op, attrs) if nchw else None)


def cases():
    conv = "Conv2D"
    yield _conv(conv, 1, (1, 5, 5, 3), (3, 3, 3, 4))
    yield _conv(conv, 2, (2, 4, 6, 2), (3, 3, 2, 5), padding="VALID")
    yield _conv(conv, 3, (1, 7, 5, 2), (3, 3, 2, 3), strides=(2, 2))
    yield _conv(conv, 4, (1, 8, 8, 1), (3, 2, 1, 2), strides=(2, 3), padding="VALID")
    yield _conv(conv, 5, (1, 7, 7, 2), (3, 3, 2, 2), dilations=(2, 2))
    yield _conv(conv, 6, (1, 6, 9, 1), (2, 3, 1, 3), dilations=(1, 3), padding="VALID")
    yield _conv(conv, 7, (1, 4, 4, 2), (3, 3, 2, 3), padding="EXPLICIT", explicit=(2, 0, 1, 3))
    yield _conv(conv, 8, (2, 3, 3, 5), (1, 1, 5, 7))  # A plain matrix product.
    yield _conv(conv, 9, (1, 5, 4, 3), (1, 1, 3, 2), strides=(2, 2))
    yield _conv(conv, 10, (1, 1, 1, 3), (3, 3, 3, 2))  # The window is larger than the image.
    yield _conv(conv, 11, (0, 4, 4, 2), (3, 3, 2, 2))
    yield _conv(conv, 13, (1, 3, 3, 1), (3, 3, 1, 33))  # One more than a panel of the widest registers.
    yield _conv(conv, 14, (1, 5, 5, 3), (3, 3, 3, 4), nchw=True)
    yield _conv(conv, 15, (2, 5, 4, 2), (3, 2, 2, 3), strides=(2, 1), padding="VALID", nchw=True)
    yield _conv(conv, 16, (1, 4, 5, 2), (3, 3, 2, 3), padding="EXPLICIT", explicit=(1, 0, 0, 2), nchw=True)
    yield _conv(conv, 17, (1, 4, 4, 4), (3, 3, 2, 6))  # Two groups.
    yield _conv(conv, 18, (1, 3, 3, 4), (1, 1, 1, 4), dilations=(1, 1))  # Four groups.
    yield _conv(conv, 19, (1, 5, 5, 4), (3, 3, 2, 4), dilations=(2, 1))
    yield _conv(conv, 20, (1, 9, 9, 1), (5, 1, 1, 2), strides=(4, 4))
    yield Case(conv, [np.array([[[[np.nan], [1]], [[np.inf], [2]]]], np.float32), np.ones((1, 1, 1, 2), np.float32)],
               {"strides": [1, 1, 1, 1], "padding": "SAME"})

    def by_groups(image, filter_array, **attrs):
        """Uses Conv2D with one group per channel, because TensorFlow's depthwise kernel has no dilations."""
        h, w, c, m = filter_array.shape
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            return [session.run(tf.raw_ops.Conv2D(input=image, filter=filter_array.reshape(h, w, 1, c * m), **attrs))]

    depthwise = "DepthwiseConv2dNative"
    yield _conv(depthwise, 31, (1, 5, 5, 3), (3, 3, 3, 1))
    yield _conv(depthwise, 32, (2, 6, 5, 5), (3, 3, 5, 1), strides=(2, 2))
    yield _conv(depthwise, 33, (1, 7, 7, 3), (3, 3, 3, 1), padding="VALID")
    grouped = _conv(depthwise, 34, (1, 7, 8, 2), (3, 3, 2, 2), dilations=(2, 2))
    grouped.ask = lambda image, filter_array: by_groups(image, filter_array, **grouped.attrs)
    yield grouped
    yield _conv(depthwise, 35, (1, 4, 4, 3), (3, 3, 3, 2))
    yield _conv(depthwise, 36, (1, 4, 5, 1), (3, 2, 1, 17), padding="VALID")
    yield _conv(depthwise, 37, (1, 3, 7, 37), (3, 3, 37, 1))  # Whole registers and a rest.
    yield _conv(depthwise, 38, (1, 1, 1, 4), (5, 5, 4, 1))
    yield _conv(depthwise, 39, (0, 3, 3, 2), (3, 3, 2, 1))
    yield _conv(depthwise, 40, (1, 5, 5, 3), (3, 3, 3, 1), padding="EXPLICIT", explicit=(2, 1, 0, 3))
    yield _conv(depthwise, 41, (1, 5, 6, 3), (3, 3, 3, 2), strides=(2, 2), nchw=True)

    def transposed(seed, large, filter_shape, small, strides=(1, 1), dilations=(1, 1), padding="SAME", explicit=None,
                   nchw=False, short_sizes=False):
        case = _conv("Conv2DBackpropInput", seed, small, filter_shape, strides, dilations, padding, explicit, nchw)
        n, h, w, c = large
        sizes = [h, w] if short_sizes else [n, c, h, w] if nchw else list(large)
        case.inputs = [np.array(sizes, np.int32), case.inputs[1], case.inputs[0]]
        return case

    yield transposed(51, (1, 4, 4, 2), (3, 3, 2, 3), (1, 4, 4, 3))
    yield transposed(52, (1, 8, 6, 2), (3, 3, 2, 3), (1, 4, 3, 3), strides=(2, 2))
    yield transposed(53, (2, 7, 7, 1), (3, 3, 1, 2), (2, 3, 3, 2), strides=(2, 2), padding="VALID")
    yield transposed(54, (1, 8, 8, 2), (2, 2, 2, 5), (1, 4, 4, 5), strides=(2, 2))
    yield transposed(55, (1, 9, 7, 2), (4, 4, 2, 2), (1, 3, 3, 2), strides=(3, 3))
    yield transposed(56, (1, 5, 5, 3), (1, 1, 3, 2), (1, 3, 3, 2), strides=(2, 2))
    yield transposed(57, (0, 4, 4, 2), (3, 3, 2, 3), (0, 4, 4, 3))
    yield transposed(58, (1, 6, 5, 2), (3, 3, 2, 3), (1, 3, 4, 3), strides=(2, 1), padding="EXPLICIT",
                     explicit=(1, 1, 0, 1))

    def spread(sizes, filter_array, small):
        """Computes the definition for stride 1, dilation 2 and padding VALID, because TensorFlow's CPU kernel has no dilations."""
        large = np.zeros(sizes, np.float32)
        for dy, dx in np.ndindex(filter_array.shape[:2]):
            for y, x in np.ndindex(small.shape[1:3]):
                large[:, y + 2 * dy, x + 2 * dx] += small[:, y, x] @ filter_array[dy, dx].T
        return [large]

    dilated = transposed(59, (1, 7, 7, 2), (3, 3, 2, 2), (1, 3, 3, 2), dilations=(2, 2), padding="VALID")
    dilated.ask = spread
    yield dilated
    yield transposed(60, (1, 4, 6, 2), (3, 3, 2, 3), (1, 2, 3, 3), strides=(2, 2), nchw=True)
    yield transposed(61, (1, 4, 4, 2), (3, 3, 2, 3), (1, 4, 4, 3), short_sizes=True)
