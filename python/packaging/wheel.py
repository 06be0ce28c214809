"""Makes a wheel of what Bazel has built: the package, the libraries that it needs, manual pages and completions.

The extension is linked to the distribution's libraries. Those that a system need not have go into the wheel, where the
loader finds them beside the extension; patchelf says so to it.
"""

import base64
import glob
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What PEP 600 lets a wheel expect of the system, as far as our libraries need it.
SYSTEM_LIBRARIES = ('ld-linux-x86-64.so.2', 'libc.so.6', 'libdl.so.2', 'libgcc_s.so.1', 'libm.so.6', 'libpthread.so.0',
                    'librt.so.1', 'libstdc++.so.6')

# The glibc of the first manylinux whose libstdc++ has these symbols.
GLIBC_OF_GLIBCXX = ((24, 17), (25, 24), (28, 28), (29, 34), (30, 35), (31, 39), (32, 39), (33, 39))


class WheelError(Exception):
    """Says in a line why there is no wheel."""


def _run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise WheelError(f'{command[0]} failed: {result.stderr.strip() or result.stdout.strip()}')
    return result.stdout


def version():
    """What `permafrost --version` says, from the place that says it."""
    text = (ROOT / 'tools/command_line/cli.h').read_text(encoding='utf-8')
    return re.search(r'kVersion = "([^"]+)"', text).group(1)


def tools():
    """The names of the tools, from the list that Bazel builds."""
    text = (ROOT / 'tools/BUILD.bazel').read_text(encoding='utf-8')
    return ['permafrost'] + re.findall(r'"(\w+)"', re.search(r'TOOLS = \[(.*?)\]', text, re.S).group(1))


def _found(path):
    """Where the loader finds what `path` needs, and what that needs, by name."""
    lines = _run('ldd', str(path)).splitlines()
    found = {}
    for line in lines:
        match = re.match(r'\s*(\S+) => (\S+)', line)
        if match:
            if match.group(2) == 'not':
                raise WheelError(f'{path} needs {match.group(1)}, which is not installed')
            found[match.group(1)] = pathlib.Path(match.group(2)).resolve()
    return found


def bundle(extension, folder):
    """Puts the libraries that `extension` needs into `folder` beside it, and makes all of them find each other there.

    They keep their names: Debian 12's patchelf does not rename where symbols have versions. A process that has a library
    of the same name already uses that one, as it does with libraries of the system.

    Returns the paths in the system of what was taken.
    """
    taken = {name: path for name, path in _found(extension).items() if name not in SYSTEM_LIBRARIES}
    folder.mkdir()
    for name, path in taken.items():
        shutil.copyfile(path, folder / name)
        (folder / name).chmod(0o755)
        _run('patchelf', '--set-rpath', '$ORIGIN', str(folder / name))
    _run('patchelf', '--set-rpath', f'$ORIGIN/{folder.name}', str(extension))
    return list(taken.values())


def platform_tag(paths):
    """The oldest manylinux on which all of these libraries load."""
    glibc = 17
    for path in paths:
        text = _run('readelf', '--version-info', '--wide', str(path))
        glibc = max([glibc] + [int(minor) for minor in re.findall(r'Name: GLIBC_2\.(\d+)', text)])
        for minor in re.findall(r'Name: GLIBCXX_3\.4\.(\d+)', text):
            glibc = max([glibc] + [since for symbols, since in GLIBC_OF_GLIBCXX if int(minor) >= symbols])
    return f'manylinux_2_{glibc}_{platform.machine()}'


def licenses(paths):
    """The copyright files of the packages that the libraries are of, by package."""
    files = {}
    for path in paths:
        # What the package calls the file may go through the link /lib.
        for name in (path, pathlib.Path('/') / path.relative_to('/usr') if path.is_relative_to('/usr') else path):
            result = subprocess.run(['dpkg-query', '--search', str(name)], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True, check=False)
            if result.returncode == 0:
                package = result.stdout.partition(':')[0]
                copyright_file = pathlib.Path(f'/usr/share/doc/{package}/copyright')
                if copyright_file.exists():
                    files[package] = copyright_file
    return files


def metadata():
    """METADATA, from pyproject.toml's description of the project."""
    text = (ROOT / 'pyproject.toml').read_text(encoding='utf-8')
    description = re.search(r'^description = "(.*)"$', text, re.M).group(1)
    python = re.search(r'^requires-python = "(.*)"$', text, re.M).group(1)
    dependencies = re.findall(r'"([^"]+)"', re.search(r'^dependencies = \[(.*)\]$', text, re.M).group(1))
    lines = ['Metadata-Version: 2.1', 'Name: permafrost', f'Version: {version()}', f'Summary: {description}',
             f'Requires-Python: {python}', 'License-File: LICENSE', 'Description-Content-Type: text/markdown']
    lines += [f'Requires-Dist: {dependency}' for dependency in dependencies]
    return '\n'.join(lines) + '\n\n' + (ROOT / 'README.md').read_text(encoding='utf-8')


def _record_hash(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()


def _write(path, files):
    """A zip of `files`, pairs of a name and (content, is_executable), with the list of them that a wheel has."""
    record_name = next(name for name in files if name.endswith('/METADATA')).replace('METADATA', 'RECORD')
    lines = [f'{name},sha256={_record_hash(data)},{len(data)}' for name, (data, _) in files.items()]
    files[record_name] = ('\n'.join(lines + [f'{record_name},,']).encode() + b'\n', False)
    temporary = path.with_suffix('.part')
    with zipfile.ZipFile(temporary, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, is_executable) in files.items():
            # The same content gives the same wheel.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if is_executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    temporary.replace(path)


def assemble(package, documents, work, out, *, python_tag=None):
    """Makes the wheel.

    Args:
      package: folders that together hold the package: modules, passes.py and _native.so.
      documents: a folder with manual pages and completions.
      work: an empty folder to work in.
      out: the folder for the wheel.
      python_tag: 'cp311', say; left out: that of the running interpreter.

    Returns:
      The path of the wheel.
    """
    staged = pathlib.Path(work) / 'permafrost'
    staged.mkdir()
    for folder in package:
        for pattern in ('*.py', '*.pyi', 'py.typed', '_native.so'):
            for source in glob.glob(os.path.join(folder, pattern)):
                shutil.copyfile(source, staged / os.path.basename(source))
    for name in ('__init__.py', 'passes.py', '_native.so'):
        if not (staged / name).exists():
            raise WheelError(f'{name} is in none of {", ".join(map(str, package))}')
    extension = staged / ('_native' + sysconfig.get_config_var('EXT_SUFFIX'))
    (staged / '_native.so').rename(extension)
    _run('strip', '--strip-unneeded', str(extension))
    taken = bundle(extension, staged / 'libraries')
    libraries = sorted((staged / 'libraries').iterdir())

    python_tag = python_tag or 'cp' + sysconfig.get_config_var('py_version_nodot')
    tag = f'{python_tag}-{python_tag}-{platform_tag([extension] + libraries)}'
    info = f'permafrost-{version()}.dist-info'
    data = f'permafrost-{version()}.data/data/share'
    files = {}
    for path in sorted(staged.rglob('*')):
        if path.is_file():
            files[path.relative_to(work).as_posix()] = (path.read_bytes(), '.so' in path.name)
    places = {'.1': f'{data}/man/man1/', '.bash': f'{data}/bash-completion/completions/',
              '.fish': f'{data}/fish/vendor_completions.d/', '': f'{data}/zsh/site-functions/'}
    for path in sorted(pathlib.Path(documents).iterdir()):
        content = (path.read_bytes(), False)
        if path.suffix == '.bash':
            # bash looks for a file of the command's name.
            for tool in tools():
                files[places['.bash'] + tool] = content
        else:
            files[places[path.suffix] + path.name] = content
    files[f'{info}/METADATA'] = (metadata().encode(), False)
    files[f'{info}/WHEEL'] = (f'Wheel-Version: 1.0\nGenerator: permafrost\nRoot-Is-Purelib: false\nTag: {tag}\n'.encode(),
                              False)
    scripts = ''.join(f'{tool} = permafrost.command_line:main\n' for tool in tools())
    files[f'{info}/entry_points.txt'] = (f'[console_scripts]\n{scripts}'.encode(), False)
    files[f'{info}/licenses/LICENSE'] = ((ROOT / 'LICENSE').read_bytes(), False)
    for name, path in sorted(licenses(taken).items()):
        files[f'{info}/licenses/{name}'] = (path.read_bytes(), False)
    wheel = pathlib.Path(out) / f'permafrost-{version()}-{tag}.whl'
    _write(wheel, files)
    return wheel
