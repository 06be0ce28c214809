"""Compares the results of the folding and rounding passes on the large models with TensorFlow's graph transforms, and runs
the models in TensorFlow. Skipped if the models are missing.

  quantize_weights  the same bytes, except `versions`, which the original drops, and the empty `library` that it adds
  round_weights     the same bits with levels=original
  fold_constants    the same nodes after default attributes are added to both; differences are recorded
  folding           TensorFlow's outputs for the recorded inputs equal the recorded ones, within 1e-4 of the largest
  quantising        the same for inception_v3, within 0.05

Counts and differences are recorded in expected_pass_differences.json; PERMAFROST_UPDATE_ORACLE=1 rewrites them.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import passes_oracle
import tensorflow as tf

MODELS = pathlib.Path(os.environ.get('PERMAFROST_SHARED', passes_oracle.WORKSPACE.parent / 'shared')) / 'models'
FOLDS = 'strip_unused_nodes fold_constants(ignore_errors=true) fold_batch_norms fold_old_batch_norms'
RECORDED_INPUTS = 3
STEPS = 256


class Model:
    """A model of the folder, with the results of both engines."""

    def __init__(self, folder):
        self.folder = folder
        spec = json.loads((folder / 'spec.json').read_text(encoding='utf-8'))
        self.inputs, self.outputs = [i['name'] for i in spec['inputs']], spec['outputs']
        self.graph = tf.compat.v1.GraphDef.FromString((folder / 'model.pb').read_bytes())

    def ours(self, transforms):
        with tempfile.TemporaryDirectory() as scratch:
            out = pathlib.Path(scratch) / 'out.pb'
            subprocess.run([passes_oracle.TOOL, f'--in_graph={self.folder / "model.pb"}', f'--out_graph={out}',
                            f'--inputs={",".join(self.inputs)}', f'--outputs={",".join(self.outputs)}',
                            f'--transforms={transforms}', '--verify=off'], check=True, stdout=subprocess.DEVNULL)
            return tf.compat.v1.GraphDef.FromString(out.read_bytes())

    def original(self, transforms, graph=None):
        result, message = passes_oracle.original(graph or self.graph, self.inputs, self.outputs, transforms)
        if result is None:
            raise AssertionError(f'{self.folder.name}: the original fails: {message}')
        return result

    def largest_error(self, graph_def):
        """Returns the largest difference from a recorded output, absolute and relative to the largest value of that output."""
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(graph_def, name='')
        absolute = relative = 0.0
        with tf.compat.v1.Session(graph=graph) as session:
            for k in range(RECORDED_INPUTS):
                feed = {f'{self.inputs[0]}:0': np.load(self.folder / f'input_{k}.npy')}
                for j, found in enumerate(session.run([f'{o}:0' for o in self.outputs], feed)):
                    expected = np.load(self.folder / f'output_{k}_{j}.npy')
                    error = float(np.abs(found.astype(np.float64) - expected).max())
                    error = error if np.isfinite(error) else np.inf
                    absolute = max(absolute, error)
                    relative = max(relative, error / max(1.0, float(np.abs(expected).max())))
        return absolute, relative


def bits(array):
    return np.ascontiguousarray(array).view(np.uint32)


def num_rounded_otherwise(ours, theirs):
    """Returns the number of elements of float constants whose bits differ."""
    constants = [{n.name: n for n in g.node if n.op == 'Const' and n.attr['dtype'].type == tf.float32.as_datatype_enum}
                 for g in (ours, theirs)]
    count = 0
    for name in constants[0]:
        mine, other = (tf.make_ndarray(c[name].attr['value'].tensor).ravel() for c in constants)
        count += int((bits(mine) != bits(other)).sum())
    return count


@unittest.skipUnless(MODELS.is_dir(), 'the large models are not beside the workspace')
class ModelsTest(unittest.TestCase):
    maxDiff = None

    def models(self):
        folders = sorted(MODELS.iterdir())
        self.assertTrue(folders)
        return [Model(folder) for folder in folders]

    def check(self, part, found):
        self.assertEqual(passes_oracle.recorded(part, found), found)

    def test_quantize_weights_gives_the_same_bytes(self):
        for model in self.models():
            with self.subTest(model.folder.name):
                ours, theirs = model.ours('quantize_weights'), model.original('quantize_weights')
                self.assertEqual(passes_oracle.difference(ours, theirs), 'same')
                self.assertEqual(ours.versions, model.graph.versions)
                self.assertEqual(ours.HasField('library'), model.graph.HasField('library'))
                self.assertEqual(theirs.library.ByteSize(), 0)
                theirs.versions.CopyFrom(ours.versions)
                theirs.ClearField('library')
                self.assertTrue(ours.SerializeToString(deterministic=True) ==
                                theirs.SerializeToString(deterministic=True))

    def test_round_weights_gives_the_original_values_when_asked(self):
        found = {m.folder.name: num_rounded_otherwise(m.ours(f'round_weights(num_steps={STEPS}, levels=original)'),
                                                      m.original(f'round_weights(num_steps={STEPS})'))
                 for m in self.models()}
        self.assertEqual(set(found.values()), {0}, found)

    def test_fold_constants(self):
        found = {}
        for model in self.models():
            ours = model.original('add_default_attributes', model.ours('fold_constants'))
            theirs = model.original('add_default_attributes', model.original('fold_constants'))
            found[model.folder.name] = passes_oracle.difference(ours, theirs)
        self.check('fold_constants', found)

    def test_tensorflow_runs_what_was_folded(self):
        for model in self.models():
            with self.subTest(model.folder.name):
                self.assertLessEqual(model.largest_error(model.ours(FOLDS))[1], 1e-4)

    def test_tensorflow_runs_inception_v3_folded_and_quantized(self):
        model = Model(MODELS / 'inception_v3')
        self.assertLessEqual(model.largest_error(model.ours(FOLDS + ' quantize_weights'))[0], 0.05)


if __name__ == '__main__':
    unittest.main()
