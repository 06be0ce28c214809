"""Runs the tools on graphs and files that ask for hours, terabytes, or lines of output of their own.

A tool on such input ends by itself: the work would take hours without the limits, so that a tool without one runs into
the test's time limit. The text of a model never forms a line of the tool.
"""

import hashlib
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

HERE = pathlib.Path.cwd()
DIGITS = HERE / 'tests/models/digits/digits.pb'
ERROR = 255
MIB = 1 << 20
FORGED = 'verified, all is well'


def attr(key, value):
    return f'  attr {{ key: "{key}" value {{ {value} }} }}\n'


def type_attr(key, dtype):
    return attr(key, f'type: DT_{dtype.upper()}')


def node(name, op, inputs=(), *attrs):
    return f'node {{\n  name: "{name}"\n  op: "{op}"\n' + ''.join(f'  input: "{i}"\n' for i in inputs) + ''.join(attrs) + '}\n'


def const(name, dtype, dims, values):
    shape = ''.join(f'dim {{ size: {dim} }} ' for dim in dims)
    field = {'int32': 'int_val', 'int64': 'int64_val', 'float': 'float_val', 'string': 'string_val'}[dtype]
    content = ' '.join(f'{field}: "{v}"' if dtype == 'string' else f'{field}: {v}' for v in values)
    tensor = f'tensor {{ dtype: DT_{dtype.upper()} tensor_shape {{ {shape}}} {content} }}'
    return node(name, 'Const', (), type_attr('dtype', dtype), attr('value', tensor))


def placeholder(name, dtype):
    return node(name, 'Placeholder', (), type_attr('dtype', dtype), attr('shape', 'shape { }'))


def filled(name, dims, value='x'):
    """A float tensor of these dimensions that depends on the input."""
    return const(f'{name}/dims', 'int32', [len(dims)], dims) + node(
        name, 'Fill', [f'{name}/dims', value], type_attr('T', 'float'), type_attr('index_type', 'int32'))


def total(name):
    """The sum of a matrix, as the output 'y'."""
    return const('axes', 'int32', [2], [0, 1]) + node('y', 'Sum', [name, 'axes'], type_attr('T', 'float'),
                                                      type_attr('Tidx', 'int32'), attr('keep_dims', 'b: false'))


def product_of_hours():
    return (placeholder('x', 'float') + filled('a', [24000, 24000]) +
            node('product', 'MatMul', ['a', 'a'], type_attr('T', 'float'), attr('transpose_a', 'b: false'),
                 attr('transpose_b', 'b: false')) + total('product'))


def convolution_of_hours():
    attrs = [type_attr('T', 'float'), attr('strides', 'list { i: 1 i: 1 i: 1 i: 1 }'), attr('padding', 's: "VALID"'),
             attr('data_format', 's: "NHWC"')]
    return (placeholder('x', 'float') + filled('image', [1, 9000, 9000, 1]) + filled('filter', [4500, 4500, 1, 1]) +
            node('y', 'Conv2D', ['image', 'filter'], *attrs))


def calls_that_fan_out(depth=60):
    """y = f60(x), where each function calls the next one twice."""
    text = placeholder('x', 'float') + node('y', 'PartitionedCall', ['x'], attr('Tin', 'list { type: DT_FLOAT }'),
                                            attr('Tout', 'list { type: DT_FLOAT }'), attr('f', f'func {{ name: "f{depth}" }}'))
    library = ''
    for level in range(depth + 1):
        def call(name, value):
            if level == 0:
                return f'node_def {{ name: "{name}" op: "Neg" input: "{value}" {type_attr("T", "float")} }}\n', f'{name}:y:0'
            return (f'node_def {{ name: "{name}" op: "PartitionedCall" input: "{value}" '
                    f'{attr("Tin", "list { type: DT_FLOAT }")}{attr("Tout", "list { type: DT_FLOAT }")}'
                    f'{attr("f", f"func {{ name: {chr(34)}f{level - 1}{chr(34)} }}")} }}\n', f'{name}:output:0')
        first, first_value = call('first', 'a')
        second, second_value = call('second', first_value)
        library += (f'function {{ signature {{ name: "f{level}" input_arg {{ name: "a" type: DT_FLOAT }} '
                    f'output_arg {{ name: "b" type: DT_FLOAT }} }}\n{first}{second}'
                    f'ret {{ key: "b" value: "{second_value}" }} }}\n')
    return text + f'library {{ {library} }}\n'


def strings_that_double(steps=50):
    text = const('s0', 'string', [], ['eight ch'])
    for step in range(steps):
        text += node(f's{step + 1}', 'Add', [f's{step}', f's{step}'], type_attr('T', 'string'))
    return text + node('y', 'Identity', [f's{steps}'], type_attr('T', 'string'))


def range_without_end():
    return (const('zero', 'int64', [], [0]) + const('one', 'int64', [], [1]) + const('many', 'int64', [], [1 << 40]) +
            node('y', 'Range', ['zero', 'many', 'one'], type_attr('Tidx', 'int64')))


def samples_without_end():
    return (const('dims', 'int32', [1], [1 << 30]) + const('seed', 'int32', [2], [1, 2]) + const('alg', 'int32', [], [1]) +
            placeholder('x', 'float') +
            node('y', 'StatelessRandomGammaV2', ['dims', 'seed', 'x'], type_attr('dtype', 'float'),
                 type_attr('T', 'int32'), type_attr('Tseed', 'int32')))


def zstd_bomb(size):
    """A frame that repeats one byte, in blocks of 128 KiB of four bytes each."""
    block = 128 << 10
    frame = b'\x28\xb5\x2f\xfd\x00\x58'
    count = size // block
    for index in range(count):
        header = (index == count - 1) | 1 << 1 | block << 3
        frame += struct.pack('<I', header)[:3] + b'\x0a'
    return frame


class HostileLimitsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, tool, *flags):
        result = subprocess.run([HERE / 'tools' / tool, *map(str, flags)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, errors='replace', check=False,
                                env={**os.environ, 'NO_COLOR': '1'})
        self.assertIn(result.returncode, (0, 1, ERROR), f'{tool} {flags}: {result.stdout}{result.stderr}')
        return result.returncode, result.stdout + result.stderr

    def transform(self, graph, *flags):
        path = self.folder / 'graph.pbtxt'
        path.write_text(graph)
        return self.run_tool('transform_graph', f'--in_graph={path}', '--out_graph=out.pb', '--transforms=sort_by_execution_order',
                             *flags)

    def test_runs_of_hours_end_after_max_time(self):
        for graph in (product_of_hours, convolution_of_hours, calls_that_fan_out, samples_without_end):
            with self.subTest(graph.__name__):
                status, text = self.transform(graph(), '--max_time=2')
                self.assertEqual(status, 0, text)
                self.assertIn('takes more than 2 s; --max_time=SECONDS allows more', text)
                self.assertTrue((self.folder / 'out.pb').exists())
                status, text = self.transform(graph(), '--max_time=2', '--verify=required')
                self.assertEqual(status, ERROR, text)
                self.assertIn('not verified', text)

    def test_values_beyond_max_memory(self):
        for graph in (strings_that_double, range_without_end):
            with self.subTest(graph.__name__):
                status, text = self.transform(graph(), f'--max_memory={256 * MIB}')
                self.assertEqual(status, 0, text)
                self.assertIn('--max_memory=BYTES raises the limit', text)

    def test_folding_has_limits(self):
        path = self.folder / 'graph.pbtxt'
        path.write_text(strings_that_double())
        status, text = self.run_tool('transform_graph', f'--in_graph={path}', '--out_graph=out.pb', '--transforms=fold_constants',
                                     f'--max_memory={256 * MIB}', '--verify=off')
        if status != 0:
            self.assertIn('--max_memory=BYTES raises the limit', text)

    def test_flags_are_checked(self):
        for value in ('0', '-1', 'nan'):
            status, text = self.transform(range_without_end(), f'--max_time={value}')
            self.assertEqual(status, ERROR, text)
            self.assertIn('--max_time', text)

    def test_decompression_has_a_limit(self):
        bomb = self.folder / 'bomb.zst'
        bomb.write_bytes(zstd_bomb(3 << 30))
        for tool, *flags in (('summarize_graph', f'--in_graph={bomb}'), ('convert_model', f'--in={bomb}', '--out=out.pb')):
            status, text = self.run_tool(tool, *flags)
            self.assertEqual(status, ERROR, text)
            self.assertIn('max_model_bytes', text)

    def test_links_do_not_lead_out_of_a_model(self):
        (self.folder / 'secret.bin').write_bytes(bytes(64))
        model = self.folder / 'model'
        model.mkdir()
        (model / 'model.json').write_text(
            '{"format": "graph-model", "modelTopology": {"node": [{"name": "w", "op": "Const", "attr": {"dtype": '
            '{"type": "DT_FLOAT"}, "value": {"tensor": {"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "16"}]}}}}}]}, '
            '"weightsManifest": [{"paths": ["shard"], "weights": [{"name": "w", "shape": [16], "dtype": "float32"}]}]}')
        (model / 'shard').symlink_to('../secret.bin')
        status, text = self.run_tool('convert_model', f'--in={model / "model.json"}', '--out=out.pb')
        self.assertEqual(status, ERROR, text)
        self.assertIn('leads out of its folder', text)
        self.assertFalse((self.folder / 'out.pb').exists())
        (model / 'shard').unlink()
        (model / 'shard').write_bytes(bytes(64))
        self.assertEqual(self.run_tool('convert_model', f'--in={model / "model.json"}', '--out=out.pb')[0], 0)

    def test_caches_of_links_are_read(self):
        root = self.folder / 'models--o--m'
        snapshot = root / 'snapshots' / ('0' * 40)
        (root / 'blobs').mkdir(parents=True)
        snapshot.mkdir(parents=True)
        manifest = {'format': 'graph-model', 'modelTopology': {'node': [{'name': 'w', 'op': 'Const', 'attr': {
            'dtype': {'type': 'DT_FLOAT'}, 'value': {'tensor': {
                'dtype': 'DT_FLOAT', 'tensorShape': {'dim': [{'size': '16'}]}}}}}]},
            'weightsManifest': [{'paths': ['shard'], 'weights': [{'name': 'w', 'shape': [16], 'dtype': 'float32'}]}]}
        for name, content in (('model.json', json.dumps(manifest).encode()), ('shard', bytes(64))):
            blob = root / 'blobs' / hashlib.sha256(content).hexdigest()
            blob.write_bytes(content)
            (snapshot / name).symlink_to(f'../../blobs/{blob.name}')
        status, text = self.run_tool('convert_model', f'--in={snapshot / "model.json"}', '--out=out.pb')
        self.assertEqual(status, 0, text)
        # A SavedModel, whose graph is a link, too.
        saved = root / 'snapshots' / ('1' * 40)
        saved.mkdir()
        def field(number, content):
            return bytes([number << 3 | 2, len(content) & 0x7f | 0x80, len(content) >> 7 & 0x7f | 0x80, len(content) >> 14]) + content
        output = field(1, b'y') + field(2, field(1, b'probabilities:0') + b'\x10\x01')
        signature = field(1, b'serving_default') + field(2, field(2, output))
        content = b'\x08\x01' + field(2, field(1, field(4, b'serve')) + field(2, DIGITS.read_bytes()) + field(5, signature))
        blob = root / 'blobs' / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        (saved / 'saved_model.pb').symlink_to(f'../../blobs/{blob.name}')
        status, text = self.run_tool('summarize_graph', f'--in_graph={saved}')
        self.assertEqual(status, 0, text)

    def test_a_link_in_a_cache_is_replaced(self):
        cache = self.folder / 'cache'
        flags = (f'--graph={DIGITS}', '--delegate=onednn', f'--cache_dir={cache}', '--max_num_runs=1', '--warmup_runs=0')
        self.run_tool('benchmark_model', *flags)
        files = list(cache.iterdir())
        self.assertTrue(files)
        victim = self.folder / 'victim'
        for file in files:
            victim.write_text('victim')
            file.unlink()
            file.symlink_to(victim)
        self.run_tool('benchmark_model', *flags)
        self.assertEqual(victim.read_text(), 'victim')
        self.assertFalse(any(file.is_symlink() for file in cache.iterdir()))

    def test_named_pipes_are_refused(self):
        pipe = self.folder / 'pipe'
        os.mkfifo(pipe)
        for tool, *flags in (('summarize_graph', f'--in_graph={pipe}'), ('validate_model', f'--reference={DIGITS}',
                             f'--candidate={DIGITS}', f'--images={pipe}'), ('benchmark_model', f'--graph={pipe}')):
            status, text = self.run_tool(tool, *flags)
            self.assertEqual(status, ERROR, text)

    def test_text_of_a_model_is_no_line_of_a_tool(self):
        evil = f'a\\n{FORGED}\\n\\033[2J\\r'
        graph = (node(evil, 'Placeholder', (), type_attr('dtype', 'float'), attr('shape', 'shape { dim { size: 2 } }')) +
                 f'node {{ name: "y" op: "Neg" input: "{evil}" device: "{evil}" {type_attr("T", "float")} '
                 f'{attr(evil, f"s: {chr(34)}{evil}{chr(34)}")} }}\n' +
                 node(f'z{evil}', evil, ['y'], type_attr('T', 'float')) +
                 node('printed', 'Print', ['y', 'y'], type_attr('T', 'float'), attr('U', 'list { type: DT_FLOAT }'),
                      attr('message', f's: "{evil}"')))
        path, other = self.folder / 'graph.pbtxt', self.folder / 'other.pbtxt'
        path.write_text(graph)
        other.write_text(graph.replace('Neg', 'Abs'))
        broken = self.folder / 'broken.pbtxt'
        broken.write_text(graph.replace('input: "y"', f'input: "missing{evil}"', 1))
        for tool, *flags in [
            ('summarize_graph', f'--in_graph={path}'), ('summarize_graph', f'--in_graph={path}', '--print_structure'),
            ('summarize_graph', f'--in_graph={broken}'), ('compare_graphs', path, other), ('compare_graphs', path, broken),
            ('transform_graph', f'--in_graph={path}', '--out_graph=o.pb', '--transforms=fold_constants', '--outputs=printed'),
            ('transform_graph', f'--in_graph={path}', '--out_graph=o.pb', '--transforms=sort_by_execution_order'),
            ('transform_graph', f'--in_graph={path}', '--out_graph=o.pb', '--transforms=fold_batch_norms', '--explain'),
            ('convert_model', f'--in={path}', '--out=o.pbtxt'), ('convert_model', f'--in={path}', '--out=o.tflite'),
            ('benchmark_model', f'--graph={path}', '--output_layer=printed', '--max_num_runs=2', '--show_summary'),
            ('benchmark_model', f'--graph={path}', '--output_layer=printed', '--delegate=onednn', '--explain', '--max_num_runs=1'),
            ('validate_model', f'--reference={path}', f'--candidate={other}', '--output_layer=printed'),
            ('freeze_graph', f'--input_graph={path}', '--input_checkpoint=none', '--output_graph=o.pb', '--output_node_names=y'),
            ('print_selective_registration_header', f'--graphs={path}'),
            ('report_model', f'--in_graph={path}', '--out=r.html', '--outputs=printed'),
        ]:
            _, text = self.run_tool(tool, *flags)
            for line in text.split('\n'):
                self.assertFalse(line.startswith(FORGED), f'{tool} {flags}: {text}')
            self.assertNotIn('\033', text, f'{tool} {flags}')
            self.assertNotIn('\r', text, f'{tool} {flags}')


if __name__ == '__main__':
    unittest.main()
