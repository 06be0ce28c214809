"""The tools on the command line: what the console scripts of the wheel run."""

import os
import signal
import sys


def main():
    """Runs the tool that the script is named after, as its own executable would, and exits with its status."""
    # Ctrl-C ends the process, unless a tool sees to it itself; Python's handler would wait for the tool.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    from permafrost import _native
    sys.exit(_native.run_command([os.path.basename(sys.argv[0])] + sys.argv[1:]))
