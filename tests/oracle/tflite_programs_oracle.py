"""Compares TensorFlow Lite models of branches, loops, lists, variables, tables and attention with TensorFlow, in LiteRT.

For each model of tflite_programs.py: convert_model writes the SavedModel as TensorFlow Lite, and LiteRT runs the file four
times, with XNNPACK and with its reference kernels, on inputs that take all branches. Unknown sizes are 2, then 3. The error
of an output is its largest difference from TensorFlow's, relative to the largest number of that output, and at least to 1.
tflite_programs.json records the operators and errors, and the same of TensorFlow's own converter.

Skipped where TensorFlow or LiteRT is not at hand. PERMAFROST_UPDATE_ORACLE=1 rewrites the record.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

try:
    from ai_edge_litert import interpreter as litert
    from flatbuffers import flexbuffers
    import tensorflow as tf
    from tensorflow.core.framework import node_def_pb2
    import tflite_programs
except ImportError:
    litert = None

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ.get('CONVERT_MODEL', WORKSPACE / 'bazel-bin/tools/convert_model')
RECORD = pathlib.Path(__file__).with_name('tflite_programs.json')
TOLERANCE = 1e-5  # Float operators in another order.
RUNS = 4
# Scale and offset of random numbers by run: branches depend on sums and sizes.
RANGES = [(1, 0), (3, 1), (0.3, -1), (2, 0.5)]
WORDS = np.array([b'a', b'b', b'c', b'other'], object)


def inputs_of(signature, run, size):
    """Returns random inputs by name."""
    random = np.random.default_rng(run)
    feeds = {}
    for name, spec in signature.structured_input_signature[1].items():
        shape = [dim if dim is not None else size for dim in spec.shape]
        if spec.dtype == tf.string:
            feeds[name] = random.choice(WORDS, shape)
        elif spec.dtype.is_integer:
            feeds[name] = random.integers(0, 100, shape).astype(spec.dtype.as_numpy_dtype)
        else:
            scale, offset = RANGES[run % len(RANGES)]
            feeds[name] = (random.standard_normal(shape) * scale + offset).astype(np.float32)
    return feeds


def difference(actual, expected):
    if actual.shape != expected.shape:
        return float('inf')
    if actual.size == 0:
        return 0.0
    scale = max(1.0, float(np.abs(expected).max()))
    return float(np.abs(actual.astype(np.float64) - expected).max()) / scale


def errors(folder, path, kernels):
    """Runs the file beside the SavedModel; both keep their variables. Returns the largest error."""
    resolver = litert.OpResolverType
    chosen = {'xnnpack': resolver.AUTO, 'reference': resolver.BUILTIN_REF}[kernels]
    worst = 0.0
    module = tf.saved_model.load(str(folder))
    signature = module.signatures['serving_default']
    has_open_size = any(None in spec.shape for spec in signature.structured_input_signature[1].values())
    model = litert.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=chosen)
    for size in ((2, 3) if has_open_size else (2,)):
        runner = None
        for run in range(RUNS):
            feeds = inputs_of(signature, run, size)
            expected = {key: value.numpy() for key, value in
                        signature(**{key: tf.constant(value) for key, value in feeds.items()}).items()}
            runner = runner or model.get_signature_runner('serving_default')
            actual = runner(**feeds)
            if actual.keys() != expected.keys():
                return float('inf')
            worst = max([worst] + [difference(actual[key], expected[key]) for key in expected])
    return worst


def facts(folder, path):
    found = {}
    for kernels in ('xnnpack', 'reference'):
        try:
            found[f'error_{kernels}'] = float(f'{errors(folder, path, kernels):.2g}')
        except ValueError as error:  # The reference kernels lack the operators of tables.
            found[f'error_{kernels}'] = 'not run: ' + str(error).splitlines()[0][:60]
    with open(path, 'rb') as file:
        found['subgraphs'] = len(schema_of(file.read()).subgraphs)
    return found


def schema_of(content):
    from ai_edge_litert import schema_py_generated as schema
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))


def flex_operators(content):
    """Returns name, version, NodeDef and number of operands of each custom operator."""
    found = []
    model = schema_of(content)
    for operator in model.subgraphs[0].operators:
        code = model.operatorCodes[operator.opcodeIndex]
        if code.customCode is None:
            continue
        options = flexbuffers.GetRoot(bytearray(operator.customOptions)).AsVector
        node = node_def_pb2.NodeDef.FromString(bytes(options[1].AsStringBytes))
        found.append((code.customCode, code.version, node, len(operator.inputs)))
        assert options[0].AsString == node.op
    return found


def of_converter(folder, scratch):
    """The same for the file of TensorFlow's converter."""
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder))
    converter.experimental_enable_resource_variables = True
    try:
        content = converter.convert()
        path = pathlib.Path(scratch) / 'converter.tflite'
        path.write_bytes(content)
        return facts(folder, path)
    except Exception as error:  # pylint: disable=broad-except
        return {'fails': type(error).__name__}


def save(name, folder):
    model = tflite_programs.PROGRAMS[name]()
    if hasattr(model, 'export'):
        model.export(str(folder), format='tf_saved_model', verbose=False)
    else:
        tf.saved_model.save(model, str(folder), signatures=model.serve)


@unittest.skipUnless(litert is not None, 'ai-edge-litert or TensorFlow is not installed')
class TflitePrograms(unittest.TestCase):

    def test_flex_operators_have_the_form_of_the_converters(self):
        """No runtime here has TensorFlow's kernels, so the operators are compared, not run."""
        program = tflite_programs.Program(lambda x: {'y': tf.linalg.inv(tf.matmul(x, x, transpose_b=True))})
        with tempfile.TemporaryDirectory() as scratch:
            folder, path = pathlib.Path(scratch) / 'saved', pathlib.Path(scratch) / 'model.tflite'
            tf.saved_model.save(program, str(folder), signatures=program.serve)
            command = [str(TOOL), str(folder), str(path), '--verify=auto']
            refused = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn('--allow_flex', refused.stderr)
            subprocess.run(command + ['--allow_flex'], capture_output=True, text=True, check=True)
            converter = tf.lite.TFLiteConverter.from_saved_model(str(folder))
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
            ours, theirs = flex_operators(path.read_bytes()), flex_operators(converter.convert())
        self.assertEqual([each[:2] for each in ours], [each[:2] for each in theirs])
        for (_, _, node, num_inputs), (_, _, other, _) in zip(ours, theirs):
            self.assertEqual(node.op, other.op)
            self.assertEqual(len(node.input), num_inputs)
            for key, value in node.attr.items():
                self.assertEqual(value, other.attr[key], key)

    def test_written_programs_compute_what_tensorflow_computes(self):
        recorded = json.loads(RECORD.read_text(encoding='utf-8')) if RECORD.exists() else {}
        is_update = bool(os.environ.get('PERMAFROST_UPDATE_ORACLE'))
        record = {}
        for name in sorted(tflite_programs.PROGRAMS):
            with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                folder, path = pathlib.Path(scratch) / 'saved', pathlib.Path(scratch) / 'model.tflite'
                save(name, folder)
                done = subprocess.run([str(TOOL), str(folder), str(path)], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                found = facts(folder, path)
                for key, value in found.items():
                    if key.startswith('error_') and not isinstance(value, str):
                        self.assertLessEqual(value, TOLERANCE, key)
                self.assertLessEqual(found['error_xnnpack'], TOLERANCE)
                if is_update:
                    found['converter'] = of_converter(folder, scratch)
                else:
                    self.assertEqual(found['subgraphs'], recorded[name]['subgraphs'])
                record[name] = found
        if is_update:
            RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + '\n', encoding='utf-8')
        else:
            self.assertEqual(sorted(record), sorted(recorded))


if __name__ == '__main__':
    unittest.main()
