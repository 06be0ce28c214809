"""Replacement of `tensorflow.python.tools.optimize_for_inference_lib` with its original names."""

from permafrost import _native, graph_messages
from permafrost.strip_unused_lib import check_inputs, names_of, type_numbers

__all__ = ('fold_batch_norms', 'optimize_for_inference')


def optimize_for_inference(input_graph_def, input_node_names, output_node_names, placeholder_type_enum,
                           toco_compatible=False):
    """Removes nodes that only training needs, folds batch norms, and fuses padding and resizing into convolutions.

    Args:
      input_graph_def: a GraphDef message, bytes, or a path.
      input_node_names: names of the nodes that are fed, which become placeholders.
      output_node_names: names of the nodes that are fetched.
      placeholder_type_enum: the type of the placeholders as a number of TensorFlow's DataType (1 is float), or a list with
        one number for each.
      toco_compatible: restrict fusions to those that TensorFlow's converter to TFLite supports.

    Returns:
      A GraphDef of the given type, or bytes.
    """
    inputs = names_of(input_node_names, 'input_node_names')
    outputs = names_of(output_node_names, 'output_node_names')
    data = graph_messages.to_bytes(input_graph_def)
    check_inputs(data, inputs)
    transforms = [
        _native.optimize_for_inference_calls(','.join(inputs), type_numbers(placeholder_type_enum, len(inputs)),
                                             bool(toco_compatible))
    ]
    return graph_messages.like(input_graph_def, _native.transform_bytes(data, inputs, outputs, transforms, {}))


def fold_batch_norms(input_graph_def, output_node_names):
    """Folds batch norms into the preceding convolutions, for all nodes that the outputs need."""
    outputs = names_of(output_node_names, 'output_node_names')
    data = graph_messages.to_bytes(input_graph_def)
    result = _native.transform_bytes(data, [], outputs, ['fold_old_batch_norms'], {})
    return graph_messages.like(input_graph_def, result)
