"""Numbers and sizes of dimensions, brought from one data format to another."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

PAIRS = (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"), ("NDHWC", "NCDHW"))


def cases():
    for dtype in (np.int32, np.int64):
        for source, target in PAIRS:
            formats, rank = {"src_format": source, "dst_format": target}, len(source)
            yield Case("DataFormatDimMap", [np.arange(-rank, rank, dtype=dtype).reshape(2, rank)], formats)
            for size in (rank, rank - 2):
                yield Case("DataFormatVecPermute", [np.arange(7, 7 + size, dtype=dtype)], formats)
                yield Case("DataFormatVecPermute", [np.arange(2 * size, dtype=dtype).reshape(size, 2)], formats)
    yield Case("DataFormatDimMap", [np.int32(3)])
    yield Case("DataFormatDimMap", [np.zeros((0, 2), np.int32)])
