#!/usr/bin/env python3
"""Measures Permafrost against other inference engines, interleaved in one run. See README.md beside this file.

    python3 tests/bench/peers/run.py [MODEL ...] [--mode MODE ...] [--threads N ...]
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
# Programs of this project.
PROGRAMS = ["//tests/bench/peers:session_server", "//tests/bench/peers:embedded_server", "//tools:transform_graph",
            "//tools:convert_graphdef_memmapped_format"]
MODES = ["f32", "auto", "accuracy", "cold", "memory"]


def name_of(program):
    return program.rsplit(":", 1)[1]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names in SHARED/models; none: all")
    parser.add_argument("--shared", type=pathlib.Path, default=REPOSITORY.parent / "shared", help="folder with models/")
    parser.add_argument("--work_dir", type=pathlib.Path, default=REPOSITORY / ".peers",
                        help="folder for the peers' environment and converted models (default: .peers)")
    parser.add_argument("--venv", type=pathlib.Path, help="the environment (default: WORK_DIR/venv)")
    parser.add_argument("--binaries", type=pathlib.Path,
                        help=f"folder with our {', '.join(map(name_of, PROGRAMS))} (default: builds them)")
    parser.add_argument("--mode", nargs="+", choices=MODES, default=["f32"])
    parser.add_argument("--convert_only", action="store_true", help="only make the conversions of all modes")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cores", type=int, nargs="+", default=sorted(os.sched_getaffinity(0)),
                        help="the cores to use; N threads get the first N")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--turn_ms", type=float, default=100, help="duration of a turn (at least 3 runs)")
    parser.add_argument("--keep_within", type=float, default=1.25,
                        help="configurations slower than their engine's best by this factor get no turns")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT",
                        help="prefixes of the configurations to run: 'OpenVINO', 'LiteRT int8'")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the tables to this file")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures here")
    arguments = parser.parse_args()
    if min(arguments.threads) < 1 or max(arguments.threads) > len(arguments.cores):
        parser.error(f"--threads must be from 1 to {len(arguments.cores)}, the number of --cores")
    if arguments.rounds < 1 or arguments.turn_ms <= 0 or arguments.keep_within < 1:
        parser.error("--rounds and --keep_within must be at least 1, --turn_ms more than 0")
    for name in map(name_of, PROGRAMS) if arguments.binaries is not None else []:
        if not (arguments.binaries / name).is_file():
            parser.error(f"--binaries: there is no file '{arguments.binaries / name}'")
    if not (arguments.shared / "models").is_dir():
        parser.error(f"--shared: there is no folder 'models' in '{arguments.shared}'")
    arguments.work_dir = arguments.work_dir.resolve()
    arguments.venv = (arguments.venv or arguments.work_dir / "venv").absolute()
    return arguments


def enter_environment(venv):
    """Runs this script in the environment of the peers, which is created if it does not match requirements.txt."""
    requirements, installed = HERE / "requirements.txt", venv / "installed.txt"
    python = venv / "bin" / "python"
    if not installed.exists() or installed.read_bytes() != requirements.read_bytes():
        print(f"peers: installing {requirements.name} into {venv}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
                        str(requirements)], check=True, stdin=subprocess.DEVNULL)
        installed.write_bytes(requirements.read_bytes())
    if pathlib.Path(sys.prefix) != venv:
        os.execv(python, [str(python), *sys.argv])


def chosen(configurations, arguments):
    return [configuration for configuration in configurations
            if not arguments.only or any(configuration.name.startswith(text) for text in arguments.only)]


def run_mode(mode, models, arguments):
    import accuracy
    import configurations
    import contest
    import start_up
    f32, every = (chosen(group, arguments) for group in (configurations.F32,
                                                         configurations.F32 + configurations.REDUCED))
    ahead = chosen(configurations.AHEAD, arguments) + f32
    results = []
    for model in models:
        judged, unfit = {}, {}
        if mode in ("auto", "accuracy"):
            judged, unfit = accuracy.measure_accuracy(model, every, arguments)
        if mode == "accuracy":
            results.append({"model": model.name, "accuracy": judged, "absent": unfit})
            continue
        for threads in arguments.threads:
            print(f"peers: {mode}, {model.name}, {threads} threads", file=sys.stderr)
            result = {"model": model.name, "threads": threads, "weights": model.path.stat().st_size}
            absent = dict(unfit)
            if mode == "f32":
                figures, left_out = contest.hold_contest(model, f32, arguments, threads)
            elif mode == "auto":
                fit = [each for each in every if each.name in judged and judged[each.name]["inside"]]
                absent.update({name: "outside the budget" for name, found in judged.items() if not found["inside"]})
                figures, left_out = contest.hold_contest(model, fit, arguments, threads)
                result["accuracy"] = judged
            else:
                measure = start_up.start_once if mode == "cold" else start_up.grow_once
                figures, left_out = start_up.repeat(measure, model, ahead, arguments, threads)
            results.append({**result, **figures, "absent": {**absent, **left_out}})
    return results


def convert_all(models, arguments):
    import configurations
    import conversions
    failed = 0
    every = chosen(configurations.F32 + configurations.REDUCED + configurations.AHEAD, arguments)
    for model in models:
        for kind in sorted({configuration.artifact for configuration in every}):
            try:
                conversions.converted(model, kind, arguments.work_dir / "models", arguments.programs)
            except conversions.ConversionError as error:
                failed += 1
                print(f"{model.name}: {kind}: {error}")
    print(f"{failed} conversions failed")


def main():
    arguments = parse_arguments()
    enter_environment(arguments.venv)
    # As for an interrupt: stopped workers would outlive this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.path.insert(1, str(HERE.parent))
    import measuring
    import recorded_models
    import report
    models = list(recorded_models.recorded_models(arguments.shared, arguments.models))
    if arguments.binaries is None:
        built = measuring.build(*PROGRAMS, static=True)
        arguments.programs = {name_of(program): built / program[2:].replace(":", "/") for program in PROGRAMS}
    else:
        arguments.programs = {name_of(program): arguments.binaries / name_of(program) for program in PROGRAMS}
    if arguments.convert_only:
        convert_all(models, arguments)
        return
    results = {"machine": measuring.machine(), "load_average": os.getloadavg()[0],
               "rounds": arguments.rounds, "turn_ms": arguments.turn_ms,
               "versions": (HERE / "requirements.txt").read_text(encoding="utf-8").split(),
               "modes": {mode: run_mode(mode, models, arguments) for mode in arguments.mode}}
    text = report.to_markdown(results)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf-8")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
