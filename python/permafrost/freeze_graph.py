"""Replacement of freeze_graph with its original names: `tensorflow.python.tools.freeze_graph`."""

import os
import tempfile

from permafrost import _checks, _native, errors, graph_messages

__all__ = ('freeze_graph', 'freeze_graph_with_def_protos')


def _flag(name, value):
    return f'--{name}={value}'


def _optional_text(value, name):
    """Returns a path, or names separated by commas. None and '' mean that it is absent."""
    if value is None:
        return ''
    return _checks.path(value, name)


def freeze_graph(input_graph, input_saver, input_binary, input_checkpoint, output_node_names, restore_op_name,
                 filename_tensor_name, output_graph, clear_devices, initializer_nodes, variable_names_whitelist='',
                 variable_names_blacklist='', input_meta_graph=None, input_saved_model_dir=None, saved_model_tags='serve',
                 checkpoint_version=2, *, variable_names_denylist=''):
    """Combines a graph and the values of its variables into one file without variables.

    The arguments are those of the original, in its order. `output_node_names`, `initializer_nodes` and the lists of
    variables are separated by commas; None or '' means absent. `input_binary`, `filename_tensor_name` and
    `checkpoint_version` have no effect, because formats are detected. `variable_names_denylist` is the later name of `variable_names_blacklist`.

    Returns:
      The frozen graph as bytes, which are also written to `output_graph`, unless that is empty.

    Raises:
      permafrost.Error: its classes derive from FileNotFoundError and ValueError.
    """
    del filename_tensor_name, input_binary
    if checkpoint_version not in (1, 2):
        raise errors.InvalidArgumentError(f'checkpoint_version: found {checkpoint_version!r}, expected 1 or 2')
    texts = {
        'input_graph': input_graph,
        'input_saver': input_saver,
        'input_checkpoint': input_checkpoint,
        'output_node_names': output_node_names,
        'restore_op_name': restore_op_name,
        'initializer_nodes': initializer_nodes,
        'variable_names_whitelist': variable_names_whitelist,
        'variable_names_blacklist': variable_names_denylist or variable_names_blacklist,
        'input_meta_graph': input_meta_graph,
        'input_saved_model_dir': input_saved_model_dir,
        'saved_model_tags': saved_model_tags,
    }
    flags = [_flag(name, text) for name, value in texts.items() if (text := _optional_text(value, name))]
    flags.append(_flag('clear_devices', 'true' if clear_devices else 'false'))
    with tempfile.TemporaryDirectory(prefix='permafrost-') as folder:
        output = _optional_text(output_graph, 'output_graph') or os.path.join(folder, 'frozen.pb')
        _native.run_tool('freeze_graph', flags + [_flag('output_graph', output)])
        with open(output, 'rb') as file:
            return file.read()


def freeze_graph_with_def_protos(input_graph_def, input_saver_def, input_checkpoint, output_node_names, restore_op_name,
                                 filename_tensor_name, output_graph, clear_devices, initializer_nodes,
                                 variable_names_whitelist='', variable_names_blacklist='', input_meta_graph_def=None,
                                 input_saved_model_dir=None, saved_model_tags=None, checkpoint_version=2, *,
                                 variable_names_denylist=''):
    """Like freeze_graph, for messages or bytes instead of files. Returns the type of `input_graph_def`, or bytes."""
    with tempfile.TemporaryDirectory(prefix='permafrost-') as folder:

        def file_of(message, name):
            if message is None or message == '':
                return ''
            path = os.path.join(folder, name)
            with open(path, 'wb') as file:
                file.write(graph_messages.to_bytes(message, name))
            return path

        result = freeze_graph(
            file_of(input_graph_def, 'input_graph_def'), file_of(input_saver_def, 'input_saver_def'), True,
            input_checkpoint, output_node_names, restore_op_name, filename_tensor_name, output_graph, clear_devices,
            initializer_nodes, variable_names_whitelist, variable_names_blacklist,
            file_of(input_meta_graph_def, 'input_meta_graph_def'), input_saved_model_dir,
            ','.join(saved_model_tags) if isinstance(saved_model_tags, (list, tuple)) else saved_model_tags,
            checkpoint_version, variable_names_denylist=variable_names_denylist)
    return graph_messages.like(input_graph_def, result)
