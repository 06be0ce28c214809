"""Models: loading, inspection, transformation and saving."""

import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from permafrost import _checks, _closing, _native, calls, errors
from permafrost import session as session_module
from permafrost import user_passes, values

ModelSource = Union[str, 'os.PathLike[str]', bytes, bytearray, memoryview]
Keys = Union[None, str, bytes, 'os.PathLike[str]', Sequence[Union[str, bytes, 'os.PathLike[str]']]]
_SECRET = 'AGE-SECRET-KEY-'
_QUANTIZE_MODES = ('none', 'float16', 'dynamic', 'int8', 'int16x8', 'int4')


class Endpoint(NamedTuple):
    """An input or output of a model. `dtype` is '' if unknown; `shape` has None for unknown dimensions."""

    name: str
    dtype: str
    shape: Optional[Tuple[Optional[int], ...]]


class PassReport(NamedTuple):
    """The results of a pass."""

    name: str
    call: str
    rewrites: int
    nodes_before: int
    nodes_after: int
    seconds: float
    ignored_error: str
    notes: List[str]
    misses: List[str]


class Node:
    """A node of a model. It stays valid when the model is closed."""

    __slots__ = ('_native', 'name', 'op', 'device', 'inputs')

    def __init__(self, native):
        self._native = native
        #: `inputs` are texts: 'x' for output 0 of x, 'x:1', or '^x' for a control input.
        self.name, self.op, self.device, self.inputs = native.describe()

    @property
    def attributes(self) -> Dict[str, Any]:
        """The attributes by name: bool, int, float, bytes, `DType`, `Shape`, a numpy array, a list, or a `Function`."""
        return self._native.attributes()

    @property
    def value(self):
        """The array of a constant, a read-only view of the model's memory. An error for other nodes."""
        return values.array_of(self._native.constant())

    def __repr__(self):
        return f'<Node {self.name!r} ({self.op}) of {list(self.inputs)}>'


class Nodes(Sequence):
    """The nodes of a model, in order, or by name."""

    def __init__(self, model):
        self._model = model
        self._nodes = None

    def _all(self):
        native = self._model.native
        if self._nodes is None:
            self._nodes = native.nodes()
        return self._nodes

    def __len__(self):
        return self._model.native.num_nodes

    def __getitem__(self, key):
        if isinstance(key, str):
            found = self._model.native.find(key)
            if found is None:
                raise KeyError(key)
            return Node(found)
        if isinstance(key, slice):
            return [Node(native) for native in self._all()[key]]
        return Node(self._all()[key])

    def __iter__(self) -> Iterator[Node]:
        return (Node(native) for native in self._all())

    def __contains__(self, name):
        return isinstance(name, str) and self._model.native.find(name) is not None


class Constants(Mapping):
    """The constants of a model by name: numpy arrays that view its memory and keep it alive."""

    def __init__(self, model):
        self._nodes = {node.describe()[0]: node for node in model.native.constants()}

    def __getitem__(self, name):
        return values.array_of(self._nodes[name].constant())

    def __iter__(self):
        return iter(self._nodes)

    def __len__(self):
        return len(self._nodes)


def _identities(key: Keys) -> List[Union[str, bytes]]:
    """Returns the contents of identity files: `key` is the content, the path of a file, or a list of these."""
    if key is None:
        return []
    keys = key if isinstance(key, (list, tuple)) else [key]
    contents: List[Union[str, bytes]] = []
    for i, item in enumerate(keys):
        is_text = isinstance(item, str) and _SECRET in item
        is_bytes = isinstance(item, bytes) and _SECRET.encode() in item
        if is_text or is_bytes:
            contents.append(item)
            continue
        with open(_checks.path(item, f'key[{i}]'), 'rb') as file:
            contents.append(file.read(1 << 20))
    return contents


class Model(_closing.Closable):
    """A frozen model. Immutable: `transform` returns a new one. Thread-safe."""

    _what = 'the model'

    def __init__(self, native, source: str = '', passes: Sequence[PassReport] = ()):
        super().__init__(native)
        #: The path that the model was loaded from; '' for others.
        self.source = source
        #: What the passes that made this model of another did, in order.
        self.passes = list(passes)

    def close(self):
        """Releases the model. Arrays, sessions and models created from it remain valid."""
        super().close()

    # --- Inspection ------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """All nodes, by position or name."""
        self.native
        return Nodes(self)

    @property
    def constants(self) -> Constants:
        """The constants by name, as arrays that view the model's memory."""
        return Constants(self)

    @property
    def inputs(self) -> List[Endpoint]:
        """The inputs. Raises InvalidArgumentError, with candidates, if they were not given and are ambiguous."""
        return [Endpoint(*item) for item in self.native.inputs()]

    @property
    def outputs(self) -> List[Endpoint]:
        """The outputs. Raises InvalidArgumentError, with candidates, if they were not given and are ambiguous."""
        return [Endpoint(*item) for item in self.native.outputs()]

    @property
    def num_bytes(self) -> int:
        """The size of the model as a binary GraphDef."""
        return self.native.num_bytes

    @property
    def notes(self) -> List[str]:
        """Warnings from loading the model, one per line."""
        return self.native.notes

    def __len__(self):
        return self.native.num_nodes

    def __repr__(self):
        if self._native is None:
            return '<permafrost.Model, closed>'
        return f'<permafrost.Model {self.source!r}: {len(self)} nodes>'

    # --- Transforming and saving -----------------------------------------------------------------------------------

    def transform(self, transforms: calls.Transforms, *, explain: bool = False, threads: int = 0,
                  progress: Optional[Callable[[int, int, str], object]] = None) -> 'Model':
        """Runs passes and returns the resulting model. This model does not change.

        Args:
          transforms: a transform string, or a list of transform strings, calls of functions in `permafrost.passes`, and
            functions decorated with `permafrost.pass_`. Presets count as passes.
          explain: also record near misses of passes (`PassReport.misses`).
          threads: number of threads for heavy arithmetic; 0: one per core. The result does not depend on it.
          progress: called before each pass with its index, the number of passes, and its name. An exception that it raises
            ends the transformation and is passed to the caller.

        Errors contain the pass that was running (`pass_name`).
        """
        if progress is not None and not callable(progress):
            raise errors.InvalidTypeError(f'progress: found {_checks.type_name(progress)}, expected a function')
        native, reports = _native.transform(self.native, calls.normalized(transforms), user_passes.registered(), progress,
                                            bool(explain), _checks.integer(threads, 'threads'))
        return Model(native, self.source, [PassReport(**report) for report in reports])

    def optimize(self, inputs=None, *, labels=None, max_error: Optional[float] = None,
                 max_accuracy_drop: Optional[float] = None, max_size: Optional[int] = None,
                 max_latency: Union[None, float, str] = None, minimize: str = 'latency', seconds: float = 1800,
                 delegates: Sequence[str] = (), precisions: Sequence[str] = (), threads: int = 0, seed: int = 1,
                 callback: Optional[Callable[[Dict[str, Any]], None]] = None) -> 'Optimization':
        """Searches for the best model within a budget, as the tool optimize_model does (docs/guide/optimize_model.md).

        Args:
          inputs: a dict of arrays by name, the array of the only input, or a list of these; half of them are held back.
            Default: random numbers.
          labels: an array of classes, one for each row of the inputs.
          max_error: maximum rms error of each output, relative to its rms; default 0.03 without max_accuracy_drop.
          max_accuracy_drop: maximum loss of right answers, as a fraction.
          max_size: maximum number of bytes of the file.
          max_latency: seconds of a run, or a ratio to the original such as '0.7x'.
          minimize: 'latency', 'size' or 'memory'.
          callback: called with each trial, a dict as in the results, after the search.

        Returns:
          An Optimization. Raises an error with the nearest miss if no model is within the budget.
        """
        import json
        import tempfile

        import numpy
        flags = [f'--minimize={_checks.text(minimize, "minimize")}',
                 f'--time={_checks.number(seconds, "seconds")}s', f'--seed={_checks.integer(seed, "seed")}',
                 f'--threads={_checks.integer(threads, "threads")}', '--page=', '--certificate=']
        for name, value in [('max_error', max_error), ('max_accuracy_drop', max_accuracy_drop)]:
            if value is not None:
                flags.append(f'--{name}={_checks.number(value, name)}')
        if max_size is not None:
            flags.append(f'--max_size={_checks.integer(max_size, "max_size", 1)}')
        if max_latency is not None:
            limit = max_latency if isinstance(max_latency, str) else f'{_checks.number(max_latency, "max_latency")}s'
            flags.append(f'--max_latency={limit}')
        for name, names in [('delegates', delegates), ('precisions', precisions)]:
            flags += [f'--{name}={each}' for each in _checks.names(names, name)]
        endpoints = self.inputs
        sets = [] if inputs is None else session_module.sample_sets(
            inputs, [item.name for item in endpoints], [item.dtype for item in endpoints])
        with tempfile.TemporaryDirectory(prefix='permafrost-') as folder:
            place = lambda name: os.path.join(folder, name)
            self.save(place('model.pb'))
            for i, endpoint in enumerate(endpoints):
                for s, tensors in enumerate(sets):
                    numpy.save(place(f'input_{i}_{s:06d}.npy'), numpy.asarray(tensors[i]))
                if sets:
                    flags.append(f'--inputs={endpoint.name}={place(f"input_{i}_*.npy")}')
            if endpoints:
                flags.append('--input_layer=' + ','.join(item.name for item in endpoints))
            if self.outputs:
                flags.append('--output_layer=' + ','.join(item.name for item in self.outputs))
            if labels is not None:
                numpy.save(place('labels.npy'), numpy.asarray(labels))
                flags.append('--labels=' + place('labels.npy'))
            _native.run_tool('optimize_model', [f'--in_model={place("model.pb")}', f'--out_model={place("best.pb")}', *flags])
            with open(place('best.json'), encoding='utf-8') as file:
                results = json.load(file)
            with open(place('best.pb'), 'rb') as file:
                best = load(file.read(), inputs=[item.name for item in endpoints],
                            outputs=[item.name for item in self.outputs])
            calibration = b''
            if results['result']['calibration']:
                with open(results['result']['calibration'], 'rb') as file:
                    calibration = file.read()
        if callback is not None:
            for trial in results['trials']:
                callback(trial)
        return Optimization(self, best, results, calibration)

    def save(self, path, *, format: str = 'pb', compress: Optional[str] = None,
             encrypt_to: Union[None, str, Sequence[str]] = None, quantize: str = 'none', io_type: str = 'float',
             calibration_inputs: Sequence = (), keep_float: Sequence[str] = (), tensor_ranges: Sequence[str] = (),
             min_sqnr: float = 15.0, verify: str = 'required', verify_inputs: Sequence = (),
             tolerance: Optional[float] = None) -> Optional[str]:
        """Writes the model. The file is written completely or not at all.

        A TensorFlow Lite model is lowered, read back and compared with the original before it appears, as by
        convert_model, whose flags the arguments from `quantize` on are.

        Args:
          path: the file; an existing file is replaced.
          format: 'pb', 'pbtxt', 'package', 'tflite' or another format of convert_model, except 'program'.
          compress: 'zstd' or 'zstd:LEVEL'.
          encrypt_to: public keys (age1...) of the recipients.
          quantize: 'none', 'float16', 'dynamic', 'int8', 'int16x8' or 'int4'.
          io_type: type of inputs and outputs with quantize='int8': 'float', 'int8' or 'uint8'.
          calibration_inputs: paths of NPY files, patterns or folders that show the ranges of activations.
          keep_float: nodes of operators that stay float.
          tensor_ranges: 'TENSOR=LOW:HIGH', instead of observed ranges.
          min_sqnr: operators stay float until the SQNR of every output is at least this, in dB; negative: none do.
          verify: 'required', 'auto' or 'off'.
          verify_inputs: paths of NPY files.
          tolerance: largest difference of an output, relative to its scale.

        Returns:
          a text about the proof of a TensorFlow Lite model; None for other formats.
        """
        if format == 'tflite':
            _, packed, recipients = _writing(format, compress, encrypt_to)
            return self.native.save_tflite(
                _checks.path(path), packed, recipients, _checks.choice(quantize, 'quantize', _QUANTIZE_MODES),
                _checks.choice(io_type, 'io_type', ('float', 'int8', 'uint8')),
                _checks.paths(calibration_inputs, 'calibration_inputs'), _checks.names(keep_float, 'keep_float') or [],
                _checks.names(tensor_ranges, 'tensor_ranges') or [], float(min_sqnr),
                _checks.choice(verify, 'verify', ('required', 'auto', 'off')), _checks.paths(verify_inputs, 'verify_inputs'),
                None if tolerance is None else _checks.number(tolerance, 'tolerance'))
        self.native.save(_checks.path(path), *_writing(format, compress, encrypt_to))
        return None

    def to_bytes(self, *, format: str = 'pb', compress: Optional[str] = None,
                 encrypt_to: Union[None, str, Sequence[str]] = None) -> bytes:
        """Returns the bytes that `save` would write."""
        return self.native.to_bytes(*_writing(format, compress, encrypt_to))

    # --- Running and comparing -------------------------------------------------------------------------------------

    def session(self, *, delegate: str = 'reference', precision: str = '', threads: int = 0, inter_op_threads: int = 1,
                no_winograd: bool = False,
                outputs: Optional[Sequence[str]] = None, custom_ops: Sequence[str] = (),
                samples=None) -> session_module.Session:
        """Creates a session that runs the model.

        Args:
          delegate: runs all nodes that it supports: one of `permafrost.delegates()`, or the path of a shared library.
          precision: number format of the delegate: 'f32', 'bf16x3', 'bf16', 'int8', 'mixed', or 'auto'; '': the default.
          threads: number of threads; 0: one per core.
          inter_op_threads: maximum number of nodes that run at the same time, each on one thread, where that is faster; 0: as
            many as `threads`.
          no_winograd: computes all convolutions of the onednn delegate directly, none by Winograd's method.
          outputs: nodes to fetch instead of the model's outputs, with a port if it is not 0.
          custom_ops: paths of shared libraries with kernels.
          samples: inputs, as in `verify`, that calibrate 'int8', 'mixed' and 'auto'. Default: random inputs.
        """
        native = self.native
        endpoints = self.inputs
        sets = session_module.sample_sets(samples, [item.name for item in endpoints], [item.dtype for item in endpoints])
        return session_module.Session(
            _native.session(native, _checks.path(delegate, 'delegate'), _checks.text(precision, 'precision'),
                            _checks.integers(threads=threads, inter_op_threads=inter_op_threads),
                            {'no_winograd': bool(no_winograd)},
                            _checks.paths(custom_ops, 'custom_ops'), _checks.names(outputs, 'outputs'), sets))

    def run(self, inputs) -> Dict[str, Any]:
        """Runs the model once with the reference kernels. For repeated runs, create a session."""
        with self.session() as session:
            return session.run(inputs)

    def benchmark(self, inputs=None, *, delegate: str = 'reference', precision: str = '', threads: int = 0, runs: int = 20,
                  warm_up: int = 2, max_seconds: float = 10.0) -> session_module.Benchmark:
        """Measures the time of runs, with random inputs by default (see `Session.benchmark`)."""
        if inputs is None:
            inputs = self.random_inputs()
        with self.session(delegate=delegate, precision=precision, threads=threads, samples=[inputs]) as session:
            return session.benchmark(inputs, runs=runs, warm_up=warm_up, max_seconds=max_seconds)

    def random_inputs(self, seed: int = 1) -> Dict[str, Any]:
        """Returns random inputs, reproducible by seed. An unknown first dimension is 1; raises InvalidArgumentError if
        another dimension is unknown.
        """
        arrays = _native.random_inputs(self.native, _checks.integer(seed, 'seed'))
        return {name: values.array_of(array) for name, array in arrays}

    def verify(self, other: 'Model', inputs=None, *, tolerance: float = 1e-4, seed: int = 1, count: int = 2,
               threads: int = 1) -> session_module.Verification:
        """Runs this model and another one on the same inputs and compares their outputs in order.

        Args:
          other: the model to compare with.
          inputs: a dict of arrays by name, the array of the only input, or a list of these. Default: `count` random inputs.
          tolerance: maximum difference of an output, relative to its scale (its largest magnitude and root mean square over
            all inputs, at least 1e-6).

        Returns:
          A Verification, which is true if the models agree.
        """
        if not isinstance(other, Model):
            raise errors.InvalidTypeError(f'other: found {_checks.type_name(other)}, expected a Model')
        endpoints = self.inputs if inputs is not None else []
        sets = session_module.sample_sets(inputs, [item.name for item in endpoints], [item.dtype for item in endpoints])
        was_run, why_not, num_inputs, outputs = _native.verify(
            self.native, other.native, sets, _checks.integer(seed, 'seed'), _checks.integer(count, 'count', 1),
            _checks.integer(threads, 'threads'))
        return session_module.Verification(was_run, why_not, num_inputs,
                                           [session_module.OutputDifference(**output) for output in outputs],
                                           _checks.number(tolerance, 'tolerance'))

    def compare(self, other: 'Model', *, tolerance: Optional[float] = None,
                strict: bool = False) -> List[session_module.Difference]:
        """Returns the differences of this graph from `other` by node; empty if they are equal. With `tolerance`, tensors
        may differ by that much. `strict` also compares versions, the library, and attributes that begin with '_'.
        """
        if not isinstance(other, Model):
            raise errors.InvalidTypeError(f'other: found {_checks.type_name(other)}, expected a Model')
        most = None if tolerance is None else _checks.number(tolerance, 'tolerance')
        return [session_module.Difference(*item)
                for item in _native.compare(self.native, other.native, most, bool(strict))]

    def report(self) -> Dict[str, Any]:
        """Returns statistics of the model, such as counts of ops, weights by type and floating-point operations, in the
        format of `summarize_graph --json` (docs/guide/summarize_graph.md).
        """
        import json
        import tempfile
        with tempfile.TemporaryDirectory(prefix='permafrost-') as folder:
            path = os.path.join(folder, 'model.pb')
            self.save(path)
            report = json.loads(_native.run_tool('summarize_graph', ['--in_graph=' + path, '--json'])[0])
        report['in_graph'] = self.source
        return report

    def _repr_html_(self):
        from permafrost import notebook
        return notebook.model_html(self)


class Optimization:
    """The result of Model.optimize.

    Attributes:
      model: the best model within the budget.
      run: how it was measured: keyword arguments `delegate`, `precision` and `threads` of Model.session.
      results: all measurements, as optimize_model writes them.
    """

    def __init__(self, original: Model, model: Model, results: Dict[str, Any], calibration: bytes = b''):
        self._original = original
        self._calibration = calibration
        self.model = model
        self.results = results
        self.run = {key: results['result'][key] for key in ('delegate', 'precision', 'threads')}

    def front(self) -> List[Dict[str, Any]]:
        """Returns the trials that no other one beats in both error and size, from small errors to large ones."""
        trials = [trial for trial in self.results['trials']
                  if trial['inputs'] == 'search' and not trial['failure'] and trial['relative_rms'] is not None]
        found: List[Dict[str, Any]] = []
        for trial in sorted(trials, key=lambda each: (each['relative_rms'], each['bytes'])):
            if not found or trial['bytes'] < found[-1]['bytes']:
                found.append(trial)
        return found

    def model_of(self, trial: Dict[str, Any]) -> Model:
        """Returns the model of a trial, such as one of the front."""
        import tempfile
        transforms = trial['transforms']
        if not transforms:
            return self._original
        with tempfile.TemporaryDirectory(prefix='permafrost-') as folder:
            # The name that stands for the file with the codes of weights.
            path = os.path.join(folder, 'optimize_model.calibration')
            if 'optimize_model.calibration' in transforms:
                if not self._calibration:
                    raise errors.InvalidArgumentError('trial: its codes of weights were not kept, since the result has none')
                with open(path, 'wb') as file:
                    file.write(self._calibration)
            return self._original.transform(transforms.replace('optimize_model.calibration', path))

    def __repr__(self):
        result = self.results['result']
        return (f'<permafrost.Optimization {self.results["in_bytes"]} -> {result["bytes"]} bytes, '
                f'rms error {result["relative_rms"]:.2g}>')


def _writing(format, compress, encrypt_to):
    recipients = [encrypt_to] if isinstance(encrypt_to, str) else _checks.names(encrypt_to, 'encrypt_to')
    return (_checks.text(format, 'format'), '' if compress is None else _checks.text(compress, 'compress'),
            recipients or [])


def load(source: ModelSource, *, key: Keys = None, passphrase: Union[None, str, bytes] = None,
         inputs: Optional[Sequence[str]] = None, outputs: Optional[Sequence[str]] = None,
         tags: Sequence[str] = ('serve',), signature: str = '', max_bytes: Optional[int] = None) -> Model:
    """Loads a GraphDef, SavedModel folder, package or tfjs model, compressed or encrypted. Detects the format.

    Args:
      source: a path, or the bytes of a model, which are not copied.
      key: for an encrypted model: the text of an age identity, the path of a file with identities, or a list of these.
      passphrase: for a model that is encrypted with a passphrase.
      inputs, outputs: names of the inputs and outputs, with a port if it is not 0 ('x:1'). Default: those of a SavedModel's
        signature, or those found in the graph.
      tags, signature: select a graph and a signature of a SavedModel.
      max_bytes: maximum size of a decompressed model; larger ones are rejected.

    Raises:
      permafrost.Error: its classes derive from FileNotFoundError, ValueError and others.
    """
    if isinstance(source, (str, os.PathLike)):
        source = name = _checks.path(source, 'source')
    elif isinstance(source, (bytes, bytearray, memoryview)):
        name = ''
    else:
        raise errors.InvalidTypeError(f'source: found {_checks.type_name(source)}, expected a path or the bytes of a model')
    if passphrase is not None and not isinstance(passphrase, (str, bytes)):
        raise errors.InvalidTypeError(f'passphrase: found {_checks.type_name(passphrase)}, expected a str or bytes')
    if max_bytes is not None and (not isinstance(max_bytes, int) or not 0 <= max_bytes < 2**64):
        raise errors.InvalidArgumentError(f'max_bytes: found {max_bytes!r}, expected an integer of at least 0')
    native = _native.load(source, _checks.names(inputs, 'inputs'), _checks.names(outputs, 'outputs'),
                          _checks.names(tags, 'tags') or [], _checks.text(signature, 'signature'), _identities(key),
                          [] if passphrase is None else [passphrase], max_bytes)
    return Model(native, name)
