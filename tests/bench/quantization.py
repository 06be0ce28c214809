#!/usr/bin/env python3
"""Measures the effect of storing weights in few bits on outputs and file size. See README.md beside this file.

    python tests/bench/quantization.py [--shared DIR] [--tool FILE] [--transforms STRING ...] [--synthetic] [NAME ...]

Prints for each model the largest error of an output (its root mean square relative to that of the output), and the file size
relative to that of the original's quantize_weights. TensorFlow runs the results, which also tests that it loads them. The presets
are calibrated on the inputs that the error is computed with. Exits with status 1 if an output of `quantize` has an error above
the preset's floor of 20 dB, or if its file is more than 1.3 times as large as the original's.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'  # The setting under which the outputs were recorded.

import numpy as np
import tensorflow as tf
from tensorflow.python.util import _pywrap_transform_graph as engine

import synthetic_models
from recorded_models import output_errors, recorded_models

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LARGEST_ERROR = 0.102  # 20 dB are 0.1. TensorFlow's outputs differ from those that the preset measures by rounding.
LARGEST_SIZE = 1.3     # Largest size that the floor costs on the recorded models, in steps of 0.1.
COLUMNS = ['quantize_weights', 'quantize_weights(per_channel=true)', 'quantize', 'smallest_download']


def run(graph_def, input_name, feeds, outputs):
    with tf.compat.v1.Graph().as_default() as graph:
        tf.compat.v1.import_graph_def(graph_def, name='')
    ports = [name if ':' in name else name + ':0' for name in outputs]
    with tf.compat.v1.Session(graph=graph) as session:
        return [session.run(ports, {input_name + ':0': feed}) for feed in feeds]


def shared_models(shared, names):
    for model in recorded_models(shared, names):
        graph_def = tf.compat.v1.GraphDef.FromString(model.path.read_bytes())
        yield model.name, graph_def, model.inputs[0]['name'], model.feeds, model.outputs, model.expected


def synthetic(names):
    for name, graph_def, feeds in synthetic_models.models():
        if names and name not in names:
            continue
        yield name, graph_def, 'input', feeds, ['output'], run(graph_def, 'input', feeds, ['output'])


def transform(tool, graph_def, input_name, feeds, outputs, transforms):
    """Returns the transformed graph, its size and the notes."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, 'in.pb'), pathlib.Path(folder, 'out.pb')
        source.write_bytes(graph_def.SerializeToString())
        for i, feed in enumerate(feeds):
            np.save(pathlib.Path(folder, f'feed_{i}.npy'), feed)
        done = subprocess.run([tool, f'--in_graph={source}', f'--out_graph={target}', f'--inputs={input_name}',
                               f'--outputs={",".join(outputs)}', f'--transforms={transforms}',
                               f'--verify_inputs={folder}/feed_*.npy', '--json'],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        notes = [note for each in json.loads(done.stdout)['passes'] for note in each['notes']]
        data = target.read_bytes()
        return tf.compat.v1.GraphDef.FromString(data), len(data), notes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('names', nargs='*', help='Models; none: all.')
    parser.add_argument('--shared', type=pathlib.Path, default=REPOSITORY.parent / 'shared')
    parser.add_argument('--tool', default=REPOSITORY / 'bazel-bin/tools/transform_graph')
    parser.add_argument('--transforms', action='append', help='The transforms of a column; may be repeated.')
    parser.add_argument('--synthetic', action='store_true', help='Measure networks of random weights instead of the models.')
    arguments = parser.parse_args()
    columns = arguments.transforms or COLUMNS
    print('| model | ' + ' | '.join(columns) + ' |\n|---|' + '---|' * len(columns))
    models = synthetic(arguments.names) if arguments.synthetic else shared_models(arguments.shared, arguments.names)
    kept, failed = [], False
    for name, graph_def, input_name, feeds, outputs, expected in models:
        original = len(engine.TransformGraphWithStringInputs(graph_def.SerializeToString(), input_name,
                                                             ','.join(outputs), 'quantize_weights'))
        cells = []
        for transforms in columns:
            result, size, notes = transform(arguments.tool, graph_def, input_name, feeds, outputs, transforms)
            errors = output_errors(run(result, input_name, feeds, outputs), expected)
            worst = max(error.relative for error in errors)
            cells.append(f'{worst:.4f}, {size / original:.3f}')
            if transforms == 'quantize':
                kept += [f'{name}: {note}' for note in notes if note.startswith('kept ')]
                failed |= worst > LARGEST_ERROR or size > LARGEST_SIZE * original
        print(f'| {name} | ' + ' | '.join(cells) + ' |', flush=True)
    print('\nEach cell: error of the worst output over its size, and bytes over those of the original\'s quantize_weights.')
    for note in kept:
        print(note)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
