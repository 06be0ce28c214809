"""Replacement of `tensorflow.tools.graph_transforms`: existing code only needs another import."""

from permafrost import _checks, _native, calls, errors, graph_messages, user_passes

__all__ = ('TransformGraph',)


def _comma_separated(value, name):
    """Returns a list of names. Rejects a str, which would be a sequence of names of one character."""
    if isinstance(value, str):
        value = value.split(',')
    names = _checks.names(value, name)
    if names is None:
        raise errors.InvalidTypeError(f'{name}: found None, expected a list of names')
    return [part for item in names for part in item.split(',') if part]


def TransformGraph(input_graph_def, inputs, outputs, transforms):  # pylint: disable=invalid-name
    """Applies transforms to a graph.

    Args:
      input_graph_def: a GraphDef message of TensorFlow, the bytes of one, or the path of a model.
      inputs: names of the nodes that are fed.
      outputs: names of the nodes that are fetched.
      transforms: transform strings, each with one transform or more, such as 'fold_constants(ignore_errors=true)', or calls
        of functions in `permafrost.passes`.

    Returns:
      The transformed graph: a message of the given type, or bytes.

    Raises:
      permafrost.Error: also a ValueError for invalid arguments, and a RuntimeError if a transform fails.
    """
    data = graph_messages.to_bytes(input_graph_def)
    result = _native.transform_bytes(data, _comma_separated(inputs, 'inputs'), _comma_separated(outputs, 'outputs'),
                                     calls.normalized(transforms), user_passes.registered())
    return graph_messages.like(input_graph_def, result)
