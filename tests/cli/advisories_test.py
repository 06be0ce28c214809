"""Runs a graph for each class of TensorFlow's advisories since 2021 (tests/fuzz/advisories.md).

Each graph folds and is run. A tool ends by itself, with a status of its own, and a graph that asks for what cannot be done is
not folded: the run reports the node.
"""

import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zlib

HERE = pathlib.Path.cwd()
ERROR = 255
SIZES = {'float': 'f', 'int32': 'i', 'int64': 'q', 'bool': '?', 'uint8': 'B', 'qint32': 'i', 'quint8': 'B', 'double': 'd'}


def attr(key, value):
    return f'  attr {{ key: "{key}" value {{ {value} }} }}\n'


def types(**by_key):
    return ''.join(attr(key, f'type: DT_{dtype.upper()}') for key, dtype in by_key.items())


def ints(key, *values):
    return attr(key, f'list {{ {" ".join(f"i: {value}" for value in values)} }}')


def node(name, op, inputs=(), *attrs):
    return f'node {{\n  name: "{name}"\n  op: "{op}"\n' + ''.join(f'  input: "{i}"\n' for i in inputs) + ''.join(attrs) + '}\n'


def const(name, dtype, dims, values):
    shape = ''.join(f'dim {{ size: {dim} }} ' for dim in dims)
    if dtype == 'string':
        content = ''.join('string_val: "' + ''.join(f'\\{byte:03o}' for byte in value) + '" ' for value in values)
    else:
        raw = struct.pack(f'<{len(values)}{SIZES[dtype]}', *values)
        content = 'tensor_content: "' + ''.join(f'\\{byte:03o}' for byte in raw) + '"'
    return node(name, 'Const', (), types(dtype=dtype),
                attr('value', f'tensor {{ dtype: DT_{dtype.upper()} tensor_shape {{ {shape}}} {content} }}'))


def op_on(op, inputs, *attrs):
    """A node 'y' of the op on constants, each (type, dimensions, values)."""
    text = ''.join(const(f'in{index}', *value) for index, value in enumerate(inputs))
    return text + node('y', op, [f'in{index}' for index in range(len(inputs))], *attrs)


def floats(dims, value=1.0):
    count = 1
    for dim in dims:
        count *= dim
    return ('float', dims, [value] * count)


def scalar(value, dtype='float'):
    return (dtype, [], [value])


def window(padding='VALID', strides=(1, 1, 1, 1)):
    return types(T='float') + ints('strides', *strides) + attr('padding', f's: "{padding}"')


def recursion():
    """y = f(x), where f calls itself."""
    call = (node('call', 'PartitionedCall', ['a'], attr('Tin', 'list { type: DT_FLOAT }'), attr('Tout', 'list { type: DT_FLOAT }'),
                 attr('f', 'func { name: "f" }')).replace('node {', 'node_def {'))
    return (const('x', *scalar(1.0)) +
            node('y', 'PartitionedCall', ['x'], attr('Tin', 'list { type: DT_FLOAT }'), attr('Tout', 'list { type: DT_FLOAT }'),
                 attr('f', 'func { name: "f" }')) +
            'library { function { signature { name: "f" input_arg { name: "a" type: DT_FLOAT } '
            f'output_arg {{ name: "b" type: DT_FLOAT }} }}\n{call} ret {{ key: "b" value: "call:output:0" }} }} }}\n')


def gif(frames, width, height):
    """A GIF of many frames whose product of sizes is beyond 2^31; each frame is a few bytes."""
    frame = b'\x2c' + struct.pack('<HHHHB', 0, 0, width, height, 0) + b'\x02\x02\x4c\x01\x00'
    return b'GIF89a' + struct.pack('<HHBBB', width, height, 0x80, 0, 0) + bytes(6) + frame * frames + b'\x3b'


def png(width, height):
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 16, 6, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(b'\0')) + chunk(b'IEND', b''))


def decoded(op, content, dtype, *attrs):
    """The picture as numbers, plus an input, so that the content itself is not taken for the input."""
    return (const('content', 'string', [], [content]) + node('d', op, ['content'], *attrs) +
            node('numbers', 'Cast', ['d'], types(SrcT=dtype, DstT='float')) +
            node('x', 'Placeholder', (), types(dtype='float'), attr('shape', 'shape { }')) +
            node('y', 'AddV2', ['numbers', 'x'], types(T='float')))


def list_of(element_shape, *more):
    return const('values', *floats([3, 2])) + const('shape', 'int32', [len(element_shape)], element_shape) + node(
        'list', 'TensorListFromTensor', ['values', 'shape'], types(element_dtype='float', shape_type='int32')) + ''.join(more)


NGRAMS = (attr('separator', 's: " "'), ints('ngram_widths', 2), attr('left_pad', 's: ""'), attr('right_pad', 's: ""'),
          attr('pad_width', 'i: 0'), attr('preserve_short_sequences', 'b: false'), types(Tsplits='int64'))

# By class: the graphs, of which none may be computed.
REFUSED = {
    'division by a size or an attribute that is zero': [
        op_on('Conv2D', [floats([1, 4, 4, 2]), floats([3, 3, 0, 1])], window()),
        op_on('Conv2D', [floats([1, 4, 4, 2]), floats([3, 3, 2, 1])], window(strides=(1, 0, 1, 1))),
        op_on('Conv3D', [floats([1, 4, 4, 4, 2]), floats([3, 3, 3, 0, 1])], window(strides=(1, 1, 1, 1, 1))),
        op_on('SpaceToDepth', [floats([1, 4, 4, 1])], types(T='float'), attr('block_size', 'i: 0')),
        op_on('AudioSpectrogram', [floats([64, 1])], attr('window_size', 'i: 0'), attr('stride', 'i: 1')),
        op_on('AudioSpectrogram', [floats([64, 1])], attr('window_size', 'i: 8'), attr('stride', 'i: 0')),
        op_on('RaggedRange', [('int32', [1], [0]), ('int32', [1], [5]), ('int32', [1], [0])], types(T='int32')),
    ],
    'splits and partitions of ragged values': [
        op_on('RaggedBincount', [('int64', [2], [5, 2]), ('int32', [2], [0, 1]), scalar(3, 'int32'), floats([2])],
              types(Tidx='int32', T='float')),
        op_on('RaggedBincount', [('int64', [2], [0, 100]), ('int32', [2], [0, 1]), scalar(3, 'int32'), floats([2])],
              types(Tidx='int32', T='float')),
        op_on('RaggedTensorToTensor',
              [('int32', [2], [2, 2]), floats([2]), scalar(0.0), ('int64', [3], [0, 1, 1 << 40])],
              types(T='float', Tindex='int64', Tshape='int32'), attr('num_row_partition_tensors', 'i: 1'),
              attr('row_partition_types', 'list { s: "ROW_SPLITS" }')),
        op_on('StringNGrams', [('string', [2], [b'a', b'b']), ('int64', [2], [0, 50])], *NGRAMS),
        op_on('StringNGrams', [('string', [2], [b'a', b'b']), ('int64', [3], [0, 2, -1])], *NGRAMS),
        op_on('SplitV', [floats([4]), ('int64', [2], [-3, 7]), scalar(0, 'int32')], types(T='float', Tlen='int64'),
              attr('num_split', 'i: 2')),
    ],
    'indices and axes outside of a tensor': [
        op_on('GatherNd', [floats([2, 2]), ('int32', [1, 2], [0, 1 << 30])], types(Tparams='float', Tindices='int32')),
        op_on('GatherNd', [floats([2, 2]), ('int64', [1, 2], [-(1 << 60), 0])], types(Tparams='float', Tindices='int64')),
        op_on('ScatterNd', [('int32', [1, 1], [1 << 30]), floats([1]), ('int32', [1], [4])],
              types(T='float', Tindices='int32')),
        op_on('DynamicStitch', [('int32', [1], [-1]), floats([1])], types(T='float'), attr('N', 'i: 1')),
        op_on('DynamicStitch', [('int32', [2], [0, 1]), floats([1])], types(T='float'), attr('N', 'i: 1')),
        op_on('ReverseV2', [floats([2, 2]), ('int32', [1], [7])], types(T='float', Tidx='int32')),
        op_on('QuantizeAndDequantizeV2', [floats([2, 2]), floats([2]), floats([2])], types(T='float'),
              attr('axis', 'i: 2147483647'), attr('range_given', 'b: true')),
        op_on('QuantizeAndDequantizeV2', [floats([2, 2]), floats([1]), floats([1])], types(T='float'),
              attr('axis', 'i: 1'), attr('range_given', 'b: true')),
        op_on('CropAndResize', [floats([1, 4, 4, 1]), floats([1, 4]), ('int32', [1], [9]), ('int32', [2], [2, 2])],
              types(T='float')),
    ],
    'numbers of elements beyond 64 bits or the memory': [
        op_on('Bincount', [('int32', [1], [0]), scalar(2147483647, 'int32'), floats([1])], types(T='float')) +
        node('z', 'Tile', ['y', 'many'], types(T='float', Tmultiples='int64')) + const('many', 'int64', [1], [1 << 40]),
        op_on('CropAndResize', [floats([1, 4, 4, 1]), floats([1, 4]), ('int32', [1], [0]), ('int32', [2], [1 << 30, 1 << 30])],
              types(T='float')),
        op_on('RaggedRange', [('int64', [1], [-(1 << 63)]), ('int64', [1], [(1 << 63) - 1]), ('int64', [1], [1])],
              types(T='int64')),
        op_on('BroadcastTo', [scalar(1.0), ('int64', [3], [1 << 31, 1 << 31, 1 << 31])], types(T='float', Tidx='int64')),
        op_on('Conv3DBackpropInputV2',
              [('int32', [5], [1, 1 << 30, 1 << 30, 1 << 30, 1]), floats([1, 1, 1, 1, 1]), floats([1, 1, 1, 1, 1])],
              window(strides=(1, 1, 1, 1, 1))),
        op_on('SpaceToBatchND', [floats([1, 4]), ('int64', [1], [1 << 40]), ('int64', [1, 2], [0, 1 << 62])],
              types(T='float', Tblock_shape='int64', Tpaddings='int64')),
        decoded('DecodeGif', gif(600, 2000, 2000), 'uint8'),
        decoded('DecodePng', png(1 << 30, 1 << 30), 'uint16', types(dtype='uint16')),
        const('shape', 'int32', [1], [2]) + const('n', *scalar(2147483647, 'int32')) +
        node('list', 'TensorListReserve', ['shape', 'n'], types(element_dtype='float', shape_type='int32')) +
        node('y', 'TensorListStack', ['list', 'shape'], types(element_dtype='float')),
    ],
    'objects and lists that do not fit their use': [
        list_of([2], const('leading', 'int64', [2], [1, 1]),
                node('y', 'TensorListConcatV2', ['list', 'shape', 'leading'], types(element_dtype='int32', shape_type='int32'))),
        const('values', *floats([4])) + const('shape', 'int32', [1], [-1]) + const('lengths', 'int64', [2], [-2, 6]) +
        node('list', 'TensorListSplit', ['values', 'shape', 'lengths'], types(element_dtype='float', shape_type='int32')) +
        node('y', 'TensorListStack', ['list', 'shape'], types(element_dtype='float')),
        const('keys', 'int64', [3], [1, 2, 3]) + const('values', *floats([2])) +
        node('table', 'HashTableV2', (), types(key_dtype='int64', value_dtype='float')) +
        node('import', 'LookupTableImportV2', ['table', 'keys', 'values'], types(Tin='int64', Tout='float')) +
        node('y', 'LookupTableSizeV2', ['table', '^import']),
    ],
    'ranges of quantised values that are no scalars': [
        op_on('QuantizedMul', [('quint8', [2], [1, 2]), ('quint8', [2], [1, 2]), floats([0]), floats([0]), scalar(0.0), scalar(1.0)],
              types(T1='quint8', T2='quint8')),
        op_on('Requantize', [('qint32', [2], [1, 2]), floats([0]), scalar(1.0), scalar(0.0), scalar(1.0)],
              types(Tinput='qint32', out_type='quint8')),
        op_on('QuantizedResizeBilinear', [('quint8', [1, 2, 2, 1], [0] * 4), ('int32', [2], [4, 4]), floats([2]), floats([2])],
              types(T='quint8')),
    ],
    'types that contradict each other': [
        op_on('AddV2', [floats([2]), ('int32', [2], [1, 2])], types(T='float')),
        op_on('Mul', [floats([2]), floats([2])], types(T='string')),
        op_on('Fill', [floats([2]), scalar(1.0)], types(T='float', index_type='int64')),
    ],
    'recursion of functions': [recursion()],
    'memory that a graph names': [
        node('c', 'ImmutableConst', (), types(dtype='string'), attr('shape', 'shape { dim { size: 4 } }'),
             attr('memory_region_name', 's: "/proc/self/maps"')) + node('y', 'Identity', ['c'], types(T='string')),
        node('c', 'ImmutableConst', (), types(dtype='float'), attr('shape', 'shape { dim { size: 1000000 } }'),
             attr('memory_region_name', 's: "/proc/self/maps"')) + node('y', 'Identity', ['c'], types(T='float')),
    ],
}

# By class: graphs whose checks once failed in a graph optimiser. Passes leave them alone or reject them.
OPTIMISED = {
    'simplifications of nodes with unusual inputs and attributes': [
        const('x', *floats([2])) + node('i', 'Identity', ['x', '^x'], types(T='float')) + node('y', 'Neg', ['i'], types(T='float')),
        const('x', *floats([2])) + const('s', 'int32', [1], [-1]) +
        node('y', 'Reshape', ['x', 's'], attr('T', 'type: DT_FLOAT_REF'), types(Tshape='int32')),
        const('x', *floats([2])) + const('s', 'int64', [2], [-1, -1]) + node('y', 'Reshape', ['x', 's'], types(T='float', Tshape='int64')),
        const('x', *floats([0])) + const('s', 'int32', [2], [0, -1]) + node('y', 'Reshape', ['x', 's'], types(T='float', Tshape='int32')),
        node('x', 'Placeholder', (), attr('dtype', 'type: DT_FLOAT_REF')) + node('y', 'Identity', ['x'], types(T='float')),
        node('x', 'Const', (), types(dtype='float')) + node('y', 'Identity', ['x'], types(T='float')),
        const('x', *floats([2])) + node('y', 'AddN', (), types(T='float'), attr('N', 'i: -1')),
        const('x', *floats([2])) + node('y', 'IdentityN', ['x'], attr('T', 'list { type: DT_FLOAT type: DT_FLOAT }')),
        const('x', *floats([2])) + node('y', 'Split', ['x', 'x'], types(T='float'), attr('num_split', 'i: 0')),
        const('x', *floats([2])) + node('y', 'Print', ['x', 'x'], types(T='float'), attr('U', 'list { type: DT_FLOAT }'),
                                        attr('summarize', 'i: -9223372036854775808')),
    ],
}
PASSES = ('fold_constants merge_duplicate_nodes remove_nodes(op=Identity) fold_batch_norms strip_unused_nodes '
          'sort_by_execution_order')


class AdvisoriesTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, text, transforms, *flags):
        (self.folder / 'graph.pbtxt').write_text(text)
        result = subprocess.run([HERE / 'tools/transform_graph', '--in_graph=graph.pbtxt', '--out_graph=out.pb',
                                 f'--transforms={transforms}', '--max_memory=1000000000', *flags], cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors='replace', env={**os.environ, 'NO_COLOR': '1'}, timeout=100)
        self.assertIn(result.returncode, (0, 1, ERROR), f'{text}: {result.stdout}')
        return result.returncode, result.stdout

    def test_no_graph_of_the_classes_is_computed(self):
        for name, graphs in REFUSED.items():
            for text in graphs:
                with self.subTest(name, graph=text[-300:]):
                    status, output = self.run_tool(text, 'fold_constants', '--outputs=y', '--verify=required')
                    self.assertEqual(status, ERROR, output)
                    self.assertFalse((self.folder / 'out.pb').exists())
                    # The error is about the graph, and not about the tool.
                    self.assertRegex(output, "node '(y|c|d|list|call|import)'|output 'y': its memory", output)

    def test_passes_end(self):
        for name, graphs in OPTIMISED.items():
            for text in graphs:
                with self.subTest(name, graph=text[-300:]):
                    self.run_tool(text, PASSES, '--outputs=y')
                    self.run_tool(text, 'optimize_for_deployment', '--outputs=y')


if __name__ == '__main__':
    unittest.main()
