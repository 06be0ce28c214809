"""Compares print_selective_registration_header with TensorFlow's module.

Golden cases, small generated graphs and the large models, if present, give the same pairs of op and kernel class. For some of
them both headers are compiled and queried for every op and every kernel class of TensorFlow. The table of classes is compared
with every kernel of the registry that a node without functions can reach.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import kernels
from tensorflow.python.framework import op_def_registry
from tensorflow.python.tools import selective_registration_header_lib as original

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ.get('PRINT_SELECTIVE_REGISTRATION_HEADER',
                      WORKSPACE / 'bazel-bin/tools/print_selective_registration_header')
MODELS = pathlib.Path(os.environ.get('PERMAFROST_SHARED', WORKSPACE.parent / 'shared')) / 'models'
GOLDEN = WORKSPACE / 'tests/golden'
DEFAULT_OPS = 'NoOp:NoOp,_Recv:RecvOp,_Send:SendOp'
DEVICES = ['', '/cpu:0', '/gpu:0', '/device:CPU:0', '/job:worker/replica:0/task:1/device:GPU:2', '/job:worker', '/device:cpu:*',
           '/device:TPU:0', '/device:XLA_CPU:0', '/device:FAKE', 'cpu:0', '/cpu', 'nonsense', '/job:a/cpu:0', '/CPU:1']
ASK = """
#include "ops_to_register.h"
#include <cstdio>
#ifndef SHOULD_REGISTER_OP
#error no SHOULD_REGISTER_OP
#endif
#define OP(name) {constexpr bool found = SHOULD_REGISTER_OP(name); std::putchar('0' + found);}
#define KERNEL(text) {constexpr bool found = SHOULD_REGISTER_OP_KERNEL(text); std::putchar('0' + found);}
int main() {
  constexpr bool gradient = SHOULD_REGISTER_OP_GRADIENT;
  std::putchar('0' + gradient);
%s
}
"""


def ours(path, *flags):
    """Returns the output, or None and the message."""
    done = subprocess.run([TOOL, f'--graphs={path}', *flags], capture_output=True, check=False)
    return (done.stdout.decode() if done.returncode == 0 else None), done.stderr.decode()


def our_pairs(path, *flags):
    text, message = ours(path, '--style=ops_list', *flags)
    return None if text is None else [tuple(pair) for pair in json.loads(text)], message


def ordered(pairs):
    return sorted(pairs, key=lambda pair: (pair[0], pair[1] or ''))


def their_pairs(graph_def, default_ops=DEFAULT_OPS):
    """Replaces get_ops_and_kernels, which cannot sort an op without a kernel beside the same op with one."""
    pairs = set(original._get_ops_from_graphdef(graph_def))
    pairs.update(tuple(pair.split(':')) for pair in default_ops.split(',') if pair)
    return ordered(pairs)


def shared_models():
    return sorted(folder for folder in MODELS.iterdir() if (folder / 'model.pb').exists()) if MODELS.is_dir() else []


def golden_graphs():
    for path in sorted(GOLDEN.glob('*/*.pbtxt')):
        try:
            yield path, text_format.Parse(path.read_text(encoding='utf-8'), tf.compat.v1.GraphDef())
        except (text_format.ParseError, UnicodeDecodeError):
            continue


def registry_nodes():
    """Returns a node for each kernel of the registry, on each kind of device."""
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type not in ('CPU', 'GPU', 'DEFAULT'):
            continue
        kinds = {attr.name: attr.type for attr in op_def_registry.get(kernel.op).attr}
        for device in ('/cpu:0', '/gpu:0'):
            node = node_def_pb2.NodeDef(op=kernel.op, device=device)
            if kernel.label:
                node.attr['_kernel'].s = kernel.label.encode()
            for constraint in kernel.constraint:
                allowed = constraint.allowed_values.list
                value = node.attr[constraint.name]
                if allowed.type and kinds.get(constraint.name) == 'list(type)':
                    value.list.type.extend(allowed.type)
                elif allowed.type:
                    value.type = allowed.type[-1]
                elif allowed.s:
                    value.s = allowed.s[-1]
                elif allowed.i:
                    value.i = allowed.i[-1]
                else:
                    value.b = allowed.b[-1]
            yield node


def spec_graph():
    graph = tf.compat.v1.GraphDef()
    for op, dtype in (('Reshape', 1), ('MatMul', 1), ('MatMul', 2), ('BiasAdd', 1), ('AccumulateNV2', 3)):
        node = graph.node.add(name=f'n{len(graph.node)}', op=op)
        node.attr['T'].type = dtype
        if op == 'AccumulateNV2':
            node.attr['N'].i = 3
    return graph


def with_functions():
    """Returns a graph with a while loop, a branch and a call, whose bodies have ops that the main graph lacks."""
    @tf.function
    def body(x):
        if tf.reduce_sum(x) > 0:
            y = tf.linalg.matmul(x, x)
        else:
            y = tf.nn.softmax(tf.cast(x, tf.float64))
            y = tf.cast(y, tf.float32)
        return tf.while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, tf.math.tanh(v)], [0, y])[1]
    return body.get_concrete_function(tf.TensorSpec([2, 2])).graph.as_graph_def()


class PairsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def write(self, graph):
        path = self.folder / 'graph.pb'
        path.write_bytes(graph.SerializeToString())
        return path

    def check(self, graph, default_ops=DEFAULT_OPS):
        path = self.write(graph)
        theirs = their_pairs(graph, default_ops)
        found, message = our_pairs(path, f'--default_ops={default_ops}')
        self.assertEqual(found if found is not None else message, theirs)

    def test_graphs_of_the_original_test(self):
        self.check(spec_graph())
        self.check(spec_graph(), '')

    def test_functions_and_control_flow(self):
        graph = with_functions()
        pairs = their_pairs(graph)
        self.assertGreater(len({op for op, _ in pairs}), len({node.op for node in graph.node}))
        self.check(graph)

    def test_devices(self):
        for device in DEVICES:
            with self.subTest(device=device):
                graph = spec_graph()
                for op in ('Shape', 'NoOp', 'Identity', 'Add'):
                    node = graph.node.add(name=op, op=op)
                    if op != 'NoOp':
                        node.attr['T'].type = 1
                for node in graph.node:
                    node.device = device
                self.check(graph)

    def test_golden_cases(self):
        cases = 0
        for path, graph in golden_graphs():
            with self.subTest(case=f'{path.parent.name}/{path.name}'):
                names = [node.name for node in graph.node]
                if len(set(names)) != len(names) or not our_pairs(self.write(graph))[0]:
                    continue  # A file that cannot be opened.
                cases += 1
                self.check(graph)
        self.assertGreater(cases, 500)

    @unittest.skipUnless(shared_models(), 'the models are not at hand')
    def test_models(self):
        for folder in shared_models():
            with self.subTest(model=folder.name):
                graph = tf.compat.v1.GraphDef.FromString((folder / 'model.pb').read_bytes())
                found, message = our_pairs(folder / 'model.pb')
                self.assertEqual(found if found is not None else message, their_pairs(graph))

    def test_every_kernel_of_the_registry(self):
        # In batches, since the pairs of a batch are compared as a set.
        nodes = list(registry_nodes())
        self.assertGreater(len(nodes), 20000)
        for begin in range(0, len(nodes), 40):
            graph = tf.compat.v1.GraphDef()
            for i, node in enumerate(nodes[begin:begin + 40]):
                added = graph.node.add()
                added.CopyFrom(node)
                added.name = f'n{i}'
            with self.subTest(first=nodes[begin].op):
                self.check(graph)

    def test_every_default_and_type(self):
        """Yields each op with each element type for all its type attributes, as far as its definition allows."""
        ops = sorted({kernel.op for kernel in kernels.get_all_registered_kernels().kernel})
        for dtype in range(1, 24):
            graph = tf.compat.v1.GraphDef()
            for op in ops:
                node = graph.node.add(name=op, op=op)
                for attr in op_def_registry.get(op).attr:
                    if attr.type == 'type' and not attr.HasField('default_value'):
                        node.attr[attr.name].type = dtype
            with self.subTest(dtype=dtype):
                self.check(graph)


class HeaderTest(unittest.TestCase):

    def ask(self, header, ops, texts, standard='c++11'):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / 'ops_to_register.h').write_text(header, encoding='utf-8')
            lines = [f'  OP({json.dumps(op)})' for op in ops] + [f'  KERNEL({json.dumps(text)})' for text in texts]
            (folder / 'ask.cc').write_text(ASK % '\n'.join(lines), encoding='utf-8')
            subprocess.run(['g++', f'-std={standard}', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', 'ask.cc', '-o', 'ask'],
                           cwd=folder, check=True)
            return subprocess.run([folder / 'ask'], check=True, capture_output=True).stdout.decode()

    def questions(self, graph):
        """Returns all ops of TensorFlow, and the classes of the graph's ops, of related ops and with other spacing."""
        ops = sorted({kernel.op for kernel in kernels.get_all_registered_kernels().kernel})
        texts = {text for _, text in their_pairs(graph) if text}
        others = tf.compat.v1.GraphDef()
        for node in list(registry_nodes())[::40]:
            added = others.node.add()
            added.CopyFrom(node)
        texts |= {text for _, text in their_pairs(others) if text}
        for text in sorted(texts)[:20]:
            texts |= {text.replace(' ', ''), f' {text} ', text[:-1], text + '>'}
        return ops, sorted(texts)

    def check(self, graph, default_ops=DEFAULT_OPS, standard='c++11'):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'graph.pb'
            path.write_bytes(graph.SerializeToString())
            header, message = ours(path, f'--default_ops={default_ops}')
            self.assertIsNotNone(header, message)
            theirs = original.get_header([str(path)], 'rawproto', default_ops)
        ops, texts = self.questions(graph)
        mine = self.ask(header, ops, texts, standard)
        self.assertEqual(len(mine), 1 + len(ops) + len(texts))
        self.assertEqual(mine, self.ask(theirs, ops, texts, standard))
        return mine

    def test_small_graphs(self):
        answers = self.check(spec_graph())
        self.assertIn('1', answers)
        self.assertIn('0', answers)
        self.check(with_functions(), standard='c++17')

    def test_gradient(self):
        graph = spec_graph()
        node = graph.node.add(name='g', op='SymbolicGradient')
        node.attr['Tin'].list.type.append(1)
        node.attr['Tout'].list.type.append(1)
        self.assertEqual(self.check(graph)[0], '1')

    def test_all(self):
        self.assertNotIn('0', self.check(spec_graph(), 'all'))

    @unittest.skipUnless(shared_models(), 'the models are not at hand')
    def test_models(self):
        for folder in shared_models():
            if folder.name in ('inception_v3', 'mobilenet_v2', 'facemesh_attention'):
                with self.subTest(model=folder.name):
                    self.check(tf.compat.v1.GraphDef.FromString((folder / 'model.pb').read_bytes()))


if __name__ == '__main__':
    unittest.main()
