"""FusedBatchNorm in its three versions, BatchNormWithGlobalNormalization, BiasAdd."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def _inputs(seed, shape, channels):
    random = np.random.RandomState(seed)
    x = random.uniform(-3, 3, shape)
    return [a.astype(np.float32) for a in (x, random.uniform(0.5, 2, channels), random.uniform(-1, 1, channels),
                                           random.uniform(-1, 1, channels), random.uniform(0.1, 3, channels))]


def cases():
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        yield Case(op, _inputs(1, (2, 2, 3, 5), 5), {"is_training": False, "epsilon": 1e-3}, outputs=5)
        # Outputs from 3 on are for the gradient, and differ between TensorFlow versions.
        yield Case(op, _inputs(2, (2, 3, 2, 3), 3), {"is_training": True, "epsilon": 1e-3}, outputs=3)
    yield Case("FusedBatchNormV3", _inputs(3, (1, 2, 2, 18), 18), {"is_training": False}, outputs=5)
    yield Case("FusedBatchNormV3", _inputs(3, (0, 2, 2, 2), 2), {"is_training": False}, outputs=5)
    yield Case("FusedBatchNormV3", _inputs(4, (1, 2, 2, 2), 2), {"is_training": True, "exponential_avg_factor": 0.25},
               outputs=3)
    empty = np.zeros(0, np.float32)
    yield Case("FusedBatchNormV3", _inputs(5, (1, 3, 2, 2), 2)[:3] + [empty, empty], {"is_training": True}, outputs=3)
    yield Case("FusedBatchNormV3", _inputs(5, (1, 1, 1, 2), 2)[:3] + [empty, empty], {"is_training": True}, outputs=3)
    x, scale, offset, mean, variance = _inputs(6, (2, 3, 2, 2), 3)

    def nchw(x, scale, offset, mean, variance):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            result = tf.raw_ops.FusedBatchNormV3(x=np.transpose(x, [0, 2, 3, 1]), scale=scale, offset=offset, mean=mean,
                                                 variance=variance, is_training=False)
            return [np.transpose(session.run(result.y), [0, 3, 1, 2])]

    yield Case("FusedBatchNormV3", [x, scale, offset, mean, variance], {"is_training": False, "data_format": "NCHW"},
               ask=nchw)

    for scale_after in (False, True):
        t, gamma, beta, m, v = _inputs(7, (1, 2, 3, 4), 4)
        yield Case("BatchNormWithGlobalNormalization", [t, m, v, beta, gamma],
                   {"variance_epsilon": 1e-2, "scale_after_normalization": scale_after}, producer=8)

    random = np.random.RandomState(8)
    for shape in [(2, 3), (2, 3, 19), (1, 2, 2, 3), (1, 2, 1, 2, 3), (0, 3)]:
        yield Case("BiasAdd", [random.uniform(-2, 2, shape).astype(np.float32),
                               random.uniform(-2, 2, shape[-1]).astype(np.float32)])
    for shape in [(2, 3, 5), (2, 3, 2, 9), (1, 2, 1, 2, 3)]:
        yield Case("BiasAdd", [random.uniform(-2, 2, shape).astype(np.float32),
                               random.uniform(-2, 2, shape[1]).astype(np.float32)], {"data_format": "NCHW"})
    for dtype in (np.float64, np.float16, tf.bfloat16.as_numpy_dtype, np.int8, np.int16, np.int32, np.int64, np.uint8):
        yield Case("BiasAdd", [random.randint(0, 100, (2, 3)).astype(dtype), random.randint(0, 100, 3).astype(dtype)])
    yield Case("BiasAdd", [np.array([[2**31 - 1, 5]], np.int32), np.array([1, -7], np.int32)])
    yield Case("BiasAddV1", [random.randint(-9, 9, (2, 2, 3)).astype(np.float32), np.array([1, 2, 3], np.float32)])
