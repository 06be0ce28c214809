"""Replacement of `tensorflow.python.tools.strip_unused_lib` with its original names."""

from permafrost import _checks, _native, errors, graph_messages, model

__all__ = ('strip_unused', 'strip_unused_from_files')


def type_numbers(placeholder_type_enum, count):
    """Returns the numbers of TensorFlow's DataType, one for each of `count` inputs, as strings."""
    if isinstance(placeholder_type_enum, (list, tuple)):
        numbers = list(placeholder_type_enum)
        if len(numbers) not in (1, count):
            raise errors.InvalidArgumentError(f'placeholder_type_enum: found {len(numbers)} types, expected one, or one '
                                              f'for each of {count} inputs')
    else:
        numbers = [placeholder_type_enum]
    return ','.join(str(_checks.integer(number, 'placeholder_type_enum')) for number in numbers)


def names_of(value, name):
    names = _checks.names(value, name)
    if names is None:
        raise errors.InvalidTypeError(f'{name}: found None, expected a list of names')
    return names


def strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum):
    """Reduces a graph to the nodes between its inputs and outputs. The inputs become placeholders.

    Args:
      input_graph_def: a GraphDef message, bytes, or a path.
      input_node_names: names of the nodes to turn into placeholders; a name with ':' is a ValueError, as in the original.
      output_node_names: names of the nodes that are fetched.
      placeholder_type_enum: the type of the placeholders as a number of TensorFlow's DataType (1 is float), or a list with
        one number for each.

    Returns:
      A GraphDef of the given type, or bytes.

    Raises:
      KeyError: an input is not in the graph.
      ValueError: an output is not in the graph, or a name contains ':'.
    """
    inputs = names_of(input_node_names, 'input_node_names')
    outputs = names_of(output_node_names, 'output_node_names')
    data = graph_messages.to_bytes(input_graph_def)
    check_inputs(data, inputs)
    transforms = [_native.strip_call(','.join(inputs), type_numbers(placeholder_type_enum, len(inputs)))]
    return graph_messages.like(input_graph_def, _native.transform_bytes(data, inputs, outputs, transforms, {}))


def check_inputs(data, inputs):
    """Raises the errors of the original for invalid names."""
    for name in inputs:
        if ':' in name:
            raise errors.InvalidArgumentError(f"Name '{name}' appears to refer to a Tensor, not an Operation.")
    nodes = model.load(data).nodes
    missing = [name for name in inputs if name not in nodes]
    if missing:
        raise KeyError(f'The following input nodes were not found: {set(missing)}')


def _separated(value, name):
    return [item for item in _checks.text(value, name).split(',') if item]


def strip_unused_from_files(input_graph, input_binary, output_graph, output_binary, input_node_names,
                            output_node_names, placeholder_type_enum):
    """Like strip_unused, from file to file. Names are separated by commas. `input_binary` has no effect."""
    del input_binary
    if not input_graph:
        raise errors.InvalidArgumentError('input_graph is empty')
    result = strip_unused(input_graph, _separated(input_node_names, 'input_node_names'),
                          _separated(output_node_names, 'output_node_names'), placeholder_type_enum)
    with model.load(result) as stripped:
        stripped.save(output_graph, format='pb' if output_binary else 'pbtxt')
        print(f'{len(stripped)} ops in the final graph.')
