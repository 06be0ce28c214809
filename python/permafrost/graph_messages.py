"""GraphDefs as callers hold them: messages of TensorFlow, bytes, or paths. TensorFlow is never imported."""

import os

from permafrost import _checks, errors


def to_bytes(graph, name='input_graph_def'):
    """The serialised GraphDef. A path is read; what has SerializeToString is a message; bytes are as they are."""
    if isinstance(graph, (bytes, bytearray, memoryview)):
        return bytes(graph)
    if isinstance(graph, (str, os.PathLike)):
        # Through the toolchain, so that a text file, or a compressed one, is as good.
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
    """`data` as what `original` is: a message of the same type, or bytes, which a path gives too."""
    if callable(getattr(original, 'SerializeToString', None)):
        parse = getattr(type(original), 'FromString', None)
        if callable(parse):
            return parse(data)
        message = type(original)()
        message.ParseFromString(data)
        return message
    return data
