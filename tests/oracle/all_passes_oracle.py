"""Runs every pass over every large model with the tool, and runs the results in TensorFlow.

For each pass and model, transform_graph succeeds, its verification agrees with the declaration of the pass, and TensorFlow
loads the result and runs it on a recorded input. Unless the pass declares that it changes outputs, TensorFlow's outputs equal
those of the original model. Passes that break a model by design are listed below.

PERMAFROST_ORACLE_MODELS=age,posenet selects models; all of them take almost an hour. PERMAFROST_UPDATE_ORACLE=1 records the
outcomes in all_passes_outcomes.json by model: the result of the verification, and the difference of TensorFlow's outputs
relative to the largest value of each.
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
from models_oracle import MODELS, Model

# Arguments for passes that need some, and the transforms that run first.
CALLS = {
    'drop_preprocessing': None,  # The two change what inputs take. Their golden cases feed matching inputs.
    'fold_preprocessing': None,
    'freeze_requantization_ranges': None,  # Needs the log of a run, and has its own test.
    'quantize_nodes': 'add_default_attributes quantize_nodes',
    'remove_attribute': 'remove_attribute(attribute_name=_output_shapes)',
    'remove_nodes': 'remove_nodes(op=Identity)',
    'rename_attribute': 'rename_attribute(old_attribute_name=_output_shapes, new_attribute_name=_shapes)',
    'rescale_for_half': None,  # Needs the ranges of a run.
    'rename_node': 'rename_node(old_node_name=no_such_node, new_node_name=other)',
    'set_batch': None,  # Changes shapes of inputs: tflite_edits_oracle.py.
    'rename_op': 'rename_op(old_op_name=AddV2, new_op_name=Add)',
    'insert_logging': 'insert_logging(op=MaxPool, message="pool")',
}
OUTCOMES = pathlib.Path(__file__).with_name('all_passes_outcomes.json')
TOLERANCE = 1e-4  # Tolerance relative to the largest value of an output: TensorFlow's kernels sum in another order.


def calls():
    """Yields (name, transform string, whether numbers may change) of every pass and preset."""
    printed = subprocess.run([passes_oracle.TOOL, '--list_passes', '--json'], check=True, capture_output=True, text=True)
    for entry in json.loads(printed.stdout):
        name = entry['name']
        missing = [p['name'] for p in entry.get('params', []) if p['is_required']]
        if missing and name not in CALLS:
            raise AssertionError(f'{name} needs {missing}: add a call to CALLS')
        call = CALLS.get(name, name)
        if call is not None:
            # A preset declares no tolerance: some of its passes may change numbers.
            yield name, call, entry.get('numerics', 'changes').startswith('changes')


def transform(model, call, out):
    """Returns the report of transform_graph, which exits with 0 only if its check passed."""
    command = [passes_oracle.TOOL, f'--in_graph={model.folder / "model.pb"}', f'--out_graph={out}', '--json',
               f'--inputs={",".join(model.inputs)}', f'--outputs={",".join(model.outputs)}', f'--transforms={call}']
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f'exit {done.returncode}: {done.stderr.strip()}')
    return json.loads(done.stdout)


def run(graph_def, model):
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name='')
    with tf.compat.v1.Session(graph=graph) as session:
        return session.run([f'{o}:0' for o in model.outputs],
                           {f'{model.inputs[0]}:0': np.load(model.folder / 'input_0.npy')})


def largest_error(found, expected):
    worst = 0.0
    for mine, other in zip(found, expected):
        error = float(np.abs(mine.astype(np.float64) - other).max()) if mine.size else 0.0
        worst = max(worst, (error if np.isfinite(error) else np.inf) / max(1.0, float(np.abs(other).max())))
    return worst


def folders():
    """Returns the models to run."""
    every = sorted(MODELS.iterdir())
    wanted = [name for name in os.environ.get('PERMAFROST_ORACLE_MODELS', '').split(',') if name]
    unknown = set(wanted) - {folder.name for folder in every}
    if unknown:
        raise ValueError(f'PERMAFROST_ORACLE_MODELS: no model {", ".join(sorted(unknown))}')
    return [folder for folder in every if not wanted or folder.name in wanted]


def record(model, outcomes):
    """Writes the outcome of one model into OUTCOMES."""
    records = json.loads(OUTCOMES.read_text(encoding='utf-8')) if OUTCOMES.exists() else {}
    records[model] = outcomes
    OUTCOMES.write_text(json.dumps(records, indent=1, sort_keys=True) + '\n', encoding='utf-8')


@unittest.skipUnless(MODELS.is_dir(), 'the large models are not beside the workspace')
class AllPassesTest(unittest.TestCase):

    def test_every_pass_on_every_model(self):
        recorded = json.loads(OUTCOMES.read_text(encoding='utf-8')) if OUTCOMES.exists() else {}
        for folder in folders():
            model = Model(folder)
            expected = run(model.graph, model)
            outcomes = {}
            for name, call, changes_numbers in calls():
                # The names of inputs and outputs are kept, unless the pass declares otherwise.
                with self.subTest(f'{folder.name}: {name}'), tempfile.TemporaryDirectory() as scratch:
                    out = pathlib.Path(scratch) / 'out.pb'
                    report = transform(model, call, out)
                    self.assertIn(report['verification']['result'], ('passed', 'measured'), report['verification'])
                    found = run(tf.compat.v1.GraphDef.FromString(out.read_bytes()), model)
                    self.assertEqual([f.shape for f in found], [e.shape for e in expected])
                    error = largest_error(found, expected)
                    if not changes_numbers:
                        self.assertLessEqual(error, TOLERANCE)
                    outcomes[name] = {'check': report['verification']['result'], 'error': float(f'{error:.1g}')}
            if os.environ.get('PERMAFROST_UPDATE_ORACLE'):
                record(folder.name, outcomes)
            else:
                # The errors are those of one machine.
                check = lambda entries: {name: entry['check'] for name, entry in entries.items()}
                self.assertEqual(check(outcomes), check(recorded.get(folder.name, {})), folder.name)


if __name__ == '__main__':
    unittest.main()
