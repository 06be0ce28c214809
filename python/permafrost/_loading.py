"""Loads the extension module such that its symbols are resolved in the libraries that it is linked to."""

import ctypes
import importlib
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


def load_extension(name: str) -> ModuleType:
    """Imports the extension module `name`.

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
