"""Compares random graphs with TensorFlow: the results of sessions, and of the graphs behind passes.

The graphs come from the grammar of the fuzzers (tests/fuzz/graph_grammar.h), with small numbers. RANDOM_GRAPHS and RANDOM_SEED
select others. RANDOM_GRAPHS_KEEP=FOLDER keeps the graphs that disagree, for reduce_model.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'

import numpy as np
import tensorflow as tf

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
DRAW = os.environ.get('DRAW_GRAPHS', WORKSPACE / 'bazel-bin/tests/oracle/draw_graphs')
TOOL = os.environ.get('TRANSFORM_GRAPH', WORKSPACE / 'bazel-bin/tools/transform_graph')
COUNT = int(os.environ.get('RANDOM_GRAPHS', 2000))
SEED = int(os.environ.get('RANDOM_SEED', 1))
KEEP = os.environ.get('RANDOM_GRAPHS_KEEP')
# Relative to the largest magnitude of an output. Deep graphs add the rounding of several ops.
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-10, np.dtype(np.float16): 2e-2, np.dtype(np.complex64): 2e-5,
             np.dtype(np.complex128): 1e-10, np.dtype(tf.bfloat16.as_numpy_dtype): 5e-2}
PASSES = ['fold_constants', 'merge_duplicate_nodes', 'strip_unused_nodes', 'fold_batch_norms', 'remove_nodes(op=Identity)',
          'optimize_for_deployment']
# Ops whose results TensorFlow does not define, with the reason.
UNDEFINED = {
    'Erfinv': 'other roundings near the ends of the domain', 'Multinomial': 'random', 'RandomUniform': 'random',
    'FakeQuantWithMinMaxVars': 'the least value may be above the largest', 'RFFT': 'may abort', 'RFFT2D': 'may abort',
    'IRFFT': 'may abort', 'IRFFT2D': 'may abort',
}
UNSIGNED = {tf.uint8.as_datatype_enum, tf.uint16.as_datatype_enum, tf.uint32.as_datatype_enum, tf.uint64.as_datatype_enum}


def is_undefined(node):
    type_of = lambda name: tf.dtypes.as_dtype(node.attr[name].type)
    return (node.op in UNDEFINED
            # Negative numbers have no unsigned value.
            or node.op == 'Cast' and node.attr['DstT'].type in UNSIGNED and not type_of('SrcT').is_integer
            or node.op == 'TopKV2' and 'sorted' in node.attr and not node.attr['sorted'].b  # In any order.
            or node.op == 'Round' and type_of('T').is_integer)  # TensorFlow returns zeros.


def tensorflow_results(graph_def, outputs):
    """The arrays, or the message of an error."""
    with tf.Graph().as_default() as graph:
        try:
            tf.import_graph_def(graph_def, name='')
            rewrites = tf.compat.v1.ConfigProto()
            rewrites.graph_options.rewrite_options.disable_meta_optimizer = True
            rewrites.graph_options.optimizer_options.opt_level = -1
            names = [name if ':' in name else name + ':0' for name in outputs]
            with tf.compat.v1.Session(graph=graph, config=rewrites) as session:
                return session.run(names)
        except Exception as error:  # The types of TensorFlow's errors have no common base.
            return f'{type(error).__name__}: {str(error).splitlines()[0]}'


def difference(ours, theirs):
    """Empty if the arrays agree."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.dtype.names:  # A quantised type.
        ours = ours.view(theirs.dtype)
    if ours.shape != theirs.shape:
        return f'shape {list(ours.shape)}, TensorFlow has {list(theirs.shape)}'
    if ours.dtype == object or theirs.dtype == object:
        return '' if np.array_equal(ours.astype(object), theirs.astype(object)) else f'{ours!r}, TensorFlow has {theirs!r}'
    if ours.dtype != theirs.dtype:
        return f'type {ours.dtype}, TensorFlow has {theirs.dtype}'
    tolerance = TOLERANCE.get(ours.dtype)
    if tolerance is None:
        return '' if np.array_equal(ours, theirs) else f'{ours.ravel()[:6]}, TensorFlow has {theirs.ravel()[:6]}'
    wide = np.complex128 if ours.dtype.kind == 'c' else np.float64
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    finite = np.isfinite(ours) & np.isfinite(theirs)
    with np.errstate(invalid='ignore'):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    scale = max(np.max(np.abs(theirs[finite]), initial=0), 1e-3)
    wrong = ~same & ~(finite & (np.abs(np.where(finite, ours - theirs, 0)) <= tolerance * scale))
    if not wrong.any():
        return ''
    at = np.flatnonzero(wrong.ravel())[:4]
    return f'{ours.ravel()[at]}, TensorFlow has {theirs.ravel()[at]}'


class RandomGraphs(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def graphs(self, count, most_nodes):
        """Yields the path of each graph, the graph and the names of its outputs."""
        subprocess.run([DRAW, self.folder, str(SEED), str(count), str(most_nodes)], check=True)
        for seed in range(SEED, SEED + count):
            path = self.folder / f'{seed}.pb'
            graph = tf.compat.v1.GraphDef.FromString(path.read_bytes())
            if not any(is_undefined(node) for node in graph.node):
                yield path, graph, path.with_suffix('.outputs').read_text().split('\n')

    def report(self, disagreements, num_compared):
        for path, text in disagreements:
            if KEEP:
                shutil.copy(path, KEEP)
        print(f'{num_compared} graphs compared, {len(disagreements)} disagree')
        self.assertGreater(num_compared, 0)
        self.assertEqual('', '\n'.join(f'{path.name}: {text}' for path, text in disagreements))

    def compare(self, path, graph, outputs, disagreements):
        """Returns whether both computed the graph. What TensorFlow refuses may be computed: a scalar of shape [1], one piece to join."""
        theirs = tensorflow_results(graph, outputs)
        last = ','.join(sorted({node.op for node in graph.node} - {'Const', 'Placeholder'}))
        results = path.with_suffix('.results.pb')
        if isinstance(theirs, str) or not results.exists():
            if not isinstance(theirs, str):
                disagreements.append((path, f'{last}: only TensorFlow computes it: {path.with_suffix(".error").read_text()}'))
            return False
        ours = {node.name: tf.make_ndarray(node.attr['value'].tensor)
                for node in tf.compat.v1.GraphDef.FromString(results.read_bytes()).node}
        for index, name in enumerate(outputs):
            text = difference(ours[f'r{index}'], theirs[index])
            if text:
                disagreements.append((path, f'{last}: {name}: {text}'))
                break
        return True

    def test_single_nodes(self):
        disagreements = []
        num_compared = sum(self.compare(path, graph, outputs, disagreements) for path, graph, outputs in self.graphs(COUNT, 1))
        self.report(disagreements, num_compared)

    def test_graphs(self):
        disagreements = []
        num_compared = sum(self.compare(path, graph, outputs, disagreements)
                           for path, graph, outputs in self.graphs(COUNT // 2, 10))
        self.report(disagreements, num_compared)

    def test_passes(self):
        """TensorFlow computes the same before and behind the passes."""
        disagreements, num_compared = [], 0
        for index, (path, graph, outputs) in enumerate(self.graphs(COUNT // 10, 12)):
            out = self.folder / 'out.pb'
            transforms = PASSES[index % len(PASSES)]
            out.unlink(missing_ok=True)
            subprocess.run([TOOL, f'--in_graph={path}', f'--out_graph={out}', f'--outputs={",".join(outputs)}', '--inputs=',
                            f'--transforms={transforms}', '--verify=off'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before = tensorflow_results(graph, outputs)
            if not out.exists() or isinstance(before, str):
                continue
            num_compared += 1
            after = tensorflow_results(tf.compat.v1.GraphDef.FromString(out.read_bytes()), outputs)
            texts = [after] if isinstance(after, str) else [difference(a, b) for a, b in zip(after, before)]
            disagreements += [(path, f'{transforms}: {text}') for text in texts if text][:1]
        self.report(disagreements, num_compared)


if __name__ == '__main__':
    unittest.main()
