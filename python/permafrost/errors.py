"""The exceptions of this package.

An error of the toolchain, or an argument that the package refuses, is an `Error` with a message of one line: the place, what
was found, what was expected. Its class is also a standard exception of its kind, so that code that catches ValueError or
OSError needs no other type. Looking up a missing node raises KeyError, as in a dict.
"""

import re


# What fits on a few screens; longer messages choke logs.
_LONGEST_MESSAGE = 10_000


def brief(message):
    """A message without its middle, where that is very long."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half = _LONGEST_MESSAGE // 2
    return f'{message[:half]}...({len(message) - 2 * half} characters)...{message[-half:]}'


class Error(Exception):
    """An error of the toolchain.

    Attributes:
      code: the kind of error as the C++ side names it, such as 'INVALID_ARGUMENT'.
      pass_name: the pass that was running, or whose arguments were wrong; None outside of passes.
      node: the first node that the message names; None where it names none.
    """

    code = 'UNKNOWN'

    def __init__(self, message, *, pass_name=None, node=None):
        super().__init__(message)
        self.pass_name = pass_name
        self.node = node


class InvalidArgumentError(Error, ValueError):
    """What the caller gave is wrong."""

    code = 'INVALID_ARGUMENT'


class InvalidTypeError(Error, TypeError):
    """An argument is of a type that the function does not take."""

    code = 'INVALID_ARGUMENT'


class DataLossError(Error, ValueError):
    """A file is corrupt."""

    code = 'DATA_LOSS'


class OutOfRangeError(Error, ValueError):
    """Something ends beyond what it is part of."""

    code = 'OUT_OF_RANGE'


class NotFoundError(Error, FileNotFoundError):
    """There is no such file, or nothing of that name in the model."""

    code = 'NOT_FOUND'


class AlreadyExistsError(Error, FileExistsError):
    """There is something of that name."""

    code = 'ALREADY_EXISTS'


class PermissionDeniedError(Error, PermissionError):
    """The system does not allow it, or no key opens the model."""

    code = 'PERMISSION_DENIED'


class UnavailableError(Error, OSError):
    """A device failed."""

    code = 'UNAVAILABLE'


class ResourceExhaustedError(Error, MemoryError):
    """Memory, the disk, or a limit that was set does not suffice."""

    code = 'RESOURCE_EXHAUSTED'


class UnimplementedError(Error, NotImplementedError):
    """The runtime has no kernel for a node, or a format no way to be written."""

    code = 'UNIMPLEMENTED'


class FailedPreconditionError(Error, RuntimeError):
    """The model lacks what the work needs."""

    code = 'FAILED_PRECONDITION'


class AbortedError(Error, RuntimeError):
    """A check failed: the model no longer answers as it did."""

    code = 'ABORTED'


class CancelledError(Error, RuntimeError):
    """Somebody asked for the end."""

    code = 'CANCELLED'


class InternalError(Error, RuntimeError):
    """A mistake of this package, or of a pass that is not what it says of itself."""

    code = 'INTERNAL'


# The first class of a code is that of errors of the C++ side.
_BY_CODE = {kind.code: kind for kind in reversed(Error.__subclasses__())}
_NODE = re.compile(r"node '([^']*)'")


def from_status(code, message, pass_name):
    """The exception for a status of the C++ side; `pass_name` is empty where none was running."""
    kind = _BY_CODE.get(code, Error)
    named = _NODE.search(message)
    return kind(brief(message), pass_name=pass_name or None, node=named.group(1) if named else None)
