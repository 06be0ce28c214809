"""Objects that own native resources and can release them early."""

from permafrost import errors


class Closable:
    """Base of classes with `close` that are context managers. Subclasses set `_native`, and `_what` for error messages."""

    _what = 'the object'

    def __init__(self, native):
        self._native = native

    @property
    def native(self):
        if self._native is None:
            raise errors.InvalidArgumentError(f'{self._what} is closed')
        return self._native

    def close(self):
        """Releases the native object. Objects created from it remain valid."""
        self._native = None

    def __enter__(self):
        self.native
        return self

    def __exit__(self, *_):
        self.close()
