"""Compares quantised TensorFlow Lite models that convert_model writes with LiteRT and with TensorFlow's converter.

For each large model and mode, our file and the converter's file for the same graph and the same calibration inputs (the
recorded ones) are run by LiteRT, with its reference kernels and with XNNPACK. The error of an output is the rms of its
differences from TensorFlow's recorded output, relative to the rms of that output, over all recorded inputs; that of a
model is the mean over its outputs, and `worst` the largest. tflite_quantized.json records the errors, bytes, operators
and operators that stayed float, and the same of the converter's file; "fails" where the converter, or LiteRT on its
file, fails. The test demands:

- LiteRT accepts each file with both sets of kernels, and no output is destroyed (an error of 0.5 or more);
- integer outputs of our own kernels equal LiteRT's reference kernels bit by bit, for --io_type=int8;
- the error is at most the converter's for 9 of the 11 models in int8;
- ethos-u-vela compiles the int8 files, where it is installed ($VELA or on PATH).

Skipped where the models or LiteRT are not at hand. PERMAFROST_UPDATE_ORACLE=1 rewrites the record and the table in
docs/formats/tflite.md. $CONVERT_LITERT names a program that converts (MODEL OUT --inputs --outputs --mode --calibration);
without it, the recorded facts of the converter are kept. $TFLITE_MODELS and $TFLITE_MODES select some.
"""

import json
import os
import pathlib
import re
import shutil
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
RUNNER = os.environ.get('RUN_TFLITE', WORKSPACE / 'bazel-bin/tests/oracle/run_tflite')
RECORD = pathlib.Path(__file__).with_name('tflite_quantized.json')
PAGE = WORKSPACE / 'docs/formats/tflite.md'
MODES = ['float16', 'dynamic', 'int8', 'int16x8', 'int4']
CONVERTER_MODES = ['float16', 'dynamic', 'int8', 'int16x8']
RECORDED_INPUTS = 3
DESTROYED = 0.5
# Rounding of the recorded errors, and of processors.
SLACK = 1.02
LEAST_WINS = 9


def facts(path, folder, kernels):
    """Errors by output of one file. Runs in a process of its own, since LiteRT aborts on some files."""
    done = subprocess.run([sys.executable, __file__, '--facts', str(path), str(folder), kernels], capture_output=True,
                          text=True)
    if done.returncode != 0:
        return {'fails': (done.stderr.strip().splitlines() or [f'exit status {done.returncode}'])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def print_facts(path, folder, kernels):
    resolver = {'xnnpack': litert.OpResolverType.AUTO, 'reference': litert.OpResolverType.BUILTIN_REF}[kernels]
    model = litert.Interpreter(path, num_threads=1, experimental_op_resolver_type=resolver)
    operators = len(model._get_ops_details())
    feed = model.get_input_details()[0]
    noise, signal = {}, {}
    for sample in range(RECORDED_INPUTS):
        value = np.load(f'{folder}/input_{sample}.npy')
        model.resize_tensor_input(feed['index'], value.shape)
        model.allocate_tensors()
        model.set_tensor(feed['index'], value)
        model.invoke()
        for i, output in enumerate(model.get_output_details()):
            expected = np.load(f'{folder}/output_{sample}_{i}.npy').astype(np.float64)
            actual = model.get_tensor(output['index']).astype(np.float64).reshape(expected.shape)
            noise[i] = noise.get(i, 0) + ((actual - expected)**2).sum()
            signal[i] = signal.get(i, 0) + (expected**2).sum()
    errors = [float(np.sqrt(noise[i] / max(signal[i], 1e-30))) for i in noise]
    print(json.dumps({'operators': operators, 'error': float(f'{np.mean(errors):.3g}'), 'worst': float(f'{max(errors):.3g}')}))


def both(path, folder):
    found = {'bytes': pathlib.Path(path).stat().st_size}
    for kernels in ('reference', 'xnnpack'):
        found[kernels] = facts(path, folder, kernels)
    return found


def interface(folder):
    spec = json.loads((folder / 'spec.json').read_text(encoding='utf-8'))
    return [f"--inputs={','.join(each['name'] for each in spec['inputs'])}", f"--outputs={','.join(spec['outputs'])}"]


def ours(folder, mode, out, *flags):
    done = subprocess.run([str(TOOL), str(folder / 'model.pb'), str(out), *interface(folder), f'--quantize={mode}',
                           f'--calibration_inputs={folder}/input_*.npy', *flags], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f'{folder.name} {mode}: {done.stderr}')
    kept = re.search(r"kept in float for the outputs' sake: (\d+)", done.stdout)
    return int(kept[1]) if kept else 0


def of_converter(folder, mode, scratch, recorded):
    program = os.environ.get('CONVERT_LITERT')
    if program is None or mode not in CONVERTER_MODES:
        return recorded
    out = pathlib.Path(scratch) / 'converter.tflite'
    done = subprocess.run([sys.executable, program, str(folder / 'model.pb'), str(out), *interface(folder), f'--mode={mode}',
                           f'--calibration={folder}/input_*.npy'], capture_output=True, text=True)
    if done.returncode != 0 or not out.exists():
        return {'fails': f'exit status {done.returncode}'}
    return both(out, folder)


def integer_outputs_differ(folder, scratch):
    """The number of elements of int8 outputs in which our kernels differ from LiteRT's reference kernels."""
    out = pathlib.Path(scratch) / 'codes.tflite'
    ours(folder, 'int8', out, '--io_type=int8', '--min_sqnr=-1', '--verify=off')
    model = litert.Interpreter(str(out), num_threads=1, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    feed = model.get_input_details()[0]
    value = np.load(folder / 'input_0.npy')
    if feed['dtype'] == np.int8:
        scale, point = feed['quantization']
        value = np.clip(np.round(value / scale) + point, -128, 127).astype(np.int8)
    model.resize_tensor_input(feed['index'], value.shape)
    model.allocate_tensors()
    model.set_tensor(feed['index'], value)
    model.invoke()
    feed_file = pathlib.Path(scratch) / 'codes.npy'
    np.save(feed_file, value)
    subprocess.run([str(RUNNER), str(out), str(pathlib.Path(scratch) / 'run'), str(feed_file)], check=True)
    different = 0
    for i, output in enumerate(model.get_output_details()):
        expected = model.get_tensor(output['index'])
        actual = np.fromfile(pathlib.Path(scratch) / f'run_{i}.bin', dtype=expected.dtype).reshape(expected.shape)
        if expected.dtype == np.int8:
            different += int((actual != expected).sum())
    return different


def vela_problem(path, scratch):
    vela = os.environ.get('VELA') or shutil.which('vela')
    if vela is None:
        return None
    done = subprocess.run([vela, str(path), '--output-dir', str(scratch)], capture_output=True, text=True)
    return '' if done.returncode == 0 else (done.stderr or done.stdout).strip()[-300:]


def table(record):
    lines = ['| model | mode | bytes | converter | error, reference | converter | error, XNNPACK | converter | in float |',
             '|---|---|---|---|---|---|---|---|---|']
    for name, modes in sorted(record.items()):
        for mode in MODES:
            if mode not in modes:
                continue
            each = modes[mode]
            other = each.get('converter', {})

            def error(whose, kernels):
                of_kernels = whose.get(kernels, {'fails': ''} if 'fails' in whose else {})
                return 'fails' if 'fails' in of_kernels else f"{of_kernels['error']:.2g}" if 'error' in of_kernels else ''

            lines.append('| ' + ' | '.join([
                name, mode, f"{each['bytes']:,}", f"{other['bytes']:,}" if 'bytes' in other else 'fails' if 'fails' in other else '',
                error(each, 'reference'), error(other, 'reference'), error(each, 'xnnpack'), error(other, 'xnnpack'),
                str(each['in_float'])]) + ' |')
    return '\n'.join(lines)


@unittest.skipUnless(litert is not None, 'ai-edge-litert is not installed')
@unittest.skipUnless(MODELS.is_dir(), f'no models in {MODELS}')
class TfliteQuantizedOracle(unittest.TestCase):

    def test_quantised_models_run_in_litert(self):
        record = json.loads(RECORD.read_text(encoding='utf-8')) if RECORD.exists() else {}
        chosen = os.environ.get('TFLITE_MODELS', '').split(',') if os.environ.get('TFLITE_MODELS') else None
        modes = os.environ.get('TFLITE_MODES', ','.join(MODES)).split(',')
        for folder in sorted(MODELS.iterdir()):
            name = folder.name
            if chosen and name not in chosen:
                continue
            for mode in modes:
                with self.subTest(f'{name} {mode}'), tempfile.TemporaryDirectory() as scratch:
                    out = pathlib.Path(scratch) / 'model.tflite'
                    in_float = ours(folder, mode, out)
                    found = both(out, folder)
                    found['in_float'] = in_float
                    recorded = record.setdefault(name, {}).get(mode, {})
                    found['converter'] = of_converter(folder, mode, scratch, recorded.get('converter', {}))
                    record[name][mode] = found
                    for kernels in ('reference', 'xnnpack'):
                        self.assertNotIn('fails', found[kernels], kernels)
                        self.assertLess(found[kernels]['worst'], DESTROYED, kernels)
                    if mode == 'int8':
                        self.assertIn(vela_problem(out, scratch), ('', None))
        for mode in ('int8',):
            wins = 0
            for name, each in record.items():
                if mode not in each:
                    continue
                other = each[mode]['converter'].get('reference', {})
                wins += 'error' not in other or each[mode]['reference']['error'] <= other['error'] * SLACK
            if chosen is None and mode in modes:
                self.assertGreaterEqual(wins, LEAST_WINS, mode)
        if os.environ.get('PERMAFROST_UPDATE_ORACLE'):
            RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + '\n', encoding='utf-8')
            page = PAGE.read_text(encoding='utf-8')
            page = re.sub(r'(<!-- tflite_quantized_oracle -->\n).*?(<!-- end -->)', lambda m: m[1] + table(record) + '\n' + m[2],
                          page, flags=re.S)
            PAGE.write_text(page, encoding='utf-8')

    @unittest.skipUnless(pathlib.Path(RUNNER).exists(), f'no {RUNNER}')
    def test_integer_kernels_equal_litert(self):
        for folder in sorted(MODELS.iterdir()):
            if folder.name == 'facemesh_attention':
                continue  # Its outputs are computed in float.
            with self.subTest(folder.name), tempfile.TemporaryDirectory() as scratch:
                self.assertEqual(integer_outputs_differ(folder, scratch), 0)


if __name__ == '__main__':
    if sys.argv[1:2] == ['--facts']:
        print_facts(*sys.argv[2:5])
    else:
        unittest.main()
