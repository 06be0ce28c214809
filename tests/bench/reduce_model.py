#!/usr/bin/env python3
"""Injects 20 faults into models of 200 to 2,600 nodes and measures what reduce_model leaves of them.

    python tests/bench/reduce_model.py [--shared DIR] [--tools DIR] [--only N,N] [--seed N]

Half of the faults are commands that reject ops, pairs of ops, names, or that crash or hang. The others are kernels from a
library that compute wrong, crash, fail or hang at tensors of one size. Needs cc. Prints a Markdown table.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
KERNEL = REPOSITORY / 'tests/runtime_check/delegates/libraries/faulty_kernel.c'
HEADERS = REPOSITORY / 'runtime_check/delegates/external'
MOST_NODES = 12
MOST_SECONDS = 120
ELEMENTWISE = ['Relu', 'Relu6', 'AddV2', 'Mul', 'Sub', 'Sigmoid', 'Prelu', 'Maximum', 'LeakyRelu', 'BiasAdd', 'Add', 'Neg']


def compile_kernel(out, **defines):
    command = ['cc', '-O2', '-shared', '-fPIC', f'-I{HEADERS}', '-o', out]
    subprocess.run(command + [f'-D{key}={value}' for key, value in defines.items()] + [KERNEL], check=True)
    return out


class Model:
    def __init__(self, folder, tools):
        self.name = folder.name
        self.path = folder / 'model.pb'
        spec = json.loads((folder / 'spec.json').read_text())
        self.outputs = spec['outputs']
        summary = subprocess.run([tools / 'summarize_graph', self.path, '--json'], check=True, capture_output=True, text=True)
        facts = json.loads(summary.stdout)
        self.nodes = facts['nodes']
        self.ops = facts['ops']

    def sizes(self, op, tools, folder):
        """Returns the sizes in bytes for which a run asks for a kernel of the op."""
        log = folder / 'sizes.log'
        log.unlink(missing_ok=True)
        library = compile_kernel(folder / 'logs.so', OP=op, LOG=log)
        subprocess.run([tools / 'validate_model', self.path, self.path, f'--custom_ops={library}', '--samples=1',
                        f'--outputs={",".join(self.outputs)}'], capture_output=True)
        return sorted({int(line) for line in log.read_text().split()}) if log.exists() else []


def grep(*words):
    return ' && '.join(f'grep -aqF {word} {{}}' for word in words)


def command_faults(models, chance):
    """Yields (model, what, flags) for ten faults of commands."""
    ops = lambda model, most: sorted(op for op, count in model.ops.items()
                                     if count <= most and op not in ('Placeholder', 'Const', 'Identity') and len(op) > 4)
    for index in range(10):
        model = models[index % len(models)]
        rare = ops(model, 5) or ops(model, 10 ** 6)
        first, second = chance.choice(rare), chance.choice(ops(model, 10 ** 6))
        if index in (0, 1, 2):
            yield model, f'exit status 3 for {first}', [f'--command={grep(first)} && exit 3; exit 0']
        elif index in (3, 4, 5):
            yield model, f'text for {first} and {second}', [f'--command={grep(first, second)} && echo unsupported', '--text=unsupported']
        elif index in (6, 7):
            yield model, f'signal for {first}', [f'--command={grep(first)} && kill -SEGV $$; exit 0']
        elif index == 8:
            yield model, f'hang for {first}', [f'--command={grep(first)} && sleep 60; exit 0', '--trial_time=1s']
        else:
            yield model, f'exit status for {first} with weights', [f'--command={grep(first)} && exit 1; exit 0', '--keep_weights']


def shows(model, library, tools):
    """Returns whether an output shows the fault of a library."""
    try:
        done = subprocess.run([tools / 'validate_model', model.path, model.path, f'--custom_ops={library}', '--samples=1',
                               '--tolerance=0.01', f'--outputs={",".join(model.outputs)}'], capture_output=True, timeout=20)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def kernel_faults(models, chance, tools, folder):
    """Yields (model, what, flags) for ten faults of kernels."""
    kinds = ['wrong', 'crash', 'failure', 'hang']
    made = 0
    index = 0
    while made < 10 and index < 100:
        model = models[index % len(models)]
        op = chance.choice([op for op in ELEMENTWISE if op in model.ops] or ['Relu'])
        sizes = model.sizes(op, tools, folder)
        index += 1
        if not sizes:
            continue
        size = chance.choice(sizes)
        fault = made % 4 if made != 7 else 0
        library = compile_kernel(folder / f'fault_{made}.so', OP=op, BYTES=size, FAULT=fault)
        if not shows(model, library, tools):
            continue  # The outputs do not depend on it.
        flags = [f'--custom_ops={library}', '--max_error=0.01']
        yield model, f'{kinds[fault]} of {op} at {size} bytes', flags + (['--trial_time=3s'] if fault == 3 else [])
        made += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--shared', type=pathlib.Path, default=REPOSITORY.parent / 'shared')
    parser.add_argument('--tools', type=pathlib.Path, default=REPOSITORY / 'bazel-bin/tools')
    parser.add_argument('--only', default='')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    tools = options.tools.resolve()
    chance = random.Random(options.seed)
    models = [Model(folder, tools) for folder in sorted((options.shared / 'models').iterdir())]
    models = [model for model in models if 200 <= model.nodes <= 2600]
    only = {int(number) for number in options.only.split(',') if number}
    met = total = 0
    print('| fault | model | nodes | left | trials | seconds |\n|---|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        faults = list(command_faults(models, chance)) + list(kernel_faults(models, chance, tools, folder))
        for number, (model, what, flags) in enumerate(faults, 1):
            if only and number not in only:
                continue
            total += 1
            done = subprocess.run([tools / 'reduce_model', model.path, folder / 'small.pb', '--json', f'--time={MOST_SECONDS}s',
                                   f'--outputs={",".join(model.outputs)}'] + flags, capture_output=True, text=True)
            if done.returncode != 0:
                print(f'| {what} | {model.name} | {model.nodes} | failed: {done.stderr.strip()} | | |', flush=True)
                continue
            result = json.loads(done.stdout)
            is_met = result['nodes_after'] <= MOST_NODES and result['seconds'] <= MOST_SECONDS + 1
            met += is_met
            print(f'| {what} | {model.name} | {result["nodes_before"]} | {result["nodes_after"]} | {result["trials"]} '
                  f'| {result["seconds"]:.1f} |', flush=True)
    print(f'\n{met} of {total} are left with at most {MOST_NODES} nodes within {MOST_SECONDS} seconds')


if __name__ == '__main__':
    main()
