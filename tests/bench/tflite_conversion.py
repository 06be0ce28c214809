"""Measures conversion to TensorFlow Lite against TensorFlow's converter, and LiteRT's latency on the files of both.

    tflite_conversion.py convert MODEL.pb OUT --inputs=... --outputs=... [--mode=int8 --calibration=...]
    tflite_conversion.py latency OURS.tflite THEIRS.tflite [--threads=1] [--rounds=7]

convert: seconds and peak memory of convert_model, and seconds of TensorFlow's converter without its imports (in one
process), as one JSON object. latency: interleaved runs in LiteRT with XNNPACK; the medians and their ratio, as one JSON
object. Run on a quiet machine with the Python of tests/oracle/requirements.txt. $CONVERT_MODEL names our tool.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ.get('CONVERT_MODEL', WORKSPACE / 'bazel-bin/tools/convert_model')


def of_tensorflow(arguments):
    import numpy as np
    import tensorflow as tf
    start = time.perf_counter()
    graph_def = tf.compat.v1.GraphDef.FromString(open(arguments.model, 'rb').read())
    wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(graph_def, name=''), [])
    tensors = lambda names: [wrapped.graph.get_tensor_by_name(f'{name}:0') for name in names.split(',')]
    pruned = wrapped.prune(tensors(arguments.inputs), tensors(arguments.outputs))
    shape = [1 if size is None else size for size in pruned.inputs[0].shape.as_list()]
    function = tf.function(lambda x: pruned(x)).get_concrete_function(tf.TensorSpec(shape, tf.float32))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    if arguments.mode != 'none':
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if arguments.mode == 'int8':
        files = arguments.calibration.split(',')
        converter.representative_dataset = lambda: ([np.load(path)] for path in files)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    with open(arguments.out + '.theirs', 'wb') as file:
        file.write(converter.convert())
    return time.perf_counter() - start


def convert(arguments):
    command = [str(TOOL), arguments.model, arguments.out + '.ours.tflite', f'--inputs={arguments.inputs}',
               f'--outputs={arguments.outputs}', f'--quantize={arguments.mode}']
    if arguments.mode == 'int8':
        command.append(f'--calibration_inputs={arguments.calibration}')
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ours = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    theirs = of_tensorflow(arguments)
    print(json.dumps({'seconds': round(ours, 3), 'converter_seconds': round(theirs, 3), 'ratio': round(ours / theirs, 3),
                      'peak_bytes': peak, 'file_bytes': os.stat(arguments.out + '.ours.tflite').st_size}))


def latency(arguments):
    import numpy as np
    from ai_edge_litert import interpreter as litert
    models = []
    for path in (arguments.model, arguments.out):
        model = litert.Interpreter(path, num_threads=arguments.threads)
        model.allocate_tensors()
        feed = model.get_input_details()[0]
        value = np.random.RandomState(1).uniform(0, 1, feed['shape'])
        model.set_tensor(feed['index'], value.astype(feed['dtype']))
        model.invoke()
        models.append(model)
    times = ([], [])
    for _ in range(arguments.rounds):
        for model, of_model in zip(models, times):
            for _ in range(3):
                start = time.perf_counter()
                model.invoke()
                of_model.append(1e3 * (time.perf_counter() - start))
    ours, theirs = (statistics.median(of_model) for of_model in times)
    print(json.dumps({'ours_ms': round(ours, 3), 'theirs_ms': round(theirs, 3), 'ratio': round(ours / theirs, 3)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('what', choices=['convert', 'latency'])
    parser.add_argument('model')
    parser.add_argument('out')
    parser.add_argument('--inputs', default='')
    parser.add_argument('--outputs', default='')
    parser.add_argument('--mode', default='none', choices=['none', 'float16', 'dynamic', 'int8'])
    parser.add_argument('--calibration', default='')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=7)
    arguments = parser.parse_args()
    (convert if arguments.what == 'convert' else latency)(arguments)


if __name__ == '__main__':
    sys.exit(main())
