"""What pip calls to build the package (PEP 517): Bazel builds it, and wheel.py packs it. Needs nothing but Python.

PERMAFROST_BAZEL_FLAGS, separated by blanks, are given to Bazel instead of --config=release.
"""

import os
import pathlib
import platform
import subprocess
import sys
import tarfile
import tempfile

import wheel


# pybind11 2.10, of Debian 12, supports no older and no newer ones.
_OLDEST_PYTHON, _NEWEST_PYTHON = (3, 9), (3, 11)
_PROCESSORS = ('x86_64', 'aarch64')


def check_interpreter(implementation, version, system, processor):
    """Raises WheelError unless the package can be built for such an interpreter."""
    expected = (f'CPython {".".join(map(str, _OLDEST_PYTHON))} to {".".join(map(str, _NEWEST_PYTHON))} for Linux on '
                f'{" or ".join(_PROCESSORS)}')
    found = f'{implementation} {".".join(map(str, version))} for {system} on {processor}'
    if (implementation, system) != ('cpython', 'linux') or not _OLDEST_PYTHON <= version <= _NEWEST_PYTHON or \
            processor not in _PROCESSORS:
        raise wheel.WheelError(f'the package cannot be built for this interpreter: found {found}, expected {expected}')


def _bazel(*arguments):
    try:
        return subprocess.run(['bazel', *arguments], cwd=wheel.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    except FileNotFoundError as error:
        raise wheel.WheelError('bazel is not installed: run script/install_deps') from error


def build(out, with_delegates=False):
    """Builds the package for the running interpreter and returns the paths of its wheel in the folder `out`, and of that of
    the delegates if it is wanted."""
    check_interpreter(sys.implementation.name, sys.version_info[:2], sys.platform, platform.machine())
    flags = os.environ.get('PERMAFROST_BAZEL_FLAGS', '--config=release').split()
    # Resolves the link of a virtual environment, which may be temporary: Bazel would fetch the headers again.
    flags.append(f'--repo_env=PYTHON_BIN_PATH={os.path.realpath(sys.executable)}')
    _bazel('build', *flags, '//python/permafrost', '//tools:documents')
    built = pathlib.Path(_bazel('info', *flags, 'bazel-bin').strip())
    with tempfile.TemporaryDirectory(prefix='permafrost-wheel-') as folder:
        work, documents = pathlib.Path(folder, 'work'), pathlib.Path(folder, 'documents')
        work.mkdir()
        documents.mkdir()
        subprocess.run([built / 'tools/documents', documents], check=True)
        wheels = [wheel.assemble([wheel.ROOT / 'python/permafrost', built / 'python/permafrost'], documents, work, out)]
        if with_delegates:
            wheels.append(wheel.assemble_delegates(built / 'python/permafrost' / wheel.BUNDLE, work, out))
        return wheels


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: the wheel's file name."""
    del config_settings, metadata_directory
    return build(wheel_directory)[0].name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: the sources that git knows, as an archive."""
    del config_settings
    name = f'permafrost-{wheel.version()}'
    path = pathlib.Path(sdist_directory, name + '.tar.gz')
    files = subprocess.run(['git', 'ls-files', '-z'], cwd=wheel.ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(path, 'w:gz', format=tarfile.PAX_FORMAT) as archive:
        for file in filter(None, os.fsdecode(files).split('\0')):
            archive.add(wheel.ROOT / file, f'{name}/{file}', recursive=False)
    return path.name
