"""The command line tools, as run by the console scripts of the wheel."""

import os
import signal
import sys


def main():
    """Runs the tool with the name of the script, and exits with its status."""
    # Ctrl-C ends the process, unless the tool handles it. Python's handler would wait for the tool.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    from permafrost import _native
    sys.exit(_native.run_command([os.path.basename(sys.argv[0])] + sys.argv[1:]))
