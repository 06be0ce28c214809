"""Compares TensorFlow Lite models that convert_model writes of the large models with LiteRT and with TensorFlow's converter.

Each written model is run by LiteRT, with XNNPACK and with its reference kernels, on the recorded inputs. The error of an
output is its largest difference from TensorFlow's recorded output, relative to the largest number of that output, and at
least to 1. tflite_models.json records errors, operators and bytes, and those of the converter's file for the same graph,
or its exit status where it fails. The bound of an error is 1e-4, or the error of the converter's file where
that is larger: then LiteRT's kernels differ from TensorFlow's.

Skipped where the models or LiteRT are not at hand. PERMAFROST_UPDATE_ORACLE=1 rewrites the record and the table in
docs/formats/tflite.md. $CONVERT_LITERT names a program that converts (MODEL OUT --inputs --outputs); without it, the recorded
facts of the converter are kept.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

try:
    from ai_edge_litert import interpreter as litert
except ImportError:
    litert = None

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
MODELS = pathlib.Path(os.environ.get('PERMAFROST_SHARED', WORKSPACE.parent / 'shared')) / 'models'
TOOL = os.environ.get('CONVERT_MODEL', WORKSPACE / 'bazel-bin/tools/convert_model')
RECORD = pathlib.Path(__file__).with_name('tflite_models.json')
PAGE = WORKSPACE / 'docs/formats/tflite.md'
TOLERANCE = 1e-4
RECORDED_INPUTS = 3
# Rounding of the recorded errors, which other processors reproduce only roughly.
SLACK = 1.1


def interpreter(path, kernels):
    resolver = litert.OpResolverType
    chosen = {'xnnpack': resolver.AUTO, 'reference': resolver.BUILTIN_REF}[kernels]
    return litert.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=chosen)


def error(path, folder, kernels):
    """The largest error of all outputs for all recorded inputs."""
    model = interpreter(path, kernels)
    feed = model.get_input_details()[0]
    worst = 0.0
    for sample in range(RECORDED_INPUTS):
        value = np.load(folder / f'input_{sample}.npy')
        model.resize_tensor_input(feed['index'], value.shape)
        model.allocate_tensors()
        model.set_tensor(feed['index'], value)
        model.invoke()
        for i, output in enumerate(model.get_output_details()):
            expected = np.load(folder / f'output_{sample}_{i}.npy')
            actual = model.get_tensor(output['index'])
            if actual.shape != expected.shape:
                return float('inf')
            worst = max(worst, float(np.abs(expected - actual).max() / max(1.0, np.abs(expected).max())))
    return worst


def facts(path, folder):
    operators = interpreter(path, 'reference')._get_ops_details()
    return {
        'operators': len(operators),
        'bytes': path.stat().st_size,
        'error_xnnpack': float(f"{error(path, folder, 'xnnpack'):.2g}"),
        'error_reference': float(f"{error(path, folder, 'reference'):.2g}"),
    }


def interface(folder):
    spec = json.loads((folder / 'spec.json').read_text(encoding='utf-8'))
    return [f"--inputs={','.join(each['name'] for each in spec['inputs'])}", f"--outputs={','.join(spec['outputs'])}"]


def of_converter(folder, scratch, recorded):
    program = os.environ.get('CONVERT_LITERT')
    if program is None:
        return recorded.get('converter', {})
    out = pathlib.Path(scratch) / 'converter.tflite'
    done = subprocess.run([sys.executable, program, str(folder / 'model.pb'), str(out), *interface(folder)],
                          capture_output=True, text=True)
    if done.returncode != 0 or not out.exists():
        return {'fails': f'exit status {done.returncode}'}
    return facts(out, folder)


def table(record):
    lines = ['| model | operators | converter | bytes | converter | error, XNNPACK | converter | error, reference | converter |',
             '|---|---|---|---|---|---|---|---|---|']
    for name, each in sorted(record.items()):
        other = each['converter']
        cell = lambda key, form: form(other[key]) if key in other else 'fails' if 'fails' in other else ''
        whole, small = '{:,}'.format, '{:.2g}'.format
        lines.append('| ' + ' | '.join([name, whole(each['operators']), cell('operators', whole), whole(each['bytes']),
                                       cell('bytes', whole), small(each['error_xnnpack']), cell('error_xnnpack', small),
                                       small(each['error_reference']), cell('error_reference', small)]) + ' |')
    return '\n'.join(lines)


@unittest.skipUnless(litert is not None, 'ai-edge-litert is not installed')
@unittest.skipUnless(MODELS.is_dir(), f'no models in {MODELS}')
class TfliteOracle(unittest.TestCase):

    def test_written_models_run_in_litert(self):
        recorded = json.loads(RECORD.read_text(encoding='utf-8')) if RECORD.exists() else {}
        record = {}
        for folder in sorted(MODELS.iterdir()):
            name = folder.name
            with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                out = pathlib.Path(scratch) / 'model.tflite'
                subprocess.run([str(TOOL), str(folder / 'model.pb'), str(out), *interface(folder)], check=True,
                               capture_output=True)
                found = facts(out, folder)
                found['converter'] = of_converter(folder, scratch, recorded.get(name, {}))
                record[name] = found
                other = found['converter']
                for key in ('error_xnnpack', 'error_reference'):
                    self.assertLessEqual(found[key], max(TOLERANCE, other.get(key, 0) * SLACK), key)
                if 'operators' in other:
                    self.assertLessEqual(found['operators'], other['operators'])
                    self.assertLessEqual(found['bytes'], other['bytes'] * 1.01)
        if os.environ.get('PERMAFROST_UPDATE_ORACLE'):
            RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + '\n', encoding='utf-8')
            page = PAGE.read_text(encoding='utf-8')
            page = re.sub(r'(<!-- tflite_oracle -->\n).*?(<!-- end -->)', lambda m: m[1] + table(record) + "\n" + m[2], page,
                          flags=re.S)
            PAGE.write_text(page, encoding='utf-8')
        else:
            for name, each in record.items():
                self.assertEqual([each['operators'], each['bytes']],
                                 [recorded[name]['operators'], recorded[name]['bytes']], name)


if __name__ == '__main__':
    unittest.main()
