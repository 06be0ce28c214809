"""Attribute values without a corresponding Python type, and arrays that share native memory."""

from typing import Any, Dict, NamedTuple, Optional, Tuple


class DType(str):
    """The name of an element type, such as 'float', 'int32' or 'quint8'."""

    __slots__ = ()

    def __repr__(self):
        return f'DType({str(self)!r})'


class Shape:
    """The shape of a tensor: `dims` is a tuple with None for unknown dimensions, or None for unknown rank."""

    __slots__ = ('dims',)

    def __init__(self, dims):
        self.dims: Optional[Tuple[Optional[int], ...]] = None if dims is None else tuple(dims)

    def __eq__(self, other):
        return isinstance(other, Shape) and self.dims == other.dims

    def __hash__(self):
        return hash(self.dims)

    def __repr__(self):
        return f'Shape({self.dims!r})'


class Function(NamedTuple):
    """A function of the library, named by an attribute, with values for the attributes of its signature."""

    name: str
    attributes: Dict[str, Any]


class Placeholder(str):
    """The name of a function attribute that supplies the value."""

    __slots__ = ()


# Names of element types in numpy where they differ. Types without one appear as integers of the same size.
NUMPY_NAMES = {
    'float': 'float32',
    'double': 'float64',
    'half': 'float16',
    'qint8': 'int8',
    'quint8': 'uint8',
    'qint16': 'int16',
    'quint16': 'uint16',
    'qint32': 'int32',
    'bfloat16': 'uint16',
    'string': 'object',
}


def numpy_dtype(name):
    """Returns the numpy type of arrays with elements of type `name`."""
    import numpy
    return numpy.dtype(NUMPY_NAMES.get(name, name))


def array_of(native):
    """Returns a numpy array that views a native tensor. A string tensor is copied to an array of bytes."""
    import numpy
    if isinstance(native, tuple):
        shape, strings = native
        array = numpy.empty(len(strings), object)
        array[:] = strings
        return array.reshape(shape)
    return numpy.asarray(native)
