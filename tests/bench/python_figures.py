#!/usr/bin/env python3
"""Measures the Python package as distributed: a release wheel installed into a new environment.

    python_figures.py [--model MODEL --inputs NAMES --outputs NAMES] [--rounds 7] [--wheel WHEEL] [--server PASS_SERVER]

Prints a table: import time; TransformGraph from bytes to bytes against the C++ tool, which runs in the same process, alternating,
and reads the file and writes into memory; the time of Session.run beyond that of the C++ session; and the growth of memory over
a thousand models that are loaded, transformed and released. Medians, with a warm page cache.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import measuring

DIGITS = measuring.REPOSITORY / "tests/models/digits"
TRANSFORMS = ("strip_unused_nodes", "fold_constants fold_batch_norms fold_old_batch_norms", "quantize_weights",
              "remove_nodes(op=Identity) merge_duplicate_nodes")
# Runs of the small models, in alternating batches.
BATCHES, RUNS = 20, 200
CYCLES = 1000


def environment(folder, wheel):
    """Returns the interpreter of an environment with the wheel. numpy is the system's."""
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel], check=True)
    return folder / "bin/python"


def build_wheel(folder):
    subprocess.run([measuring.REPOSITORY / "script/build_wheel", folder], check=True, stdout=sys.stderr)
    return next(folder.glob("*.whl"))


# --- Scripts that run in the environment; each prints or answers with JSON ------------------------------------------

SERVER = '''
import gc, json, statistics, sys, time
import numpy, permafrost
from permafrost import _native
from permafrost.graph_transforms import TransformGraph

def rss():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * 4096

def transform(model, inputs, outputs, transforms):
    if model not in files:
        with open(model, 'rb') as file:
            files[model] = file.read()
    start = time.perf_counter()
    result = TransformGraph(files[model], inputs, outputs, [transforms])
    return {'seconds': time.perf_counter() - start, 'bytes': len(result)}

def tool(model, inputs, outputs, transforms, out):
    flags = ['--in_graph=' + model, '--out_graph=' + out, '--inputs=' + ','.join(inputs), '--outputs=' + ','.join(outputs),
             '--transforms=' + transforms, '--verify=off']
    start = time.perf_counter()
    _native.run_tool('transform_graph', flags)
    return {'seconds': time.perf_counter() - start}

def run(text, shape, is_bound, batches, runs):
    x = permafrost.empty(shape)
    x[:] = numpy.random.default_rng(1).random(shape, numpy.float32)
    session = permafrost.load(text.encode() if 'node {' in text else text).session(threads=1)
    outputs = session.allocate_outputs(x) if is_bound else None
    ours, around, native = [], [], []
    for _ in range(batches):
        for _ in range(runs):
            start = time.perf_counter()
            session.run(x, outputs)
            ours.append(time.perf_counter() - start)
            around.append(ours[-1] - session.native.last_seconds)
        native += session.benchmark(x, runs=runs, warm_up=1).seconds
    return {'python': statistics.median(ours), 'around': statistics.median(around), 'native': statistics.median(native)}

def cycles(model, count):
    with open(model, 'rb') as file:
        data = file.read()
    def cycle(times):
        for _ in range(times):
            permafrost.load(data).transform('fold_constants fold_batch_norms').to_bytes()
        gc.collect()
        return rss()
    before = cycle(count // 5)
    return {'growth': cycle(count) - before}

files = {}
for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps(globals()[name](*arguments)), flush=True)
'''

IMPORT = "import time; start = time.perf_counter(); import permafrost; print(time.perf_counter() - start)"

# A model with negligible computation.
TINY = ('node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value {'
        ' shape { dim { size: 4 } } } } } node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }')


def row(what, ours, peer, ratio, bound, note=""):
    verdict = "" if bound is None else f"{bound} " + ("met" if ratio <= bound else "**missed**")
    print(f"| {what} | {ours} | {peer} | {ratio:.3g} | {verdict} | {note} |", flush=True)


def measure_import(python, rounds):
    seconds = []
    for _ in range(rounds + 1):
        seconds.append(float(subprocess.run([python, "-c", IMPORT], check=True, capture_output=True, text=True).stdout))
    median = statistics.median(seconds[1:])
    row("import permafrost, ms", f"{median * 1e3:.1f}", "", median * 1e3, 60, f"least {min(seconds) * 1e3:.1f} ms")


def measure_transforms(package, model, inputs, outputs, rounds):
    with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".pb") as out:
        for transforms in TRANSFORMS:
            ours, theirs = [], []
            for index in range(rounds + 1):
                request = [str(model), inputs, outputs, transforms]
                python = package.ask(json.dumps(["transform", *request]))["seconds"]
                native = package.ask(json.dumps(["tool", *request, out.name]))["seconds"]
                if index > 0:  # The first warms up.
                    ours.append(python)
                    theirs.append(native)
            python, native = statistics.median(ours), statistics.median(theirs)
            ratios = [mine / its for mine, its in zip(ours, theirs)]
            row(f"TransformGraph, {transforms}", f"{python * 1e3:.1f} ms", f"C++: {native * 1e3:.1f} ms", python / native,
                1.15, f"pairs from {min(ratios):.2f} to {max(ratios):.2f}")


def measure_runs(package):
    for name, text, shape in (("one Neg", TINY, [4]), ("digits", str(DIGITS / "digits.pb"), [1, 8, 8, 1])):
        for is_bound in (False, True):
            answer = package.ask(json.dumps(["run", text, shape, is_bound, BATCHES, RUNS]))
            beyond = (answer["python"] - answer["native"]) * 1e6
            row(f"Session.run, {name}{', bound outputs' if is_bound else ''}: µs beyond the C++ session",
                f"{answer['python'] * 1e6:.1f} µs", f"C++: {answer['native'] * 1e6:.1f} µs", beyond, 20,
                f"{answer['around'] * 1e6:.1f} µs around the same run")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=measuring.REPOSITORY.parent / "shared/models/inception_v3/model.pb")
    parser.add_argument("--inputs", default="input_1")
    parser.add_argument("--outputs", default="predictions")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--wheel", help="an existing wheel; default: build it")
    parser.add_argument("--python", help="the interpreter of an environment with the package; default: a new environment")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        python = arguments.python or environment(folder / "venv", arguments.wheel or build_wheel(folder))
        print("| measurement | Python | peer | value | must be at most | |\n|---|---|---|---|---|---|")
        measure_import(python, max(arguments.rounds, 15))
        package = measuring.LineServer([python, "-c", SERVER], errors=None)
        measure_runs(package)
        measure_transforms(package, arguments.model, arguments.inputs.split(","), arguments.outputs.split(","),
                           arguments.rounds)
        growth = package.ask(json.dumps(["cycles", str(DIGITS / "digits.pb"), CYCLES]))["growth"]
        row(f"{CYCLES} models of 1.3 MB loaded, transformed, dropped: MB more", f"{growth / 1e6:.2f}", "", growth / 1e6, None)
        package.close()


if __name__ == "__main__":
    main()
