"""Runs the tools on graphs that are made to corrupt memory: each tool reports an error or gives right answers.

Tools that run a graph reject one whose type attributes contradict each other, with the node, what was found and what was
expected. Tools that only inspect a graph read it. The ops are those of graph/ops/ops.def with relations between types.
The graphs in the folder `shared` are run too if it exists ($PERMAFROST_SHARED, or beside the workspace).
"""

import itertools
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path.cwd()
sys.path.insert(0, str(HERE / 'tests'))
from shared_folder import shared_folder  # noqa: E402

ERROR = 255
# The values that the test sets type attributes to.
TYPES = ['float', 'double', 'half', 'bool', 'int64', 'complex64', 'complex128', 'string', 'variant']
PARTS = {'complex64': 'float', 'complex128': 'double'}
ELEMENTS = 12


def attr(key, value):
    return f'  attr {{ key: "{key}" value {{ {value} }} }}\n'


def type_attr(key, dtype):
    return attr(key, f'type: DT_{dtype.upper()}')


def node(name, op, inputs=(), *attrs):
    return f'node {{\n  name: "{name}"\n  op: "{op}"\n' + ''.join(f'  input: "{i}"\n' for i in inputs) + ''.join(attrs) + '}\n'


def shape(*dims):
    return ''.join(f'dim {{ size: {dim} }} ' for dim in dims)


def placeholder(name, dtype, *dims):
    return node(name, 'Placeholder', (), type_attr('dtype', dtype), attr('shape', f'shape {{ {shape(*dims)}}}'))


def const(name, dtype, dims, content):
    escaped = ''.join(f'\\{byte:03o}' for byte in content)
    tensor = f'tensor {{ dtype: DT_{dtype.upper()} tensor_shape {{ {shape(*dims)}}} tensor_content: "{escaped}" }}'
    return node(name, 'Const', (), type_attr('dtype', dtype), attr('value', tensor))


def related_ops():
    """The ops with a relation between type attributes: name, types of the inputs, complex attribute, part attribute."""
    table = pathlib.Path('graph/ops/ops.def').read_text()
    for op, signature, attributes in re.findall(r'^OP\((\w+), "([^"]*)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', table, re.MULTILINE):
        relation = re.search(r'(\w+)==complex\((\w+)\)', attributes)
        if relation:
            inputs = [arg.split(':')[1] for arg in signature.split('->')[0].split()]
            yield (op, inputs, *relation.groups())


def graph_of(op, inputs, types):
    """A graph in which placeholders, of the types that `types` has for their attributes, feed one node, 'op'."""
    text, names = '', []
    for index, kind in enumerate(inputs):
        names.append(f'input{index}')
        if kind in types:
            text += placeholder(names[-1], types[kind], ELEMENTS)
        else:  # The length of a Fourier transform.
            text += const(names[-1], kind, [1], (8).to_bytes(4, 'little'))
    return text + node('op', op, names, *(type_attr(key, dtype) for key, dtype in types.items()))


def packed_weights(op, second_op):
    """A product behind a Merge, where weights that a kernel packs are still in memory."""
    numbers = random.Random(20)
    weights = b''.join(bytes([0, 0, numbers.randrange(256), numbers.choice([0x3d, 0xbd])]) for _ in range(300 * 64))
    return (placeholder('x', 'float', 4, 300) + placeholder('p', 'bool') +
            node('switch', 'Switch', ['x', 'p'], type_attr('T', 'float')) +
            node('left', op, ['switch'], type_attr('T', 'float')) +
            node('right', second_op, ['switch:1'], type_attr('T', 'float')) +
            node('merge', 'Merge', ['left', 'right'], type_attr('T', 'float'), attr('N', 'i: 2')) +
            const('weights', 'float', [300, 64], weights) +
            node('op', 'MatMul', ['merge', 'weights'], type_attr('T', 'float'), attr('transpose_a', 'b: false'),
                 attr('transpose_b', 'b: false')))


class HostileGraphsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text):
        path = self.folder / 'graph.pbtxt'
        path.write_text(text)
        return path

    def run_tool(self, tool, *flags):
        """The exit status and what the tool printed. A signal fails the test."""
        result = subprocess.run([HERE / 'tools' / tool, *flags], cwd=self.folder, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, errors='replace', check=False,
                                env={**os.environ, 'NO_COLOR': '1'})
        self.assertIn(result.returncode, (0, 1, ERROR), f'{tool} {flags}: {result.stdout}{result.stderr}')
        return result.returncode, result.stdout + result.stderr

    def runs(self, path):
        """What each tool that runs a graph says of this one."""
        out = self.folder / 'out.pb'
        return {
            'transform_graph': self.run_tool('transform_graph', f'--in_graph={path}', f'--out_graph={out}',
                                             '--transforms=sort_by_execution_order'),
            'validate_model': self.run_tool('validate_model', f'--reference={path}', f'--candidate={path}'),
            'benchmark_model': self.run_tool('benchmark_model', f'--graph={path}', '--max_num_runs=1', '--warmup_runs=0'),
            'report_model': self.run_tool('report_model', f'--in_graph={path}', '--out=report.html'),
        }

    def test_contradicting_types_are_errors(self):
        found = list(related_ops())
        self.assertGreaterEqual(len(found), 9)
        for op, inputs, whole, part in found:
            for whole_type, part_type in itertools.product(TYPES, TYPES):
                path = self.write(graph_of(op, inputs, {whole: whole_type, part: part_type}))
                (self.folder / 'out.pb').unlink(missing_ok=True)
                status, text = self.run_tool('transform_graph', f'--in_graph={path}', '--out_graph=out.pb',
                                             '--transforms=sort_by_execution_order')
                is_valid = PARTS.get(whole_type) == part_type
                place = f'{op} {whole}={whole_type} {part}={part_type}: {text}'
                self.assertEqual((self.folder / 'out.pb').exists(), is_valid, place)
                if is_valid:
                    self.assertEqual(status, 0, place)
                    continue
                self.assertEqual(status, ERROR, place)
                self.assertIn(f"node 'op' ({op}): attr '{whole}' is {whole_type} and '{part}' is {part_type}, expected", text)

    def test_every_tool_that_runs_a_graph_rejects_them_and_the_others_read_them(self):
        path = self.write(graph_of('Complex', ['T', 'T'], {'T': 'float', 'Tout': 'string'}))
        for tool, (status, text) in self.runs(path).items():
            self.assertEqual(status, ERROR, f'{tool}: {text}')
            self.assertIn("node 'op' (Complex): attr 'Tout' is string and 'T' is float, expected", text, tool)
        self.assertFalse((self.folder / 'out.pb').exists())
        for tool, *flags in [('summarize_graph', f'--in_graph={path}'), ('compare_graphs', path, path),
                             ('convert_model', f'--in={path}', '--out=copy.pb'),
                             ('transform_graph', f'--in_graph={path}', '--out_graph=out.pb', '--verify=off',
                              '--transforms=sort_by_execution_order')]:
            status, text = self.run_tool(tool, *flags)
            self.assertEqual(status, 0, f'{tool}: {text}')

    def test_packed_weights_behind_a_merge(self):
        path = self.write(packed_weights('Relu', 'Relu6'))
        status, text = self.run_tool('transform_graph', f'--in_graph={path}', '--out_graph=out.pb', '--transforms=quantize_nodes')
        self.assertEqual(status, 0, text)
        # A byte holds one of 256 levels of each of the two factors.
        for candidate, tolerance in (('out.pb', 0), (path, 0.05)):
            status, text = self.run_tool('validate_model', '--reference=out.pb', f'--candidate={candidate}',
                                         f'--tolerance={tolerance}')
            self.assertEqual(status, 0, text)

    def test_graphs_that_are_shared(self):
        shared = shared_folder(HERE / 'tests/cli/hostile_graphs_test.py')
        if shared is None:
            self.skipTest('there is no folder of shared models')
        graphs = sorted((shared / 'hostile').glob('*.pb'))
        self.assertTrue(graphs)
        for path in graphs:
            is_valid = path.name.startswith('quantized_')
            for tool, (status, text) in self.runs(path).items():
                self.assertEqual(status, 0 if is_valid else ERROR, f'{path} {tool}: {text}')


if __name__ == '__main__':
    unittest.main()
