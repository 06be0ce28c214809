"""Compares trained tfjs models that convert_model has converted to graphs with TensorFlow: both run the converted graph on the
same random inputs. Skipped unless script/fetch_models has been run ($PERMAFROST_MODELS, or .models in the workspace).

An output passes if the root mean square of the difference is at most 1e-4 of that of TensorFlow's output, and all numbers are
finite. Models that need an op that the runtime lacks, or shapes that the model does not specify, are listed with the reason.
PERMAFROST_UPDATE_ORACLE=1 writes the printed table to docs/formats/tfjs.md.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
import passes_oracle
import tensorflow as tf

WORKSPACE = passes_oracle.WORKSPACE
MODELS = pathlib.Path(os.environ.get('PERMAFROST_MODELS', WORKSPACE / '.models'))
VALIDATE = pathlib.Path(passes_oracle.TOOL).parent / 'validate_model'
PAGE = WORKSPACE / 'docs' / 'formats' / 'tfjs.md'
TOLERANCE = 1e-4
FREE_DIMENSION = 256  # Size of images that the model does not specify.


def interface(model):
    """Returns inputs and outputs of the signature. Without inputs in the signature, the placeholders are fed."""
    signature = model.get('signature') or model.get('userDefinedMetadata', {}).get('signature') or {}
    names = lambda part: [e.get('name', key).removesuffix(':0') for key, e in signature.get(part, {}).items()]
    placeholders = [n['name'] for n in model['modelTopology']['node'] if n['op'] == 'Placeholder']
    return names('inputs') or placeholders, names('outputs')


def feeds(graph, inputs, seed):
    rng = np.random.default_rng(seed)
    result = {}
    for name in inputs:
        tensor = graph.get_tensor_by_name(f'{name}:0')
        dims = tensor.shape.as_list() if tensor.shape.rank is not None else []
        shape = [d if d is not None else 1 if i == 0 else FREE_DIMENSION for i, d in enumerate(dims)]
        dtype = tensor.dtype.as_numpy_dtype
        whole = np.issubdtype(dtype, np.integer)
        result[name] = rng.integers(0, 256, shape).astype(dtype) if whole else rng.random(shape, dtype=np.float32)
    return result


def constant_model(graph_def, fed, outputs, values):
    """Returns a graph with the constant outputs `values`: TensorFlow's results, for validate_model to compare with."""
    model = tf.compat.v1.GraphDef()
    model.node.extend(node for node in graph_def.node if node.name in fed)
    for output, value in zip(outputs, values):
        node = model.node.add(name=output, op='Const')
        node.attr['dtype'].type = tf.as_dtype(value.dtype).as_datatype_enum
        node.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(value))
    return model


class Comparison:
    """One model: `result` is the outcome, `error` the largest error of its outputs."""

    def __init__(self, path):
        self.name, self.error, self.fails = path.stem, float('nan'), False
        model = json.loads(path.read_text(encoding='utf-8'))
        self.fed, self.outputs = interface(model)
        self.path = path.with_suffix('.pb')
        self.graph_def = tf.compat.v1.GraphDef.FromString(self.path.read_bytes())
        self.result = self.compare()

    def compare(self):
        try:
            graph = tf.Graph()
            with graph.as_default():
                tf.import_graph_def(self.graph_def, name='')
            values = feeds(graph, self.fed, 7)
            with tf.compat.v1.Session(graph=graph) as session:
                expected = session.run([f'{o}:0' for o in self.outputs],
                                       {f'{name}:0': value for name, value in values.items()})
        except (ValueError, tf.errors.OpError) as error:
            return 'TensorFlow does not run it: ' + str(error).splitlines()[0][:100]
        if not all(np.all(np.isfinite(value)) for value in expected if value.dtype.kind == 'f'):
            return 'TensorFlow\'s own outputs are not finite'
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for i, name in enumerate(values):
                np.save(folder / f'{i}.npy', values[name])
            answers = constant_model(self.graph_def, self.fed, self.outputs, expected)
            (folder / 'answers.pb').write_bytes(answers.SerializeToString())
            return self.judge(folder, values)

    def judge(self, folder, values):
        files = ','.join(f'{name}={folder}/{i}.npy' for i, name in enumerate(values))
        done = subprocess.run([VALIDATE, f'--reference={folder}/answers.pb', f'--candidate={self.path}',
                               f'--inputs={files}', f'--outputs={",".join(self.outputs)}', '--json'],
                              capture_output=True, text=True, check=False)
        if not done.stdout:
            self.fails = 'no kernel' not in done.stderr and 'not implemented' not in done.stderr
            return done.stderr.strip().replace(str(folder), '').replace(str(self.path), self.path.name)[:160]
        report = json.loads(done.stdout)
        errors = []
        for output in report['outputs']:
            if output['mismatch'] or output['nonfinite_mismatches']:
                errors.append(float('inf'))
            else:
                # The ratio of the root mean squares; omitted if the difference is zero.
                errors.append(0.0 if output['max_abs'] == 0 else 10 ** (-output['sqnr_db'] / 20))
        self.error = max(errors)
        self.fails = not self.error <= TOLERANCE
        return 'differs' if self.fails else 'same'


def table(comparisons):
    rows = ['| model | nodes | inputs | outputs | largest rms error, relative | |', '|---|---|---|---|---|---|']
    for c in comparisons:
        error = '' if np.isnan(c.error) else f'{c.error:.1e}'
        rows.append(f'| {c.name} | {len(c.graph_def.node)} | {len(c.fed)} | {len(c.outputs)} | {error} | {c.result} |')
    return '\n'.join(rows) + '\n'


@unittest.skipUnless(MODELS.is_dir(), 'script/fetch_models has not been run')
class TfjsTest(unittest.TestCase):

    def test_outputs_are_those_of_tensorflow(self):
        models = [path for path in sorted(MODELS.glob('*/*.json')) if path.with_suffix('.pb').exists()]
        self.assertTrue(models)
        comparisons = []
        for path in models:
            with self.subTest(path.stem):
                comparisons.append(Comparison(path))
                self.assertFalse(comparisons[-1].fails, comparisons[-1].result)
        found = table(comparisons)
        print(found)
        if os.environ.get('PERMAFROST_UPDATE_ORACLE') == '1':
            page = PAGE.read_text(encoding='utf-8')
            PAGE.write_text(re.sub(r'(?m)^\| model \|(.*\n)*', '', page).rstrip('\n') + '\n\n' + found, encoding='utf-8')


if __name__ == '__main__':
    unittest.main()
