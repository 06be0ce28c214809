#!/usr/bin/env python3
"""Times freezing a checkpoint against copying it, and against TensorFlow's own freeze_graph.

    freeze.py [--megabytes 500] [--rounds 5] [--format pb] [--tf PYTHON] [--tool FREEZE_GRAPH --maker MAKE_CHECKPOINT]

Each round copies the checkpoint's data (`dd conv=fsync`), then freezes it. The page cache is warm, and the disk is synced before
each step. The graph has reference variables, because the original fails on others. Without --tf the original is not measured.
Prints medians, peak anonymous memory and peak resident memory, sampled every millisecond.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import measuring


def timed(command, output):
    """Returns seconds, and the peaks of anonymous and of resident memory."""
    pathlib.Path(output).unlink(missing_ok=True)
    subprocess.run(["sync"], check=True)
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peaks = {"RssAnon": 0, "VmRSS": 0}
    while process.poll() is None:
        for field in peaks:
            peaks[field] = max(peaks[field], measuring.status(process.pid, field))
        time.sleep(0.001)
    seconds = time.perf_counter() - start
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed: {process.stderr.read()[-2000:]}")
    return seconds, peaks["RssAnon"], peaks["VmRSS"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--format", default="pb")
    parser.add_argument("--tf", help="a Python interpreter with TensorFlow")
    parser.add_argument("--tool", help="an existing freeze_graph; default: build it")
    parser.add_argument("--maker", help="an existing make_checkpoint; default: build it")
    arguments = parser.parse_args()
    if not (arguments.tool and arguments.maker):
        binaries = measuring.build("//tools:freeze_graph", "//tests/bench:make_checkpoint")
        arguments.tool = arguments.tool or binaries / "tools/freeze_graph"
        arguments.maker = arguments.maker or binaries / "tests/bench/make_checkpoint"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        prefix, graph, out = folder / "big", folder / "graph.pb", folder / "out"
        subprocess.run([arguments.maker, prefix, str(arguments.megabytes), "1", "ref", graph], check=True)
        data = next(folder.glob("big.data-*"))
        flags = [f"--input_graph={graph}", f"--input_checkpoint={prefix}", "--output_node_names=y",
                 f"--output_graph={out}"]
        runs = {"cp": ["dd", f"if={data}", f"of={out}", "bs=1M", "conv=fsync"],
                "freeze_graph": [arguments.tool, *flags, f"--output_format={arguments.format}"]}
        if arguments.tf:
            runs["TensorFlow"] = [arguments.tf, "-m", "tensorflow.python.tools.freeze_graph", *flags,
                                  "--input_binary=true"]
        measured = {name: [] for name in runs}
        for _ in range(arguments.rounds):
            for name, command in runs.items():
                measured[name].append(timed([str(word) for word in command], out))
    print(f"{measuring.machine()}; {arguments.megabytes} MB, median of {arguments.rounds}")
    copy = statistics.median(run[0] for run in measured["cp"])
    print(f"{'':14}{'seconds':>9}{'x cp':>7}{'anonymous MB':>14}{'resident MB':>13}")
    for name, results in measured.items():
        seconds, anonymous, resident = (statistics.median(column) for column in zip(*results))
        print(f"{name:14}{seconds:9.2f}{seconds / copy:7.2f}{anonymous / 1e6:14.1f}{resident / 1e6:13.1f}")


if __name__ == "__main__":
    main()
