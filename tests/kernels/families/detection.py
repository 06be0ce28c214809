"""All versions of non-maximum suppression, LRN, SparseToDense."""

import numpy as np
from make_vectors import Case

F = np.float32


def _boxes(seed, count):
    random = np.random.RandomState(seed)
    corner = random.uniform(0, 1, (count, 2))
    size = random.uniform(-0.3, 0.5, (count, 2))  # Some have their corners the other way round.
    return np.concatenate([corner, corner + size], 1).astype(F), random.uniform(-0.2, 1, count).astype(F)


def cases():
    boxes, scores = _boxes(1, 40)
    few, equal = _boxes(2, 7)[0], np.full(7, 0.5, F)
    none = np.zeros((0, 4), F), np.zeros(0, F)
    flat = np.array([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1]], F), np.array([3, 2, 1], F)
    for threshold in (0.0, 0.3, 1.0):
        yield Case("NonMaxSuppression", [boxes, scores, np.int32(12)], {"iou_threshold": threshold})
        yield Case("NonMaxSuppressionV2", [boxes, scores, np.int32(50), F(threshold)])
        yield Case("NonMaxSuppressionV3", [boxes, scores, np.int32(12), F(threshold), F(0.2)])
    for inputs in ((few, equal), none, flat):
        yield Case("NonMaxSuppressionV3", [*inputs, np.int32(5), F(0.5), F(-np.inf)])
        yield Case("NonMaxSuppressionV3", [*inputs, np.int32(0), F(0.5), F(0)])
    for pad in (False, True):
        attrs = {"pad_to_max_output_size": pad}
        yield Case("NonMaxSuppressionV4", [boxes, scores, np.int32(30), F(0.3), F(0.4)], attrs)
        yield Case("NonMaxSuppressionV4", [*none, np.int32(3), F(0.3), F(0.4)], attrs)
        for sigma in (0.0, 0.5, 5.0):
            yield Case("NonMaxSuppressionV5", [boxes, scores, np.int32(20), F(0.4), F(0.1), F(sigma)], attrs)
        yield Case("NonMaxSuppressionV5", [few, equal, np.int32(9), F(0.9), F(0.3), F(0.2)], attrs)

    random = np.random.RandomState(3)
    for shape in ((1, 2, 3, 7), (2, 1, 1, 1), (1, 1, 1, 20), (0, 2, 2, 3)):
        x = random.uniform(-4, 4, shape).astype(F)
        yield Case("LRN", [x], {})
        yield Case("LRN", [x], {"depth_radius": 2, "bias": 0.5, "alpha": 0.1, "beta": 0.75})
        yield Case("LRN", [x], {"depth_radius": 0, "bias": 2.0, "alpha": 0.25, "beta": 1.0})
    yield Case("LRN", [random.uniform(-2, 2, (1, 2, 2, 6)).astype(np.float16)], {"depth_radius": 1, "beta": 0.5})

    for index in (np.int32, np.int64):
        places = np.array([[0, 1], [1, 0], [2, 3]], index)
        shape = np.array([3, 4], index)
        for dtype in (np.float32, np.int32, np.uint8, np.bool_):
            yield Case("SparseToDense", [places, shape, np.array([1, 0, 1], dtype), np.array(1, dtype)], {})
        yield Case("SparseToDense", [np.array([1, 3], index), np.array([5], index), F(2), F(-1)], {})
        yield Case("SparseToDense", [index(2), np.array([4], index), F(2), F(0)], {})
        yield Case("SparseToDense", [np.zeros((0, 2), index), shape, np.zeros(0, F), F(7)], {})
        yield Case("SparseToDense", [places[[2, 0, 2]], shape, np.array([1, 2, 3], F), F(0)], {"validate_indices": False})
    yield Case("SparseToDense", [np.array([[0], [2]], np.int32), np.array([3], np.int32), np.array([b"a", b"bc"], object),
                                 np.array(b"-", object)], {})
