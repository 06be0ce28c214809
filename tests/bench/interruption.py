#!/usr/bin/env python3
"""Measures how soon the tools end after Ctrl-C and after SIGTERM, in the middle of their longest work.

    bazel build //tools:programs && tests/bench/interruption.py ../shared/models/inception_v3
    tests/bench/interruption.py MODEL --only calibration

Each command runs several times, and gets the signal at another moment each time. Prints the longest time from the signal to the
end of the process. The goal is 200 ms. MODEL is a folder with spec.json and a graph, as in ../shared/models.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def commands(graph, data, inputs, outputs, folder):
    names = [f'--inputs={inputs}', f'--outputs={outputs}']
    run = [f'--reference={graph}', f'--candidate={graph}']
    return {
        'verification': ['transform_graph', f'--in_graph={graph}', f'--out_graph={folder}/o.pb', *names,
                         '--transforms=fold_constants strip_unused_nodes'],
        'passes': ['transform_graph', f'--in_graph={graph}', f'--out_graph={folder}/o.pb', *names, '--verify=off',
                   '--transforms=' + 'fold_batch_norms quantize_weights round_weights merge_duplicate_nodes ' * 8],
        'compression': ['convert_model', f'--in={graph}', f'--out={folder}/o.pb', '--compress=zstd:19', '--to=pb'],
        'encryption with a passphrase': ['convert_model', f'--in={graph}', f'--out={folder}/o.pb', '--to=pb',
                                         '--encrypt_passphrase_env=PASSPHRASE'],
        'packing': ['convert_graphdef_memmapped_format', f'--in_graph={graph}', f'--out_graph={folder}/o.pbmm',
                    '--pack_for=onednn:int8', f'--inputs={data}'],
        'validation': ['validate_model', *run, '--samples=1000'],
        'validation with int8': ['validate_model', *run, '--delegate=onednn', '--precision=int8', '--samples=100'],
        'search of a precision': ['benchmark_model', f'--graph={graph}', '--delegate=onednn', '--precision=auto'],
        'calibration': ['benchmark_model', f'--graph={graph}', '--delegate=onednn', '--precision=mixed'],
        'benchmark': ['benchmark_model', f'--graph={graph}', '--max_num_runs=1000000'],
        'comparison': ['benchmark_model', f'--graph={graph}', '--compare'],
        'report': ['report_model', f'--in_graph={graph}', f'--out={folder}/o.html'],
        'search of a model': ['optimize_model', f'--in_model={graph}', f'--out_model={folder}/o.pb', '--time=10m'],
        'summary': ['summarize_graph', f'--in_graph={graph}', '--compressed_sizes'],
    }


def seconds_to_end(command, number, after):
    """None if the command ended by itself before the signal."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                               env={**os.environ, 'PASSPHRASE': 'a passphrase of some length'})
    try:
        process.wait(after)
        return None
    except subprocess.TimeoutExpired:
        pass
    start = time.monotonic()
    process.send_signal(number)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model', type=pathlib.Path)
    parser.add_argument('--tools', type=pathlib.Path, default=ROOT / 'bazel-bin/tools')
    parser.add_argument('--only', help='a part of the names of the commands to run')
    parser.add_argument('--moments', type=float, nargs='+', default=[0.1, 0.3, 0.7, 1.5])
    options = parser.parse_args()
    spec = json.loads((options.model / 'spec.json').read_text())
    graph = next(path for path in sorted(options.model.iterdir()) if path.suffix in ('.pb', '.pbmm', '.zst'))
    inputs, outputs = ','.join(entry['name'] for entry in spec['inputs']), ','.join(
        entry['name'] if isinstance(entry, dict) else entry for entry in spec['outputs'])
    with tempfile.TemporaryDirectory() as folder:
        for name, (tool, *flags) in commands(graph, options.model / 'input_*.npy', inputs, outputs, folder).items():
            if options.only and options.only not in name:
                continue
            worst = {}
            for number in (signal.SIGINT, signal.SIGTERM):
                for moment in options.moments:
                    seconds = seconds_to_end([options.tools / tool, *flags], number, moment)
                    if seconds is not None:
                        worst[number] = max(worst.get(number, (0, 0)), (seconds, moment))
            texts = [f'{number.name} {1000 * seconds:5.0f} ms (after {moment} s)' for number, (seconds, moment) in worst.items()]
            print(f'{name:30} {tool:36} {"  ".join(texts) or "ended by itself"}', flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
