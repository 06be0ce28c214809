"""What holds something native that can be let go of early."""

from permafrost import errors


class Closable:
    """The base of what has a `close` and works in a `with`. Subclasses set `_native`, and say in `_what` what they are."""

    _what = 'the object'

    def __init__(self, native):
        self._native = native

    @property
    def native(self):
        if self._native is None:
            raise errors.InvalidArgumentError(f'{self._what} is closed')
        return self._native

    def close(self):
        """Lets go of what is native. What was made of it stays as it is."""
        self._native = None

    def __enter__(self):
        self.native
        return self

    def __exit__(self, *_):
        self.close()
