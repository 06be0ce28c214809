#!/usr/bin/env python3
"""Records the outputs of TensorFlow for small inputs: the vectors that vectors_test.cc compares kernels with.

    python3 tests/kernels/make_vectors.py [family ...]      (needs TensorFlow; results are the same at every run)

Each module of families/ gives one file vectors/<family>.pbtxt. Its function cases() yields Case objects. A file is a
GraphDef: case i is a node case_<i>/op, its inputs are the constants case_<i>/in0, in1 ..., and what TensorFlow computed is
in the constants case_<i>/expected_0, expected_1 ... An output without an expected constant is not compared.
"""

import dataclasses
import importlib
import os
import pathlib
import re
import sys
import textwrap
from typing import Any, Callable, Dict, List, Optional, Sequence

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # TensorFlow's own kernels are the reference.
import numpy as np
import tensorflow as tf
from google.protobuf import text_format

tf.compat.v1.disable_eager_execution()
HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Case:
    """One application of an op. `inputs` are numpy arrays, or pairs (array of codes, tf.DType) for the quantised types.

    `attrs` are the attributes in Python form; types are inferred where TensorFlow's op definition allows. `ask` replaces
    the op for TensorFlow, for what its CPU kernels lack: it takes the inputs and returns the outputs as numpy arrays.
    """

    op: str
    inputs: Sequence[Any]
    attrs: Dict[str, Any] = dataclasses.field(default_factory=dict)
    ask: Optional[Callable[..., List[np.ndarray]]] = None
    outputs: Optional[int] = None  # Number of recorded outputs, from the first; None: all.
    producer: Optional[int] = None  # The GraphDef version of a graph that may have the op, where today's may not.


def _tensor(value, dtype=None):
    """Returns a TensorProto with one typed value per element: readable, and short for small tensors."""
    array = np.asarray(value)
    dtype = tf.as_dtype(dtype or array.dtype)
    proto = tf.compat.v1.make_tensor_proto([], dtype=dtype, shape=[0])
    del proto.tensor_shape.dim[:]
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    flat = array.reshape(-1)
    field = {
        tf.float32: "float_val", tf.float64: "double_val", tf.int64: "int64_val", tf.bool: "bool_val",
        tf.string: "string_val", tf.uint32: "uint32_val", tf.uint64: "uint64_val", tf.half: "half_val",
        tf.bfloat16: "half_val", tf.complex64: "scomplex_val", tf.complex128: "dcomplex_val",
    }.get(dtype, "int_val")
    if field == "half_val":
        values = flat.view(np.uint16).tolist()
    elif field in ("scomplex_val", "dcomplex_val"):
        values = [part for number in flat.tolist() for part in (number.real, number.imag)]
    elif field == "string_val":
        values = [x if isinstance(x, bytes) else str(x).encode() for x in flat.tolist()]
    else:
        values = flat.tolist()
    if len(values) > 1 and len(set(map(repr, values))) == 1 and field not in ("scomplex_val", "dcomplex_val"):
        values = values[:1]  # The last value is repeated for the rest.
    getattr(proto, field).extend(values)
    return proto


def _run(case):
    """Returns the outputs of TensorFlow, each as (array, dtype), and the node with its attributes."""
    graph = tf.Graph()
    with graph.as_default():
        feeds = []
        for item in case.inputs:
            array, dtype = item if isinstance(item, tuple) else (np.asarray(item), None)
            feeds.append((np.asarray(array), tf.as_dtype(dtype or np.asarray(array).dtype)))
        placeholders = [tf.compat.v1.placeholder(dtype, array.shape) for array, dtype in feeds]
        if case.producer is not None or case.op.startswith("_"):
            return _run_imported(case, feeds)
        definition = tf.raw_ops.__dict__[case.op]
        names = _input_names(case.op)
        arguments, position = {}, 0
        lists = sum(is_list for _, is_list in names)  # Of equal length, where there are several.
        for name, is_list in names:
            if is_list:
                length = (len(placeholders) - (len(names) - lists)) // lists
                arguments[name] = placeholders[position:position + length]
                position += length
            else:
                arguments[name] = placeholders[position]
                position += 1
        result = definition(**arguments, **case.attrs)
        operation = _operation_of(result)
        outputs = list(operation.outputs)
        if case.ask is not None:
            arrays = case.ask(*[array for array, _ in feeds])
        else:
            with tf.compat.v1.Session(graph=graph, config=tf.compat.v1.ConfigProto(
                    intra_op_parallelism_threads=1, inter_op_parallelism_threads=1,
                    graph_options=tf.compat.v1.GraphOptions(rewrite_options=_no_rewrites()))) as session:
                arrays = session.run(outputs, {
                    p: array.astype(p.dtype.as_numpy_dtype) if array.dtype != p.dtype.as_numpy_dtype else array
                    for p, (array, _) in zip(placeholders, feeds)})
        count = len(arrays) if case.outputs is None else case.outputs
        return feeds, [(a, o.dtype) for a, o in zip(arrays[:count], outputs)], operation.node_def


def _run_imported(case, feeds):
    """Runs an op through a GraphDef, because it has no Python function or is not allowed in new graphs."""
    imported = tf.compat.v1.GraphDef()
    imported.versions.producer = case.producer or tf.version.GRAPH_DEF_VERSION
    node = imported.node.add(name="op", op=case.op)
    for i, (array, dtype) in enumerate(feeds):
        const = imported.node.add(name=f"in{i}", op="Const")
        const.attr["dtype"].type = dtype.as_datatype_enum
        const.attr["value"].tensor.CopyFrom(_tensor(array, dtype))
        node.input.append(const.name)
    node.attr["T"].type = feeds[0][1].as_datatype_enum
    for key, value in case.attrs.items():
        _set_attr(node.attr[key], value)
    graph = tf.Graph()
    with graph.as_default():
        operation = tf.import_graph_def(imported, return_elements=["op"], name="")[0]
        if case.ask is not None:
            arrays = case.ask(*[array for array, _ in feeds])
        else:
            config = tf.compat.v1.ConfigProto(graph_options=tf.compat.v1.GraphOptions(rewrite_options=_no_rewrites()))
            with tf.compat.v1.Session(graph=graph, config=config) as session:
                arrays = session.run(operation.outputs)
    return feeds, [(a, o.dtype) for a, o in zip(arrays, operation.outputs)], operation.node_def


def _set_attr(attr, value):
    fields = {bool: "b", int: "i", float: "f", str: "s", tf.DType: "type"}
    plain = lambda x: x.encode() if isinstance(x, str) else x.as_datatype_enum if isinstance(x, tf.DType) else x
    if isinstance(value, list):
        attr.list.SetInParent()
        for item in value:
            getattr(attr.list, fields[type(item)]).append(plain(item))
    else:
        setattr(attr, fields[type(value)], plain(value))


def _no_rewrites():
    from tensorflow.core.protobuf import rewriter_config_pb2
    return rewriter_config_pb2.RewriterConfig(disable_meta_optimizer=True)


def _operation_of(result):
    while isinstance(result, (list, tuple)):
        result = result[0]
    return result if isinstance(result, tf.Operation) else result.op


def _input_names(op):
    from tensorflow.python.framework import op_def_registry
    from tensorflow.python.util import tf_inspect
    definition = op_def_registry.get(op)
    # Python renames some arguments ('reduction_indices' is 'axis'), and keeps their order.
    python_names = tf_inspect.getfullargspec(tf.raw_ops.__dict__[op]).args
    known = {arg.name for arg in definition.input_arg} | {attr.name for attr in definition.attr} | {"name"}
    renamed = [name for name in python_names if name not in known]
    return [(arg.name if arg.name in python_names else renamed.pop(0), bool(arg.number_attr or arg.type_list_attr))
            for arg in definition.input_arg]


def _codes(array):
    """Returns the plain integers of quantised numpy types, which are structures of one field."""
    return array.view(array.dtype[0]) if array.dtype.names else array


def build(cases):
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = 1882
    for number, case in enumerate(cases):
        try:
            feeds, results, node = _run(case)
        except Exception as error:
            raise RuntimeError(f"case {number}, {case.op} {case.attrs}: {error}") from error
        prefix = f"case_{number}/"

        def constant(name, array, dtype):
            const = graph.node.add(name=prefix + name, op="Const")
            const.attr["dtype"].type = tf.as_dtype(dtype).as_datatype_enum
            const.attr["value"].tensor.CopyFrom(_tensor(_codes(array), dtype))

        for i, (array, dtype) in enumerate(feeds):
            constant(f"in{i}", array, dtype)
        op = graph.node.add(name=prefix + "op", op=case.op)
        op.input.extend(f"{prefix}in{i}" for i in range(len(feeds)))
        for key, value in sorted(node.attr.items()):
            if not key.startswith("_"):
                op.attr[key].CopyFrom(value)
        for i, (array, dtype) in enumerate(results):
            constant(f"expected_{i}", np.asarray(array), dtype)
    return graph


def to_text(graph):
    """Returns text format in which the values of a repeated field form one list."""
    lines = text_format.MessageToString(graph).splitlines()
    out, i = [], 0
    while i < len(lines):
        match = re.fullmatch(r"( *)(\w+_val|i|input): (.*)", lines[i])
        if not match:
            out.append(lines[i])
            i += 1
            continue
        indent, key, values = match[1], match[2], []
        while i < len(lines) and lines[i].startswith(f"{indent}{key}: "):
            values.append(lines[i].split(": ", 1)[1])
            i += 1
        if key == "string_val" or len(values) == 1:
            out.extend(f"{indent}{key}: {value}" for value in values)
            continue
        out.extend(textwrap.wrap(f"{key}: [{', '.join(values)}]", 118, initial_indent=indent,
                                 subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False))
    return "\n".join(out) + "\n"


def main(families):
    sys.path.insert(0, str(HERE))
    sys.modules["make_vectors"] = sys.modules["__main__"]
    families = families or sorted(path.stem for path in (HERE / "families").glob("*.py"))
    (HERE / "vectors").mkdir(exist_ok=True)
    for family in families:
        cases = list(importlib.import_module(f"families.{family}").cases())
        text = f"# What TensorFlow {tf.__version__} computes. Made by make_vectors.py from families/{family}.py.\n"
        path = HERE / "vectors" / f"{family}.pbtxt"
        path.write_text(text + to_text(build(cases)))
        print(f"{path.relative_to(HERE)}: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
