"""The exceptions of this package.

An error of the toolchain, or an argument that the package refuses, is an `Error` with a message of one line: the place, what
was found, what was expected. Its class is also a standard exception of its kind, so that code that catches ValueError or
OSError needs no other type. Looking up a missing node raises KeyError, as in a dict.
"""

import re


# Fits on a few screens; longer messages clutter logs.
_LONGEST_MESSAGE = 10_000


def brief(message):
    """Returns a message with the middle cut out if it is very long."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half = _LONGEST_MESSAGE // 2
    return f'{message[:half]}...({len(message) - 2 * half} characters)...{message[-half:]}'


class Error(Exception):
    """An error of the toolchain.

    Attributes:
      code: the kind of error as in C++, such as 'INVALID_ARGUMENT'.
      pass_name: the pass that was running, or whose arguments were invalid; None outside of passes.
      node: the first node that the message names; None if there is none.
    """

    code = 'UNKNOWN'

    def __init__(self, message, *, pass_name=None, node=None):
        super().__init__(message)
        self.pass_name = pass_name
        self.node = node


class InvalidArgumentError(Error, ValueError):
    """An argument is invalid."""

    code = 'INVALID_ARGUMENT'


class InvalidTypeError(Error, TypeError):
    """An argument has a type that the function does not accept."""

    code = 'INVALID_ARGUMENT'


class DataLossError(Error, ValueError):
    """A file is corrupt."""

    code = 'DATA_LOSS'


class OutOfRangeError(Error, ValueError):
    """An index or offset is out of range."""

    code = 'OUT_OF_RANGE'


class NotFoundError(Error, FileNotFoundError):
    """A file does not exist, or the model contains nothing with that name."""

    code = 'NOT_FOUND'


class AlreadyExistsError(Error, FileExistsError):
    """An object with that name exists already."""

    code = 'ALREADY_EXISTS'


class PermissionDeniedError(Error, PermissionError):
    """The system denies access, or no key decrypts the model."""

    code = 'PERMISSION_DENIED'


class UnavailableError(Error, OSError):
    """A device failed."""

    code = 'UNAVAILABLE'


class ResourceExhaustedError(Error, MemoryError):
    """Memory, disk space or a configured limit is exhausted."""

    code = 'RESOURCE_EXHAUSTED'


class UnimplementedError(Error, NotImplementedError):
    """The runtime has no kernel for a node, or a format cannot be written."""

    code = 'UNIMPLEMENTED'


class FailedPreconditionError(Error, RuntimeError):
    """The model does not meet a precondition of the operation."""

    code = 'FAILED_PRECONDITION'


class AbortedError(Error, RuntimeError):
    """A check failed: the outputs of the model have changed."""

    code = 'ABORTED'


class CancelledError(Error, RuntimeError):
    """The operation was cancelled."""

    code = 'CANCELLED'


class InternalError(Error, RuntimeError):
    """A bug in this package, or in a pass that does not keep its declared guarantees."""

    code = 'INTERNAL'


# The first class listed for a code is used for errors of C++.
_BY_CODE = {kind.code: kind for kind in reversed(Error.__subclasses__())}
_NODE = re.compile(r"node '([^']*)'")


def from_status(code, message, pass_name):
    """Returns the exception for a status of C++; `pass_name` is empty if no pass was running."""
    kind = _BY_CODE.get(code, Error)
    named = _NODE.search(message)
    return kind(brief(message), pass_name=pass_name or None, node=named.group(1) if named else None)
