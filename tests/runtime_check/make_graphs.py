#!/usr/bin/env python3
"""Records the outputs of TensorFlow for whole graphs with branches, loops, calls and state, for graphs_test.cc.

    python3 tests/runtime_check/make_graphs.py [case ...]      (needs TensorFlow and Keras)

Each function below with @case gives one file graphs/<case>.pb: a GraphDef as a tool would be given it, and with it what was
fed and what came out, as constants that nothing reads:
    recorded/<run>/in/<i>    attribute _tensor: the name of the tensor that was fed
    recorded/<run>/out/<i>   attribute _tensor: the name of the tensor that was fetched
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

v1 = tf.compat.v1
HERE = pathlib.Path(__file__).resolve().parent
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Model:
    """A GraphDef, the names of its outputs, the inputs of each run, and the ops that TensorFlow must run first."""

    def __init__(self, graph, outputs, runs, init=None):
        self.graph, self.outputs, self.runs, self.init = graph, outputs, runs, init


def floats(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def build_v1(build, runs, functional=False):
    """Returns the graph that `build` creates with its outputs; control flow is lowered, as in TensorFlow 1."""
    v1.disable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default():
        if functional:
            v1.enable_control_flow_v2()
        v1.set_random_seed(7)
        outputs = build()
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        names = [output.name for output in outputs]
        definition = graph.as_graph_def()
        if v1.global_variables():
            with v1.Session(graph=graph) as session:
                session.run(v1.global_variables_initializer())
                definition = v1.graph_util.convert_variables_to_constants(
                    session, definition, [name.split(":")[0] for name in names])
        v1.disable_control_flow_v2()
    return Model(strip(definition), names, runs)


def freeze_v2(function, specs, runs, lower):
    """Returns a tf.function frozen as in TensorFlow 2."""
    concrete = tf.function(function).get_concrete_function(*specs)
    frozen = convert_to_constants.convert_variables_to_constants_v2(concrete, lower_control_flow=lower)
    inputs = [tensor.name for tensor in frozen.inputs if tensor.dtype != tf.resource]
    outputs = [tensor.name for tensor in frozen.outputs]
    named = [dict(zip(inputs, run)) for run in runs]
    return Model(strip(frozen.graph.as_graph_def()), outputs, named)


def strip(definition):
    """Removes fields that no runtime reads, which are most of the bytes."""
    for nodes in [definition.node] + [function.node_def for function in definition.library.function]:
        for node in nodes:
            node.ClearField("experimental_debug_info")
            for key in [key for key in node.attr if key.startswith("_") and key not in (
                    "_lower_using_switch_merge", "_num_original_outputs")]:
                del node.attr[key]
    for function in definition.library.function:
        function.ClearField("arg_attr")
        for key in list(function.attr):
            del function.attr[key]
    return definition


# --- Branches and loops of TensorFlow 1 -------------------------------------------------------------------------------


@case
def branches():
    def build():
        p = v1.placeholder(tf.bool, [], "p")
        q = v1.placeholder(tf.bool, [], "q")
        x = v1.placeholder(tf.float32, [None], "x")
        constants = v1.cond(p, lambda: tf.constant([1.0, 2.0]), lambda: tf.constant([3.0]))
        nested = v1.cond(p, lambda: v1.cond(q, lambda: x * 2, lambda: x + 10), lambda: tf.reduce_sum(x, keepdims=True))
        weights = tf.constant(floats(1, 3, 2))
        product = v1.cond(q, lambda: tf.matmul(tf.reshape(x, [1, 3]), weights), lambda: tf.zeros([1, 2]))
        after = tf.concat([constants, nested * 3, tf.reshape(product, [2])], 0)
        _, index = tf.raw_ops.Merge(inputs=list(tf.raw_ops.Switch(data=x, pred=p)))
        return [tf.identity(constants, "constants"), tf.identity(nested, "nested"), tf.identity(after, "after"), index]
    x = np.array([1, -2, 3], np.float32)
    return build_v1(build, [{"p:0": np.array(p), "q:0": np.array(q), "x:0": x}
                            for p in (True, False) for q in (True, False)])


@case
def loops():
    def build():
        n = v1.placeholder(tf.int32, [], "n")
        x = v1.placeholder(tf.float32, [None], "x")
        # Nested, the inner one as long as the outer has come.
        def inner(i, total):
            return v1.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + x * tf.cast(j, tf.float32)), [0, total])[1]
        nested = v1.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, inner(i, t)), [0, x])[1]
        # The variables change places.
        swapped = v1.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a), [0, x, -x])
        # The shape grows.
        grown = v1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.concat([a, a[:1] + 1], 0)), [0, x],
                              shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])[1]
        # A branch in a loop, and a loop in a branch.
        branch = v1.while_loop(lambda i, a: i < n,
                               lambda i, a: (i + 1, v1.cond(tf.equal(i % 2, 0), lambda: a + 1, lambda: a * 2)), [0, x])[1]
        loop_in_branch = v1.cond(n > 2, lambda: v1.while_loop(
            lambda i, a: i < n, lambda i, a: (i + 1, a * a), [0, x])[1], lambda: x - 1)
        # Constants, and the order required by a control input.
        def body(i, a):
            with tf.control_dependencies([tf.constant(1.0) + a[0]]):
                return i + 1, a + tf.matmul(tf.reshape(a, [1, -1]), tf.ones([tf.size(a), 1]))[0, 0] * 0.5
        weighted = v1.while_loop(lambda i, a: i < n, body, [tf.constant(0), x])[1]
        return [tf.identity(t, name) for t, name in [
            (nested, "nested"), (swapped[1], "swapped"), (grown, "grown"), (branch, "branch"),
            (loop_in_branch, "loop_in_branch"), (weighted, "weighted"), (swapped[0], "count")]]
    return build_v1(build, [{"n:0": np.int32(n), "x:0": floats(n, 2 + n % 2)} for n in (0, 1, 2, 5)])


# --- Arrays and recurrent networks of TensorFlow 1 ---------------------------------------------------------------------


@case
def arrays():
    def build():
        x = v1.placeholder(tf.float32, [None, 2], "x")
        n = tf.shape(x)[0]
        mapped = v1.map_fn(lambda row: row * 2 + 1, x)
        scanned = v1.scan(lambda total, row: total + row, x, initializer=tf.zeros([2]))
        folded = v1.foldl(lambda total, row: total * 0.5 + row, x, initializer=tf.ones([2]))
        array = v1.TensorArray(tf.float32, size=n, clear_after_read=False, infer_shape=False, element_shape=[None, 2])
        _, array = v1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, x[:i + 1])), [0, array])
        joined = array.concat()
        last = array.read(n - 1)
        size = array.size()
        split = v1.TensorArray(tf.float32, size=2, infer_shape=False).split(x, tf.stack([1, n - 1]))
        unset = v1.TensorArray(tf.float32, size=3, element_shape=[2]).write(1, [5.0, 6.0]).stack()
        grows = v1.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2]).unstack(x)
        grows = grows.write(grows.size(), [7.0, 8.0]).gather([0, n])
        return [tf.identity(t, name) for t, name in [
            (mapped, "mapped"), (scanned, "scanned"), (folded, "folded"), (joined, "joined"), (last, "last"),
            (size, "size"), (split.read(1), "split"), (unset, "unset"), (grows, "grows")]]
    return build_v1(build, [{"x:0": floats(n, n, 2)} for n in (1, 4, 3)])


@case
def dynamic_rnn():
    def build():
        x = v1.placeholder(tf.float32, [None, None, 3], "x")
        lengths = v1.placeholder(tf.int32, [None], "lengths")
        kernel = tf.constant(floats(3, 3 + 4, 16))
        bias = tf.constant(floats(4, 16))
        batch, time = tf.shape(x)[0], tf.shape(x)[1]
        # As tf.nn.dynamic_rnn writes it, which needs a Keras that is gone.
        inputs = v1.TensorArray(tf.float32, size=time, element_shape=[None, 3]).unstack(tf.transpose(x, [1, 0, 2]))
        outputs = v1.TensorArray(tf.float32, size=time, element_shape=[None, 4])

        def step(t, outputs, c, h):
            gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs.read(t), h], 1), kernel), bias)
            i, j, f, o = tf.split(gates, 4, 1)
            new_c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            new_h = tf.tanh(new_c) * tf.sigmoid(o)
            done = tf.greater_equal(t, lengths)
            outputs = outputs.write(t, v1.where(done, tf.zeros_like(h), new_h))
            return t + 1, outputs, v1.where(done, c, new_c), v1.where(done, h, new_h)

        zeros = tf.zeros(tf.stack([batch, 4]))
        _, outputs, _, h = v1.while_loop(lambda t, *_: t < time, step, [0, outputs, zeros, zeros], swap_memory=True)
        return [tf.transpose(outputs.stack(), [1, 0, 2], "outputs"), tf.identity(h, "state")]
    return build_v1(build, [
        {"x:0": floats(1, 2, 5, 3), "lengths:0": np.array([5, 3], np.int32)},
        {"x:0": floats(2, 1, 2, 3), "lengths:0": np.array([0], np.int32)},
        {"x:0": floats(2, 3, 9, 3), "lengths:0": np.array([9, 1, 4], np.int32)}])


# --- Functions of TensorFlow 2 ----------------------------------------------------------------------------------------


def recurrent(layer, lower):
    tf.keras.utils.set_random_seed(5)
    model = tf.keras.Sequential([tf.keras.layers.Input([None, 3]), layer(), tf.keras.layers.Dense(2)])
    return freeze_v2(lambda x: model(x), [tf.TensorSpec([None, None, 3], tf.float32)],
                     [[floats(1, 2, 5, 3)], [floats(2, 1, 1, 3)], [floats(3, 3, 7, 3)]], lower)


def lstm():
    return tf.keras.layers.LSTM(4, return_sequences=True)


def two_lstms():
    return tf.keras.layers.Bidirectional(lstm())


def gru():
    return tf.keras.layers.GRU(4, return_sequences=False)


@case
def keras_lstm_lowered():
    return recurrent(lstm, True)


@case
def keras_lstm_functions():
    return recurrent(two_lstms, False)


@case
def keras_gru_functions():
    return recurrent(gru, False)


def masked(layer, lower):
    """Returns a model whose layer gets sequences with masked steps, also at the beginning and in the middle."""
    tf.keras.utils.set_random_seed(6)
    x = tf.keras.Input([None, 3])
    model = tf.keras.Model(x, layer()(tf.keras.layers.Masking()(x)))
    # Biases are zero by default, which would hide that they are lost.
    model.set_weights([w + floats(i, *w.shape) * 0.3 for i, w in enumerate(model.get_weights())])
    runs = []
    for seed, (batch, steps) in enumerate([(2, 5), (1, 1), (3, 7), (1, 6)]):
        run = floats(seed, batch, steps, 3)
        run[0, steps // 2] = 0
        run[-1, 0] = 0
        runs.append([run])
    return freeze_v2(lambda x: model(x), [tf.TensorSpec([None, None, 3], tf.float32)], runs, lower)


@case
def keras_masked_lstm():
    return masked(lambda: tf.keras.layers.LSTM(6, return_sequences=True, return_state=True), False)


@case
def keras_masked_lstm_lowered():
    return masked(lambda: tf.keras.layers.LSTM(6, return_state=True, go_backwards=True), True)


@case
def keras_masked_gru():
    return masked(lambda: tf.keras.layers.RNN(tf.keras.layers.GRUCell(6, reset_after=False), return_sequences=True,
                                              zero_output_for_mask=True), False)


@case
def keras_masked_simple_rnns():
    return masked(lambda: tf.keras.layers.Bidirectional(tf.keras.layers.SimpleRNN(6, activation="relu",
                                                                                  return_sequences=True)), True)


@case
def keras_hard_lstm():
    return recurrent(lambda: tf.keras.layers.LSTM(5, activation="softsign", recurrent_activation="hard_sigmoid",
                                                  unit_forget_bias=False), False)


@case
def normalised_cell():
    """A cell with layer normalisation, a peephole and a residual, which runs until the longest sequence ends."""
    def model(x, lengths):
        kernel, recurrent, gain = floats(1, 4, 8), floats(2, 4, 8), 1 + floats(3, 8) * 0.2
        last = tf.reduce_max(lengths)
        steps = tf.transpose(x, [1, 0, 2])
        outputs = tf.TensorArray(tf.float32, size=tf.shape(x)[1], element_shape=[None, 4])
        inputs = tf.TensorArray(tf.float32, size=tf.shape(x)[1], element_shape=[None, 4]).unstack(steps)

        def step(t, h, c, outputs):
            now = inputs.read(t)
            gates = tf.matmul(now, kernel) + tf.matmul(h, recurrent)
            mean, variance = tf.nn.moments(gates, [1], keepdims=True)
            gates = (gates - mean) * tf.math.rsqrt(variance + 1e-5) * gain
            forget, new = tf.split(gates, 2, 1)
            forget = tf.sigmoid(forget + 0.3 * c)
            new_c = forget * c + (1 - forget) * tf.tanh(new)
            alive = tf.expand_dims(t < lengths, 1)
            h, c = tf.where(alive, tf.maximum(new_c, -0.5) + now, h), tf.where(alive, new_c, c)
            return t + 1, h, c, outputs.write(t, h)

        zeros = tf.zeros([tf.shape(x)[0], 4])
        _, h, c, outputs = tf.while_loop(lambda t, *_: t < last, step, [0, zeros, zeros, outputs])
        return outputs.stack(), h, c
    specs = [tf.TensorSpec([None, None, 4], tf.float32), tf.TensorSpec([None], tf.int32)]
    runs = [[floats(1, 2, 5, 4), np.array([5, 3], np.int32)], [floats(2, 1, 2, 4), np.array([1], np.int32)],
            [floats(3, 3, 9, 4), np.array([4, 1, 0], np.int32)]]
    return freeze_v2(model, specs, runs, False)


@case
def keras_encoder():
    """Two blocks of attention with a mask, over sequences of any length, and layer normalisation before and behind."""
    tf.keras.utils.set_random_seed(5)
    layers = tf.keras.layers
    tokens = tf.keras.Input([None], dtype="int32")
    x = layers.Embedding(30, 16, mask_zero=True)(tokens)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x))
        x += layers.Dense(16)(layers.Dense(24, activation="gelu")(layers.LayerNormalization()(x)))
    model = tf.keras.Model(tokens, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))
    # The default values of biases and factors would hide that they are lost.
    model.set_weights([w + floats(i, *w.shape) * 0.2 for i, w in enumerate(model.get_weights())])
    runs = [[np.array(run, np.int32)] for run in ([[3, 7, 1, 0, 0], [29, 2, 2, 4, 8]], [[9]], [[5, 6, 0, 7, 0, 1, 4]])]
    return freeze_v2(lambda x: model(x), [tf.TensorSpec([None, None], tf.int32)], runs, True)


def composed(x, n):
    mapped = tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)
    branch = tf.cond(n > 2, lambda: x[:, :1] * 2, lambda: tf.cond(n > 1, lambda: x + 1, lambda: x[:1] - 1))
    chosen = tf.switch_case(n, [lambda: x * 3, lambda: -x, lambda: x * x])
    _, grown = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.concat([a, a[:1] + 1], 0)), [0, x],
                             shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None])])
    total = tf.constant(0.0)
    for i in tf.range(n):
        if i % 2 == 0:
            total += tf.cast(i, tf.float32)
        for j in tf.range(i):
            total += 0.5 * tf.cast(j, tf.float32)
    pieces = tf.TensorArray(tf.float32, size=0, dynamic_size=True, infer_shape=False, element_shape=[None, 2])
    for i in tf.range(n + 1):
        pieces = pieces.write(i, x[:i % 2 + 1])
    return mapped, branch, chosen, grown, total, pieces.concat(), pieces.size()


@case
def composed_functions():
    return freeze_v2(composed, [tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.int32)],
                     [[floats(n, 3 + n % 2, 2), np.int32(n)] for n in (0, 1, 2, 5)], False)


@case
def composed_lowered():
    return freeze_v2(composed, [tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.int32)],
                     [[floats(n, 3 + n % 2, 2), np.int32(n)] for n in (0, 1, 2, 5)], True)


@case
def lists():
    def build():
        x = v1.placeholder(tf.float32, [None, 2], "x")
        raw = tf.raw_ops
        made = raw.TensorListFromTensor(tensor=x, element_shape=[2])
        changed = raw.TensorListSetItem(input_handle=made, index=0, item=tf.constant([9.0, 8.0]))
        pushed = raw.TensorListPushBack(input_handle=changed, tensor=tf.constant([1.0, 2.0]))
        popped, last = raw.TensorListPopBack(input_handle=pushed, element_shape=[2], element_dtype=tf.float32)
        reserved = raw.TensorListReserve(element_shape=[-1], num_elements=3, element_dtype=tf.float32)
        reserved = raw.TensorListSetItem(input_handle=reserved, index=1, item=x[0])
        gathered = raw.TensorListGather(input_handle=pushed, indices=[1, 0], element_shape=[2],
                                        element_dtype=tf.float32)
        scattered = raw.TensorListScatterV2(tensor=x[:2], indices=[3, 1], element_shape=[2], num_elements=5)
        split = raw.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=tf.constant([1, 1], tf.int64))
        joined, lengths = raw.TensorListConcatV2(input_handle=split, element_shape=[-1, 2], leading_dims=tf.constant(
            [], tf.int64), element_dtype=tf.float32)
        stack = lambda a, name: raw.TensorListStack(input_handle=a, element_shape=-1, element_dtype=tf.float32, name=name)
        return [stack(made, "made"), stack(changed, "changed"), stack(pushed, "pushed"), stack(popped, "popped"),
                tf.identity(last, "last"), stack(reserved, "reserved"), gathered, stack(scattered, "scattered"), joined,
                lengths, raw.TensorListLength(input_handle=pushed),
                raw.TensorListElementShape(input_handle=reserved, shape_type=tf.int64),
                stack(raw.TensorListResize(input_handle=pushed, size=2), "resized"),
                raw.TensorListGetItem(input_handle=reserved, index=2, element_shape=[2], element_dtype=tf.float32)]
    return build_v1(build, [{"x:0": floats(1, 2, 2)}, {"x:0": floats(2, 2, 2)}])


# --- Tables -----------------------------------------------------------------------------------------------------------


def table_model(build):
    graph = tf.Graph()
    with graph.as_default():
        keys = v1.placeholder(tf.string, [None], "keys")
        outputs = build(keys)
        init = v1.tables_initializer().name
        definition = strip(graph.as_graph_def())
    runs = [{"keys:0": np.array(words, object)} for words in (["one", "two"], ["three", "", "nine"], ["two"])]
    return Model(definition, [output.name for output in outputs], runs, init)


@case
def tables():
    def build(keys):
        words = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            ["one", "two", "three"], tf.constant([1, 2, 3], tf.int64)), -1)
        back = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            tf.constant([1, 2, 3], tf.int64), ["uno", "due", "tre"]), "?")
        numbers = words.lookup(keys)
        return [numbers, back.lookup(numbers), words.size()]
    return table_model(build)


@case
def tables_v1():
    """The ops with string handles, which current Python functions do not create."""
    model = tables()
    for node in model.graph.node:
        if node.op in ("HashTableV2", "LookupTableFindV2", "LookupTableSizeV2", "InitializeTableV2",
                       "LookupTableImportV2"):
            node.op = node.op[:-2]
    return model


# --- Variables --------------------------------------------------------------------------------------------------------


def variable_model(build, runs):
    """The outputs of each run depend on the runs before it."""
    graph = tf.Graph()
    with graph.as_default():
        outputs = build()
        inits = v1.get_collection(v1.GraphKeys.LOCAL_INIT_OP)
        init = tf.group(v1.global_variables_initializer(), *inits).name
        definition = strip(graph.as_graph_def())
    return Model(definition, [output.name for output in outputs], runs, init)


@case
def variables():
    def build():
        raw = tf.raw_ops
        x = v1.placeholder(tf.float32, [2, 3], "x")
        make = lambda name, value: v1.get_variable(name, initializer=tf.constant(value), use_resource=True)
        state, count, codes = make("state", floats(1, 2, 3)), make("count", np.int64(3)), make("codes", np.uint8([250, 9]))
        rows, names = make("rows", floats(2, 4, 2)), make("names", np.array([b"a", b"bc"], object))
        grows = raw.VarHandleOp(dtype=tf.float32, shape=tf.TensorShape(None), shared_name="grows", name="grows")
        v1.add_to_collection(v1.GraphKeys.LOCAL_INIT_OP, raw.AssignVariableOp(
            resource=grows, value=tf.constant(floats(3, 1, 2)), name="grows/Assign"))
        read = lambda v, t: raw.ReadVariableOp(resource=getattr(v, "handle", v), dtype=t)
        before = read(state, tf.float32)
        with tf.control_dependencies([before]):
            assign = raw.AssignVariableOp(resource=state.handle, value=tf.tanh(before + x))
            updates = [raw.AssignAddVariableOp(resource=count.handle, value=tf.constant(2, tf.int64)),
                       raw.AssignSubVariableOp(resource=codes.handle, value=tf.constant([255, 1], tf.uint8)),
                       raw.ResourceScatterAdd(resource=rows.handle, indices=[1, 3, 1], updates=x[0, 0] + tf.ones([3, 2])),
                       raw.AssignVariableOp(resource=names.handle, value=tf.constant([b"", b"longer than before"]))]
        with tf.control_dependencies([assign, *updates]):
            updates = [raw.ResourceScatterUpdate(resource=rows.handle, indices=tf.constant([0], tf.int64), updates=x[1, 1]),
                       raw.AssignVariableOp(resource=grows, value=tf.concat([read(grows, tf.float32), x[:1, :2]], 0))]
        with tf.control_dependencies(updates):
            return [before, read(state, tf.float32), read(count, tf.int64), read(codes, tf.uint8), read(rows, tf.float32),
                    read(names, tf.string), read(grows, tf.float32),
                    raw.ResourceGather(resource=rows.handle, indices=[[3, 0], [1, 1]], dtype=tf.float32),
                    raw.ResourceGather(resource=state.handle, indices=[[2, 0], [1, 1]], batch_dims=1, dtype=tf.float32),
                    raw.ResourceGatherNd(resource=state.handle, indices=[[1, 2], [0, 0]], dtype=tf.float32),
                    raw.VariableShape(input=grows), raw.VariableShape(input=rows.handle, out_type=tf.int64),
                    raw.VarIsInitializedOp(resource=count.handle)]
    return variable_model(build, [{"x:0": floats(seed, 2, 3)} for seed in (4, 5, 6)])


@case
def random_state():
    """The state of a generator: a counter that wraps into its upper half, and a key."""
    def build():
        raw = tf.raw_ops
        n = v1.placeholder(tf.uint64, [], "n")
        state = v1.get_variable("state", initializer=tf.constant([-300, 7, 1234], tf.int64), use_resource=True)
        read = raw.RngReadAndSkip(resource=state.handle, alg=1, delta=n)
        with tf.control_dependencies([read]):
            skip = raw.RngSkip(resource=state.handle, algorithm=tf.constant(1, tf.int64), delta=tf.constant(5, tf.int64))
        with tf.control_dependencies([skip]):
            after = raw.ReadVariableOp(resource=state.handle, dtype=tf.int64)
        numbers = raw.StatelessRandomUniformV2(
            shape=[5], key=tf.bitcast(read[2:3], tf.uint64), counter=tf.bitcast(read[:2], tf.uint64), alg=1)
        return [read, after, numbers]
    return variable_model(build, [{"n:0": np.uint64(count)} for count in (1, 0, 1000)])


@case
def variable_updates():
    """Arithmetic on the rows and slices of variables; indices repeat."""
    def build():
        raw = tf.raw_ops
        x = v1.placeholder(tf.float32, [3, 2], "x")
        numbers = {"float": floats(1, 4, 2), "half": floats(2, 4, 2).astype(np.float16),
                   "complex": (floats(3, 4, 2) + 1j * floats(4, 4, 2)).astype(np.complex64),
                   "int": np.int32([[7, -8], [9, 2147483647], [-2147483648, 1], [3, 4]]), "byte": np.uint8([[250, 9]] * 4)}
        rows = {name: v1.get_variable(name, initializer=tf.constant(value), use_resource=True)
                for name, value in numbers.items()}
        make = lambda name, seed: v1.get_variable(name, initializer=tf.constant(floats(seed, 3, 2, 2)), use_resource=True)
        slices, deep = make("slices", 5), make("deep", 6)
        whole = v1.get_variable("whole", initializer=tf.constant(np.int64([1, 2, 3])), use_resource=True)
        last = []

        def update(op, variable, indices, updates):
            with tf.control_dependencies(last[-1:]):
                name = "ref" if "Nd" in op else "resource"
                last.append(getattr(raw, op)(**{name: variable.handle}, indices=indices, updates=updates))

        for name, variable in rows.items():
            value = tf.cast(x * 5 + 7, variable.dtype)
            for op in ("Sub", "Mul", "Div") + (("Min", "Max") if name != "complex" else ()):
                update("ResourceScatter" + op, variable, [1, 3, 1], value)
            update("ResourceScatterSub", variable, tf.constant([0], tf.int64), value[0, 0])
        update("ResourceScatterDiv", rows["int"], [0], tf.constant([[-1, -1]]))
        for op, at in (("Add", [[0, 1], [2, 0], [0, 1]]), ("Sub", [[1, 1], [1, 0], [2, 1]]), ("Update", [[2, 1], [0, 0], [2, 1]])):
            update("ResourceScatterNd" + op, slices, at, x)
        update("ResourceScatterNdMin", deep, tf.constant([[0, 1, 0], [2, 1, 1], [0, 1, 0]], tf.int64), x[:, 0])
        update("ResourceScatterNdMax", deep, [[2], [0]], tf.stack([x[:2], x[1:]]))
        update("ResourceScatterNdUpdate", whole, [[2], [0]], tf.constant([7, 8], tf.int64))
        with tf.control_dependencies(last):
            return [raw.ReadVariableOp(resource=v.handle, dtype=v.dtype) for v in [*rows.values(), slices, deep, whole]]
    return variable_model(build, [{"x:0": floats(seed, 3, 2)} for seed in (7, 8)])


@case
def random_generator():
    """Numbers that ops take from the state of a generator, of sizes that no group of numbers divides."""
    def build():
        raw = tf.raw_ops
        n = v1.placeholder(tf.int64, [1], "n")
        state = v1.get_variable("state", initializer=tf.constant([-300, 7, 1234], tf.int64), use_resource=True)
        outputs = []

        def take(op, **arguments):
            with tf.control_dependencies(outputs[-1:]):
                outputs.append(getattr(raw, op)(resource=state.handle, algorithm=tf.constant(1, tf.int64), shape=n, **arguments))

        for op in ("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal"):
            for dtype in (tf.float32, tf.float64, tf.half):
                take(op, dtype=dtype)
        for dtype in (tf.int32, tf.int64):
            take("StatefulUniformInt", minval=tf.constant(-5, dtype), maxval=tf.constant(77, dtype))
        for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
            take("StatefulUniformFullInt", dtype=dtype)
        with tf.control_dependencies(outputs[-1:]):
            return outputs + [raw.ReadVariableOp(resource=state.handle, dtype=tf.int64)]
    return variable_model(build, [{"n:0": np.int64([count])} for count in (5, 1, 0)])


def main(names):
    for name in names or CASES:
        model = CASES[name]()
        if model is None:
            continue
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(model.graph, name="")
        recorded = v1.GraphDef()
        recorded.CopyFrom(model.graph)

        def record(where, tensor, value):
            node = recorded.node.add(name=where, op="Const")
            node.attr["_tensor"].s = tensor.encode()
            proto = tf.make_tensor_proto(value, dtype=tf.string if np.asarray(value).dtype == object else None)
            node.attr["dtype"].type = proto.dtype
            node.attr["value"].tensor.CopyFrom(proto)

        with v1.Session(graph=graph) as session:
            if model.init:
                session.run(model.init)
            for number, feeds in enumerate(model.runs):
                for i, (tensor, value) in enumerate(feeds.items()):
                    record(f"recorded/{number}/in/{i}", tensor, value)
                for i, (tensor, value) in enumerate(zip(model.outputs, session.run(model.outputs, feeds))):
                    record(f"recorded/{number}/out/{i}", tensor, value)
        path = HERE / "graphs" / f"{name}.pb"
        path.write_bytes(recorded.SerializeToString(deterministic=True))
        ops = sorted({node.op for node in recorded.node} |
                     {node.op for function in recorded.library.function for node in function.node_def})
        print(f"{path.relative_to(HERE)}: {len(model.runs)} runs, {path.stat().st_size} bytes: {' '.join(ops)}")


if __name__ == "__main__":
    main(sys.argv[1:])
