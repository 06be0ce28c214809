"""The interleaved run: all configurations of a model in turn, in short rounds, one at a time."""

import math
import statistics

from conversions import ConversionError
from workers import Worker, WorkerError, feed_line, load_line

# Runs before the first timing: engines pack, compile and choose algorithms in the first ones.
FIRST_RUNS = 3
# Duration of the trial that sets the number of runs of a turn and drops the slower modes of an engine.
TRIAL_NS = 50e6
# Duration of the runs at the start of a turn that are not counted, because the caches contain data of the engine before.
# At least one run.
WARM_NS = 5e6
FEWEST_RUNS, MOST_RUNS = 3, 1000


def runs_in(span_ns, run_ns):
    return min(MOST_RUNS, max(FEWEST_RUNS, round(span_ns / max(1, run_ns))))


class Contestant:
    def __init__(self, configuration, worker, trial_ns):
        self.configuration = configuration
        self.worker = worker
        self.trial_ns = max(1, trial_ns)  # The fastest run of the trial.
        self.rounds = []  # Lists of nanoseconds.

    def turn(self, turn_ns):
        self.worker.resume()
        self.worker.ask(f"run\t{min(MOST_RUNS, math.ceil(WARM_NS / self.trial_ns))}")
        self.rounds.append(self.worker.ask(f"run\t{runs_in(turn_ns, self.trial_ns)}")["ns"])
        self.worker.pause()

    def summary(self):
        times = sorted(time for times in self.rounds for time in times)
        median = statistics.median(times)
        return {"engine": self.configuration.engine, "mode": self.configuration.mode, "median_ms": median / 1e6,
                "least_ms": times[0] / 1e6, "p99_over_median": times[math.ceil(0.99 * len(times)) - 1] / median,
                "runs": len(times), "median_ms_of_rounds": [statistics.median(times) / 1e6 for times in self.rounds]}


def enter(configuration, model, setup, threads):
    """Returns a configuration that is loaded, warm and paused. Raises WorkerError and ConversionError."""
    line = load_line(configuration, model, setup, threads)
    worker = Worker(configuration, setup, threads)
    try:
        worker.answer()
        worker.ask(line)
        worker.ask(feed_line(model))
        first = min(worker.ask(f"run\t{FIRST_RUNS}")["ns"])
        trial = min(worker.ask(f"run\t{runs_in(TRIAL_NS, first)}")["ns"])
    except BaseException:
        worker.kill()
        raise
    worker.pause()
    return Contestant(configuration, worker, trial)


def hold_contest(model, configurations, setup, threads):
    """Runs all configurations, interleaved. Returns ({"entries": summaries, "slower": {name: ms}}, {name: reason of absence}).

    Configurations that the trial shows to be slower than the best of the same engine by more than `setup.keep_within` are
    left out, because only the fastest of an engine counts.
    """
    contestants, slower, absent = [], {}, {}
    try:
        for configuration in configurations:
            try:
                contestants.append(enter(configuration, model, setup, threads))
            except (WorkerError, ConversionError) as error:
                absent[configuration.name] = str(error)
        for contestant in list(contestants):
            best = min(c.trial_ns for c in contestants if c.configuration.engine == contestant.configuration.engine)
            if contestant.trial_ns > best * setup.keep_within:
                slower[contestant.configuration.name] = contestant.trial_ns / 1e6
                contestant.worker.kill()
                contestants.remove(contestant)
        for i in range(setup.rounds):
            first = i % max(1, len(contestants))
            for contestant in contestants[first:] + contestants[:first]:
                contestant.turn(setup.turn_ms * 1e6)
        return {"entries": [contestant.summary() for contestant in contestants], "slower": slower}, absent
    finally:
        for contestant in contestants:
            contestant.worker.kill()
