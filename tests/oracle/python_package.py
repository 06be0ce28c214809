"""Provides the Python package as built by Bazel (by script/test_oracle) to the running interpreter."""

import os
import pathlib
import sys
import tempfile

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
BINARIES = WORKSPACE / 'bazel-bin'
BUILT = pathlib.Path(os.environ.get('PERMAFROST_PACKAGE', BINARIES / 'python/permafrost'))

# Inserted first, because most environments have a package 'wheel'.
sys.path.insert(0, str(WORKSPACE / 'python/packaging'))


def folder():
    """Returns a new folder with the sources and the built files of the package, for sys.path or PYTHONPATH."""
    place = tempfile.mkdtemp(prefix='permafrost-oracle-')
    target = pathlib.Path(place, 'permafrost')
    target.mkdir()
    for source in list((WORKSPACE / 'python/permafrost').glob('*.py')) + [BUILT / '_native.so', BUILT / 'passes.py']:
        (target / source.name).symlink_to(source)
    return place


def assemble_wheel(out):
    """Builds the wheel in the folder `out` and returns its path."""
    import subprocess
    import wheel
    out = pathlib.Path(out)
    work, documents = out / 'work', out / 'documents'
    work.mkdir()
    documents.mkdir()
    subprocess.run([BINARIES / 'tools/documents', documents], check=True)
    return wheel.assemble([WORKSPACE / 'python/permafrost', BUILT], documents, work, out)
