"""The recurrent cells of TensorFlow 1 that are one op, and the greedy decoder that follows them in speech models."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

BATCH, INPUTS, CELLS = 2, 3, 2


def lstm_inputs(state, x_shape, dtype):
    # TensorFlow rounds halves after each step of the computation, kernels here once: small numbers, one step in time.
    most = 2 if dtype == np.float32 else 0.5
    draw = lambda *shape: state.uniform(-most, most, shape).astype(dtype)
    return [draw(*x_shape), draw(BATCH, CELLS), draw(BATCH, CELLS), draw(INPUTS + CELLS, 4 * CELLS), draw(CELLS),
            draw(CELLS), draw(CELLS), draw(4 * CELLS)]


def cells():
    state = np.random.RandomState(1)
    for dtype in (np.float32, np.float16):
        for peephole, clip in ((False, 0.0), (True, 3.0), (False, 0.25)):
            attrs = {"cell_clip": clip, "use_peephole": peephole}
            yield Case("LSTMBlockCell", lstm_inputs(state, (BATCH, INPUTS), dtype), {**attrs, "forget_bias": 1.0})
            steps = 4 if dtype == np.float32 else 1
            sequence = [np.int64(steps)] + lstm_inputs(state, (steps, BATCH, INPUTS), dtype)
            yield Case("BlockLSTM", sequence, {**attrs, "forget_bias": 0.5})
            yield Case("BlockLSTMV2", sequence, attrs)
    draw = lambda *shape: state.uniform(-2, 2, shape).astype(np.float32)
    for batch in (1, 2):
        yield Case("GRUBlockCell", [draw(batch, INPUTS), draw(batch, CELLS), draw(INPUTS + CELLS, 2 * CELLS),
                                    draw(INPUTS + CELLS, CELLS), draw(2 * CELLS), draw(CELLS)])


def decoders():
    state = np.random.RandomState(2)
    for dtype in (np.float32, np.float64):
        for merges in (False, True):
            for blank in (-1, 0):
                yield Case("CTCGreedyDecoder", [state.randn(8, 2, 3).astype(dtype), np.array([8, 5], np.int32)],
                           {"merge_repeated": merges, "blank_index": blank})
    yield Case("CTCGreedyDecoder", [state.randn(3, 2, 2).astype(np.float32), np.array([0, 0], np.int32)])


def cases():
    yield from cells()
    yield from decoders()
