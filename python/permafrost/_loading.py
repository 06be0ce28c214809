"""Loads the extension module so that no other library of the process takes the place of the ones it is linked to."""

import ctypes
import importlib
import os
import sys
from types import ModuleType

# Functions of protobuf, which TensorFlow and other packages carry in versions of their own: the oldest function that every
# version has, and one for reading text.
_SYMBOLS = ('_ZN6google8protobuf8internal13VerifyVersionEiiPKc', '_ZN6google8protobuf7Message8CopyFromERKS1_',
            '_ZN6google8protobuf10TextFormat6ParserC1Ev')


def _is_global(symbol: str) -> bool:
    try:
        getattr(ctypes.CDLL(None), symbol)
    except AttributeError:
        return False
    return True


def load_extension(name: str) -> ModuleType:
    """Imports the module `name`, which is an extension.

    The loader looks for a symbol among the global ones first. Where those have a protobuf, the extension and its libraries
    are loaded with their own symbols before the global ones. Not always: then a replacement of malloc that was loaded
    before (LD_PRELOAD) would serve only a part of the calls.
    """
    # A process with AddressSanitizer's runtime refuses the flag.
    if not hasattr(os, 'RTLD_DEEPBIND') or _is_global('__asan_init') or not any(map(_is_global, _SYMBOLS)):
        return importlib.import_module(name)
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    try:
        return importlib.import_module(name)
    finally:
        sys.setdlopenflags(flags)
