"""CropAndResize and ResizeBicubic."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def crops():
    random = np.random.RandomState(2)
    image = random.randint(-20, 20, (2, 5, 4, 3)).astype(np.float32)
    boxes = np.array([[0, 0, 1, 1], [.2, .1, .7, .9], [.9, .8, .1, .2], [-.3, .5, .4, 1.4], [.5, .5, .5, .5]], np.float32)
    numbers = np.array([0, 1, 1, 0, 1], np.int32)
    for method in ("bilinear", "nearest"):
        for size in ((3, 4), (1, 1), (1, 5), (7, 1)):
            yield Case("CropAndResize", [image, boxes, numbers, np.array(size, np.int32)], {"method": method})
    yield Case("CropAndResize", [image, boxes, numbers, np.array((2, 3), np.int32)], {"extrapolation_value": -7.5})
    yield Case("CropAndResize", [image, boxes[:0], numbers[:0], np.array((2, 3), np.int32)])
    for dtype in (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.float16, np.float64):
        yield Case("CropAndResize", [random.randint(0, 99, (1, 3, 3, 2)).astype(dtype), boxes[1:2],
                                     np.array([0], np.int32), np.array((2, 3), np.int32)])


def bicubic():
    random = np.random.RandomState(3)
    shapes = [((1, 3, 4, 3), (6, 8)), ((2, 5, 4, 1), (3, 7)), ((1, 7, 6, 2), (3, 2)), ((1, 1, 1, 2), (3, 2)),
              ((1, 4, 4, 1), (1, 1)), ((1, 3, 3, 1), (3, 3)), ((0, 3, 3, 1), (2, 2)), ((1, 4, 5, 4), (9, 11))]
    for shape, size in shapes:
        for align_corners, half_pixel_centers in [(False, False), (True, False), (False, True)]:
            yield Case("ResizeBicubic", [random.randint(-20, 20, shape).astype(np.float32), np.array(size, np.int32)],
                       {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers})
    for dtype in (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.float64, np.float16,
                  tf.bfloat16.as_numpy_dtype):
        yield Case("ResizeBicubic", [random.randint(0, 99, (1, 2, 3, 2)).astype(dtype), np.array((3, 5), np.int32)])


def cases():
    yield from crops()
    yield from bicubic()
