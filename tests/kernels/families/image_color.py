"""Colours: between RGB and HSV, and adjustments of hue, saturation and contrast."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def cases():
    random = np.random.RandomState(11)
    corners = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1],
                        [0.5, 0.5, 0.5], [0.2, 0.2, 0.9]])
    for dtype in (np.float32, np.float64, np.float16, tf.bfloat16.as_numpy_dtype):
        for op in ("RGBToHSV", "HSVToRGB"):
            yield Case(op, [random.uniform(0, 1, (2, 5, 3)).astype(dtype)])
            yield Case(op, [corners.astype(dtype)])
    yield Case("RGBToHSV", [np.zeros((0, 3), np.float32)])
    images = random.uniform(0, 1, (2, 3, 4, 3)).astype(np.float32)
    for delta in (0.0, 0.3, -0.9, 2.5):
        yield Case("AdjustHue", [images, np.float32(delta)])
    yield Case("AdjustHue", [corners.reshape(1, 2, 5, 3).astype(np.float32), np.float32(0.1)])
    for scale in (0.0, 0.4, 1.7, 30.0):
        yield Case("AdjustSaturation", [images, np.float32(scale)])
    yield Case("AdjustSaturation", [corners.reshape(2, 5, 3).astype(np.float32), np.float32(0.5)])
    for factor in (0.0, 0.5, 2.0, -1.0):
        yield Case("AdjustContrastv2", [images, np.float32(factor)])
    yield Case("AdjustContrastv2", [random.uniform(0, 255, (5, 7, 1)).astype(np.float32), np.float32(1.3)])
