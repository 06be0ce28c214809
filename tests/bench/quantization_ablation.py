#!/usr/bin/env python3
"""Measures what each part of accuracy without labels contributes to models in int8, and to weights in four bits.

    tests/bench/quantization_ablation.py --models=../shared/models [--only=NAMES] [--out=FOLDER] [--folds | --weights]

For each model: the error of the worst output, as its root mean square relative to that of the output. With --folds each
recorded input is held out in turn: it judges a model that the others have calibrated, of which each has six variants
(mirrored, zoomed, other brightness), and the squares of all held-out inputs are added up. It needs numpy. Otherwise all
recorded inputs judge, and all but the last calibrate.

Without --weights, convert_model writes TensorFlow Lite models in int8, which our integer kernels run; with --weights,
transform_graph stores weights in four bits. Columns add one part each; the last is what the tool chooses. No times are
measured, so that other work on the machine does not matter.
"""

import argparse
import json
import pathlib
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parents[2]
INT8 = {
    'min/max': '--ranges=minmax --rounding=none --equalize=none',
    'mse': '--ranges=mse --rounding=none --equalize=none',
    'percentile': '--ranges=percentile99.99 --rounding=none --equalize=none',
    'kl': '--ranges=kl --rounding=none --equalize=none',
    'equalised': '--ranges=minmax --rounding=none --equalize=activations',
    'bias': '--ranges=minmax --rounding=nearest --equalize=none',
    'gptq': '--ranges=minmax --rounding=gptq --equalize=none',
    'adaround': '--ranges=minmax --rounding=adaround --equalize=none',
    'descent': '--ranges=minmax --rounding=descent --equalize=none',
    'sequential': '--ranges=minmax --rounding=sequential --equalize=none',
    'equalised, sequential': '--ranges=minmax --rounding=sequential --equalize=activations',
    'all three': '--ranges=minmax --rounding=adaround --equalize=activations',
    'auto': '',
}
WEIGHTS = {
    'channel': '',
    'nearest': 'rounding=nearest',
    'gptq': 'rounding=gptq',
    'adaround': 'rounding=adaround',
    'descent': 'rounding=descent',
    'sequential': 'rounding=sequential',
    'block 128': 'block=128',
    'block 32': 'block=32',
    'descent, block 128': 'rounding=descent, block=128',
    'descent, block 32': 'rounding=descent, block=32',
}


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def files_of(model, names, sets):
    if len(names) == 1:
        return ','.join(f'{model}/input_{s}.npy' for s in sets)
    return ','.join(f'{name}={model}/input_{s}_{i}.npy' for s in sets for i, name in enumerate(names))


def worst_error(tools, model, candidate, names, outputs, sets):
    flags = ['--inputs=' + files_of(model, names, sets), '--outputs=' + ','.join(outputs), '--json']
    status, text, errors = run(tools / 'validate_model', model / 'model.pb', candidate, *flags)
    if status not in (0, 1) or not text:
        return None, errors.strip().splitlines()[-1:]
    ratios = []
    for output in json.loads(text)['outputs']:
        sqnr = output['sqnr_db']
        if sqnr is not None and output['quality'] != 'exact':
            ratios.append(10 ** (-float(sqnr) / 20))
    return max(ratios, default=0), None


def variants(image):
    """An image [1, height, width, channels] of numbers from 0 to 1, and five images that are derived from it."""
    import numpy as np
    height, width = image.shape[1:3]

    def zoomed(part, top, left):
        rows = (np.arange(height) * part + top * height * (1 - part)).astype(int)
        columns = (np.arange(width) * part + left * width * (1 - part)).astype(int)
        return image[:, rows][:, :, columns]

    return [image, image[:, :, ::-1], zoomed(.8, .5, .5), zoomed(.7, .2, .8)[:, :, ::-1], image * .7, zoomed(.6, .8, .3)]


def held_out_error(tools, model, spec, out, flags):
    """The error of the worst output over all recorded inputs, each held out once; or None and a message."""
    import numpy as np
    outputs, count = spec['outputs'], len(list(model.glob('input_*.npy')))
    files = []
    for s in range(count):
        files.append([])
        for i, variant in enumerate(variants(np.load(model / f'input_{s}.npy'))):
            files[-1].append(out.parent / f'{model.name}_{s}_{i}.npy')
            np.save(files[-1][-1], np.ascontiguousarray(variant))
    signal, noise = np.zeros(len(outputs)), np.zeros(len(outputs))
    for held in range(count):
        calibration = ','.join(str(each) for s in range(count) if s != held for each in files[s])
        status, _, errors = run(tools / 'convert_model', model / 'model.pb', out, '--quantize=int8', '--min_sqnr=-1',
                                '--outputs=' + ','.join(outputs), '--calibration_inputs=' + calibration, '--verify=off',
                                *flags.split())
        if not status:
            status, text, errors = run(tools / 'validate_model', model / 'model.pb', out, '--json',
                                       f'--inputs={model}/input_{held}.npy', '--outputs=' + ','.join(outputs))
        if status not in (0, 1):
            return None, errors.strip().splitlines()[-1:]
        for k, output in enumerate(json.loads(text)['outputs']):
            power = np.square(np.load(model / f'output_{held}_{k}.npy').astype(float)).mean()
            signal[k] += power
            if output['sqnr_db'] is not None:
                noise[k] += power * 10 ** (-float(output['sqnr_db']) / 10)
    return float(np.sqrt(np.max(noise / np.maximum(signal, 1e-30)))), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--models', type=pathlib.Path, required=True, help='folder of the recorded models')
    parser.add_argument('--only', default='', help='names, separated by commas')
    parser.add_argument('--out', type=pathlib.Path, required=True, help='folder for models')
    parser.add_argument('--columns', default='', help='columns to measure, separated by semicolons; default: all')
    parser.add_argument('--folds', action='store_true', help='hold each input out in turn; models of one input, an image')
    parser.add_argument('--weights', action='store_true', help='weights in four bits instead of integer models')
    parser.add_argument('--tools', type=pathlib.Path, default=HERE / 'bazel-bin/tools')
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    columns = WEIGHTS if args.weights else INT8
    if args.columns:
        columns = {name: columns[name] for name in args.columns.split(';')}
    wanted = [name for name in args.only.split(',') if name]
    print('| model | ' + ' | '.join(columns) + ' |')
    print('|---|' + '---:|' * len(columns))
    by_column = {name: [] for name in columns}
    for model in sorted(path for path in args.models.iterdir() if not wanted or path.name in wanted):
        spec = json.loads((model / 'spec.json').read_text())
        names = [each['name'] for each in spec['inputs']]
        count = len(list(model.glob('input_*.npy' if len(names) == 1 else 'input_*_0.npy')))
        calibration, judged = list(range(max(1, count - 1))), list(range(count))
        cells = []
        for column, flags in columns.items():
            out = args.out / f'{model.name}.{"pb" if args.weights else "tflite"}'
            out.unlink(missing_ok=True)
            outputs = ','.join(spec['outputs'])
            if args.folds:
                error, problem = held_out_error(args.tools, model, spec, out, flags)
                by_column[column].append(error)
                cells.append(f'{100 * error:.2f} %' if error is not None else f'{problem}')
                continue
            if args.weights:
                passes = 'quantize_weights(bits=4, per_channel=true, minimum_size=256' + (f', {flags}' if flags else '') + ')'
                status, _, errors = run(
                    args.tools / 'transform_graph', model / 'model.pb', out, f'--outputs={outputs}',
                    f'--transforms=optimize_for_deployment {passes}', '--verify_inputs=' + files_of(model, names, calibration))
            else:
                status, _, errors = run(
                    args.tools / 'convert_model', model / 'model.pb', out, '--quantize=int8', f'--outputs={outputs}',
                    '--min_sqnr=-1', '--calibration_inputs=' + files_of(model, names, calibration), '--verify=off',
                    *flags.split())
            error, problem = (None, errors.strip().splitlines()[-1:]) if status else worst_error(
                args.tools, model, out, names, spec['outputs'], judged)
            by_column[column].append(error)
            cells.append(f'{100 * error:.2f} %' if error is not None else f'{problem}')
        print(f'| {model.name} | ' + ' | '.join(cells) + ' |', flush=True)
    first = list(columns)[0]
    print(f'\nMedian ratio to the errors of "{first}":')
    for column, errors in by_column.items():
        ratios = [error / base for error, base in zip(errors, by_column[first]) if error is not None and base]
        if ratios:
            print(f'{column}: {statistics.median(ratios):.2f}, at most 0.5 for {sum(r <= 0.5 for r in ratios)} of {len(ratios)}')


if __name__ == '__main__':
    main()
