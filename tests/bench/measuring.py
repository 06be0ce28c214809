"""Shared parts of the benchmarks: building of programs, and a process that answers requests line by line."""

import json
import os
import pathlib
import platform
import re
import select
import subprocess
import sys
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def build(*targets, static=False):
    """Builds the measured programs, optionally linked with the distribution's libraries. Returns their folder."""
    flags = ["--config=release", *(["--config=static"] if static else []), "--noshow_progress"]
    subprocess.run(["bazel", "build", *flags, *targets], check=True, cwd=REPOSITORY, stdout=sys.stderr)
    printed = subprocess.run(["bazel", "info", *flags, "bazel-bin"], check=True, cwd=REPOSITORY, capture_output=True,
                             text=True).stdout
    return pathlib.Path(printed.strip())


def machine():
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{model.group(1) if model else platform.processor()}, {os.cpu_count()} cores, {platform.release()}"


def status(pid, field):
    """Returns a size from /proc/PID/status in bytes; 0 if the process has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(rf"{field}:\s+(\d+) kB", text)
    return int(found.group(1)) * 1024 if found else 0


class LineServer:
    """A process that answers each line of its standard input with one line of JSON.

    Standard error is discarded unless `errors` is a destination; `options` are those of subprocess.Popen.
    """

    def __init__(self, command, errors=subprocess.DEVNULL, **options):
        self.started = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                        bufsize=0, **options)
        self.read = b""  # Output that was read but not returned yet.

    def ask(self, line):
        self.send(line)
        return self.answer()

    def send(self, *lines):
        """Sends requests whose answers are read later."""
        self.process.stdin.write("".join(line + "\n" for line in lines).encode())

    def answer(self, seconds=None):
        """Returns the next answer. Raises EOFError if the process has ended, TimeoutError if there is no answer in time."""
        while b"\n" not in self.read:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                raise TimeoutError(f"no answer after {seconds} s")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                raise EOFError(f"{self.process.args[0]} ended with status {self.process.wait()}")
            self.read += more
        line, self.read = self.read.split(b"\n", 1)
        return json.loads(line)

    def status(self, field):
        return status(self.process.pid, field)

    def growth(self, *lines):
        """Returns the peak growth of anonymous memory, in bytes, while the process answers `lines`; sampled every millisecond."""
        before = self.status("RssAnon")
        peak = [before]
        done = threading.Event()

        def sample():
            while not done.wait(0.001):
                peak[0] = max(peak[0], self.status("RssAnon"))

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            for line in lines:
                self.ask(line)
        finally:
            done.set()
            sampler.join()
        return max(peak[0], self.status("RssAnon")) - before

    def close(self):
        self.process.stdin.close()
        self.process.wait()
