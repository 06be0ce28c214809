"""Loads the extension module such that its symbols are resolved in the libraries that it is linked to."""

import ctypes
import importlib
import importlib.machinery
import os
import sys
from types import ModuleType

# Functions of protobuf, of which TensorFlow and other packages contain their own versions: the oldest function that
# every version has, and one for reading text.
_SYMBOLS = ('_ZN6google8protobuf8internal13VerifyVersionEiiPKc', '_ZN6google8protobuf7Message8CopyFromERKS1_',
            '_ZN6google8protobuf10TextFormat6ParserC1Ev')


def _is_global(symbol: str) -> bool:
    try:
        getattr(ctypes.CDLL(None), symbol)
    except AttributeError:
        return False
    return True


def _explained(name: str, error: ImportError, folder: str) -> ImportError:
    """Returns an error that says what to do if the package in `folder` is built for another Python or system."""
    found = importlib.machinery.EXTENSION_SUFFIXES[0].strip('.').partition('.')[0]
    remedy = f'install a wheel that is built for {found} (docs/guide/python.md)'
    if isinstance(error, ModuleNotFoundError) and error.name == name:
        stem = name.rpartition('.')[2]
        built = sorted(file.split('.')[1] for file in os.listdir(folder) if file.startswith(stem + '.') and file.endswith('.so'))
        problem = f'is built for {", ".join(built)}, found {found}' if built else f'is not built: found no {stem}.*.so'
        return ImportError(f"the package permafrost in '{folder}' {problem}; {remedy}", name=name)
    if "GLIBC" in str(error) and "not found" in str(error):
        return ImportError(f'the package permafrost is built for newer system libraries than those of this system: {error}; '
                           'use a newer system, or build the wheel on this one (script/build_wheel)', name=name)
    return error


def load_extension(name: str) -> ModuleType:
    """Imports the extension module `name`. Raises ImportError if it is built for another Python or system."""
    try:
        return _load(name)
    except ImportError as error:
        raise _explained(name, error, os.path.dirname(__file__)) from error


def _load(name: str) -> ModuleType:
    """Imports the extension module `name` such that it uses the libraries that it is linked to.

    The loader searches global symbols first. If those contain protobuf, the extension and its libraries are loaded with
    their own symbols before the global ones. This is not done in general, because a preloaded replacement of malloc
    (LD_PRELOAD) would then serve only a part of the calls.
    """
    # A process with AddressSanitizer rejects the flag.
    if not hasattr(os, 'RTLD_DEEPBIND') or _is_global('__asan_init') or not any(map(_is_global, _SYMBOLS)):
        return importlib.import_module(name)
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    try:
        return importlib.import_module(name)
    finally:
        sys.setdlopenflags(flags)
