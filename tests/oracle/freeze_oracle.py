"""Freezes models with freeze_graph and with TensorFlow, and compares nodes and outputs.

The models are those of tests/freeze/models, some that are too large to keep, and the one in the package basic-pitch, which
is downloaded if there is a network (otherwise BASIC_PITCH is its folder).
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
MODELS = WORKSPACE / 'tests/freeze/models'
TOOL = os.environ.get('FREEZE_GRAPH', WORKSPACE / 'bazel-bin/tools/freeze_graph')
TOLERANCE = 1e-5
# TensorFlow does not load the original's results, which contain an unchanged ResourceGather inside a function.
BROKEN_ORIGINALS = {'tf2_transformer'}


def freeze(output, **flags):
    """Runs freeze_graph and returns the graph that it wrote."""
    arguments = [f'--{name}={value}' for name, value in flags.items()]
    subprocess.run([str(TOOL), f'--output_graph={output}', *arguments], check=True, capture_output=True, text=True)
    return tf.compat.v1.GraphDef.FromString(pathlib.Path(output).read_bytes())


def run(graph, feeds, fetches):
    """Returns the outputs of TensorFlow for a frozen graph."""
    with tf.Graph().as_default() as scope, tf.compat.v1.Session(graph=scope) as session:
        tf.import_graph_def(graph, name='')
        return session.run(fetches, feeds)


def relative(found, expected):
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    return np.abs(found - expected).max() / max(1.0, np.abs(expected).max())


def basic_pitch(folder):
    """Returns the folder of the model in basic-pitch, or None."""
    if 'BASIC_PITCH' in os.environ:
        return pathlib.Path(os.environ['BASIC_PITCH'])
    command = [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', folder, 'basic-pitch==0.4.0']
    if subprocess.run(command, capture_output=True).returncode != 0:
        return None
    with zipfile.ZipFile(next(pathlib.Path(folder).glob('basic_pitch*.whl'))) as wheel:
        wheel.extractall(folder, [n for n in wheel.namelist() if '/saved_models/icassp_2022/nmp/' in n])
    return pathlib.Path(folder) / 'basic_pitch/saved_models/icassp_2022/nmp'


class FreezeTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def check_saved_model(self, model, inline=True):
        """Compares the frozen graph, run by TensorFlow, with the SavedModel and with the graph frozen by TensorFlow."""
        random = np.random.default_rng(3)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            signature = tf.compat.v1.saved_model.load(session, ['serve'], str(model)).signature_def['serving_default']
            feeds = {}
            for info in signature.inputs.values():
                shape = [2 if d.size < 0 else d.size for d in info.tensor_shape.dim]
                dtype = tf.as_dtype(info.dtype)
                value = random.integers(0, 5, shape) if dtype.is_integer else random.standard_normal(shape)
                feeds[info.name] = value.astype(dtype.as_numpy_dtype)
            fetches = [info.name for info in signature.outputs.values()]
            expected = session.run(fetches, feeds)
        ours = freeze(self.folder / 'ours.pb', input_saved_model_dir=model, inline_functions=str(inline).lower())
        theirs = self.original(input_saved_model_dir=model,
                               output_node_names=','.join(sorted({name.split(':')[0] for name in fetches})))
        self.assertFalse([n.name for n in ours.node if n.op in ('VarHandleOp', 'ReadVariableOp')])
        right_answers = [expected]
        if pathlib.Path(model).name in BROKEN_ORIGINALS:
            with self.assertRaisesRegex(ValueError, 'gather_resource'):
                run(theirs, feeds, fetches)
        else:
            right_answers.append(run(theirs, feeds, fetches))
        for answers in right_answers:
            for name, found, right in zip(fetches, run(ours, feeds, fetches), answers):
                self.assertLess(relative(found, right), TOLERANCE, name)

    def check_inlined_names(self, model):
        """Checks that TensorFlow's second way of freezing gives the same computing nodes, except for its prefix."""
        loaded = tf.saved_model.load(str(model))  # Keeps the variables alive.
        theirs = convert_variables_to_constants_v2(loaded.signatures['serving_default']).graph.as_graph_def()
        ours = freeze(self.folder / 'ours.pb', input_saved_model_dir=model)
        kinds = lambda graph: sorted(n.op for n in graph.node if n.op in ('Conv2D', 'MatMul', 'BatchMatMulV2', 'Softmax'))
        self.assertEqual(kinds(ours), kinds(theirs))

    def original(self, **flags):
        """Runs the original in a separate process, because it does not find its resource variables in this one."""
        path = self.folder / 'theirs.pb'
        arguments = [f'--{name}={value}' for name, value in flags.items()]
        subprocess.run([sys.executable, '-m', 'tensorflow.python.tools.freeze_graph', f'--output_graph={path}', *arguments],
                       check=True, capture_output=True, text=True)
        return tf.compat.v1.GraphDef.FromString(path.read_bytes())

    def test_saved_models(self):
        for name in ('tf2_cnn', 'tf2_lstm', 'tf2_transformer', 'tf2_control_flow'):
            for inline in (True, False):
                with self.subTest(name, inline=inline):
                    self.check_saved_model(MODELS / name, inline)

    def test_large_keras_model(self):
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.applications.MobileNetV2(weights=None, input_shape=(96, 96, 3), classes=10)
        model.export(str(self.folder / 'model'), verbose=False)
        self.check_saved_model(self.folder / 'model')
        self.check_inlined_names(self.folder / 'model')

    def test_lstm_layers(self):
        model = tf.keras.Sequential([
            tf.keras.Input((20, 8)),
            tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(32, return_sequences=True)),
            tf.keras.layers.GRU(16),
            tf.keras.layers.Dense(4),
        ])
        model.export(str(self.folder / 'model'), verbose=False)
        self.check_saved_model(self.folder / 'model')

    def test_basic_pitch(self):
        model = basic_pitch(str(self.folder))
        if model is None:
            self.skipTest('basic-pitch is not installed and cannot be downloaded')
        self.check_saved_model(model)

    def test_checkpoints_give_the_nodes_of_the_original(self):
        for name in ('tf1_checkpoint_v1', 'tf1_checkpoint_v2', 'tf1_average'):
            with self.subTest(name):
                folder = MODELS / name
                meta, checkpoint = folder / 'model.ckpt.meta', folder / 'model.ckpt'
                theirs = self.original(input_meta_graph=meta, input_checkpoint=checkpoint, output_node_names='scores',
                                       input_binary='true', checkpoint_version=1 if name.endswith('v1') else 2)
                ours = freeze(self.folder / 'ours.pb', input_meta_graph=meta, input_checkpoint=checkpoint,
                              output_node_names='scores')
                self.assertEqual(self.nodes(ours), self.nodes(theirs))
                inputs = {'x:0': np.load(folder / 'case/in.x.npy')}
                self.assertLess(relative(run(ours, inputs, 'scores:0'), run(theirs, inputs, 'scores:0')), 1e-7)

    def test_partitioned_variables(self):
        folder = MODELS / 'tf1_partitioned'
        ours = freeze(self.folder / 'ours.pb', input_graph=folder / 'graph.pb', input_checkpoint=folder / 'model.ckpt',
                      output_node_names='scores')
        answer = run(ours, {'x:0': np.load(folder / 'case/in.x.npy')}, 'scores:0')
        self.assertLess(relative(answer, np.load(folder / 'case/out.scores.npy')), TOLERANCE)

    @staticmethod
    def nodes(graph):
        """Returns name, op, inputs and attributes of every node, regardless of order."""
        return {n.name: (n.op, tuple(n.input), n.device,
                         tuple(sorted((k, v.SerializeToString(deterministic=True)) for k, v in n.attr.items()
                                      if k != '_output_shapes'))) for n in graph.node}


if __name__ == '__main__':
    unittest.main()
