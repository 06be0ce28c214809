"""Tests the Python package beside TensorFlow: code for the original modules runs after a change of imports."""

import os
import pathlib
import sys
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'

import python_package

sys.path.insert(0, python_package.folder())

import numpy as np
import permafrost
import tensorflow as tf
from permafrost import freeze_graph as our_freeze
from permafrost import optimize_for_inference_lib as our_optimize
from permafrost import strip_unused_lib as our_strip
from permafrost.graph_transforms import TransformGraph
from tensorflow.python.tools import freeze_graph, optimize_for_inference_lib, strip_unused_lib
from tensorflow.python.util import _pywrap_transform_graph as engine

GraphDef = tf.compat.v1.GraphDef
WORKSPACE = python_package.WORKSPACE
DIGITS = WORKSPACE / 'tests/models/digits'


def original_transform_graph(graph, inputs, outputs, transforms):
    """Replaces tensorflow.tools.graph_transforms, which 2.21 lacks, although its engine still exists."""
    return GraphDef.FromString(
        engine.TransformGraphWithStringInputs(graph.SerializeToString(), ','.join(inputs), ','.join(outputs),
                                              ' '.join(transforms)))


def digits():
    return GraphDef.FromString((DIGITS / 'digits.pb').read_bytes())


def run(graph, feeds, fetches):
    with tf.Graph().as_default() as scope, tf.compat.v1.Session(graph=scope) as session:
        tf.import_graph_def(graph, name='')
        return session.run(fetches, feeds)


class PythonOracle(unittest.TestCase):

    def setUp(self):
        self.images = np.load(DIGITS / 'eval_images.npy')[:16]
        self.feeds = {'image:0': self.images}
        self.expected = run(digits(), self.feeds, 'probabilities:0')

    def test_transform_graph(self):
        for transforms in (['strip_unused_nodes'], ['remove_nodes(op=Identity, op=CheckNumerics)', 'fold_batch_norms'],
                           ['fold_constants(ignore_errors=true) fold_old_batch_norms'], ['sort_by_execution_order'], []):
            with self.subTest(transforms):
                arguments = ['image'], ['probabilities'], transforms
                ours = TransformGraph(digits(), *arguments)
                self.assertIs(type(ours), GraphDef)
                theirs = original_transform_graph(digits(), *arguments)
                self.assertIs(type(theirs), type(ours))
                for graph in (ours, theirs):
                    np.testing.assert_allclose(run(graph, self.feeds, 'probabilities:0'), self.expected, atol=1e-5)

    def test_errors_are_caught_alike(self):
        for transforms in (['nope'], ['rename_op(old_op_name=$)']):
            for function in (TransformGraph, original_transform_graph):
                with self.assertRaises(Exception) as raised:
                    function(digits(), ['image'], ['probabilities'], transforms)
                self.assertIsInstance(raised.exception, ValueError, function.__module__)

    def test_strip_unused(self):
        arguments = ['image'], ['probabilities'], tf.float32.as_datatype_enum
        ours = our_strip.strip_unused(digits(), *arguments)
        theirs = strip_unused_lib.strip_unused(digits(), *arguments)
        self.assertIs(type(ours), type(theirs))
        self.assertEqual({node.name for node in ours.node}, {node.name for node in theirs.node})
        np.testing.assert_allclose(run(ours, self.feeds, 'probabilities:0'), self.expected, atol=1e-6)
        for module in (our_strip, strip_unused_lib):
            with self.assertRaises(ValueError):
                module.strip_unused(digits(), ['image:0'], ['probabilities'], 1)
            with self.assertRaises(KeyError):
                module.strip_unused(digits(), ['nothing'], ['probabilities'], 1)

    def test_optimize_for_inference(self):
        arguments = ['image'], ['probabilities'], tf.float32.as_datatype_enum
        ours = our_optimize.optimize_for_inference(digits(), *arguments)
        theirs = optimize_for_inference_lib.optimize_for_inference(digits(), *arguments)
        self.assertIs(type(ours), type(theirs))
        self.assertNotIn('CheckNumerics', {node.op for node in ours.node})
        np.testing.assert_allclose(run(ours, self.feeds, 'probabilities:0'), self.expected, atol=1e-5)

    def test_freeze_graph(self):
        folder = WORKSPACE / 'tests/freeze/models/tf1_checkpoint_v2'
        image = np.load(folder / 'case/in.x.npy')
        expected = np.load(folder / 'case/out.scores.npy')
        for module in (our_freeze, freeze_graph):
            with tempfile.TemporaryDirectory() as out, self.subTest(module.__name__):
                output = pathlib.Path(out, 'frozen.pb')
                module.freeze_graph('', '', True, str(folder / 'model.ckpt'), 'scores', 'save/restore_all', 'save/Const:0',
                                    str(output), True, '', input_meta_graph=str(folder / 'model.ckpt.meta'))
                graph = GraphDef.FromString(output.read_bytes())
                np.testing.assert_allclose(run(graph, {'x:0': image}, 'scores:0'), expected, atol=1e-5)

    def test_runs_beside_tensorflow(self):
        # Both contain copies of oneDNN, OpenMP and protobuf.
        model = permafrost.load(digits().SerializeToString())
        for delegate in permafrost.delegates():
            result = model.session(delegate=delegate.name).run(self.images)['probabilities']
            np.testing.assert_allclose(result, self.expected, atol=1e-5)

    def test_brain_floats(self):
        # A package installed with TensorFlow adds them to numpy.
        with tf.Graph().as_default() as scope:
            x = tf.compat.v1.placeholder(tf.bfloat16, [3], 'x')
            tf.identity(x, 'y')
        values = np.array([1, -2.5, 3], tf.bfloat16.as_numpy_dtype)
        result = permafrost.load(scope.as_graph_def().SerializeToString(), outputs=['y']).run(values)['y']
        np.testing.assert_array_equal(result.view(values.dtype), values)

    def test_keras_model(self):
        keras = tf.keras.Sequential([tf.keras.Input((8, 8, 1)), tf.keras.layers.Conv2D(4, 3, activation='relu'),
                                     tf.keras.layers.BatchNormalization(), tf.keras.layers.Flatten(),
                                     tf.keras.layers.Dense(10, activation='softmax')])
        with tempfile.TemporaryDirectory() as folder:
            keras.export(folder, verbose=False)
            model = permafrost.load(folder)
            small = model.transform('optimize_for_inference')
            self.assertTrue(model.verify(small, self.images))
            found = list(small.run(self.images).values())[0]
        np.testing.assert_allclose(found, keras(self.images).numpy(), atol=1e-5)


if __name__ == '__main__':
    unittest.main()
