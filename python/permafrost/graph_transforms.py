"""The original's Python interface: code for `tensorflow.tools.graph_transforms` runs with its import changed to this."""

from permafrost import _checks, _native, calls, errors, graph_messages, user_passes

__all__ = ('TransformGraph',)


def _comma_separated(value, name):
    """A list of names; like the original, a text is taken as a sequence of names of one character is not."""
    if isinstance(value, str):
        value = value.split(',')
    names = _checks.names(value, name)
    if names is None:
        raise errors.InvalidTypeError(f'{name}: found None, expected a list of names')
    return [part for item in names for part in item.split(',') if part]


def TransformGraph(input_graph_def, inputs, outputs, transforms):  # pylint: disable=invalid-name
    """Runs transforms over a graph.

    Args:
      input_graph_def: a GraphDef message of TensorFlow, the bytes of one, or the path of a model.
      inputs: names of the nodes that are fed.
      outputs: names of the nodes that are fetched.
      transforms: transform strings, each with one transform or more, such as 'fold_constants(ignore_errors=true)'. Calls
        of functions in `permafrost.passes` are taken too.

    Returns:
      The transformed graph: a message of the type that was given, or bytes.

    Raises:
      permafrost.Error: also a ValueError for what is wrong with the arguments, and a RuntimeError where a transform fails.
    """
    data = graph_messages.to_bytes(input_graph_def)
    result = _native.transform_bytes(data, _comma_separated(inputs, 'inputs'), _comma_separated(outputs, 'outputs'),
                                     calls.normalized(transforms), user_passes.registered())
    return graph_messages.like(input_graph_def, result)
