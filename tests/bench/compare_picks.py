#!/usr/bin/env python3
"""Measures how often benchmark_model --compare selects the fastest configuration.

    tests/bench/compare_picks.py MODEL [--picks=10] [--seconds=30] [--truth_seconds=120]

The reference is one long comparison: the configuration that it selects, and those that it cannot tell apart from it. Prints
for each short comparison its selection, whether the reference includes it, and its median time in the long comparison relative
to the fastest.
"""

import argparse
import json
import pathlib
import subprocess

import measuring


def compare(binary, model, seconds):
    printed = subprocess.run([str(binary), f"--graph={model}", "--compare", f"--compare_time={seconds}", "--json"],
                             check=True, capture_output=True, text=True).stdout
    found = json.loads(printed)
    configurations = {}
    for each in found["configurations"]:
        flags = f"--delegate={each['delegate']} --precision={each['precision']} --threads={each['threads']}"
        configurations[flags] = each
    return found["ship"], configurations


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--picks", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--truth_seconds", type=float, default=120)
    parser.add_argument("--binary", type=pathlib.Path)
    arguments = parser.parse_args()
    binary = arguments.binary or measuring.build("//tools:benchmark_model") / "tools/benchmark_model"
    best, truth = compare(binary, arguments.model, arguments.truth_seconds)
    equals = {flags for flags, each in truth.items()
              if flags == best or each["remark"].startswith("not told apart")}
    print(f"{measuring.machine()}\n\nin {arguments.truth_seconds:g} s: {best}; as fast: {len(equals) - 1} others\n")
    print("| pick | right | times the fastest |\n|---|---|---|")
    right = 0
    for _ in range(arguments.picks):
        pick, _ = compare(binary, arguments.model, arguments.seconds)
        right += pick in equals
        ratio = truth.get(pick, {}).get("ratio", {}).get("median")
        print(f"| {pick} | {'yes' if pick in equals else 'no'} | {'' if ratio is None else f'{ratio:.3f}'} |", flush=True)
    print(f"\n{right} of {arguments.picks} picks are right")


if __name__ == "__main__":
    main()
