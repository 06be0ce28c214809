"""Compares TensorFlow Lite models before and after they are read and written, in LiteRT.

Each model is written unchanged, and with new names for all nodes (obfuscate_names), so that its operators are written
again. LiteRT runs both files on the same seeded inputs, with its reference kernels and with its default delegate; every
output must be equal bit for bit. tflite_round_trip.json records the outcome and the SHA-256 of each written file.

Without LiteRT, the files are written again and compared with the recorded SHA-256: LiteRT's outcome holds for the same
bytes. PERMAFROST_UPDATE_ORACLE=1 rewrites the record. LiteRT runs in a process for each model, because it aborts on some.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
MODELS = pathlib.Path(os.environ.get('PERMAFROST_SHARED', WORKSPACE.parent / 'shared')) / 'models_tflite'
TOOL = pathlib.Path(os.environ.get('PERMAFROST', WORKSPACE / 'bazel-bin/tools/permafrost'))
RECORD = pathlib.Path(__file__).with_name('tflite_round_trip.json')
EDITS = {
    'unchanged': ['convert_model', '{model}', '{out}'],
    'names': ['transform_graph', '--in_graph={model}', '--out_graph={out}', '--transforms=obfuscate_names',
              '--verify=off'],
}
# Models that are not written, because their graph holds no node.
WITHOUT_NODES = ('small/2_subgraphs/model.tflite', 'small/empty_model/model.tflite',
                 'small/two_subgraphs/model.tflite')
# obfuscate_names renames the nodes by whose names initial values are found, and verification (off here) refuses the result.
WITH_INITIAL_VALUES = ('variables/model.tflite', 'wakeword_streaming/model.tflite')
RUNS = 2  # Further runs show whether states behave the same.


def outputs(path, kernels):
    """The bytes of all outputs of all runs."""
    import numpy as np
    from ai_edge_litert import interpreter as litert
    resolver = litert.OpResolverType
    chosen = {'default': resolver.AUTO, 'reference': resolver.BUILTIN_REF}[kernels]
    model = litert.Interpreter(path, num_threads=1, experimental_op_resolver_type=chosen)
    model.allocate_tensors()
    random = np.random.RandomState(1)
    found = []
    for _ in range(RUNS):
        for detail in model.get_input_details():
            if detail['dtype'] in (np.object_, np.bytes_, np.str_):
                value = np.full(detail['shape'], b'text', dtype=object)
            elif np.issubdtype(detail['dtype'], np.floating):
                value = random.uniform(-1, 1, detail['shape']).astype(detail['dtype'])
            else:
                value = random.randint(0, 2, detail['shape']).astype(detail['dtype'])
            model.set_tensor(detail['index'], value)
        model.invoke()
        for detail in model.get_output_details():
            value = model.get_tensor(detail['index'])
            found.append(repr(value.tolist()) if value.dtype == object else value.tobytes().hex())
    return hashlib.sha256('\n'.join(found).encode()).hexdigest()


def signatures(path):
    from ai_edge_litert import interpreter as litert
    return json.dumps(litert.Interpreter(path, num_threads=1).get_signature_list(), sort_keys=True)


def work(paths):
    """Prints a JSON line with LiteRT's outcome for each path."""
    for path in paths:
        outcome = {}
        for what in ('reference', 'default', 'signatures'):
            print(json.dumps([path, what, 'starts']), flush=True)
            try:
                outcome[what] = signatures(path) if what == 'signatures' else outputs(path, what)
            except Exception:  # pylint: disable=broad-except
                outcome[what] = 'fails'
            print(json.dumps([path, what, outcome[what]]), flush=True)


def litert_outcomes(paths):
    """LiteRT's outputs and signatures for each file. A process that it aborts is started again behind that file."""
    paths = [str(path) for path in paths]
    found = {path: {what: 'fails' for what in ('reference', 'default', 'signatures')} for path in paths}
    while paths:
        run = subprocess.run([sys.executable, __file__, '--worker'] + paths, capture_output=True, text=True)
        lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('["')]
        for path, what, outcome in lines:
            found[path][what] = 'fails' if outcome == 'starts' else outcome
        if run.returncode == 0:
            break
        paths = paths[paths.index(lines[-1][0]) + 1:] if lines else []
    return found


def write(edit, model, out):
    command = [str(TOOL)] + [part.format(model=model, out=out) for part in EDITS[edit]]
    run = subprocess.run(command, capture_output=True, text=True)
    return None if run.returncode == 0 else run.stderr.strip().splitlines()[-1]


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def all_models():
    return sorted(MODELS.rglob('*.tflite'))


def record():
    entries = {}
    models = all_models()
    with tempfile.TemporaryDirectory() as folder:
        outs, errors = {}, {}
        for i, model in enumerate(models):
            for edit in EDITS:
                out = pathlib.Path(folder) / f'{i}_{edit}.tflite'
                error = write(edit, model, out)
                if error is not None:
                    errors[model, edit] = error.replace(str(MODELS) + '/', '')
                else:
                    outs[model, edit] = out
        found = litert_outcomes(models + list(outs.values()))
        for model in models:
            before = found[str(model)]
            entry = {'litert_runs': before['reference'] != 'fails' or before['default'] != 'fails'}
            for edit in EDITS:
                if (model, edit) in errors:
                    entry[edit] = {'error': errors[model, edit]}
                    continue
                out = outs[model, edit]
                after = found[str(out)]
                entry[edit] = {
                    'sha256': sha256(out),
                    'outputs': 'equal' if all(after[k] == before[k] for k in ('reference', 'default')) else 'differ',
                    'signatures': 'equal' if after['signatures'] == before['signatures'] else 'differ',
                    'size': round(out.stat().st_size / model.stat().st_size, 4),
                }
            entries[str(model.relative_to(MODELS))] = entry
    RECORD.write_text(json.dumps(entries, indent=1, sort_keys=True) + '\n')


@unittest.skipUnless(MODELS.is_dir(), f'no models in {MODELS}')
class RoundTripOracle(unittest.TestCase):
    def test_written_files_are_those_that_litert_ran(self):
        entries = json.loads(RECORD.read_text())
        for model in all_models():
            entry = entries[str(model.relative_to(MODELS))]
            for edit in EDITS:
                with self.subTest(model=str(model), edit=edit), tempfile.TemporaryDirectory() as folder:
                    out = pathlib.Path(folder) / 'out.tflite'
                    error = write(edit, model, out)
                    if 'error' in entry[edit]:
                        self.assertIsNotNone(error)
                        continue
                    self.assertIsNone(error)
                    self.assertEqual(sha256(out), entry[edit]['sha256'])

    def test_litert_found_no_difference(self):
        for name, entry in json.loads(RECORD.read_text()).items():
            if not entry['litert_runs']:
                continue
            for edit in EDITS:
                with self.subTest(model=name, edit=edit):
                    self.assertEqual('error' in entry[edit], name in WITHOUT_NODES, entry[edit])
                    if name in WITHOUT_NODES or (edit == 'names' and name in WITH_INITIAL_VALUES):
                        continue
                    self.assertEqual(entry[edit]['outputs'], 'equal', entry[edit])
                    self.assertEqual(entry[edit]['signatures'], 'equal')
            if name not in WITHOUT_NODES:
                self.assertLessEqual(entry['unchanged']['size'], 1.02)


if __name__ == '__main__':
    if len(sys.argv) > 1 and sys.argv[1] == '--worker':
        work(sys.argv[2:])
    elif os.environ.get('PERMAFROST_UPDATE_ORACLE'):
        record()
    else:
        unittest.main()
