"""Compares golden cases, and the large models if they are present, with TensorFlow's own graph transforms.

expected_pass_differences.json records for every case how the two results differ ("same", "order", or the nodes), so that
new differences are detected. Known ones are explained in docs/differences.md. PERMAFROST_UPDATE_ORACLE=1 rewrites it.
"""

import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
# The setting under which the outputs were recorded. oneDNN's differ by up to 7 % on some models.
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'

from google.protobuf import text_format
import tensorflow as tf
from tensorflow.python.util import _pywrap_transform_graph as engine

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = WORKSPACE / 'tests/golden'
TOOL = os.environ.get('TRANSFORM_GRAPH', WORKSPACE / 'bazel-bin/tools/transform_graph')
EXPECTED = pathlib.Path(__file__).with_name('expected_pass_differences.json')
# A folder of golden cases is named after its pass.
PASSES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
MODEL_RUNS = ['strip_unused_nodes', 'remove_nodes(op=Identity)', 'merge_duplicate_nodes',
              'sort_by_execution_order(order=original)', 'obfuscate_names', 'add_default_attributes', 'backport_concatv2',
              'backport_tensor_array_v3', 'flatten_atrous_conv', 'fuse_pad_and_conv', 'fuse_resize_and_conv',
              'fuse_resize_pad_and_conv', 'inline_partitionedcall', 'insert_logging(op=Conv2D, show_name=true)',
              'remove_attribute(attribute_name=data_format)', 'remove_control_dependencies', 'remove_device',
              'rename_attribute(old_attribute_name=T, new_attribute_name=Z, op_name=Relu)',
              'rename_op(old_op_name=AddV2, new_op_name=Add)', 'set_device(device="/device:CPU:0")', 'fold_batch_norms',
              'add_default_attributes quantize_nodes strip_unused_nodes']


def run_engine(arguments, queue):
    try:
        queue.put((engine.TransformGraphWithStringInputs(*arguments), ''))
    except Exception as error:  # The binding maps statuses to several types.
        queue.put((None, re.sub(' in binary.*', '', str(error).split('\n')[0])))


def original(graph, inputs, outputs, transforms):
    """Returns the engine's GraphDef and '', or None and its message. Runs in a separate process, because it may abort."""
    context = multiprocessing.get_context('fork')
    queue = context.SimpleQueue()
    arguments = (graph.SerializeToString(), ','.join(inputs), ','.join(outputs), transforms)
    process = context.Process(target=run_engine, args=(arguments, queue))
    process.start()
    while process.is_alive() and queue.empty():
        process.join(0.05)
    if queue.empty():
        return None, 'the process died'
    data, message = queue.get()
    process.join()
    return (None, message) if data is None else (tf.compat.v1.GraphDef.FromString(data), '')


def content(node):
    """Returns a node without its name, with output 0 and tensors in canonical form."""
    attrs = []
    for key in sorted(node.attr):
        value = node.attr[key]
        if value.HasField('tensor'):
            try:
                array = tf.make_ndarray(value.tensor)
                attrs.append((key, array.dtype.str, array.shape, array.tobytes()))
                continue
            except (TypeError, ValueError):
                pass
        attrs.append((key, value.SerializeToString(deterministic=True)))
    return node.op, [re.sub(':0$', '', i) for i in node.input], node.device, attrs


def difference(ours, theirs):
    mine, other = ({node.name: content(node) for node in graph.node} for graph in (ours, theirs))
    parts = []
    for text, names in [('only ours', mine.keys() - other.keys()), ('only original', other.keys() - mine.keys()),
                        ('differ', {n for n in mine.keys() & other.keys() if mine[n] != other[n]})]:
        if names:
            shown = sorted(names)
            parts.append(f'{text}: {" ".join(shown[:8])}' + (f' and {len(shown) - 8} more' if len(shown) > 8 else ''))
    if not parts and [n.name for n in ours.node] != [n.name for n in theirs.node]:
        return 'order'
    return '; '.join(parts) or 'same'


def read_case(path):
    text = path.read_text(encoding='utf-8')
    head = dict(re.findall(r'^# ([A-Z_]+): ?(.*)$', text, re.MULTILINE))
    graph = text_format.Parse(text, tf.compat.v1.GraphDef())
    used = {re.sub(r'^\^|:\d+$', '', i) for node in graph.node for i in node.input}
    names = lambda key, default: [n.strip() for n in head[key].split(',') if n.strip()] if key in head else default
    inputs = names('INPUTS', [n.name for n in graph.node if n.op == 'Placeholder'])
    outputs = names('OUTPUTS', [n.name for n in graph.node if n.name not in used])
    expected = path.with_name(path.stem + '.expected.pbtxt')
    ours = graph
    if expected.exists():
        ours = text_format.Parse(expected.read_text(encoding='utf-8'), tf.compat.v1.GraphDef())
    return head, graph, inputs, outputs, ours


def golden_differences():
    found = {}
    os.chdir(GOLDEN)  # Cases name their other files relative to this folder.
    for name in PASSES:
        for path in sorted((GOLDEN / name).glob('*.pbtxt')):
            if path.name.endswith('.expected.pbtxt'):
                continue
            head, graph, inputs, outputs, ours = read_case(path)
            theirs, message = original(graph, inputs, outputs, head['RUN'])
            key = f'{name}/{path.stem}'
            refused = 'EXPECT_ERROR' in head
            if theirs is None:
                found[key] = 'both refuse' if refused else f'the original fails: {message}'
            else:
                found[key] = 'only ours refuses' if refused else difference(ours, theirs)
    return found


def model_differences(models):
    found = {}
    for folder in sorted(models.iterdir()):
        spec = json.loads((folder / 'spec.json').read_text(encoding='utf-8'))
        inputs, outputs = [i['name'] for i in spec['inputs']], spec['outputs']
        graph = tf.compat.v1.GraphDef.FromString((folder / 'model.pb').read_bytes())
        for transforms in MODEL_RUNS:
            with tempfile.TemporaryDirectory() as scratch:
                out = pathlib.Path(scratch) / 'out.pb'
                subprocess.run([TOOL, f'--in_graph={folder / "model.pb"}',
                                f'--out_graph={out}', f'--inputs={",".join(inputs)}', f'--outputs={",".join(outputs)}',
                                f'--transforms={transforms}', '--verify=off'], check=True, stdout=subprocess.DEVNULL)
                ours = tf.compat.v1.GraphDef.FromString(out.read_bytes())
            theirs, message = original(graph, inputs, outputs, transforms.replace('(order=original)', ''))
            found[f'{folder.name}: {transforms}'] = message if theirs is None else difference(ours, theirs)
    return found


def recorded(part, found):
    """Returns the record of `part`. In update mode, replaces it by the result."""
    records = json.loads(EXPECTED.read_text(encoding='utf-8')) if EXPECTED.exists() else {}
    if os.environ.get('PERMAFROST_UPDATE_ORACLE'):
        records[part] = found
        EXPECTED.write_text(json.dumps(records, indent=1, sort_keys=True) + '\n', encoding='utf-8')
    return records.get(part)


class PassesTest(unittest.TestCase):
    maxDiff = None

    def check(self, part, found):
        self.assertEqual(recorded(part, found), found)

    def test_golden_cases(self):
        self.check('golden', golden_differences())

    def test_models(self):
        models = pathlib.Path(os.environ.get('PERMAFROST_SHARED', WORKSPACE.parent / 'shared')) / 'models'
        if not models.is_dir():
            self.skipTest('the large models are not beside the workspace')
        self.check('models', model_differences(models))


if __name__ == '__main__':
    unittest.main()
