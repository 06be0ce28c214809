"""Loads a page in headless Chromium, from a file and without a network, and returns the result."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

NAMES = ["chromium", "chromium-browser", "google-chrome"]
# No profile is kept, and nothing is asked of the network. Where the kernel has no namespaces for users, as in a
# container, Chromium starts without its sandbox only; the pages are ours.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
         "--disable-background-networking", "--no-first-run", "--hide-scrollbars", "--enable-logging=stderr"]
TIMEOUT = 120
# Chromium's value for a preferred dark colour scheme.
SCHEMES = {"dark": "--blink-settings=preferredColorScheme=0", "light": "--blink-settings=preferredColorScheme=1"}


def find():
    """Returns the path of the browser, or None."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """The result of a page: the document after its scripts, and their console messages."""

    def __init__(self, document, console):
        self.document = document
        self.console = console
        root = re.search(r"<html[^>]*>", document)
        self.root = root.group(0) if root else ""

    def data(self, key):
        """Returns the attribute data-KEY of the root element, or None."""
        found = re.search(rf'data-{key}="([^"]*)"', self.root)
        return found.group(1) if found else None


def _run(binary, path, scheme, *flags):
    with tempfile.TemporaryDirectory() as profile:
        command = [binary, *FLAGS, SCHEMES[scheme], f"--user-data-dir={profile}", *flags, pathlib.Path(path).resolve().as_uri()]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=True)


def load(binary, path, scheme="light"):
    done = _run(binary, path, scheme, "--dump-dom", "--window-size=1360,1000")
    return Page(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])


def picture(binary, path, to, scheme="light", size="1360,1000"):
    _run(binary, path, scheme, f"--screenshot={to}", f"--window-size={size}")


def printed(binary, path, to):
    """Returns the page as a PDF."""
    _run(binary, path, "light", f"--print-to-pdf={to}", "--no-pdf-header-footer")
