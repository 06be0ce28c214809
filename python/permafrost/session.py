"""Running models."""

import statistics
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from permafrost import _checks, _closing, _native, errors, values


class Delegate(NamedTuple):
    """A delegate for `Model.session(delegate=...)`, with its precisions."""

    name: str
    description: str
    precisions: List[str]


def delegates() -> List[Delegate]:
    """Returns the built-in delegates. `Model.session` also accepts the path of a shared library."""
    return [Delegate(*item) for item in _native.delegates()]


def empty(shape: Sequence[int], dtype='float32'):
    """Returns an array like `numpy.empty`, aligned to 64 bytes so that a session accesses it without a copy."""
    import numpy
    element = numpy.dtype(dtype)
    if not hasattr(shape, '__iter__'):
        raise errors.InvalidTypeError(f'shape: found {_checks.type_name(shape)}, expected a sequence of int')
    dims = tuple(_checks.integer(dim, f'shape[{i}]') for i, dim in enumerate(shape))
    size = element.itemsize
    for dim in dims:
        size *= dim
    memory = numpy.empty(size + 64, numpy.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + size].view(element).reshape(dims)


def feed(value, name, dtype):
    """Returns `value` in its native form: an object with the buffer protocol, or a shape and strings."""
    import numpy
    if value is None:
        raise errors.InvalidTypeError(f"input '{name}': found None, expected an array")
    if not isinstance(value, numpy.ndarray):
        if isinstance(value, (str, bytes, list, tuple, int, float, complex)) or not hasattr(value, '__array__'):
            # Python literals have no element type.
            wanted = object if dtype == 'string' else values.numpy_dtype(dtype) if dtype else None
            try:
                value = numpy.asarray(value, wanted)
            except (TypeError, ValueError, OverflowError) as error:
                reported = errors.InvalidTypeError if isinstance(error, TypeError) else errors.InvalidArgumentError
                raise reported(f"input '{name}': {error}, expected an array of {dtype or 'numbers'}") from error
        else:
            value = numpy.asarray(value)
    kind = value.dtype.kind
    if kind in 'OSU':
        return (value.shape, [_string(item, name) for item in value.ravel()])
    # Types of other packages have kind V. Only their names are queried, since numpy builds a name at each access.
    if kind == 'V' and value.dtype.name == 'bfloat16':
        return value.view(numpy.uint16)
    return value


def _string(item, name):
    if isinstance(item, (str, bytes)):
        return item
    raise errors.InvalidTypeError(f"input '{name}': found {_checks.type_name(item)} in an array, expected str or bytes")


class Benchmark(NamedTuple):
    """The times of runs."""

    seconds: List[float]

    @property
    def median(self) -> float:
        """The median time of a run, in seconds."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """The shortest time of a run, in seconds."""
        return min(self.seconds)

    def percentile(self, share: float) -> float:
        """The time that `share` percent of the runs do not exceed, in seconds."""
        if not 0 <= share <= 100:
            raise errors.InvalidArgumentError(f'share: found {share}, expected 0 to 100')
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))]

    def __repr__(self):
        return (f'<permafrost.Benchmark: median {self.median * 1e3:.3f} ms, best {self.best * 1e3:.3f} ms, '
                f'{len(self.seconds)} runs>')

    def _repr_html_(self):
        return (f'<table><tr><th>runs</th><th>median</th><th>90 %</th><th>best</th></tr><tr><td>{len(self.seconds)}</td>'
                f'<td>{self.median * 1e3:.3f} ms</td><td>{self.percentile(90) * 1e3:.3f} ms</td>'
                f'<td>{self.best * 1e3:.3f} ms</td></tr></table>')


class Session(_closing.Closable):
    """A model that is ready to run. Created by `Model.session`.

    Thread-safe, but runs are sequential. For concurrent runs, create a session for each thread.
    """

    _what = 'the session'

    def __init__(self, native):
        super().__init__(native)
        self._names = [name for name, _, _ in native.inputs()]
        self._dtypes = [dtype for _, dtype, _ in native.inputs()]
        self._fetches = list(native.fetches)

    def close(self):
        """Releases the session. Arrays that it returned remain valid."""
        super().close()

    @property
    def inputs(self) -> List[str]:
        """The names of the inputs of `run`."""
        return list(self._names)

    @property
    def outputs(self) -> List[str]:
        """The names of the outputs of `run`."""
        return list(self._fetches)

    def _feeds(self, inputs):
        arrays = by_name(inputs, self._names, 'inputs')
        return [feed(array, name, dtype) for array, name, dtype in zip(arrays, self._names, self._dtypes)]

    def run(self, inputs, outputs: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Runs the model once and releases the GIL meanwhile.

        Args:
          inputs: arrays by the names of the inputs, or the array of the only input. They must have the type and shape of the
            input and be contiguous. Arrays aligned to 64 bytes (`empty`) are not copied.
          outputs: arrays for all outputs by name: contiguous, writable, of the exact type and shape. String outputs are not
            supported.

        Returns:
          The outputs by name: `outputs`, or new arrays, which are read-only because the model may share them.
        """
        native = self.native
        feeds = self._feeds(inputs)
        if outputs is None:
            results = native.run(feeds, None)
            return {name: values.array_of(result) for name, result in zip(self._fetches, results)}
        if not isinstance(outputs, Mapping):
            raise errors.InvalidTypeError(
                f'outputs: found {_checks.type_name(outputs)}, expected a dict with the keys {self._fetches}')
        native.run(feeds, by_name(outputs, self._fetches, 'outputs'))
        return dict(outputs)

    def allocate_outputs(self, inputs) -> Dict[str, Any]:
        """Returns arrays for the outputs of `run` for inputs with the shapes of these. Raises UnimplementedError if a shape
        depends on the values of the inputs.
        """
        import numpy
        shapes = [numpy.shape(array) for array in by_name(inputs, self._names, 'inputs')]
        arrays = {}
        for (_, dtype, shape), name in zip(self.native.plan(shapes), self._fetches):
            if shape is None or None in shape:
                raise errors.UnimplementedError(f"output '{name}': only the run tells its shape")
            arrays[name] = empty(shape, values.numpy_dtype(dtype))
        return arrays

    def benchmark(self, inputs, *, runs: int = 20, warm_up: int = 2, max_seconds: float = 10.0) -> Benchmark:
        """Measures `runs` runs after `warm_up` other runs, or as many as fit into `max_seconds`."""
        return Benchmark(self.native.benchmark(self._feeds(inputs), _checks.integer(warm_up, 'warm_up'),
                                               _checks.integer(runs, 'runs', 1),
                                               _checks.number(max_seconds, 'max_seconds')))

    def report(self) -> Dict[str, Any]:
        """The execution of the model's nodes in the last run: steps, memory in bytes, partitions of the delegate
        (`partitions`), nodes that it left, with reasons (`left`), and why it is not used (`failure`).
        """
        return self.native.report()

    def __repr__(self):
        return '<permafrost.Session, closed>' if self._native is None else (
            f'<permafrost.Session: {self._names} to {self._fetches}, {self._native.num_threads} threads>')


class OutputDifference(NamedTuple):
    """The difference between outputs of two models; docs/guide/validate_model.md defines the measures."""

    name: str
    relative: float
    max_abs: Optional[float]
    mean_abs: Optional[float]
    sqnr_db: Optional[float]
    cosine: Optional[float]
    top1_agreement: Optional[float]
    top5_agreement: Optional[float]
    quality: str  # 'fine', 'visible' or 'ruined'; docs/guide/transform_graph.md has the thresholds.
    text: str


class Verification(NamedTuple):
    """The result of a verification."""

    was_run: bool
    why_not: str
    num_inputs: int
    outputs: List[OutputDifference]
    tolerance: float

    @property
    def worst(self) -> float:
        """The largest difference of an output, relative to its scale."""
        return max((output.relative for output in self.outputs), default=0.0)

    @property
    def passes(self) -> bool:
        """True if the models were run and differ by no more than the tolerance."""
        return self.was_run and self.worst <= self.tolerance

    def __bool__(self):
        return self.passes

    def __repr__(self):
        if not self.was_run:
            return f'<permafrost.Verification: not run: {self.why_not}>'
        verdict = 'passes' if self.passes else 'fails'
        return (f'<permafrost.Verification: {verdict}: outputs differ by at most {self.worst:.3g}, '
                f'allowed {self.tolerance:.3g}, on {self.num_inputs} inputs>')

    def _repr_html_(self):
        from permafrost import notebook
        return notebook.verification_html(self)


class Difference(NamedTuple):
    """A difference between two graphs."""

    kind: str
    node: str
    text: str


def by_name(arrays, names: Sequence[str], what: str) -> List[Any]:
    """Returns the arrays of a dict in the order of `names`, which must be its keys, or the array of the only name."""
    if not isinstance(arrays, Mapping):
        if len(names) != 1:
            raise errors.InvalidTypeError(
                f'{what}: found {_checks.type_name(arrays)}, expected a dict with the keys {list(names)}')
        return [arrays]
    if len(arrays) != len(names) or any(name not in arrays for name in names):
        raise errors.InvalidArgumentError(
            errors.brief(f'{what}: found {sorted(map(str, arrays))}, expected {list(names)}'))
    return [arrays[name] for name in names]


def sample_sets(inputs, names: Sequence[str], dtypes: Sequence[str]) -> List[List[Any]]:
    """Returns lists with an array for each name, from a dict, an array, or a list of these."""
    if inputs is None:
        return []
    sets = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    result = []
    for i, item in enumerate(sets):
        arrays = by_name(item, names, f'inputs[{i}]')
        result.append([feed(array, name, dtype) for array, name, dtype in zip(arrays, names, dtypes)])
    return result
