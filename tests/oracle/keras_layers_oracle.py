"""Traces every layer of Keras 3, and compares its ops with the available kernels.

keras_layers_ops.json has for each layer the ops that have a kernel ("runs"), those that freezing removes ("frozen"), and
all others ("lacks"); PERMAFROST_UPDATE_ORACLE=1 rewrites it. Results of kernels are held to TensorFlow's by
tests/kernels.
"""

import inspect
import json
import os
import pathlib
import re
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import keras
import keras_layers
import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).resolve().parent
RECORD = HERE / 'keras_layers_ops.json'
# The session implements these itself.
OF_THE_SESSION = {'Const', 'Placeholder', '_Arg', '_Retval'}
FROZEN = {'VarHandleOp', 'ReadVariableOp', 'ResourceGather', 'ResourceGatherNd'}


def kernels():
    """Returns the ops listed in docs/kernels.md, which is generated from the kernels."""
    text = (HERE.parents[1] / 'docs/kernels.md').read_text(encoding='utf-8')
    return set(re.findall(r'^\| (\w+) \|', text, re.MULTILINE)) - {'op'}


def ops_of(name, factory, inputs, is_training):
    """Returns the ops of the graph that TensorFlow traces for the layer, including those of functions."""
    keras.utils.set_random_seed(1)
    layer = factory()
    arrays = [np.random.default_rng(1).random(i, np.float32) if isinstance(i, tuple) else i for i in inputs]
    specs = [tf.TensorSpec(a.shape, tf.string if a.dtype.kind in 'UO' else a.dtype) for a in arrays]
    options = {'training': is_training} if 'training' in inspect.signature(layer.call).parameters else {}
    takes_two = name in ('MultiHeadAttention', 'GroupQueryAttention') and len(arrays) > 1

    def call(*values):
        if len(values) == 1:
            return layer(values[0], **options)
        return layer(*values, **options) if takes_two else layer(list(values), **options)

    call(*map(tf.constant, arrays))  # Makes the variables.
    graph = tf.function(call).get_concrete_function(*specs).graph.as_graph_def()
    nodes = list(graph.node) + [node for function in graph.library.function for node in function.node_def]
    return {node.op for node in nodes} - OF_THE_SESSION


class KerasLayersTest(unittest.TestCase):
    maxDiff = None

    def test_every_layer_is_traced(self):
        traced = {name for name, *_ in keras_layers.rows()}
        classes = {}
        for name, value in vars(keras.layers).items():
            if inspect.isclass(value) and issubclass(value, keras.layers.Layer):
                classes.setdefault(value, set()).add(name)
        missing = [sorted(names) for names in classes.values() if not names & (traced | set(keras_layers.UNTRACED))]
        self.assertEqual(missing, [])

    def test_ops_have_kernels_or_are_listed(self):
        known, found = kernels(), {}
        for name, _, factory, inputs, is_training in keras_layers.rows():
            key = f'{name}, training' if is_training else name
            found.setdefault(key, set()).update(ops_of(name, factory, inputs, is_training))
        result = {key: {'runs': sorted(ops & known), 'frozen': sorted((ops & FROZEN) - known),
                        'lacks': sorted(ops - known - FROZEN)} for key, ops in sorted(found.items())}
        lacking = [key for key, lists in result.items() if lists['lacks']]
        print(f'{len(result) - len(lacking)} of {len(result)} layers run; the others: {", ".join(lacking)}')
        if os.environ.get('PERMAFROST_UPDATE_ORACLE') == '1':
            RECORD.write_text(json.dumps(result, indent=1) + '\n', encoding='utf-8')
        self.assertEqual(json.loads(RECORD.read_text(encoding='utf-8')), result)


if __name__ == '__main__':
    unittest.main()
