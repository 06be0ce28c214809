"""Passes that are written in Python."""

_registered: dict = {}


def registered():
    """The passes by name, as the native side takes them."""
    return _registered
