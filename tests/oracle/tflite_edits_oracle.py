"""Edits real TensorFlow Lite models, and compares LiteRT's outputs on the edited files with those on the originals.

The eleven trained models of shared/models_tflite are edited with transform_graph:

    cut       an inner tensor becomes the only output
    head      the same tensor becomes the only input
    strip     all outputs but the last are removed (models with several)
    batch     the batch is fixed at 2 (set_batch)
    open      the batch is left open (set_batch); LiteRT resizes the input to 2
    layer     the weights of one operator are quantised (float models)

LiteRT's reference kernels must give the values of the original: the inner tensor, the outputs for its value, the outputs
for both halves of the batch. A quantised layer must stay above 15 dB, and the other weights must be the bytes they were.
tflite_edits.json records outcome, operator counts and the SHA-256 of each file; without LiteRT, the files are written
again and their SHA-256 is compared. PERMAFROST_UPDATE_ORACLE=1 rewrites the record.
"""

import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
MODELS = pathlib.Path(os.environ.get('PERMAFROST_SHARED', WORKSPACE.parent / 'shared')) / 'models_tflite'
TOOL = pathlib.Path(os.environ.get('PERMAFROST', WORKSPACE / 'bazel-bin/tools/permafrost'))
RECORD = pathlib.Path(__file__).with_name('tflite_edits.json')
EDITS = ('cut', 'head', 'strip', 'batch', 'open', 'layer')
LEAST_SQNR = 15  # Where convert_model, too, keeps layers in float.


def real_models():
    """The models whose specification names a package."""
    return sorted(folder.name for folder in MODELS.iterdir()
                  if (folder / 'spec.json').exists() and
                  isinstance(json.loads((folder / 'spec.json').read_text()).get('source'), dict))


def node_name(tensor):
    """The node that the reader makes of a tensor's name."""
    name = re.sub(r'[^A-Za-z0-9._/-]', '_', re.sub(':0$', '', tensor))
    return name if re.match('[A-Za-z0-9.]', name) else 't' + name


def command(model, edit, plan, out):
    """The tool's command line for an edit; plan is what record() chose."""
    transforms = 'strip_unused_nodes'
    flags = []
    if edit == 'cut':
        flags = [f'--outputs={plan["tensor"]}']
    elif edit == 'head':
        flags = [f'--inputs={plan["tensor"]}']
    elif edit == 'strip':
        flags = [f'--outputs={plan["output"]}']
    elif edit in ('batch', 'open'):
        batch = '2' if edit == 'batch' else 'any'
        transforms = f'set_batch(size={batch})'
    else:
        kept = ', '.join(f'keep_float="{node}"' for node in plan['kept'])
        transforms = f'quantize_for_tflite(mode=dynamic, {kept})'
    return [str(TOOL), 'transform_graph', f'--in_graph={MODELS / model / "model.tflite"}', f'--out_graph={out}',
            f'--transforms={transforms}', '--verify=off'] + flags


def write(model, edit, plan, out):
    run = subprocess.run(command(model, edit, plan, out), capture_output=True, text=True)
    return None if run.returncode == 0 else run.stderr.strip().splitlines()[-1]


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


# --- LiteRT -----------------------------------------------------------------------------------------------------------


def interpreter(path, keeps_all=False):
    from ai_edge_litert import interpreter as litert
    return litert.Interpreter(str(path), num_threads=1, experimental_preserve_all_tensors=keeps_all,
                              experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)


def allocate(model, folder, batch=None):
    """Gives the inputs the shapes of the recorded ones, which matter where the file leaves them open."""
    import numpy as np
    for i, detail in enumerate(model.get_input_details()):
        shape = list(np.load(folder / f'input_0_{i}.npy').shape)
        if batch is not None:
            shape[0] = batch
        if list(detail['shape']) != shape:
            model.resize_tensor_input(detail['index'], shape)
    model.allocate_tensors()


def random_inputs(folder, count):
    import numpy as np
    random = np.random.RandomState(3)
    sets = []
    for _ in range(count):
        values = []
        for path in sorted(folder.glob('input_0_*.npy')):
            like = np.load(path)
            if np.issubdtype(like.dtype, np.floating):
                values.append(random.uniform(0, 1, like.shape).astype(like.dtype))
            else:
                info = np.iinfo(like.dtype)
                values.append(random.randint(info.min, info.max + 1, like.shape).astype(like.dtype))
        sets.append(values)
    return sets


def run(model, values):
    for detail, value in zip(model.get_input_details(), values):
        model.set_tensor(detail['index'], value)
    model.invoke()
    return [model.get_tensor(detail['index']) for detail in model.get_output_details()]


def judge(found, expected):
    """'equal', or the largest difference relative to the largest value."""
    import numpy as np
    if len(found) != len(expected) or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(found, expected)):
        return 'other shapes or types'
    if all(np.array_equal(a, b, equal_nan=a.dtype.kind == 'f') for a, b in zip(found, expected)):
        return 'equal'
    worst = max(float(np.abs(a.astype(np.float64) - b).max() / max(1e-30, np.abs(b.astype(np.float64)).max()))
                for a, b in zip(found, expected))
    return f'differs by {worst:.2g}'


def sqnr(found, expected):
    import numpy as np
    noise = sum(float(np.square(a.astype(np.float64) - b).sum()) for a, b in zip(found, expected))
    signal = sum(float(np.square(b.astype(np.float64)).sum()) for b in expected)
    return 10 * np.log10(signal / max(noise, 1e-30))


def plans(model):
    """What each edit is applied to."""
    original = interpreter(MODELS / model / 'model.tflite', keeps_all=True)
    tensors = {detail['index']: detail for detail in original.get_tensor_details()}
    names = [node_name(detail['name']) for detail in tensors.values()]
    inputs, outputs = original.get_input_details(), original.get_output_details()
    ends = {detail['index'] for detail in inputs + outputs}
    operators = original._get_ops_details()  # pylint: disable=protected-access
    # Tensors behind which the model is cut: the operands on the other side are constants or come from it alone.
    found = []
    last_reader = {}
    for i, op in enumerate(operators):
        for index in op['inputs']:
            last_reader[int(index)] = i
    open_tensors = {detail['index'] for detail in inputs}
    for i, op in enumerate(operators):
        open_tensors.update(int(index) for index in op['outputs'])
        open_tensors = {t for t in open_tensors if last_reader.get(t, -1) > i or t in {d['index'] for d in outputs}}
        if len(open_tensors) == 1 and not open_tensors & ends and i + 1 < len(operators):
            (index,) = open_tensors
            if names.count(node_name(tensors[index]['name'])) == 1 and not tensors[index]['dtype'] == object:
                found.append(index)
    plan = {}
    if found:
        index = found[len(found) // 2]
        plan['cut'] = plan['head'] = {'tensor': node_name(tensors[index]['name']), 'index': index}
    if len(outputs) > 1:
        plan['strip'] = {'output': node_name(outputs[-1]['name']), 'index': len(outputs) - 1}
    if len(inputs) == 1 and list(inputs[0]['shape'])[:1] == [1]:
        for edit in ('batch', 'open'):
            plan[edit] = {}
    weighty = [op for op in operators if op['op_name'] in ('CONV_2D', 'DEPTHWISE_CONV_2D', 'FULLY_CONNECTED')]
    results = [node_name(tensors[int(op['outputs'][0])]['name']) for op in weighty]
    is_float = all(tensors[int(op['inputs'][1])]['dtype'].__name__.startswith('float') for op in weighty)
    if weighty and is_float:
        # The largest filter.
        sizes = [math.prod(int(d) for d in tensors[int(op['inputs'][1])]['shape']) for op in weighty]
        chosen = sizes.index(max(sizes))
        plan['layer'] = {'quantised': results[chosen],
                         'kept': [name for i, name in enumerate(results) if i != chosen]}
    return plan


def outcome(model, edit, plan, out):
    """LiteRT's verdict on an edited file."""
    import numpy as np
    folder = MODELS / model
    original = interpreter(folder / 'model.tflite', keeps_all=True)
    allocate(original, folder)
    edited = interpreter(out)
    if edit == 'batch' and edited.get_input_details()[0]['shape'][0] != 2:
        return 'another batch'
    if edit != 'head':
        allocate(edited, folder, 2 if edit in ('batch', 'open') else None)
    sets = random_inputs(folder, 2)
    if edit == 'cut':
        run(original, sets[0])
        expected = [original.get_tensor(plan['index'])]
        return judge(run(edited, sets[0]), expected)
    if edit == 'head':
        expected = run(original, sets[0])
        value = original.get_tensor(plan['index'])
        edited.resize_tensor_input(edited.get_input_details()[0]['index'], value.shape)
        edited.allocate_tensors()
        return judge(run(edited, [value]), expected)
    if edit == 'strip':
        return judge(run(edited, sets[0]), [run(original, sets[0])[plan['index']]])
    if edit in ('batch', 'open'):
        halves = []
        for values in sets:
            fresh = interpreter(folder / 'model.tflite')
            allocate(fresh, folder)
            halves.append(run(fresh, values))
        expected = [np.concatenate(pair) if pair[0].ndim > 0 else pair[0] for pair in zip(*halves)]
        return judge(run(edited, [np.concatenate(pair) for pair in zip(*sets)]), expected)
    return f'{sqnr(run(edited, sets[0]), run(original, sets[0])):.1f} dB'


def work(arguments):
    model, edit, plan, out = json.loads(arguments)
    try:
        print(json.dumps(outcome(model, edit, plan, out)))
    except Exception as error:  # pylint: disable=broad-except
        print(json.dumps('LiteRT: ' + str(error).splitlines()[0][:160]))


def operators_of(path):
    return len(interpreter(path)._get_ops_details())  # pylint: disable=protected-access


def record():
    entries = {}
    for model in real_models():
        entry = entries[model] = {}
        for edit, plan in plans(model).items():
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / 'edited.tflite'
                error = write(model, edit, plan, out)
                if error is not None:
                    print(model, edit, error, file=sys.stderr)
                    entry[edit] = {'plan': plan, 'error': error.replace(str(MODELS) + '/', '').replace(folder, '')}
                    continue
                worker = subprocess.run([sys.executable, __file__, '--worker', json.dumps([model, edit, plan, str(out)])],
                                        capture_output=True, text=True)
                lines = worker.stdout.strip().splitlines()
                entry[edit] = {'plan': plan, 'sha256': sha256(out),
                               'litert': json.loads(lines[-1]) if lines else 'LiteRT: aborted',
                               'operators': [operators_of(MODELS / model / 'model.tflite'), operators_of(out)]}
            print(model, edit, entry[edit].get('litert', entry[edit].get('error')), file=sys.stderr)
    RECORD.write_text(json.dumps(entries, indent=1, sort_keys=True) + '\n')


@unittest.skipUnless(MODELS.is_dir(), f'no models in {MODELS}')
class EditsOracle(unittest.TestCase):
    def test_written_files_are_those_that_litert_ran(self):
        for model, edits in json.loads(RECORD.read_text()).items():
            for edit, entry in edits.items():
                with self.subTest(model=model, edit=edit), tempfile.TemporaryDirectory() as folder:
                    out = pathlib.Path(folder) / 'edited.tflite'
                    error = write(model, edit, entry['plan'], out)
                    if 'error' in entry:
                        self.assertIsNotNone(error)
                        continue
                    self.assertIsNone(error)
                    self.assertEqual(sha256(out), entry['sha256'])

    def test_litert_found_no_difference(self):
        entries = json.loads(RECORD.read_text())
        self.assertGreaterEqual(len(entries), 11)
        for model, edits in entries.items():
            for edit, entry in edits.items():
                with self.subTest(model=model, edit=edit):
                    if (model, edit) in KNOWN:
                        continue
                    self.assertNotIn('error', entry)
                    if edit == 'layer':
                        self.assertGreaterEqual(float(entry['litert'].split()[0]), LEAST_SQNR)
                    else:
                        self.assertEqual(entry['litert'], 'equal')


# Edits that the model itself does not allow, or that LiteRT cannot run.
CUSTOM = 'LiteRT has no kernel for its Convolution2DTransposeBias'
KNOWN = {
    ('selfie_segmentation', 'cut'): CUSTOM,
    ('selfie_segmentation', 'head'): CUSTOM,
    ('selfie_segmentation', 'layer'): CUSTOM,
    ('selfie_segmentation', 'batch'): 'a transposed convolution of changed size has no form in TensorFlow Lite',
    ('selfie_segmentation', 'open'): 'the output shape of a transposed convolution is a constant',
    ('wakeword_streaming', 'head'): 'the operators that are left write states from the input',
    ('wakeword_streaming', 'batch'): 'its states have the batch 1',
    ('wakeword_streaming', 'open'): 'its states have the batch 1',
}

if __name__ == '__main__':
    if len(sys.argv) > 1 and sys.argv[1] == '--worker':
        work(sys.argv[2])
    elif os.environ.get('PERMAFROST_UPDATE_ORACLE'):
        record()
    else:
        unittest.main()
