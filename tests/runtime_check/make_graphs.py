#!/usr/bin/env python3
"""Records what TensorFlow computes with whole graphs that branch, loop, call and keep state: what graphs_test.cc runs.

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
    """A GraphDef, the names of its outputs, what to feed it at each run, and what TensorFlow must run before."""

    def __init__(self, graph, outputs, runs, init=None):
        self.graph, self.outputs, self.runs, self.init = graph, outputs, runs, init


def floats(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def build_v1(build, runs, functional=False):
    """`build` makes a graph and returns its outputs; control flow is lowered, as in graphs of TensorFlow 1."""
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
    """A tf.function frozen the way of TensorFlow 2."""
    concrete = tf.function(function).get_concrete_function(*specs)
    frozen = convert_to_constants.convert_variables_to_constants_v2(concrete, lower_control_flow=lower)
    inputs = [tensor.name for tensor in frozen.inputs if tensor.dtype != tf.resource]
    outputs = [tensor.name for tensor in frozen.outputs]
    named = [dict(zip(inputs, run)) for run in runs]
    return Model(strip(frozen.graph.as_graph_def()), outputs, named)


def strip(definition):
    """Without what no runtime reads: it is most of the bytes."""
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
        # Constants, and the order that a control input asks for.
        def body(i, a):
            with tf.control_dependencies([tf.constant(1.0) + a[0]]):
                return i + 1, a + tf.matmul(tf.reshape(a, [1, -1]), tf.ones([tf.size(a), 1]))[0, 0] * 0.5
        weighted = v1.while_loop(lambda i, a: i < n, body, [tf.constant(0), x])[1]
        return [tf.identity(t, name) for t, name in [
            (nested, "nested"), (swapped[1], "swapped"), (grown, "grown"), (branch, "branch"),
            (loop_in_branch, "loop_in_branch"), (weighted, "weighted"), (swapped[0], "count")]]
    return build_v1(build, [{"n:0": np.int32(n), "x:0": floats(n, 2 + n % 2)} for n in (0, 1, 2, 5)])


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
            proto = tf.make_tensor_proto(value)
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
