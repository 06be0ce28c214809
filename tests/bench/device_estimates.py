#!/usr/bin/env python3
"""Fits the shares of tools/measuring/device_estimate.cc, and prints the accuracy for models excluded from the fit.

    tests/bench/device_estimates.py MODELS [--delegate=onednn] [--runs=60] [--only=a,b] [--keep=FOLDER]

MODELS is a folder of folders with a model.pb. Each model is measured on this machine at one thread, and
benchmark_model --device=this reports its work. The fastest run of each piece is used, because other work on the machine only
adds time. Prints a row for each model: measured time, estimate with all models in the fit, estimate without this model; then
the shares as C++ source. With --keep the measurements are stored in the folder and reused by the next call.
Needs numpy.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy

import measuring

# As WorkClassName and the order of WorkClass.
CLASSES = ["convolution", "narrow convolution", "pointwise", "depthwise", "transposed", "matrix", "pool", "elementwise",
           "movement", "other"]
COLUMNS = 2 * len(CLASSES) + 4  # Arithmetic and traffic of each class, start, cheap and hard steps, weights.
# Prior values of the coefficients. The fit is regularised towards them: a factor of two in a coefficient costs as much as
# an error of PRIOR_WEIGHT in the time of one model.
PRIOR = [1.5, 1.0] * len(CLASSES) + [1.0, 8.0, 40.0, 0.5]
PRIOR_WEIGHT = 0.2


def ask(binary, *flags):
    printed = subprocess.run([str(binary), *flags, "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(printed)


def measure(binary, model, delegate, runs):
    flags = [f"--graph={model}", f"--delegate={delegate}", "--threads=1"]
    profile = ask(binary, *flags, f"--max_num_runs={runs}", "--max_time=8")
    return {"nodes": profile["nodes"], "runs": profile["runs"], "estimate": ask(binary, *flags, "--device=this")}


def device_of(found):
    """Returns the best values of all measurements of this machine."""
    devices = [model["estimate"]["device"] for model in found.values()]
    best = {key: max(device[key] for device in devices)
            for key in ("flops_per_second", "bytes_per_second", "cache_bytes_per_second")}
    # The measured cache size varies from run to run.
    best["cache_bytes"] = numpy.median([device["cache_bytes"] for device in devices])
    best["node_seconds"] = devices[0]["node_seconds"]
    return best


def rows_of(model, device):
    """Returns for each group the terms of its estimate and its measured time."""
    groups = model["estimate"]["groups"]
    weights = sum(group["weight_bytes"] for group in groups)
    cache_rate = max(device["cache_bytes_per_second"], device["bytes_per_second"])

    def seconds_of(size, of):
        """Returns the time to move `size` bytes out of a working set of the given size."""
        near = min(1.0, device["cache_bytes"] / of) if of else 1.0
        return size * (near / cache_rate + (1 - near) / device["bytes_per_second"])

    rows = numpy.zeros((len(groups) + 1, COLUMNS))
    seconds = numpy.zeros(len(groups) + 1)
    by_node = {}
    for i, group in enumerate(groups):
        kind = CLASSES.index(group["kind"])
        rows[i, 2 * kind] = group["flops"] / device["flops_per_second"]
        rows[i, 2 * kind + 1] = seconds_of(group["activation_bytes"], group["activation_bytes"])
        rows[i, -3] = group["step_elements"] / device["flops_per_second"]
        rows[i, -2] = group["hard_elements"] / device["flops_per_second"]
        rows[i, -1] = seconds_of(group["weight_bytes"], weights)
        rows[i, -4] = device["node_seconds"]
        for member in group["members"]:
            by_node[member] = i
    for node in model["nodes"]:
        # Time outside all groups is a row without work, because no term of the estimate covers it.
        seconds[by_node.get(node["name"], len(groups))] += node["least_seconds"]
    return rows, seconds


def solve(rows, wanted, start):
    """Computes nonnegative least squares by coordinate descent."""
    x = start.copy()
    gram, target = rows.T @ rows, rows.T @ wanted
    for _ in range(6000):
        largest = 0.0
        for i in range(len(x)):
            new = max(0.0, x[i] + (target[i] - gram[i] @ x) / gram[i, i])
            largest = max(largest, abs(new - x[i]))
            x[i] = new
        if largest < 1e-7:
            break
    return x


def fit(models, found, device):
    """Returns the coefficients that minimise the errors of models and of groups, relative to each model's time."""
    rows, wanted = [], []
    for name in models:
        own, seconds = rows_of(found[name], device)
        total = sum(node["least_seconds"] for node in found[name]["nodes"])
        # One equation for each group and one for the sum, which has the weight of all groups together.
        rows += [own / total, own.sum(axis=0, keepdims=True) / total * 2]
        wanted += [seconds / total, [seconds.sum() / total * 2]]
    rows, wanted = numpy.vstack(rows), numpy.concatenate(wanted)
    prior = numpy.array(PRIOR)
    # Coefficients relative to the prior.
    anchor = PRIOR_WEIGHT * numpy.eye(COLUMNS)
    start = numpy.ones(COLUMNS)
    return prior * solve(numpy.vstack([rows * prior, anchor]), numpy.concatenate([wanted, anchor @ start]), start)


def estimate(model, device, x):
    rows, _ = rows_of(model, device)
    return (rows @ x).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--delegate", default="onednn")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--binary", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    binary = arguments.binary or measuring.build("//tools:benchmark_model") / "tools/benchmark_model"
    only = arguments.only.split(",") if arguments.only else None
    found = {}
    for path in sorted(arguments.models.glob("*/model.pb")):
        name = path.parent.name
        if only is not None and name not in only:
            continue
        kept = arguments.keep / f"{name}.{arguments.delegate}.json" if arguments.keep else None
        if kept is not None and kept.exists():
            found[name] = json.loads(kept.read_text())
            continue
        print(f"measuring {name}", file=sys.stderr)
        found[name] = measure(binary, path, arguments.delegate, arguments.runs)
        if kept is not None:
            kept.write_text(json.dumps(found[name]))
    if len(found) < 3:
        sys.exit(f"found {len(found)} models in {arguments.models}, expected at least 3 to fit shares to")
    device = device_of(found)
    print(f"{measuring.machine()}: {device['flops_per_second'] / 1e9:.1f} GFLOP/s, "
          f"{device['cache_bytes_per_second'] / 1e9:.1f} GB/s from the cache, "
          f"{device['bytes_per_second'] / 1e9:.1f} GB/s from memory\n")
    everything = fit(list(found), found, device)
    print(f"| model | measured | estimated | ratio | left out | ratio |\n|---|---|---|---|---|---|")
    misses = []
    for name, model in found.items():
        measured = sum(node["least_seconds"] for node in model["nodes"])
        inside = estimate(model, device, everything)
        outside = estimate(model, device, fit([other for other in found if other != name], found, device))
        misses += [name] if abs(outside / measured - 1) > 0.25 else []
        print(f"| {name} | {measured * 1e3:.2f} ms | {inside * 1e3:.2f} ms | {inside / measured:.2f} "
              f"| {outside * 1e3:.2f} ms | {outside / measured:.2f} |")
    print(f"\nbeyond 25 % when left out: {', '.join(misses) or 'none'}\n")
    pairs = ", ".join(f"{{{everything[2 * i]:.3g}, {everything[2 * i + 1]:.3g}}}" for i in range(len(CLASSES)))
    print(f'{{"{arguments.delegate}", ..., {{{{{pairs}}}}}, {everything[-4]:.3g}, {everything[-3]:.3g}, {everything[-2]:.3g}, '
          f'{everything[-1]:.3g}}},')


if __name__ == "__main__":
    main()
