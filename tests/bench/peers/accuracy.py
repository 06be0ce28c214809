"""Compares the outputs of a configuration with the recorded ones and with the accuracy budget."""

import numpy as np

from conversions import ConversionError
from recorded_models import output_errors
from workers import Worker, WorkerError, feed_line, load_line

# The budget of each output: the root mean square error over all recorded inputs, relative to the root mean square of the
# output, or absolute. Classifiers must also agree in the first class.
RELATIVE = 0.03
ABSOLUTE = 1e-4


def is_distribution(runs, port):
    """Returns whether an output holds class probabilities: rows of several positive numbers that sum to 1."""
    rows = np.concatenate([np.reshape(run[port], (-1, run[port].shape[-1])) for run in runs if run[port].ndim])
    return rows.shape[-1] > 1 and bool(np.all(rows >= 0) and np.all(np.abs(rows.sum(axis=-1) - 1) < 1e-3))


def first_classes(runs, port):
    return [np.argmax(np.reshape(run[port], (-1, run[port].shape[-1])), axis=-1).tolist() for run in runs]


def compute(configuration, model, setup):
    """Returns the outputs for each recorded input. Raises WorkerError and ConversionError."""
    line = load_line(configuration, model, setup, 1)
    worker = Worker(configuration, setup, 1)
    prefix = setup.work_dir / "outputs"
    found = []
    try:
        worker.answer()
        worker.ask(line)
        for run in range(len(model.input_files)):
            worker.ask(feed_line(model, run))
            worker.ask("run\t1")
            count = worker.ask(f"save\t{prefix}")["outputs"]
            if count != len(model.outputs):
                raise WorkerError(f"{count} outputs, expected {len(model.outputs)}")
            found.append([np.load(f"{prefix}_{port}.npy") for port in range(count)])
    finally:
        worker.kill()
    for port, name in enumerate(model.outputs):
        for ours, theirs in zip(found, model.expected):
            if ours[port].size != theirs[port].size:
                raise WorkerError(f"output '{name}' has shape {list(ours[port].shape)}, "
                                  f"expected {list(theirs[port].shape)}")
    return found


def judge(model, found):
    """Returns one entry for each output, and whether all are within the budget."""
    outputs = []
    for port, error in enumerate(output_errors(found, model.expected)):
        inside = error.rms <= ABSOLUTE or error.rms <= RELATIVE * error.size
        entry = {"name": model.outputs[port], "rms_error": error.rms, "relative": error.relative, "inside": inside}
        if is_distribution(model.expected, port):
            shaped = [[run[port].reshape(theirs[port].shape)] for run, theirs in zip(found, model.expected)]
            entry["same_first_class"] = first_classes(shaped, 0) == first_classes(model.expected, port)
            entry["inside"] = inside and entry["same_first_class"]
        outputs.append(entry)
    return {"outputs": outputs, "worst": max(entry["relative"] for entry in outputs),
            "inside": all(entry["inside"] for entry in outputs)}


def measure_accuracy(model, configurations, setup):
    """Returns ({name: result of judge()}, {name: reason why there is no result})."""
    judged, absent = {}, {}
    for configuration in configurations:
        try:
            judged[configuration.name] = judge(model, compute(configuration, model, setup))
        except (WorkerError, ConversionError) as error:
            absent[configuration.name] = str(error)
    return judged, absent
