"""RequantizationRange, Requantize, QuantizeDownAndShrinkRange."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def _sums(seed, shape, spread):
    return (np.random.RandomState(seed).randint(-spread, spread, size=shape).astype(np.int32), tf.qint32)


def cases():
    f = np.float32
    limits = np.array([-2**31, -2**31 + 1, -2**30, -65537, -1, 0, 1, 255, 65536, 2**30, 2**31 - 2, 2**31 - 1], np.int32)
    everything = [
        ((limits, tf.qint32), -1000, 1000),
        (_sums(1, (3, 5), 2**20), -3.7e5, 3.7e5),
        (_sums(2, (2, 3, 4, 5), 2**31), -10, 3),
        (_sums(3, (17,), 5000), -1.5e6, 1.5e6),
        (_sums(4, (1,), 100), -100, 200),
        ((np.array([7, 7, 7], np.int32), tf.qint32), -50, 50),
        ((np.array([2**20, 2**30], np.int32), tf.qint32), -50, 50),
        ((np.array([-2**20, -2**30], np.int32), tf.qint32), -50, 50),
        ((np.array([0, 0], np.int32), tf.qint32), 0, 0),
        ((limits, tf.qint32), 0.5, 0.5),
        ((limits, tf.qint32), -3, -1),
        ((np.zeros((0, 2), np.int32), tf.qint32), -2, 3),
    ]
    for codes, low, high in everything:
        yield Case("RequantizationRange", [codes, f(low), f(high)], {})
        yield Case("QuantizeDownAndShrinkRange", [codes, f(low), f(high)], {"out_type": tf.quint8})
    wanted = [(-1, 1), (0, 6), (-0.003, 0.007), (-5, 0), (0, 0), (-250, 1000), (-1e-5, 3e-5)]
    for codes, low, high in everything:
        for bottom, top in wanted if codes[0].size > 3 else wanted[:2]:
            for out_type in (tf.quint8, tf.qint8):
                yield Case("Requantize", [codes, f(low), f(high), f(bottom), f(top)], {"out_type": out_type})
    # Every 8-bit step, its halves, and adjacent numbers.
    steps = np.arange(0, 256)
    for offset in (-0.5, 0, 0.5):
        exact = (steps + offset) / 255 * 2**31
        codes = np.concatenate([exact, exact - 300, exact + 300]).clip(-2**31, 2**31 - 1).astype(np.int32)
        yield Case("Requantize", [(codes, tf.qint32), f(-6), f(6), f(0), f(6)], {"out_type": tf.quint8})
