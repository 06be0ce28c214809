#!/usr/bin/env python3
"""Measures Permafrost against its peers in one run and prints ratios. See README.md beside this file.

    script/bench [--shared DIR] [--tf PYTHON] [--rounds N] [--only NAME ...] [--markdown FILE]
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from measuring import REPOSITORY, LineServer, build, machine

sys.path.insert(0, str(REPOSITORY / "tests"))
from protobuf_wire import field  # noqa: E402

# Targets of each measurement: (transforms, largest ratio to the original engine's time).
TRANSFORMS = {
    "fold": ("fold_constants fold_batch_norms fold_old_batch_norms", 1 / 8),
    "quantize_weights": ("quantize_weights", 1 / 8),
    "round_weights": ("round_weights(num_steps=256)", 1 / 8),
    "remove_nodes": ("remove_nodes(op=Identity)", 1 / 15),
    "merge_duplicate_nodes": ("merge_duplicate_nodes", 1 / 15),
}


# Every pass of the original, with arguments that give it work, for the comparison over all models.
PASS_CALLS = [
    "add_default_attributes", "backport_concatv2", "backport_tensor_array_v3", "flatten_atrous_conv", "fold_batch_norms",
    "fold_constants", "fold_old_batch_norms", "fuse_pad_and_conv", "fuse_resize_and_conv", "fuse_resize_pad_and_conv",
    "inline_partitionedcall", "insert_logging(op=Conv2D)", "merge_duplicate_nodes", "obfuscate_names",
    "add_default_attributes quantize_nodes", "quantize_weights", "remove_attribute(attribute_name=data_format)",
    "remove_control_dependencies", "remove_device", "remove_nodes(op=Identity)",
    "rename_attribute(old_attribute_name=T, new_attribute_name=U)",
    "rename_node(old_node_name=no_such_node, new_node_name=other)", "rename_op(old_op_name=Relu, new_op_name=Relu6)",
    "round_weights", 'set_device(device="/device:CPU:0")', "sort_by_execution_order", "strip_unused_nodes",
]
# Minimum size of a model in the comparison over all passes.
LARGE_MODEL_BYTES = 5_000_000


class Measurement:
    """One run of a command: wall time in seconds, and peak memory in bytes."""

    def __init__(self, seconds, peak_rss, peak_anonymous):
        self.seconds = seconds
        self.peak_rss = peak_rss
        self.peak_anonymous = peak_anonymous


def measure(command, output=None):
    """Runs `command` and samples its anonymous memory (memory beyond mapped files) once a millisecond.

    Removes the file `output` and syncs the disk first, so that the command's fsync does not include writes of others.
    """
    if output is not None:
        output.unlink(missing_ok=True)
    os.sync()
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = [0]
    done = threading.Event()

    def sample():
        path = f"/proc/{process.pid}/status"
        while not done.wait(0.001):
            try:
                with open(path, encoding="ascii") as status:
                    found = re.search(r"RssAnon:\s+(\d+) kB", status.read())
            except OSError:
                return
            if found:
                peak[0] = max(peak[0], int(found.group(1)) * 1024)

    thread = threading.Thread(target=sample)
    thread.start()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    done.set()
    thread.join()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{errors.decode(errors='replace')}")
    return Measurement(seconds, usage.ru_maxrss * 1024, peak[0])


def transform_command(arguments, source, target, inputs, outputs, transforms):
    return [str(arguments.binaries / "tools" / "transform_graph"), f"--in_graph={source}", f"--out_graph={target}",
            f"--inputs={inputs}", f"--outputs={outputs}", f"--transforms={transforms}", "--verify=off"]


def engine_seconds(arguments, source, target, inputs, outputs, transforms):
    """Returns the time of the transform in the original engine, without imports, reading and writing."""
    command = [arguments.tf, str(arguments.shared / "oracle" / "gtt.py"), str(source), str(target), inputs, outputs,
               transforms]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(re.match(r"([\d.]+) s", printed).group(1))


def median(values):
    return statistics.median(values)


def row(name, ours, peer, peer_name, limit, note=""):
    ratio = ours / peer
    return {"name": name, "ours": ours, "peer": peer, "peer_name": peer_name, "ratio": ratio, "limit": limit,
            "met": ratio <= limit, "note": note}


def megabytes(count):
    return f"{count / 1e6:.1f} MB"


def bench_transforms(arguments, folder):
    """Whole processes against the original engine's transform time, alternating, medians of --rounds."""
    model = arguments.shared / "models" / "inception_v3" / "model.pb"
    size = model.stat().st_size
    out, copy = folder / "out.pb", folder / "copy.pb"
    rows = []
    ours, copies = [], []
    for _ in range(arguments.rounds):
        copies.append(measure(["dd", f"if={model}", f"of={copy}", "bs=4M", "conv=fsync"], copy).seconds)
        ours.append(measure(transform_command(arguments, model, out, "input_1", "predictions", "strip_unused_nodes"),
                            out))
    rows.append(row("strip_unused_nodes", median([m.seconds for m in ours]), median(copies), "dd conv=fsync", 3,
                    f"anonymous peak {megabytes(max(m.peak_anonymous for m in ours))}"))
    for name, (transforms, limit) in TRANSFORMS.items():
        ours, engine = [], []
        for _ in range(arguments.rounds):
            engine.append(engine_seconds(arguments, model, folder / "engine.pb", "input_1", "predictions", transforms))
            ours.append(measure(transform_command(arguments, model, out, "input_1", "predictions", transforms), out))
        note = f"anonymous peak {megabytes(max(m.peak_anonymous for m in ours))} (file {megabytes(size)})"
        if name == "quantize_weights":
            note += (f"; output {out.stat().st_size} bytes, the original's "
                     f"{(folder / 'engine.pb').stat().st_size}")
        rows.append(row(name, median([m.seconds for m in ours]), median(engine), "original engine", limit, note))
    # A lower bound for tools that write the whole file: a plain copy, against the last transform of the original engine.
    rows.append(row("(a plain copy, for scale)", median(copies), median(engine), "original engine", 1 / 15,
                    "dd conv=fsync"))
    return rows


def write_chain(path, count):
    """Writes a chain of `count` nodes: a placeholder, then Relu nodes."""
    float_type = field(5, field(1, b"T") + field(2, b"\x30\x01"))
    with open(path, "wb") as out:
        placeholder = field(5, field(1, b"dtype") + field(2, b"\x30\x01"))
        out.write(field(1, field(1, b"n0") + field(2, b"Placeholder") + placeholder))
        for i in range(1, count):
            node = field(1, b"n%d" % i) + field(2, b"Relu") + field(3, b"n%d" % (i - 1)) + float_type
            out.write(field(1, node))


def bench_scale(arguments, folder):
    """Read, strip, sort, merge and write chains of 10^4 to 10^6 nodes."""
    seconds = {}
    for count in (10_000, 100_000, 1_000_000):
        path = folder / f"chain{count}.pb"
        write_chain(path, count)
        command = transform_command(arguments, path, folder / "out.pb", "n0", f"n{count - 1}",
                                    "strip_unused_nodes sort_by_execution_order merge_duplicate_nodes")
        runs = [measure(command) for _ in range(arguments.rounds)]
        seconds[count] = median([m.seconds for m in runs])
        peak = max(m.peak_anonymous for m in runs)
    growth = seconds[1_000_000] / seconds[10_000]
    return [
        row("chain of 10^6 nodes, seconds", seconds[1_000_000], 1, "1 s", 10, f"anonymous peak {megabytes(peak)}"),
        row("chain, 10^6 against 10^4 nodes", seconds[1_000_000], seconds[10_000], "10^4 nodes", 130,
            f"{growth:.0f} times the time for 100 times the nodes; 10^5: {seconds[100_000]:.2f} s"),
    ]


def bench_runtime(arguments, folder):
    """Inception v3 in the reference runtime against LiteRT's built-in kernels without its delegate."""
    model = arguments.shared / "models" / "inception_v3" / "model.pb"
    flatbuffer = folder / "inception_v3.tflite"
    peer = str(pathlib.Path(__file__).parent / "litert_peer.py")
    subprocess.run([arguments.tf, peer, "convert", str(model), "input_1", "predictions", str(flatbuffer)], check=True,
                   capture_output=True)
    rows = []
    for threads in (1, 2):
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            printed = subprocess.run([str(arguments.binaries / "tests" / "bench" / "run_model"), str(model), "input_1",
                                      "predictions", str(threads)], check=True, capture_output=True, text=True)
            ours.append(json.loads(printed.stdout)["median_ms"])
            printed = subprocess.run([arguments.tf, peer, "run", str(flatbuffer), str(threads)], check=True,
                                     capture_output=True, text=True)
            theirs.append(json.loads(printed.stdout)["median_ms"])
        rows.append(row(f"Inception v3, {threads} thread{'s' if threads > 1 else ''}", median(ours) / 1e3,
                        median(theirs) / 1e3, "LiteRT, delegate off", 3))
    return rows


def ratio_row(name, ratios, limit, note):
    """Returns a row for the geometric mean of ratios to the original engine; it has no milliseconds."""
    ratio = statistics.geometric_mean(ratios)
    return {"name": name, "ours": None, "peer": None, "peer_name": "original engine", "ratio": ratio, "limit": limit,
            "met": ratio <= limit, "note": note}


def bench_passes(arguments, folder):
    """Every pass over every large model, in warm processes: from the file in the page cache to a file in memory."""
    memory = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else folder))
    ratios, growths, rows, copies, slowest = {}, {}, [], [], (0, "", "")
    try:
        for model in sorted((arguments.shared / "models").iterdir()):
            if (model / "model.pb").stat().st_size < LARGE_MODEL_BYTES:
                continue
            spec = json.loads((model / "spec.json").read_text(encoding="utf-8"))
            interface = [",".join(i["name"] for i in spec["inputs"]), ",".join(spec["outputs"])]
            common = [str(model / "model.pb"), *interface]
            ours = LineServer([str(arguments.binaries / "tests" / "bench" / "pass_server"), *common,
                               str(memory / "ours.pb"), str(os.cpu_count())])
            engine = LineServer([arguments.tf, str(pathlib.Path(__file__).parent / "engine_server.py"), *common,
                                 str(memory / "engine.pb")])
            for server in (ours, engine):
                server.ask("remove_device")
            for transforms in PASS_CALLS:
                pairs = [(ours.ask(transforms).get("seconds"), engine.ask(transforms).get("seconds"))
                         for _ in range(arguments.rounds)]
                if any(mine is None or other is None for mine, other in pairs):
                    print(f"{model.name}: {transforms}: not compared, "
                          f"{'ours' if pairs[0][0] is None else 'the original'} fails", file=sys.stderr)
                    continue
                ratio = median([mine for mine, _ in pairs]) / median([other for _, other in pairs])
                ratios.setdefault(transforms, []).append(ratio)
                slowest = max(slowest, (ratio, transforms, model.name))
                growths.setdefault(transforms, []).append((ours.growth(transforms), engine.growth(transforms)))
            # The cost of output alone: a plain copy of the model, against the engine's fastest pass.
            pairs = [(ours.ask("copy")["seconds"], engine.ask("remove_device")["seconds"])
                     for _ in range(arguments.rounds)]
            copies.append(median([mine for mine, _ in pairs]) / median([other for _, other in pairs]))
            for server in (ours, engine):
                server.close()
    finally:
        for path in memory.iterdir():
            path.unlink()
        memory.rmdir()
    every = [ratio for values in ratios.values() for ratio in values]
    # Ratios of sums, because many of the individual times are zero.
    grown = {name: sum(mine for mine, _ in pairs) / sum(other for _, other in pairs) for name, pairs in growths.items()}
    total = [sum(sizes) for sizes in zip(*(pair for pairs in growths.values() for pair in pairs))]
    rows.append(ratio_row(f"all passes, all large models ({len(every)} pairs)", every, 1 / 8,
                          f"{1 / statistics.geometric_mean(every):.1f} times as fast; slowest {slowest[0]:.3f} "
                          f"({slowest[1]}, {slowest[2]})"))
    rows.append(ratio_row("the same, growth of anonymous memory", [total[0] / total[1]], 1 / 4,
                          f"largest {max(grown.values()):.3f} ({max(grown, key=grown.get)})"))
    rows.append(ratio_row("(a plain copy of the model, for scale)", copies, 1 / 8, "against the engine's `remove_device`"))
    for transforms, values in ratios.items():
        rows.append(ratio_row(f"`{transforms}`", values, 1 / 8,
                              f"{len(values)} models, memory {grown[transforms]:.3f}"))
    return rows


BENCHES = {"transforms": bench_transforms, "scale": bench_scale, "runtime": bench_runtime, "passes": bench_passes}


def to_markdown(rows):
    lines = ["| measurement | Permafrost | peer | ratio | must be at most | |", "|---|---|---|---|---|---|"]
    for entry in rows:
        ours, peer = "", entry["peer_name"]
        if entry["ours"] is not None:
            ours, peer = f"{entry['ours'] * 1e3:.0f} ms", f"{peer}: {entry['peer'] * 1e3:.0f} ms"
        lines.append(f"| {entry['name']} | {ours} | {peer} | {entry['ratio']:.3f} | {entry['limit']:.3f} "
                     f"{'met' if entry['met'] else '**missed**'} | {entry['note']} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=pathlib.Path, default=REPOSITORY.parent / "shared",
                        help="folder with models/ and oracle/")
    parser.add_argument("--tf", default=str(REPOSITORY / ".venv-oracle" / "bin" / "python"),
                        help="a Python interpreter with TensorFlow (script/test_oracle creates one)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=sorted(BENCHES), default=list(BENCHES))
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the table to this file")
    arguments = parser.parse_args()
    arguments.binaries = build("//tools:transform_graph", "//tests/bench:run_model", "//tests/bench:pass_server")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for bench in arguments.only:
            rows += BENCHES[bench](arguments, pathlib.Path(name))
    text = f"Machine: {machine()}. Medians of {arguments.rounds}, peers alternating in one run.\n\n{to_markdown(rows)}"
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text)


if __name__ == "__main__":
    main()
