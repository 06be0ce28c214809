"""Checks of arguments, with messages that state the found and the expected value."""

import math
import os

from permafrost import errors


def type_name(value):
    return 'None' if value is None else f'an object of type {type(value).__name__}'


def text(value, name):
    if not isinstance(value, str):
        raise errors.InvalidTypeError(f'{name}: found {type_name(value)}, expected a str')
    return value


def path(value, name='path'):
    """Returns `value` as a str that names a file."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise errors.InvalidTypeError(f'{name}: found {type_name(value)}, expected a path')
    result = os.fsdecode(value)
    if '\0' in result:
        raise errors.InvalidArgumentError(f'{name}: found a path with a null character')
    return result


def _items(value, name, expected):
    # A str is a sequence of characters, too.
    if isinstance(value, (str, bytes)) or not hasattr(value, '__iter__'):
        raise errors.InvalidTypeError(f'{name}: found {type_name(value)}, expected a list of {expected}')
    return enumerate(value)


def paths(value, name):
    """Returns a list of file names from a sequence of paths."""
    return [path(item, f'{name}[{i}]') for i, item in _items(value, name, 'paths')]


def names(value, name):
    """Returns a list of names from a sequence of str, or None."""
    if value is None:
        return None
    return [text(item, f'{name}[{i}]') for i, item in _items(value, name, 'names')]


def integer(value, name, low=0):
    if isinstance(value, bool) or not hasattr(value, '__index__'):
        raise errors.InvalidTypeError(f'{name}: found {type_name(value)}, expected an int')
    result = value.__index__()
    if not low <= result < 2**31:
        raise errors.InvalidArgumentError(
            f'{name}: found {result}, expected an integer of at least {low} and of 32 bits')
    return result


def integers(**values):
    """Applies `integer` to each value, by name."""
    return {name: integer(value, name) for name, value in values.items()}


def number(value, name):
    """Returns a nonnegative float; infinity means no bound."""
    if isinstance(value, (bool, str, bytes)) or not (hasattr(value, '__float__') or hasattr(value, '__index__')):
        raise errors.InvalidTypeError(f'{name}: found {type_name(value)}, expected a number')
    result = float(value)
    if math.isnan(result) or result < 0:
        raise errors.InvalidArgumentError(f'{name}: found {result}, expected a number of at least 0')
    return result


def choice(value, name, known):
    """Returns `value`, which must be one of the texts `known`."""
    if text(value, name) not in known:
        raise errors.InvalidArgumentError(f"{name}: found '{value}', expected one of {', '.join(known)}")
    return value
