"""Measures cold start and memory of engines."""

import statistics
import time

from conversions import ConversionError
from workers import Worker, WorkerError, feed_line, load_line

# Runs after which the memory of an engine no longer grows.
MEMORY_RUNS = 3


def start_once(configuration, model, setup, threads):
    """Returns the milliseconds from the start of the process to the first output, in total and by part."""
    lines = [load_line(configuration, model, setup, threads), feed_line(model), "run\t1"]
    worker = Worker(configuration, setup, threads)
    try:
        # Sends all requests at once: time between an answer and the next request is not attributed.
        worker.send(*lines)
        imported = worker.answer()["import_ns"]
        load, feed, first = (worker.answer()["ns"] for _ in lines)
        total = time.perf_counter() - worker.started
    finally:
        worker.kill()
    return {"total_ms": total * 1e3, "import_ms": imported / 1e6, "load_ms": (load + feed) / 1e6,
            "first_ms": first[0] / 1e6}


def grow_once(configuration, model, setup, threads):
    """Returns the peaks of resident and of anonymous memory, in bytes above those of the process before loading."""
    lines = [load_line(configuration, model, setup, threads), feed_line(model), f"run\t{MEMORY_RUNS}"]
    worker = Worker(configuration, setup, threads)
    try:
        worker.answer()
        with open(f"/proc/{worker.process.pid}/clear_refs", "w", encoding="ascii") as reset:
            reset.write("5")  # Resets the peak, which includes the imports.
        before = worker.status("VmRSS")
        anonymous = worker.growth(*lines)
        return {"resident": worker.status("VmHWM") - before, "anonymous": anonymous}
    finally:
        worker.kill()


def repeat(measure, model, configurations, setup, threads):
    """Measures all configurations in turn. Returns ({"entries": medians over the rounds}, {name: reason for absence})."""
    found, absent = {configuration: [] for configuration in configurations}, {}
    for round_number in range(-1, setup.rounds):
        for configuration in configurations:
            if configuration.name in absent:
                continue
            try:
                figures = measure(configuration, model, setup, threads)
            except (WorkerError, ConversionError) as error:
                absent[configuration.name] = str(error)
                continue
            if round_number >= 0:  # The first round fills the page cache and the caches of engines.
                found[configuration].append(figures)
    entries = []
    for configuration, rounds in found.items():
        if configuration.name not in absent:
            entries.append({"engine": configuration.engine, "mode": configuration.mode,
                            **{key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}})
    return {"entries": entries}, absent
