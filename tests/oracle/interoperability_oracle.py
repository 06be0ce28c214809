"""Finds which programs read the graphs that each pass and preset writes. docs/interoperability.md shows the result.

A pass is tried on the first graph in which it finds something to do: a small network that all programs read, or one of its
golden cases. Presets are tried on the bundled digits and MobileNet v2 of ../shared/models. A program reads a result if it
loads it, runs it, and agrees with TensorFlow on the outputs of the same file. Results of passes are judged only if the program
reads the graph before the pass.

interoperability.json has the outcomes; PERMAFROST_UPDATE_ORACLE=1 rewrites it and the page. Programs that are not installed
keep their records. TensorFlow.js is the converter (pip install --no-deps tensorflowjs==4.22.0 tf_keras tensorflow_hub) and the
runtime of node (npm install @tensorflow/tfjs@4.22.0 in the folder that PERMAFROST_TFJS names).
"""

import concurrent.futures
import hashlib
import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'

import interoperability_page
import numpy as np

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ.get('PERMAFROST_TOOLS', WORKSPACE / 'bazel-bin/tools'))
MODELS = pathlib.Path(os.environ.get('PERMAFROST_SHARED', WORKSPACE.parent / 'shared')) / 'models'
GOLDEN = WORKSPACE / 'tests/golden'
TOLERANCE = 0.01  # Tolerance relative to the rms of an output. Programs that compute in half precision are well below.
MOST_SECONDS = 120
GOLDEN_CASES = 6  # Maximum number of cases to try for a pass.

# Calls of passes that need parameters, and the transforms before them. A pass without a row is called without parameters.
FOLDED = 'fold_constants fold_old_batch_norms'
CALLS = {
    'defuse_ops': (FOLDED + ' fuse_activations', 'defuse_ops'),
    'fold_batch_norms': ('fold_constants', 'fold_batch_norms'),
    'fold_old_batch_norms': ('fold_constants', 'fold_old_batch_norms'),
    'fuse_activations': (FOLDED, 'fuse_activations'),
    'insert_logging': ('', 'insert_logging(op=Relu)'),
    'quantize_nodes': (FOLDED + ' add_default_attributes', 'quantize_nodes'),
    'remove_attribute': ('', 'remove_attribute(attribute_name=explicit_paddings)'),
    'remove_device': ('set_device(device="/device:CPU:0")', 'remove_device'),
    'remove_nodes': ('', 'remove_nodes(op=Identity)'),
    'rename_op': ('', 'rename_op(old_op_name=AddV2, new_op_name=Add)'),
    'set_device': ('', 'set_device(device="/device:CPU:0")'),
}
# Additional rows for a pass.
VARIANTS = {'quantize_weights': ['quantize_weights(per_channel=true)', 'quantize_weights(per_channel=true, bits=16)']}
# Passes that are not tried: their result depends only on parameters, or they need a file of another run.
LEFT_OUT = {'rename_attribute': 'writes what its parameters name', 'rename_node': 'writes what its parameters name',
            'freeze_requantization_ranges': 'needs a log of another run', 'rescale_for_half': 'needs the ranges of a run',
            'drop_preprocessing': 'changes what the input takes', 'set_batch': 'changes the shape of the input',
            'fold_preprocessing': 'changes what the input takes'}


def names_of_passes():
    """(passes, presets), as docs/passes.md lists them; it is generated from the definitions."""
    passes, presets = (WORKSPACE / 'docs/passes.md').read_text(encoding='utf-8').split('\n# Presets\n')
    headings = lambda text: re.findall(r'^## (\w+)$', text, re.MULTILINE)
    return headings(passes), headings(presets)


# --- Programs. Each runs in a process of its own, and returns the outputs in the order of `outputs`. ------------------------

def run_tensorflow(path, feeds, outputs):
    import tensorflow as tf
    graph_def = tf.compat.v1.GraphDef.FromString(pathlib.Path(path).read_bytes())
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.import_graph_def(graph_def, name='')
        return session.run([f'{name}:0' for name in outputs], {f'{name}:0': value for name, value in feeds.items()})


def run_openvino(path, feeds, outputs):
    import openvino
    compiled = openvino.Core().compile_model(openvino.Core().read_model(path), 'CPU')
    named = lambda port, name: bool(port.get_names() & {name, f'{name}:0'})
    inputs = {port: next(value for name, value in feeds.items() if named(port, name)) for port in compiled.inputs}
    result = compiled(inputs)
    return [np.array(result[next(port for port in compiled.outputs if named(port, name))]) for name in outputs]


def run_opencv(path, feeds, outputs):
    import cv2
    net = cv2.dnn.readNetFromTensorflow(path)
    for name, value in feeds.items():
        net.setInput(value.transpose(0, 3, 1, 2) if value.ndim == 4 else value, name)
    # OpenCV drops the names of merged nodes; a single output needs none.
    return [np.array(net.forward())] if len(outputs) == 1 else [np.array(net.forward(name)) for name in outputs]


def run_tf2onnx(path, feeds, outputs):
    import onnxruntime
    import tensorflow as tf
    import tf2onnx
    graph_def = tf.compat.v1.GraphDef.FromString(pathlib.Path(path).read_bytes())
    model, _ = tf2onnx.convert.from_graph_def(graph_def, input_names=[f'{name}:0' for name in feeds],
                                              output_names=[f'{name}:0' for name in outputs], opset=18)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])
    return session.run([f'{name}:0' for name in outputs], {f'{name}:0': value for name, value in feeds.items()})


NODE = '''
const tf = require('@tensorflow/tfjs'), fs = require('fs'), path = require('path');
const [folder] = process.argv.slice(1), request = JSON.parse(fs.readFileSync(path.join(folder, 'request.json')));
const model = JSON.parse(fs.readFileSync(path.join(folder, 'model.json')));
const parts = model.weightsManifest.flatMap(group => group.paths.map(p => fs.readFileSync(path.join(folder, p))));
const data = Buffer.concat(parts);
(async () => {
  await tf.setBackend('cpu');
  const graph = await tf.loadGraphModel({load: async () => ({modelTopology: model.modelTopology,
    weightSpecs: model.weightsManifest.flatMap(group => group.weights), signature: model.signature,
    weightData: data.buffer.slice(data.byteOffset, data.byteOffset + data.length)})});
  const feeds = Object.fromEntries(Object.entries(request.feeds).map(([n, f]) => [n, tf.tensor(f.data, f.shape, f.dtype)]));
  let found = await graph.executeAsync(feeds, request.outputs);
  if (!Array.isArray(found)) found = [found];
  console.log(JSON.stringify(found.map(t => ({shape: t.shape, data: Array.from(t.dataSync())}))));
})().catch(error => { console.error(String(error)); process.exit(1); });
'''


def run_tensorflow_js(path, feeds, outputs):
    import tensorflow  # Searches for JAX when it is loaded.
    # Imported for conversions that are not used here. The first has no release for this TensorFlow.
    unused = ('tensorflow_decision_forests', 'jax', 'jax.experimental', 'jax.experimental.jax2tf')
    added = [name for name in unused if sys.modules.setdefault(name, types.ModuleType(name)).__doc__ is None]
    sys.modules['jax.experimental'].jax2tf = sys.modules['jax.experimental.jax2tf']
    from tensorflowjs.converters import tf_saved_model_conversion_v2 as converter
    for name in added:
        sys.modules.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        converter.convert_tf_frozen_model(path, ','.join(outputs), folder)
        request = {'outputs': list(outputs), 'feeds': {
            name: {'data': value.ravel().tolist(), 'shape': value.shape,
                   'dtype': 'int32' if value.dtype.kind in 'iu' else 'float32'} for name, value in feeds.items()}}
        pathlib.Path(folder, 'request.json').write_text(json.dumps(request), encoding='utf-8')
        done = subprocess.run(['node', '-e', NODE, folder], cwd=os.environ['PERMAFROST_TFJS'], capture_output=True, text=True,
                              timeout=MOST_SECONDS, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        found = json.loads(done.stdout.strip().splitlines()[-1])
        return [np.array(each['data'], np.float64).reshape(each['shape']) for each in found]


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


PROGRAMS = {
    'TensorFlow': (run_tensorflow, lambda: has('tensorflow')),
    'OpenVINO': (run_openvino, lambda: has('openvino')),
    'OpenCV': (run_opencv, lambda: has('cv2')),
    'tf2onnx': (run_tf2onnx, lambda: has('tf2onnx', 'onnxruntime')),
    'TensorFlow.js': (run_tensorflow_js, lambda: has('tensorflowjs', 'tf_keras') and 'PERMAFROST_TFJS' in os.environ),
}


def outcome(run, path, feeds, outputs):
    """The outputs, or the reason why there are none."""
    try:
        return run(path, feeds, outputs)
    except Exception as error:  # Each program has its own exception types, some of which cannot be pickled.
        return reason(f'{type(error).__name__}: {error}')


class Program:
    """A program in a separate process, which is restarted after a crash."""

    def __init__(self, name):
        self.run, self.pool, self.known = PROGRAMS[name][0], None, {}

    def outputs(self, path, feeds, outputs):
        """The outputs, or the reason why there are none."""
        key = (hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest(), tuple(outputs))
        if key not in self.known:
            if self.pool is None:
                self.pool = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('spawn'))
            try:
                self.known[key] = self.pool.submit(outcome, self.run, str(path), feeds, outputs).result(MOST_SECONDS)
            except concurrent.futures.process.BrokenProcessPool:
                self.pool, self.known[key] = None, 'the process dies'
            except concurrent.futures.TimeoutError:
                self.pool, self.known[key] = None, f'runs for more than {MOST_SECONDS} s'
        return self.known[key]

    def close(self):
        if self.pool is not None:
            self.pool.shutdown()


def reason(text):
    """Returns the line of an error that names the unsupported item, without addresses and paths."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not re.match(r'To facilitate|\w+: Exception from', line)]
    telling = [line for line in lines if re.search(
        r'nsupported|not supported|nknown|No conversion rule|not implemented|Can.t|Op type|without implementation|does not have'
        r'|not registered', line)]
    line = (telling or lines or [text])[0]
    if line.startswith('ValueError: Unsupported Ops'):  # TensorFlow.js lists them on the next line.
        line += f': {lines[lines.index(line) + 1]}'
    line = re.sub(r'/\S*/|0x[0-9a-f]+|OpenCV\([^)]*\) |(?<=:)\d+:?', '', line)
    return re.sub(r'[|`*<>]', ' ', line)[:140].strip()


# --- Graphs ----------------------------------------------------------------------------------------------------------------

def models():
    """Yields (name, path, feeds, outputs) of the models."""
    digits = WORKSPACE / 'tests/models/digits'
    yield 'digits', digits / 'digits.pb', {'image': np.load(digits / 'eval_images.npy')[:1]}, ['probabilities']
    large = MODELS / 'mobilenet_v2'
    if large.is_dir():
        spec = json.loads((large / 'spec.json').read_text(encoding='utf-8'))
        yield 'mobilenet_v2', large / 'model.pb', {spec['inputs'][0]['name']: np.load(large / 'input_0.npy')}, spec['outputs']


def small_network(folder):
    """Returns a frozen network of common ops of image models, with random weights."""
    import tensorflow as tf
    random = np.random.default_rng(5)
    weights = lambda *shape: tf.identity(tf.constant((random.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)))
    vector = lambda size: tf.constant(random.uniform(0.5, 1.5, size).astype(np.float32))
    with tf.Graph().as_default() as graph:
        image = tf.compat.v1.placeholder(tf.float32, [1, 16, 16, 3], 'image')
        x = tf.nn.conv2d(image, weights(3, 3, 3, 16), 2, 'SAME')
        x, *_ = tf.compat.v1.nn.fused_batch_norm(x, vector(16), vector(16), vector(16), vector(16), is_training=False)
        x = tf.nn.relu6(x)
        y = tf.nn.depthwise_conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), weights(3, 3, 16, 1), [1, 1, 1, 1], 'VALID')
        y = tf.nn.relu(tf.nn.bias_add(y, vector(16)))
        x = tf.identity(x + y)
        x = tf.concat([x, tf.nn.relu(tf.nn.conv2d(x, weights(1, 1, 16, 8), 1, 'SAME') * vector(8))], 3)
        x = tf.concat([x, tf.nn.relu(y)], 3)
        x = tf.reshape(tf.nn.max_pool2d(x, 2, 2, 'VALID'), [1, 4 * 4 * 40])
        tf.nn.softmax(tf.matmul(x, weights(640, 10)) + vector(10), name='probabilities')
    path = folder / 'small.pb'
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return 'small network', path, {'image': random.random((1, 16, 16, 3), np.float32)}, ['probabilities']


def golden_cases(name, folder):
    """Yields the cases of a pass that change, as (name, path, feeds, outputs, call). Inputs have random numbers."""
    from google.protobuf import text_format
    import tensorflow as tf
    random = np.random.default_rng(1)
    for path in sorted((GOLDEN / name).glob('*.pbtxt')):
        text = path.read_text(encoding='utf-8')
        header = dict(re.findall(r'^# (RUN|INPUTS|OUTPUTS|EXPECT): *(.*)$', text, re.MULTILINE))
        if path.name.endswith('.expected.pbtxt') or 'EXPECT' in header or not header.get('OUTPUTS') or '/' in header['RUN']:
            continue
        graph = text_format.Parse(text, tf.compat.v1.GraphDef())
        binary = folder / f'{name}_{path.stem}.pb'
        binary.write_bytes(graph.SerializeToString())
        feeds = {}
        for node in graph.node:
            if node.op == 'Placeholder':
                shape = [max(d.size, 1) for d in node.attr['shape'].shape.dim]
                dtype = tf.as_dtype(node.attr['dtype'].type)
                if dtype.is_floating or dtype.is_integer:
                    feeds[node.name] = (random.random(shape) * 3).astype(dtype.as_numpy_dtype)
        yield f'golden {path.stem}', binary, feeds, [o.split(':')[0] for o in header['OUTPUTS'].split(',')], header['RUN']


def transform(source, target, inputs, outputs, transforms):
    """Returns the rewrites of the last pass; None if the tool fails."""
    done = subprocess.run([TOOLS / 'transform_graph', f'--in_graph={source}', f'--out_graph={target}',
                           f'--inputs={",".join(inputs)}', f'--outputs={",".join(outputs)}', f'--transforms={transforms}',
                           '--verify=off', '--json'], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)['passes'] if done.returncode == 0 else None


def agree(found, expected):
    for a, b in zip(found, expected):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if a.shape != b.shape and a.ndim == b.ndim == 4:
            a = a.transpose(0, 2, 3, 1)  # OpenCV expects the channels first.
        if a.size != b.size:
            return 'another shape'
        rms = np.sqrt(np.mean((a.ravel() - b.ravel()) ** 2))
        if not rms <= TOLERANCE * max(np.sqrt(np.mean(b * b)), 1e-6):
            return 'other numbers'
    return ''


class InteroperabilityTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.programs = {name: Program(name) for name, (_, is_there) in PROGRAMS.items() if is_there()}
        for program in self.programs.values():
            self.addCleanup(program.close)

    def judge(self, name, before, after, feeds, outputs):
        """Returns 'reads', the error, or None if the graph `before` is given and is not read either."""
        program, reference = self.programs[name], self.programs['TensorFlow']
        if before is not None:
            known = program.outputs(before, feeds, outputs)
            if isinstance(known, str) or agree(known, reference.outputs(before, feeds, outputs)):
                return None
        found = program.outputs(after, feeds, outputs)
        if isinstance(found, str):
            return found
        expected = reference.outputs(after, feeds, outputs)
        return 'reads' if isinstance(expected, str) else agree(found, expected) or 'reads'

    def row(self, graph, path, feeds, outputs, prior, call, is_preset=False):
        """Returns the outcome of each program, or None if the pass changes nothing."""
        before = path
        if prior:
            before = self.folder / 'before.pb'
            self.assertIsNotNone(transform(path, before, feeds, outputs, prior))
        after = self.folder / 'after.pb'
        passes = transform(before, after, feeds, outputs, call)
        if not passes or not any(each['rewrites'] for each in passes):
            return None
        if isinstance(self.programs['TensorFlow'].outputs(before, feeds, outputs), str):
            return None
        judged = {name: self.judge(name, None if is_preset else before, after, feeds, outputs) for name in self.programs}
        return {'call': call, 'graph': graph, 'programs': judged}

    def test_programs_read_results(self):
        self.assertIn('TensorFlow', self.programs)
        recorded = interoperability_page.load()
        passes, presets = names_of_passes()
        found = {'presets': {}, 'passes': {}}
        small = small_network(self.folder)
        for name in presets:
            rows = [self.row(*model, '', name, is_preset=True) for model in models()]
            self.add(found['presets'], name, rows, recorded)
        for name in passes:
            if name in LEFT_OUT:
                continue
            prior, call = CALLS.get(name, ('', name))
            for each in [call] + VARIANTS.get(name, []):
                row = self.row(*small, prior, each)
                if row is None:
                    golden = list(golden_cases(name, self.folder))[:GOLDEN_CASES]
                    candidates = [r for *case, run in golden if (r := self.row(*case, '', run))]
                    # The case that most programs read before the pass.
                    row = max(candidates, key=lambda r: sum(v is not None for v in r['programs'].values()), default=None)
                self.add(found['passes'], each, [row], recorded)
        result = {'programs': interoperability_page.merged_versions(recorded, versions(self.programs)), **found,
                  'left_out': LEFT_OUT}
        if os.environ.get('PERMAFROST_UPDATE_ORACLE') == '1':
            interoperability_page.save(result)
            interoperability_page.write()
        self.assertEqual(interoperability_page.load(), json.loads(json.dumps(result)))

    def add(self, part, name, rows, recorded):
        """Adds the rows, keeping the records of programs that are not installed."""
        rows = [row for row in rows if row]
        old = {**recorded.get('presets', {}), **recorded.get('passes', {})}.get(name, [])
        for row in rows:
            earlier = next((r for r in old if r['graph'] == row['graph']), {'programs': {}})
            row['programs'] = {p: row['programs'][p] if p in row['programs'] else earlier['programs'].get(p) for p in PROGRAMS}
        part[name] = rows
        print(name, json.dumps([row['programs'] for row in rows]), flush=True)


def versions(programs):
    from importlib import metadata
    packages = {'TensorFlow': 'tensorflow', 'OpenVINO': 'openvino', 'OpenCV': 'opencv-python-headless', 'tf2onnx': 'tf2onnx',
                'TensorFlow.js': 'tensorflowjs'}
    return {name: metadata.version(packages[name]) for name in programs}


if __name__ == '__main__':
    unittest.main()
