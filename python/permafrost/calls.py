"""Calls of passes, which the functions in `permafrost.passes` return and `Model.transform` accepts."""

from typing import Iterable, List, NamedTuple, Sequence, Tuple, Union

from permafrost import _checks, errors


class PassCall(NamedTuple):
    """A pass with its arguments as strings. `str()` returns it in the syntax of transform strings."""

    name: str
    arguments: Tuple[Tuple[str, str], ...] = ()
    ignore_errors: bool = False

    def __str__(self):
        parts = [f'{name}="{value}"' for name, value in self.arguments]
        if self.ignore_errors:
            parts.append('ignore_errors="true"')
        return f'{self.name}({", ".join(parts)})' if parts else self.name


def text_of(value, name):
    """Returns the value of an argument in the syntax of transform strings."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if hasattr(value, '__index__'):
        return repr(value.__index__())
    if hasattr(value, '__float__'):
        return repr(float(value))
    raise errors.InvalidTypeError(f'{name}: found {_checks.type_name(value)}, expected a str, bool, int or float')


def call(name: str, arguments: Iterable[Tuple[str, object]], ignore_errors: bool = False) -> PassCall:
    """Returns a call of the pass `name`. Arguments that are None are omitted; lists become repeated arguments."""
    texts: List[Tuple[str, str]] = []
    for key, value in arguments:
        if value is None:
            continue
        values: Sequence[object] = value if isinstance(value, (list, tuple)) else [value]
        texts += [(key, text_of(item, f'{name}: {key}')) for item in values]
    if not isinstance(ignore_errors, bool):
        raise errors.InvalidTypeError(f'{name}: ignore_errors: found {_checks.type_name(ignore_errors)}, expected a bool')
    return PassCall(name, tuple(texts), ignore_errors)


Transforms = Union[str, PassCall, Sequence[Union[str, PassCall]]]


def normalized(transforms) -> list:
    """Returns `transforms` as a list of transform strings and calls."""
    if isinstance(transforms, (str, PassCall)) or callable(transforms):
        transforms = [transforms]
    if isinstance(transforms, bytes) or not hasattr(transforms, '__iter__'):
        raise errors.InvalidTypeError(f'transforms: found {_checks.type_name(transforms)}, '
                                      'expected a transform string or a list of strings and passes')
    result: list = []
    for i, item in enumerate(transforms):
        if isinstance(item, PassCall):
            result.append((item.name, list(item.arguments), item.ignore_errors))
        elif callable(item) and hasattr(item, 'pass_name'):
            result.append((item.pass_name, [], False))
        elif isinstance(item, str):
            result.append(item)
        else:
            raise errors.InvalidTypeError(
                f'transforms[{i}]: found {_checks.type_name(item)}, expected a transform string or a pass')
    return result
