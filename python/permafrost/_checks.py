"""Checks of what users give, with messages that say what was found and what was expected."""

import os


def type_name(value):
    return 'None' if value is None else f'an object of type {type(value).__name__}'


def text(value, name):
    if not isinstance(value, str):
        raise TypeError(f'{name}: found {type_name(value)}, expected a str')
    return value


def path(value, name='path'):
    """The file system's name of `value` as a str."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f'{name}: found {type_name(value)}, expected a path')
    result = os.fsdecode(value)
    if '\0' in result:
        raise ValueError(f'{name}: found a path with a null character')
    return result


def names(value, name):
    """A list of names out of a sequence of str, or None."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not hasattr(value, '__iter__'):
        raise TypeError(f'{name}: found {type_name(value)}, expected a list of names')
    return [text(item, f'{name}[{i}]') for i, item in enumerate(value)]


def integer(value, name, low=0):
    if isinstance(value, bool) or not hasattr(value, '__index__'):
        raise TypeError(f'{name}: found {type_name(value)}, expected an int')
    result = value.__index__()
    if not low <= result < 2**31:
        raise ValueError(f'{name}: found {result}, expected an integer of at least {low} and of 32 bits')
    return result
