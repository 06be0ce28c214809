"""Measures memory-mapped packages: load time, memory shared between processes, and write time.

    bazel build --config=release //tests/bench:package_load //tools:convert_graphdef_memmapped_format
    python3 tests/bench/packages.py [--bin bazel-bin] [--model MODEL INPUT OUTPUT] [--rounds 7] [--scratch FOLDER]

Prints a table. The generated models are chains of MatMul with random weights; the largest exceeds the limit of a GraphDef.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(WORKSPACE / 'tests'))
import measuring  # noqa: E402
from protobuf_wire import field  # noqa: E402

MB = 1000000
SIDE = 1600  # Side of a square matrix of 10.24 MB.
PROCESSES = 4


def node(name, op, inputs=(), **attrs):
    body = field(1, name.encode()) + field(2, op.encode()) + b''.join(field(3, i.encode()) for i in inputs)
    for key, value in attrs.items():
        body += field(5, field(1, key.encode()) + field(2, value))
    return field(1, body)


def shape(*dims):
    return b''.join(field(2, field(1, dim)) for dim in dims)


def generate(path, matrices, regions):
    """Returns a chain of matrix products as a GraphDef, or as a package if `regions`."""
    type_float, square = field(6, 1), shape(SIDE, SIDE)
    rng, block = random.Random(1), SIDE * SIDE * 4
    graph = node('x', 'Placeholder', dtype=type_float, shape=field(7, shape(1, SIDE)))
    entries, offset, last = b'', 0, 'x'
    with open(path, 'wb') as file:
        for i in range(matrices):
            weights = rng.randbytes(block)
            if regions:
                name = f'memmapped_package://w{i}'.encode()
                file.write(weights)
                entries += field(1, (field(1, offset) if offset else b'') + field(2, name) + field(3, block))
                offset += block
                graph += node(f'w{i}', 'ImmutableConst', dtype=type_float, memory_region_name=field(2, name),
                              shape=field(7, square))
            else:
                tensor = field(1, 1) + field(2, square) + field(4, weights)
                file.write(node(f'w{i}', 'Const', dtype=type_float, value=field(8, tensor)))
            graph += node(f'y{i}', 'MatMul', [last, f'w{i}'], T=type_float)
            last = f'y{i}'
        file.write(graph)
        if regions:
            entries += field(1, field(1, offset) + field(2, b'memmapped_package://.') + field(3, len(graph)))
            file.write(entries + struct.pack('<Q', offset + len(graph)))
        # Pages that are not written to disk yet count as dirty.
        file.flush()
        os.fsync(file.fileno())
    return last


class Bench:

    def __init__(self, options):
        self.options = options
        self.load = options.bin / 'tests/bench/package_load'
        self.convert = options.bin / 'tools/convert_graphdef_memmapped_format'
        self.rows = []

    def loads(self, path, first, last, *more):
        runs = [json.loads(subprocess.run([self.load, path, first, last, *more], check=True, capture_output=True).stdout)
                for _ in range(self.options.rounds + 1)][1:]
        return {key: statistics.median(run[key] for run in runs) for key in runs[0]}

    def add_load(self, name, path, first, last, weights):
        figures = self.loads(path, first, last)
        self.rows.append((name, f'{path.stat().st_size / MB:.1f}', f'{figures["open_ms"]:.2f}',
                          f'{figures["open_ms"] + figures["session_ms"]:.2f}',
                          f'{figures["Private_Dirty"] / MB:.2f}', f'{100 * figures["Private_Dirty"] / weights:.2f} %'))

    def shared(self, path, first, last):
        """Returns the proportional set size of each of several processes that run the model, and that of a single process."""
        alone = self.loads(path, first, last, 'run')
        processes = [subprocess.Popen([self.load, path, first, last, 'run', 'wait'], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE) for _ in range(PROCESSES)]
        for process in processes:
            process.stdout.readline()
        shares = []
        for process in processes:
            text = pathlib.Path(f'/proc/{process.pid}/smaps_rollup').read_text(encoding='ascii')
            values = {line.split(':')[0]: int(line.split()[1]) * 1024 for line in text.splitlines()[1:]}
            shares.append((values['Pss'], values['Private_Dirty'], values['Shared_Clean']))
        for process in processes:
            process.communicate()
        pss, dirty, clean = (statistics.median(column) for column in zip(*shares))
        return alone, pss, dirty, clean

    def writes(self, model, out):
        """Returns the seconds to write the package, those of cp with a sync, alternating, and the peak anonymous memory."""
        ours, theirs, peak = [], [], 0
        for _ in range(self.options.rounds):
            for command, times in (([self.convert, f'--in_graph={model}', f'--out_graph={out}'], ours),
                                   (['dd', f'if={model}', f'of={out}', 'bs=1M', 'conv=fsync', 'status=none'], theirs)):
                out.unlink(missing_ok=True)
                os.sync()
                start = time.monotonic()
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                while process.poll() is None:
                    peak = max(peak, measuring.status(process.pid, 'RssAnon')) if times is ours else peak
                    time.sleep(0.001)
                times.append(time.monotonic() - start)
                if process.returncode != 0:
                    sys.exit(f'{command[0]} failed')
        return statistics.median(ours), statistics.median(theirs), peak


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', type=pathlib.Path, default=WORKSPACE / 'bazel-bin')
    parser.add_argument('--model', nargs=3, default=[WORKSPACE.parent / 'shared/models/inception_v3/model.pb', 'input_1',
                                                     'predictions'])
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--sizes', type=int, nargs='*', default=[1, 10, 100, 300], help='matrices of 10.24 MB')
    parser.add_argument('--scratch', type=pathlib.Path)
    options = parser.parse_args()
    bench = Bench(options)
    scratch = pathlib.Path(tempfile.mkdtemp(dir=options.scratch))
    try:
        model, first, last = pathlib.Path(options.model[0]), options.model[1], options.model[2]
        package = scratch / 'model.pbmm'
        ours, theirs, peak = bench.writes(model, package)
        subprocess.run([bench.convert, f'--in_graph={model}', f'--out_graph={package}'], check=True,
                       stdout=subprocess.DEVNULL)
        weights = model.stat().st_size
        bench.add_load('GraphDef', model, first, last, weights)
        bench.add_load('package', package, first, last, weights)
        alone, pss, dirty, clean = bench.shared(package, first, last)
        for count in options.sizes:
            for regions, name in ((False, 'GraphDef'), (True, 'package')):
                generated, size = scratch / 'generated', count * SIDE * SIDE * 4
                if not regions and size > 0x7fffffff:
                    continue
                out = generate(generated, count, regions)
                bench.add_load(f'{name}, {count} matrices', generated, 'x', out, size)
                generated.unlink()
        print('| model | MB | open ms | ready to plan ms | private dirty MB | of the weights |\n|---|---|---|---|---|---|')
        for row in bench.rows:
            print('| ' + ' | '.join(row) + ' |')
        print(f'\nAfter a run in the reference runtime: private dirty {alone["Private_Dirty"] / MB:.1f} MB, clean pages of '
              f'the file {alone["Private_Clean"] / MB:.1f} MB. {PROCESSES} processes at once: {clean / MB:.1f} MB shared, '
              f'{dirty / MB:.1f} MB private dirty and {pss / MB:.1f} MB proportional each.')
        print(f'Writing: {ours * 1000:.0f} ms, dd with fsync {theirs * 1000:.0f} ms, ratio {ours / theirs:.2f}; at most '
              f'{peak / MB:.1f} MB of anonymous memory.')
    finally:
        shutil.rmtree(scratch)


if __name__ == '__main__':
    main()
