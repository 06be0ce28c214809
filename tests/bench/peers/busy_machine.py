#!/usr/bin/env python3
"""Measures the latency of builds of benchmark_model and of peers, alone and beside busy processes, alternating.

    busy_machine.py MODEL --build now=/path/to/benchmark_model --build before=/other/benchmark_model \\
        --delegates onednn xnnpack --peer OpenVINO=/path/to/python --rounds 9

MODEL is a folder with model.pb, spec.json and input_0.npy, like those of ../shared/models. In each round, each engine runs
once alone and once beside the busy processes, on the same processors; the order of the engines rotates. The tables show the
median over the rounds of the median of a run, and the ratio of each engine to the first one in the same round, as median and
quartiles.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from measuring import LineServer  # noqa: E402


class Build:
    """A benchmark_model, started for each turn."""

    def __init__(self, name, program, delegate, arguments):
        self.name = f"{name} {delegate}"
        self.command = [program, f"--graph={arguments.model / 'model.pb'}", f"--delegate={delegate}",
                        f"--threads={arguments.threads}", f"--max_time={arguments.seconds}", "--warmup_runs=3",
                        "--max_num_runs=100000"]

    def turn(self):
        text = subprocess.run(self.command, capture_output=True, text=True, check=True).stdout
        return float(re.search(r"\bmedian=(\d+)", text)[1]) / 1e3


class Peer:
    """An engine behind worker.py, which is stopped between its runs, so that its spinning threads use no processor time."""

    def __init__(self, engine, python, arguments):
        self.name = engine
        self.seconds = arguments.seconds
        spec = json.loads((arguments.model / "spec.json").read_text(encoding="utf-8"))
        self.server = LineServer([python, str(pathlib.Path(__file__).parent / "worker.py"), engine])
        self.server.answer(600)
        model = arguments.peer_model or arguments.model / "model.pb"
        inputs = ",".join(entry["name"] for entry in spec["inputs"])
        self.ask(f"load\tmodel={model}\tinputs={inputs}\toutputs={','.join(spec['outputs'])}"
                 f"\tthreads={arguments.threads}\tprecision=f32")
        self.ask(f"feed\t{arguments.model / 'input_0.npy'}")
        self.server.process.send_signal(signal.SIGSTOP)

    def ask(self, line):
        self.server.send(line)
        answer = self.server.answer(600)
        if "error" in answer:
            sys.exit(f"{self.name}: {answer['error']}")
        return answer

    def turn(self):
        self.server.process.send_signal(signal.SIGCONT)
        self.ask("run\t3")
        times, end = [], time.monotonic() + self.seconds
        while time.monotonic() < end:
            times += self.ask("run\t5")["ns"]
        self.server.process.send_signal(signal.SIGSTOP)
        return statistics.median(times) / 1e6


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--build", action="append", default=[], metavar="NAME=PROGRAM")
    parser.add_argument("--delegates", nargs="+", default=["onednn", "xnnpack"])
    parser.add_argument("--peer", action="append", default=[], metavar="ENGINE=PYTHON")
    parser.add_argument("--peer_model", type=pathlib.Path, help="file for the peers; default: model.pb")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--busy", type=int, default=1, help="number of busy processes")
    parser.add_argument("--cores", type=int, nargs="+", default=sorted(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1, help="length of a turn")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, arguments.cores)  # Inherited by all processes.
    engines = [Build(*build.split("=", 1), delegate, arguments)
               for delegate in arguments.delegates for build in arguments.build]
    engines += [Peer(*peer.split("=", 1), arguments) for peer in arguments.peer]
    found = {engine.name: {"alone": [], "busy": []} for engine in engines}
    for number in range(arguments.rounds):
        first = number % len(engines)
        for engine in engines[first:] + engines[:first]:
            found[engine.name]["alone"].append(engine.turn())
            load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.busy)]
            try:
                found[engine.name]["busy"].append(engine.turn())
            finally:
                for process in load:
                    process.kill()
                    process.wait()
    print(f"{arguments.model.name}, {arguments.threads} threads on {len(arguments.cores)} cores, {arguments.rounds} "
          f"rounds, load average {os.getloadavg()[0]:.1f}\n")
    print("| engine | alone | beside | factor | alone, ratio to the first | beside, ratio to the first |")
    print("|---|---|---|---|---|---|")
    base = found[engines[0].name]
    for name, times in found.items():
        alone, busy = (statistics.median(times[which]) for which in ("alone", "busy"))
        ratios = [spread([a / b for a, b in zip(times[which], base[which])]) for which in ("alone", "busy")]
        print(f"| {name} | {alone:.2f} ms | {busy:.2f} ms | {busy / alone:.2f} | {ratios[0]} | {ratios[1]} |", flush=True)
    for engine in engines:
        if isinstance(engine, Peer):
            engine.server.process.kill()


if __name__ == "__main__":
    main()
