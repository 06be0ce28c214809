"""Permafrost: makes frozen TensorFlow graphs smaller and faster, and verifies their outputs.

    import permafrost
    from permafrost import passes

    model = permafrost.load('model.pb')
    small = model.transform([passes.fold_constants(), passes.quantize_weights(minimum_size=1024)])
    small.save('small.pb')

For code that uses `tensorflow.tools.graph_transforms`, TransformGraph is in `permafrost.graph_transforms`. TensorFlow is
neither needed nor imported.
"""

from typing import Any

from permafrost._loading import load_extension

load_extension('permafrost._native')  # Before the modules that import it.

from permafrost import _native, passes
from permafrost.calls import PassCall
from permafrost.errors import Error
from permafrost.model import Endpoint, Model, Node, Optimization, PassReport, load
from permafrost.session import Benchmark, Difference, OutputDifference, Session, Verification, delegates, empty
from permafrost.user_passes import pass_
from permafrost.values import DType, Function, Shape

__version__ = _native.VERSION

__all__ = ('Benchmark', 'DType', 'Difference', 'Endpoint', 'Error', 'Function', 'Model', 'Node', 'Optimization', 'OutputDifference',
           'PassCall', 'PassReport', 'Session', 'Shape', 'Verification', 'delegates', 'empty', 'load', 'pass_', 'passes',
           '__version__')

# The functions of the original tools, imported on first use.
_ORIGINALS = ('freeze_graph', 'graph_transforms', 'optimize_for_inference_lib', 'strip_unused_lib')


def __getattr__(name: str) -> Any:
    if name in _ORIGINALS:
        import importlib
        return importlib.import_module('permafrost.' + name)
    raise AttributeError(f"module 'permafrost' has no attribute '{name}'")
