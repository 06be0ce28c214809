"""Takes Keras 3 models (keras_models.py) from export to a benchmark: freeze_graph, transform_graph, validate_model and
benchmark_model, each called as a user calls it.

Outputs are held to TensorFlow's on the same inputs, by the built-in kernels and by the onednn delegate, after the presets
optimize_for_inference and quantize. The latency of one thread is printed as a ratio to OpenVINO and LiteRT, measured in turns.
keras_end_to_end.json has the outcome of each model without the latencies; PERMAFROST_UPDATE_ORACLE=1 rewrites it. KERAS_MODELS
names some of the models, separated by commas.
"""

import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'

import keras_models
import numpy as np
import python_package
import tensorflow as tf

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = pathlib.Path(os.environ.get('PERMAFROST_TOOLS', python_package.BINARIES / 'tools'))
RECORD = HERE / 'keras_end_to_end.json'
TOLERANCE = 1e-4   # The default of Model.verify: rounding of a deep network in float.
LEAST_SQNR = 20.0  # The floor of the preset quantize.
TURN_SECONDS, TURNS = 0.4, 3

sys.path.insert(0, python_package.folder())
import permafrost


class StageError(Exception):
    pass


def tool(name, *arguments):
    """Runs a tool and returns its output. Raises a StageError with the tool's error line."""
    done = subprocess.run([TOOLS / name, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StageError(f'{name}: exit code {done.returncode}: {(done.stderr or done.stdout).strip().splitlines()[-1]}')
    return done.stdout


def error_of(found, expected):
    """Returns the rms of the differences relative to the rms of the expected output: the largest of all outputs."""
    errors = []
    for name, right in expected.items():
        right, value = np.asarray(right, np.float64), np.asarray(found[name], np.float64)
        if right.shape != value.shape:
            raise StageError(f"output '{name}': shape {value.shape}, expected {right.shape}")
        if not np.isfinite(right).all() or np.ptp(right) == 0:
            raise StageError(f"output '{name}' of TensorFlow says nothing: it is constant, or not finite")
        errors.append(np.sqrt(np.mean((value - right) ** 2)) / np.sqrt(np.mean(right ** 2)))
    return max(errors)


class Case:
    """A model that is processed by the tools, and its folder."""

    def __init__(self, name, folder):
        model, inputs = keras_models.make(name)
        self.saved_model = str(folder / 'exported')
        model.export(self.saved_model, verbose=False)
        signature = tf.saved_model.load(self.saved_model).signatures['serving_default']
        keys = signature.structured_input_signature[1]
        self.feeds = inputs if isinstance(inputs, dict) else {key: inputs for key in keys}
        self.expected = {k: v.numpy() for k, v in signature(**{k: tf.constant(v) for k, v in self.feeds.items()}).items()}
        self.files = {key: folder / f'input_{i}.npy' for i, key in enumerate(self.feeds)}
        for key, path in self.files.items():
            value = self.feeds[key]
            np.save(path, value.astype('S') if value.dtype == object else value)
        self.frozen, self.small, self.eight = (str(folder / f'{n}.pb') for n in ('frozen', 'small', 'eight'))

    def answers(self, path, delegate):
        feeds = {name: np.ascontiguousarray(value) for name, value in self.feeds.items()}
        with permafrost.load(path).session(delegate=delegate, threads=1) as session:
            found = session.run(feeds)
        return {name: np.array(found[name]) for name in self.expected}

    def check(self, path, delegate):
        error = error_of(self.answers(path, delegate), self.expected)
        if error > TOLERANCE:
            raise StageError(f"{delegate}: rms error {error:.2g} of TensorFlow's output")

    def real_inputs(self, flag):
        return [f'--{flag}={",".join(f"{key}={path}" for key, path in self.files.items())}']

    def shapes(self):
        """Returns the flags that give benchmark_model the shapes of the inputs, and files for inputs of strings."""
        order = [item.name for item in permafrost.load(self.small).inputs]
        strings = ','.join(f'{n}:{self.files[n]}' for n in order if self.feeds[n].dtype == object)
        return [f'--input_layer={",".join(order)}',
                f'--input_layer_shape={":".join(",".join(map(str, self.feeds[n].shape)) for n in order)}',
                *([f'--input_layer_value_files={strings}'] if strings else [])]

    def stages(self):
        """Yields (name of the stage, what it does and returns for the record)."""
        yield 'freeze', lambda: tool('freeze_graph', f'--input_saved_model_dir={self.saved_model}',
                                     f'--output_graph={self.frozen}') and None
        yield 'transform', lambda: tool('transform_graph', f'--in_graph={self.frozen}', f'--out_graph={self.small}',
                                        '--transforms=optimize_for_inference', '--verify=required',
                                        *self.real_inputs('verify_inputs')) and None
        yield 'nodes', lambda: len(permafrost.load(self.small).nodes)
        yield 'TensorFlow', lambda: self.check(self.small, 'reference')
        yield 'TensorFlow, onednn', lambda: self.check(self.small, 'onednn')
        yield 'quantize', self.quantize
        yield 'validate', self.validate
        yield 'benchmark', lambda: tool('benchmark_model', f'--graph={self.small}', '--delegate=onednn', '--threads=1',
                                        '--max_time=0.2', *self.shapes()) and None

    def quantize(self):
        tool('transform_graph', f'--in_graph={self.frozen}', f'--out_graph={self.eight}', '--transforms=quantize',
             '--verify=required', *self.real_inputs('verify_inputs'))
        sqnr = -20 * np.log10(max(error_of(self.answers(self.eight, 'reference'), self.expected), 1e-9))
        if sqnr < LEAST_SQNR:
            raise StageError(f'quantize: {sqnr:.1f} dB of SQNR, less than {LEAST_SQNR:.0f}')

    def validate(self):
        """Returns the number of partitions, and of nodes that run on the built-in kernels."""
        report = json.loads(tool('validate_model', f'--reference={self.frozen}', f'--candidate={self.small}',
                                 '--delegate=onednn', '--threads=1', '--tolerance=0.001', '--explain', '--json',
                                 *self.real_inputs('inputs')))
        delegation = report['candidate_plan']
        return {'partitions': len(delegation['partitions']), 'left': sorted({node['op'] for node in delegation['left']})}

    # --- Latency ------------------------------------------------------------------------------------------------------

    def ours(self):
        def turn():
            out = tool('benchmark_model', f'--graph={self.small}', '--delegate=onednn', '--threads=1', '--json',
                       '--enable_op_profiling=false', f'--max_time={TURN_SECONDS}', '--max_num_runs=0', *self.shapes())
            return [json.loads(out)['runs']['median_seconds']]
        return turn

    def feed_of(self, names):
        """The array for an input that has one of the names, 'serving_default_image:0' and the like."""
        return next(value for key, value in self.feeds.items() if any(key in name for name in names))

    def openvino(self):
        import openvino
        core = openvino.Core()
        model = core.read_model(self.saved_model)
        compiled = core.compile_model(model, 'CPU', {'INFERENCE_NUM_THREADS': 1, 'PERFORMANCE_HINT': 'LATENCY',
                                                     'INFERENCE_PRECISION_HINT': 'f32'})
        request = compiled.create_infer_request()
        feeds = {port: self.feed_of(port.get_names()) for port in compiled.inputs}
        return timed(lambda: request.infer(feeds))

    def litert(self):
        from ai_edge_litert.interpreter import Interpreter
        converter = tf.lite.TFLiteConverter.from_saved_model(self.saved_model)
        interpreter = Interpreter(model_content=converter.convert(), num_threads=1)
        for details in interpreter.get_input_details():
            interpreter.resize_tensor_input(details['index'], self.feed_of([details['name']]).shape)
        interpreter.allocate_tensors()
        for details in interpreter.get_input_details():
            interpreter.set_tensor(details['index'], self.feed_of([details['name']]))
        return timed(interpreter.invoke)


def timed(run):
    run()

    def turn():
        seconds, end = [], time.perf_counter() + TURN_SECONDS
        while not seconds or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        return seconds
    return turn


def latencies(case):
    """Returns the median of each engine, or an error. The engines alternate."""
    turns, result = {}, {}
    for name, make in (('Permafrost', case.ours), ('OpenVINO', case.openvino), ('LiteRT', case.litert)):
        try:
            turns[name] = make()
            result[name] = []
        except Exception as error:  # Each engine has its own exception types.
            result[name] = str(error).strip().splitlines()[0][:80]
    for _ in range(TURNS):
        for name, turn in turns.items():
            result[name] += turn()
    return {name: statistics.median(found) if isinstance(found, list) else found for name, found in result.items()}


def follow(name, measure):
    """Returns the record of a model and the text about its latency."""
    with tempfile.TemporaryDirectory() as folder:
        record, text = {}, ''
        case = Case(name, pathlib.Path(folder))
        for stage, action in case.stages():
            try:
                found = action()
                record[stage] = 'passed' if found is None else found
            except (StageError, permafrost.Error) as error:
                record[stage] = str(error)
                if stage in ('freeze', 'transform'):
                    break
        if measure and record.get('benchmark') == 'passed':
            measured = latencies(case)
            text = '; '.join(f'{engine} {value * 1e3:.3g} ms' + ('' if engine == 'Permafrost' else
                                                                f', ratio {measured["Permafrost"] / value:.3f}')
                             if isinstance(value, float) else f'{engine}: {value}' for engine, value in measured.items())
    return record, text


class KerasEndToEndTest(unittest.TestCase):
    maxDiff = None

    def test_models_reach_the_benchmark(self):
        wanted = os.environ.get('KERAS_MODELS')
        names = [name for name in keras_models.MODELS if not wanted or name in wanted.split(',')]
        self.assertTrue(names)
        measure = importlib.util.find_spec('openvino') is not None
        recorded = json.loads(RECORD.read_text(encoding='utf-8')) if RECORD.exists() else {}
        found = {}
        for name in names:
            found[name], latency = follow(name, measure)
            print(f'{name}: {json.dumps(found[name])}\n  {latency}', flush=True)
            if os.environ.get('PERMAFROST_UPDATE_ORACLE') == '1':
                recorded = {n: {**recorded, name: found[name]}[n] for n in keras_models.MODELS if n in {**recorded, name: 0}}
                RECORD.write_text(json.dumps(recorded, indent=1) + '\n', encoding='utf-8')
        for name in names:
            with self.subTest(name):
                self.assertIn(name, recorded)
                self.compare(found[name], recorded[name])

    def compare(self, found, recorded):
        """Each stage has the recorded outcome, without more nodes, partitions or kinds of nodes left than recorded."""
        exact = lambda record: {k: v for k, v in record.items() if k not in ('nodes', 'validate') or isinstance(v, str)}
        self.assertEqual(exact(found), exact(recorded))
        self.assertEqual(found.keys(), recorded.keys())
        if 'nodes' in found:
            self.assertLessEqual(found['nodes'], recorded['nodes'])
        if isinstance(found.get('validate'), dict):
            self.assertLessEqual(found['validate']['partitions'], recorded['validate']['partitions'])
            self.assertLessEqual(set(found['validate']['left']), set(recorded['validate']['left']))


if __name__ == '__main__':
    unittest.main()
