#!/usr/bin/env python3
"""Runs optimize_model on the recorded models and prints a table of sizes, errors and latencies.

    tests/bench/optimize_models.py --models=../shared/models [--only=NAMES] [--time=5m] [--out=FOLDER] [-- FLAGS]

A journal of each model in --out makes an interrupted run go on. The held-back and random inputs are those of the tool; a
row is within the budget if all checks are. Latencies are ratios to the original in the same run of the tool, in turn with
it; on a busy machine read sizes and errors alone.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parents[2]


def row(name, results, seconds):
    result = results['result']
    if result is None:
        return f'| {name} | {results["in_bytes"]:,} | none within the budget | | | | | {seconds:.0f} s |'
    checks = {check['inputs']: check for check in result['checks']}
    error = lambda key: f'{100 * checks[key]["relative_rms"]:.2f} %' if key in checks else ''
    ratio = f'{result["ratio"]:.2f} ({result["low_ratio"]:.2f} to {result["high_ratio"]:.2f})' if 'ratio' in result else ''
    return (f'| {name} | {results["in_bytes"]:,} | {result["file_bytes"]:,} ({result["file_bytes"] / results["in_bytes"]:.3f}) '
            f'| {100 * result["relative_rms"]:.2f} % | {error("held back")} | {error("seeded")} '
            f'| {result["delegate"]} {result["precision"]}: {ratio} | {seconds:.0f} s |')


def main():
    flags = sys.argv[1:]
    passed_on = flags[flags.index('--') + 1:] if '--' in flags else []
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--models', type=pathlib.Path, required=True, help='folder of the recorded models')
    parser.add_argument('--only', default='', help='names, separated by commas')
    parser.add_argument('--time', default='10m', help='limit of each search')
    parser.add_argument('--out', type=pathlib.Path, required=True, help='folder for models, results and journals')
    parser.add_argument('--tool', type=pathlib.Path, default=HERE / 'bazel-bin/tools/permafrost')
    args = parser.parse_args(flags[:flags.index('--')] if '--' in flags else flags)
    args.out.mkdir(parents=True, exist_ok=True)
    names = [name for name in args.only.split(',') if name]
    models = sorted((path for path in args.models.iterdir() if not names or path.name in names),
                    key=lambda path: (path / 'model.pb').stat().st_size)
    print('| model | bytes | result | error, search | held back | random | run: latency to the original | search |')
    print('|---|---:|---:|---:|---:|---:|---|---:|')
    ratios = []
    for model in models:
        spec = json.loads((model / 'spec.json').read_text())
        names_of_inputs = [each['name'] for each in spec['inputs']]
        if len(names_of_inputs) == 1:
            inputs = [f'--inputs={model}/input_*.npy']
        else:
            inputs = [f'--inputs={name}={model}/input_*_{i}.npy' for i, name in enumerate(names_of_inputs)]
        out = args.out / f'{model.name}.pb'
        start = time.monotonic()
        done = subprocess.run([str(args.tool), 'optimize', str(model / 'model.pb'), str(out), *inputs,
                               f'--time={args.time}', f'--journal={args.out}/{model.name}.journal',
                               '--output_layer=' + ','.join(spec['outputs']), *passed_on],
                              capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            print(f'| {model.name} | {done.stderr.strip().splitlines()[-1]} |', flush=True)
            continue
        results = json.loads(out.with_suffix('.json').read_text())
        print(row(model.name, results, time.monotonic() - start), flush=True)
        if results['result'] is not None:
            ratios.append(results['result']['file_bytes'] / results['in_bytes'])
    print(f'\n{len(ratios)} of {len(models)} within the budget, median size {statistics.median(ratios or [1]):.3f}')


if __name__ == '__main__':
    main()
