"""Counts of numbers, and combined non-maximum suppression of all classes."""

import numpy as np
from make_vectors import Case

F = np.float32


def counts():
    numbers = np.array([0, 3, 3, 9, 1, 0, 4], np.int32)
    none = np.zeros(0, np.float32)
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        weights = np.arange(7).astype(dtype) + 1
        yield Case("Bincount", [numbers, np.int32(5), np.zeros(0, dtype)])
        yield Case("Bincount", [numbers, np.int32(12), weights])
        for index in (np.int32, np.int64):
            for binary in (False, True):
                attrs = {"binary_output": binary}
                yield Case("DenseBincount", [numbers.astype(index), index(5), np.zeros(0, dtype)], attrs)
                rows = numbers[:6].reshape(2, 3).astype(index)
                yield Case("DenseBincount", [rows, index(4), np.zeros(0, dtype)], attrs)
                if not binary:
                    yield Case("DenseBincount", [rows, index(10), weights[:6].reshape(2, 3)], attrs)
                splits = np.array([0, 0, 3, 7], np.int64)
                yield Case("RaggedBincount", [splits, numbers.astype(index), index(6), np.zeros(0, dtype)], attrs)
                yield Case("SparseBincount", [np.array([[0, 1], [0, 2], [2, 0]], np.int64), numbers[:3].astype(index),
                                              np.array([3, 4], np.int64), index(4), np.zeros(0, dtype)], attrs)
        yield Case("RaggedBincount", [np.array([0, 2, 7], np.int64), numbers, np.int32(6), weights])
    yield Case("Bincount", [np.zeros((2, 0), np.int32), np.int32(3), none])
    yield Case("DenseBincount", [np.zeros((2, 0), np.int32), np.int32(3), none])
    yield Case("DenseBincount", [np.array([1, 2], np.int32), np.int32(0), none])


def suppression():
    random = np.random.RandomState(31)
    corner = random.uniform(-0.2, 0.9, (2, 30, 3, 2))
    boxes = np.concatenate([corner, corner + random.uniform(-0.2, 0.5, (2, 30, 3, 2))], 3).astype(F)
    scores = random.uniform(0, 1, (2, 30, 3)).astype(F)
    for given in (boxes, boxes[:, :, :1]):
        for per_class, total in ((5, 8), (50, 100), (2, 20)):
            for pads in (False, True):
                for clips in (False, True):
                    yield Case("CombinedNonMaxSuppression", [given, scores, np.int32(per_class), np.int32(total), F(0.4),
                                                             F(0.3)], {"pad_per_class": pads, "clip_boxes": clips})
    yield Case("CombinedNonMaxSuppression", [boxes, scores, np.int32(4), np.int32(4), F(0.4), F(2)])


def cases():
    yield from counts()
    yield from suppression()
