"""Workers: one process per configuration, bound to given cores, which computes only during a request."""

import os
import pathlib
import signal
import sys

from conversions import converted
from measuring import LineServer

# Longer than any useful load or round. An engine that exceeds it is excluded.
ANSWER_SECONDS = 300


class WorkerError(Exception):
    """A request to an engine failed; the text is from the engine."""


class Worker(LineServer):
    """A started engine. `setup` has the programs, the work folder and the cores (run.py)."""

    def __init__(self, configuration, setup, threads):
        command = ([str(setup.programs[configuration.program])] if configuration.is_ours else
                   [sys.executable, str(pathlib.Path(__file__).parent / "worker.py"), configuration.engine])
        cores = setup.cores[:threads]
        self.log = setup.work_dir / "logs" / f"{configuration.name}.log".replace(" ", "_")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        # Inherited by the worker. With a preexec_fn, Python would copy its page tables, which takes milliseconds.
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        try:
            with open(self.log, "wb") as errors:
                super().__init__(command, errors=errors)
        finally:
            os.sched_setaffinity(0, before)

    def answer(self):
        try:
            answer = super().answer(ANSWER_SECONDS)
        except TimeoutError as error:
            self.kill()
            raise WorkerError(str(error)) from None
        except EOFError:
            raise WorkerError(self.last_words()) from None
        if "error" in answer:
            raise WorkerError(" ".join(answer["error"].split()))
        return answer

    def send(self, *lines):
        try:
            super().send(*lines)
        except BrokenPipeError:
            raise WorkerError(self.last_words()) from None

    def last_words(self):
        status = self.process.wait()
        how = f"dies of {signal.Signals(-status).name}" if status < 0 else f"ends with status {status}"
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"the process {how}" + (f": {lines[-1][:200]}" if lines else "")

    def pause(self):
        """Stops the process, including threads that spin."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        """Kills the process in any state."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass


def load_line(configuration, model, setup, threads):
    """Returns the load request, after converting the model. Raises ConversionError."""
    path = converted(model, configuration.artifact, setup.work_dir / "models", setup.programs)
    names = [entry["name"] for entry in model.inputs]
    # Peers are calibrated with all recorded inputs during conversion; our engines at the first feed.
    files = [str(file) for run in model.input_files for file in (run if isinstance(run, list) else [run])]
    samples = [f"samples={','.join(files)}"] if configuration.is_ours else []
    return "\t".join(["load", f"model={path}", f"inputs={','.join(names)}", f"outputs={','.join(model.outputs)}",
                      f"threads={threads}", *(f"{key}={value}" for key, value in configuration.options), *samples])


def feed_line(model, run=0):
    files = model.input_files[run]
    return "\t".join(["feed", *(str(file) for file in (files if isinstance(files, list) else [files]))])
