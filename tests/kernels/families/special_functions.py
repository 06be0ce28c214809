"""Special functions of one input."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

INF, NAN = np.inf, np.nan
INPUTS = {
    "Lgamma": [0.25, 0.5, 1, 1.5, 2, 3, 10.25, 100, -0.5, -1.5, -7.25, 0, -2, INF, NAN],
    "Digamma": [0.25, 0.5, 1, 1.5, 2, 3, 10.25, 100, -0.5, -1.25, -7.25, 1e-3, INF, NAN],
    "Erfinv": [0, 0.125, -0.125, 0.5, -0.75, 0.9375, 0.9990234375, -1, 1, 2, NAN],
    "Ndtri": [0, 0.0009765625, 0.125, 0.25, 0.5, 0.75, 0.984375, 0.9990234375, 1, 2, -1, NAN],
    "BesselI0e": [0, 0.125, -0.125, 1, 2.5, -7.5, 8, 9, 40, 59.5, 64, 500, -1024, NAN],
    "BesselI1e": [0, 0.0009765625, 0.125, -0.125, 1, 2.5, -7.5, 8, 9, 40, 59.5, 64, 500, -1024, NAN],
}


def cases():
    for op, values in INPUTS.items():
        for dtype in (np.float32, np.float64) + (() if op in ("Erfinv", "Ndtri") else (np.float16,)):
            yield Case(op, [np.array(values).astype(dtype)])
        yield Case(op, [np.zeros((0, 2), np.float32)])
