"""ResizeBilinear and ResizeNearestNeighbor."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def cases():
    random = np.random.RandomState(1)
    shapes = [((1, 3, 4, 2), (6, 8)), ((2, 5, 4, 1), (3, 7)), ((1, 7, 6, 3), (3, 2)), ((1, 1, 1, 2), (3, 2)),
              ((1, 4, 4, 1), (1, 1)), ((1, 3, 3, 1), (3, 3)), ((0, 3, 3, 1), (2, 2))]
    for op in ("ResizeBilinear", "ResizeNearestNeighbor"):
        for shape, size in shapes:
            for align_corners, half_pixel_centers in [(False, False), (True, False), (False, True)]:
                yield Case(op, [random.randint(-20, 20, shape).astype(np.float32), np.array(size, np.int32)],
                           {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers})
        for dtype in (np.uint8, np.int8, np.int16, np.int32, np.float64, np.float16, tf.bfloat16.as_numpy_dtype):
            yield Case(op, [random.randint(0, 99, (1, 2, 3, 2)).astype(dtype), np.array((3, 5), np.int32)])
    yield Case("ResizeBilinear", [np.array([np.nan, 1, np.inf, 2], np.float32).reshape(1, 2, 2, 1),
                                  np.array((3, 3), np.int32)])
