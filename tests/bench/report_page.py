#!/usr/bin/env python3
"""Measures how long headless Chromium takes to draw the page of report_model.

    tests/bench/report_page.py MODEL [MODEL ...] [--rounds=5]

Prints for each model the size of the page, the time of its script, and the time of the browser from its start to its exit:
the median and the maximum of the rounds.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import measuring

sys.path.insert(0, str(measuring.REPOSITORY / "tests/report"))
import browser  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--binary", type=pathlib.Path)
    arguments = parser.parse_args()
    chromium = browser.find()
    if chromium is None:
        sys.exit("there is no Chromium: apt-get install chromium, or set $CHROMIUM")
    binary = arguments.binary or measuring.build("//tools:report_model") / "tools/report_model"
    print(f"{measuring.machine()}\n\n| model | page | script, median | most | browser, median |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        for model in arguments.models:
            subprocess.run([str(binary), f"--in_graph={model}", f"--out={page}", "--delegate=onednn", "--max_time=2"],
                           check=True, capture_output=True)
            script, whole = [], []
            for _ in range(arguments.rounds):
                start = time.monotonic()
                loaded = browser.load(chromium, page)
                whole.append(time.monotonic() - start)
                script.append(float(loaded.data("rendered")))
            print(f"| {model.parent.name} | {page.stat().st_size / 1e3:.0f} kB | {statistics.median(script):.0f} ms "
                  f"| {max(script):.0f} ms | {statistics.median(whole):.2f} s |")


if __name__ == "__main__":
    main()
