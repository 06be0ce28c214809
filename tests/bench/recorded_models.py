"""The models of ../shared with their recorded inputs and outputs, and errors of other outputs."""

import dataclasses
import json
import pathlib

import numpy as np


@dataclasses.dataclass
class RecordedModel:
    name: str
    path: pathlib.Path  # Path of the frozen graph.
    inputs: list        # A list of {"name", "shape", "dtype"}.
    outputs: list       # Names of nodes.
    input_files: list   # One .npy file for each recorded run; all models have one input.
    expected: list      # The arrays of the outputs, by run.

    @property
    def feeds(self):
        return [np.load(path) for path in self.input_files]


def recorded_models(shared, names=()):
    """Returns the models of `shared`/models by name, only those in `names` if it is not empty."""
    folders = sorted((pathlib.Path(shared) / "models").iterdir())
    unknown = sorted(set(names) - {folder.name for folder in folders})
    if unknown:
        raise ValueError(f"no model {', '.join(unknown)} in {shared}/models")
    for folder in folders:
        if names and folder.name not in names:
            continue
        spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        inputs = sorted(folder.glob("input_*.npy"))
        expected = [[np.load(folder / f"output_{run}_{port}.npy") for port in range(len(spec["outputs"]))]
                    for run in range(len(inputs))]
        yield RecordedModel(folder.name, folder / "model.pb", spec["inputs"], spec["outputs"], inputs, expected)


@dataclasses.dataclass
class OutputError:
    rms: float   # Root mean square of the difference; infinite if a number is not finite.
    size: float  # The same measure of the expected output.

    @property
    def relative(self):
        return self.rms / max(self.size, 1e-30)


def output_errors(found, expected):
    """Returns one OutputError for each output over all runs. Both arguments are lists of runs, each a list of output arrays."""
    errors = []
    for port in range(len(expected[0])):
        a, b = (np.concatenate([np.ravel(np.asarray(run[port], np.float64)) for run in runs])
                for runs in (found, expected))
        rms = np.sqrt(np.mean((a - b) ** 2)) if np.all(np.isfinite(a)) else np.inf
        errors.append(OutputError(float(rms), float(np.sqrt(np.mean(b * b)))))
    return errors
