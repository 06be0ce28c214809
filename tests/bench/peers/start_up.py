"""Cold start and memory: what an engine costs before it is warm."""

import statistics
import time

from conversions import ConversionError
from workers import Worker, WorkerError, feed_line, load_line

# Runs after which an engine has taken all the memory that it is going to take.
MEMORY_RUNS = 3


def start_once(configuration, model, setup, threads):
    """Milliseconds from the start of the process to the first output, and the parts."""
    lines = [load_line(configuration, model, setup, threads), feed_line(model), "run\t1"]
    worker = Worker(configuration, setup, threads)
    try:
        # All at once: the time from an answer to the next request is nobody's.
        worker.send(*lines)
        imported = worker.answer()["import_ns"]
        load, feed, first = (worker.answer()["ns"] for _ in lines)
        total = time.perf_counter() - worker.started
    finally:
        worker.kill()
    return {"total_ms": total * 1e3, "import_ms": imported / 1e6, "load_ms": (load + feed) / 1e6,
            "first_ms": first[0] / 1e6}


def grow_once(configuration, model, setup, threads):
    """Bytes over the process before it loads anything: the peak of all resident memory, and of the anonymous."""
    lines = [load_line(configuration, model, setup, threads), feed_line(model), f"run\t{MEMORY_RUNS}"]
    worker = Worker(configuration, setup, threads)
    try:
        worker.answer()
        with open(f"/proc/{worker.process.pid}/clear_refs", "w", encoding="ascii") as reset:
            reset.write("5")  # The peak starts anew: imports have theirs.
        before = worker.status("VmRSS")
        anonymous = worker.growth(*lines)
        return {"resident": worker.status("VmHWM") - before, "anonymous": anonymous}
    finally:
        worker.kill()


def repeat(measure, model, configurations, setup, threads):
    """Medians over the rounds, configurations in turn. Returns ({"entries": ...}, {name: why it is not there})."""
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
            if round_number >= 0:  # The one before fills the page cache, and what an engine caches.
                found[configuration].append(figures)
    entries = []
    for configuration, rounds in found.items():
        if configuration.name not in absent:
            entries.append({"engine": configuration.engine, "mode": configuration.mode,
                            **{key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}})
    return {"entries": entries}, absent
