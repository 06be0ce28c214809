#!/usr/bin/env python3
"""Measures .tflite models against LiteRT with XNNPACK and OpenVINO, interleaved. See README.md beside this file.

    python3 tests/bench/peers/tflite.py [MODEL ...] [--mode latency cold] [--threads N ...]
"""

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
PROGRAM = "//tests/bench/peers:session_server"
OURS, GOAL_PEER = "Permafrost", "LiteRT"
# Upper limits of the ratios to LiteRT with XNNPACK: the geometric mean of a kind, and any single model.
GOALS = {"latency": (0.95, 1.1), "cold": (0.5, None)}
KINDS = ["integer", "hybrid", "float"]


@dataclasses.dataclass
class TfliteModel:
    name: str
    path: pathlib.Path
    kind: str
    input_files: list  # One list of .npy files for each sample.
    inputs: list = dataclasses.field(default_factory=list)   # Empty: those that the file declares.
    outputs: list = dataclasses.field(default_factory=list)


def kind_of(path):
    """Returns 'integer' if most operators write codes, 'hybrid' if operators multiply floats by codes, else 'float'."""
    from ai_edge_litert import interpreter as litert
    interpreter = litert.Interpreter(
        str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    types = {details["index"]: details["dtype"].__name__ for details in interpreter.get_tensor_details()}
    operators = interpreter._get_ops_details()  # pylint: disable=protected-access
    codes = {"int8", "uint8", "int16"}
    written = [types[op["outputs"][0]] for op in operators if len(op["outputs"]) and op["outputs"][0] in types]
    if 2 * sum(name in codes for name in written) > len(written):
        return "integer"
    weighted = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL")
    for op in operators:
        operands = [types.get(index) for index in op["inputs"] if index >= 0]
        if op["op_name"] in weighted and operands[0] == "float32" and "int8" in operands[1:]:
            return "hybrid"
    return "float"


def recorded_models(shared, names):
    """Yields the models of `shared`/models_tflite that run and have samples without strings."""
    folders = sorted(folder for folder in (shared / "models_tflite").iterdir() if (folder / "model.tflite").exists())
    unknown = sorted(set(names) - {folder.name for folder in folders})
    if unknown:
        sys.exit(f"tflite.py: no model {', '.join(unknown)} in {shared}/models_tflite")
    for folder in folders:
        spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        if (names and folder.name not in names) or not spec.get("runs", True):
            continue
        if any(each["dtype"] == "string" for each in spec["inputs"]):
            continue
        samples = []
        while (folder / f"input_{len(samples)}_0.npy").exists():
            samples.append([folder / f"input_{len(samples)}_{i}.npy" for i in range(len(spec["inputs"]))])
        if samples:
            yield TfliteModel(folder.name, folder / "model.tflite", kind_of(folder / "model.tflite"), samples)


def configurations_of():
    from configurations import Configuration
    ours = [Configuration(OURS, name, "pb", (("delegate", name), ("precision", "f32")))
            for name in ("reference", "onednn", "xnnpack")]
    return [*ours, Configuration("LiteRT", "XNNPACK", "pb"),
            Configuration("OpenVINO", "default", "pb"), Configuration("OpenVINO", "f32", "pb", (("precision", "f32"),))]


def best_of(entries, key):
    best = {}
    for entry in entries:
        if entry["engine"] not in best or entry[key] < best[entry["engine"]][key]:
            best[entry["engine"]] = entry
    return best


def microseconds(milliseconds):
    return f"{milliseconds * 1e3:.3g}" if milliseconds < 1 else f"{milliseconds * 1e3:.0f}"


def section(mode, threads, results):
    """Returns the table of one mode and number of threads as Markdown."""
    key = "median_ms" if mode == "latency" else "start_ms"
    lines = [f"### {mode}, {threads} thread{'s' if threads > 1 else ''}\n",
             "Microseconds, and the configuration.\n",
             f"| model | kind | {OURS} | LiteRT | OpenVINO | ratio to LiteRT |", "|---|---|---|---|---|---|"]
    ratios = {kind: {} for kind in KINDS}
    for result in results:
        best = best_of(result["entries"], key)
        cells = [f"{microseconds(best[engine][key])} {best[engine]['mode']}" if engine in best else "-"
                 for engine in (OURS, "LiteRT", "OpenVINO")]
        ratio = best[OURS][key] / best[GOAL_PEER][key] if OURS in best and GOAL_PEER in best else None
        if ratio is not None:
            ratios[result["kind"]][result["model"]] = ratio
        lines.append(f"| {result['model']} | {result['kind']} | {' | '.join(cells)} | "
                     f"{'-' if ratio is None else f'{ratio:.3f}'} |")
    mean_goal, worst_goal = GOALS[mode]
    lines.append("")
    for kind, found in ratios.items():
        if found:
            slowest = max(found, key=found.get)
            above = sorted(name for name, ratio in found.items() if worst_goal and ratio > worst_goal)
            lines.append(f"{kind}: {len(found)} models, geometric mean {statistics.geometric_mean(found.values()):.3f} "
                         f"(goal {mean_goal}), largest {found[slowest]:.3f} ({slowest})"
                         f"{f'; above {worst_goal}: ' + ', '.join(above) if above else ''}.\n")
    absent = sorted({f"- {result['model']}: {name}: {reason}" for result in results
                     for name, reason in result["absent"].items()})
    return "\n".join(lines + (["Not measured:\n", *absent, ""] if absent else [])) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names in SHARED/models_tflite; none: all")
    parser.add_argument("--shared", type=pathlib.Path, default=REPOSITORY.parent / "shared",
                        help="folder with models_tflite/")
    parser.add_argument("--work_dir", type=pathlib.Path, default=REPOSITORY / ".peers",
                        help="folder for the peers' environment (default: .peers)")
    parser.add_argument("--venv", type=pathlib.Path, help="the environment (default: WORK_DIR/venv)")
    parser.add_argument("--binaries", type=pathlib.Path, help="folder with our session_server (default: builds it)")
    parser.add_argument("--mode", nargs="+", choices=list(GOALS), default=["latency"])
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS, help="the kinds of models to measure")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cores", type=int, nargs="+", default=sorted(os.sched_getaffinity(0)),
                        help="the cores to use; N threads get the first N")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--turn_ms", type=float, default=50, help="duration of a turn (at least 3 runs)")
    parser.add_argument("--keep_within", type=float, default=1.25,
                        help="configurations slower than their engine's best by this factor get no turns")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="prefixes of the configurations to run")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the tables to this file")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures here")
    arguments = parser.parse_args()
    if min(arguments.threads) < 1 or max(arguments.threads) > len(arguments.cores):
        parser.error(f"--threads must be from 1 to {len(arguments.cores)}, the number of --cores")
    if not (arguments.shared / "models_tflite").is_dir():
        parser.error(f"--shared: there is no folder 'models_tflite' in '{arguments.shared}'")
    arguments.work_dir = arguments.work_dir.resolve()
    arguments.venv = (arguments.venv or arguments.work_dir / "venv").absolute()
    return arguments


def main():
    arguments = parse_arguments()
    sys.path.insert(1, str(HERE.parent))
    from run import enter_environment
    enter_environment(arguments.venv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Stopped workers would outlive this process.
    import contest
    import measuring
    import start_up
    folder = arguments.binaries or measuring.build(PROGRAM, static=True) / "tests/bench/peers"
    arguments.programs = {"session_server": folder / "session_server"}
    models = [model for model in recorded_models(arguments.shared, arguments.models) if model.kind in arguments.kind]
    chosen = [each for each in configurations_of()
              if not arguments.only or any(each.name.startswith(text) for text in arguments.only)]
    text = (f"Machine: {measuring.machine()}, load average {os.getloadavg()[0]:.1f} at the start. {arguments.rounds} "
            f"rounds, turns of {arguments.turn_ms:g} ms, engines in turn in one run.\n\n")
    every = []
    for mode in arguments.mode:
        for threads in arguments.threads:
            results = []
            for model in models:
                print(f"tflite.py: {mode}, {model.name}, {threads} threads", file=sys.stderr)
                if mode == "latency":
                    figures, absent = contest.hold_contest(model, chosen, arguments, threads)
                else:
                    figures, absent = start_up.repeat(start_up.start_once, model, chosen, arguments, threads)
                    for entry in figures["entries"]:
                        # Ours is the whole process; the peer's is without its interpreter and imports.
                        entry["start_ms"] = (entry["total_ms"] if entry["engine"] == OURS else
                                             entry["load_ms"] + entry["first_ms"])
                results.append({"model": model.name, "kind": model.kind, "mode": mode, "threads": threads, **figures,
                                "absent": absent})
            text += section(mode, threads, results)
            every += results
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf-8")
    if arguments.json:
        arguments.json.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
