"""GraphDefs in the forms that callers pass: messages of TensorFlow, bytes, or paths. Never imports TensorFlow."""

import os

from permafrost import _checks, errors


def to_bytes(graph, name='input_graph_def'):
    """Returns the serialised GraphDef of a path, of bytes, or of a message (an object with SerializeToString)."""
    if isinstance(graph, (bytes, bytearray, memoryview)):
        return bytes(graph)
    if isinstance(graph, (str, os.PathLike)):
        # Read by the toolchain, which also supports text and compressed files.
        from permafrost import model
        return model.load(graph).to_bytes()
    serialize = getattr(graph, 'SerializeToString', None)
    if callable(serialize):
        data = serialize()
        if not isinstance(data, bytes):
            raise errors.InvalidTypeError(f'{name}: SerializeToString gave {_checks.type_name(data)}, expected bytes')
        return data
    raise errors.InvalidTypeError(f'{name}: found {_checks.type_name(graph)}, expected a GraphDef, bytes or a path')


def like(original, data):
    """Returns `data` in the form of `original`: a message of the same type, or bytes. A path gives bytes."""
    if callable(getattr(original, 'SerializeToString', None)):
        parse = getattr(type(original), 'FromString', None)
        if callable(parse):
            return parse(data)
        message = type(original)()
        message.ParseFromString(data)
        return message
    return data
