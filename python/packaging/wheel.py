"""Makes wheels of what Bazel has built.

`permafrost` has the package, the libraries that it needs, manual pages and completions. The extension is linked to the
distribution's libraries. Those that a system need not have go into the wheel, where the loader finds them beside the
extension; patchelf says so to it. `permafrost-delegates` has the libraries of the delegates, which the extension loads when
a delegate is first used.
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

# The package with the libraries of the delegates, beside `permafrost`, and the library that the extension opens there
# (runtime_check/delegates/bundle/).
DELEGATES = 'permafrost_delegates'
BUNDLE = 'libpermafrost_delegates.so.1'

# What PEP 600 lets a wheel expect of the system, as far as our libraries need it.
SYSTEM_LIBRARIES = ('ld-linux-aarch64.so.1', 'ld-linux-x86-64.so.2', 'libc.so.6', 'libdl.so.2', 'libgcc_s.so.1', 'libm.so.6', 'libpthread.so.0',
                    'librt.so.1', 'libstdc++.so.6')

# The glibc (2.N) of the first manylinux whose libraries of the compiler have the symbols up to a version, as auditwheel's
# policies (6.8.2) have it: PEP 600 leaves that to what the distributions of a glibc came with.
GLIBC_OF_RUNTIME = {
    'GLIBCXX': (((3, 4, 19), 17), ((3, 4, 22), 24), ((3, 4, 24), 27), ((3, 4, 28), 31), ((3, 4, 29), 34), ((3, 4, 30), 35),
                ((3, 4, 33), 39)),
    'CXXABI': (((1, 3, 7), 17), ((1, 3, 10), 24), ((1, 3, 11), 27), ((1, 3, 12), 31), ((1, 3, 13), 34), ((1, 3, 15), 39)),
    'GCC': (((4, 8, 0), 17), ((7, 0, 0), 27), ((12, 0, 0), 35), ((14, 0, 0), 39)),
}
# The same for symbols whose version has a name instead of a number.
GLIBC_OF_NAMED = {'CXXABI_TM_1': 17, 'CXXABI_FLOAT128': 24, 'GLIBC_ABI_DT_RELR': 36}
OLDEST_GLIBC = 17


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
    """The names of the tools, from their declaration for Bazel."""
    text = (ROOT / 'tools/BUILD.bazel').read_text(encoding='utf-8')
    declared = re.search(r'^declare_tools\(\{\n(.*?)^\}\)', text, re.M | re.S).group(1)
    return ['permafrost'] + re.findall(r'^    "(\w+)": \[', declared, re.M)


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


def bundle(extension, folder, *places):
    """Puts the libraries that `extension` needs into `folder`, and makes all of them find each other there.

    `places` are those where the extension finds libraries, relative to its own folder.

    They keep their names: Debian 12's patchelf does not rename where symbols have versions. A process that has a library
    of the same name already uses that one, as it does with libraries of the system.

    Returns the paths in the system of what was taken.
    """
    taken = {name: path for name, path in _found(extension).items() if name not in SYSTEM_LIBRARIES}
    folder.mkdir(exist_ok=True)
    for name, path in taken.items():
        shutil.copyfile(path, folder / name)
        (folder / name).chmod(0o755)
        _run('patchelf', '--set-rpath', '$ORIGIN', str(folder / name))
    _run('patchelf', '--set-rpath', ':'.join(os.path.join('$ORIGIN', place).rstrip('/') for place in places), str(extension))
    return list(taken.values())


def glibc_of(symbols):
    """The N of the oldest glibc 2.N whose manylinux has the symbols of a version, such as 'GLIBCXX_3.4.30'; None where no
    manylinux is known to have them."""
    if symbols in GLIBC_OF_NAMED:
        return GLIBC_OF_NAMED[symbols]
    library, _, number = symbols.partition('_')
    if not re.fullmatch(r'\d+(\.\d+)*', number):
        return None
    version = tuple(map(int, number.split('.')))
    if library == 'GLIBC':
        return max(OLDEST_GLIBC, version[1])
    return next((glibc for newest, glibc in GLIBC_OF_RUNTIME.get(library, ()) if version <= newest), None)


def needed_symbols(path):
    """The versions of symbols that a library needs of the system's libraries."""
    needed, library = set(), None
    for line in _run('readelf', '--version-info', '--wide', str(path)).splitlines():
        if 'Rev:' in line:
            library = None  # What the library itself defines.
        file = re.search(r'File: (\S+)', line)
        library = file.group(1) if file else library
        name = re.search(r'Name: (\S+)', line)
        if name and library in SYSTEM_LIBRARIES:
            needed.add(name.group(1))
    return needed


def platform_tag(paths):
    """The oldest manylinux on which all of these libraries load; 'linux_...' where none is known to have what they need."""
    needed = set().union(*map(needed_symbols, paths))
    glibcs = [glibc_of(symbols) for symbols in needed]
    if None in glibcs:
        return f'linux_{platform.machine()}'
    return f'manylinux_2_{max(glibcs, default=OLDEST_GLIBC)}_{platform.machine()}'


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
    """METADATA of permafrost, from pyproject.toml's description of the project."""
    text = (ROOT / 'pyproject.toml').read_text(encoding='utf-8')
    description = re.search(r'^description = "(.*)"$', text, re.M).group(1)
    python = re.search(r'^requires-python = "(.*)"$', text, re.M).group(1)
    dependencies = re.findall(r'"([^"]+)"', re.search(r'^dependencies = \[(.*)\]$', text, re.M).group(1))
    lines = ['Metadata-Version: 2.1', 'Name: permafrost', f'Version: {version()}', f'Summary: {description}',
             f'Requires-Python: {python}', 'License-File: LICENSE', 'Description-Content-Type: text/markdown']
    lines += [f'Requires-Dist: {dependency}' for dependency in dependencies]
    # The functions that the extension calls are those of its own version's bundle.
    lines += ['Provides-Extra: delegates', f'Requires-Dist: permafrost-delegates=={version()}; extra == "delegates"']
    return '\n'.join(lines) + '\n\n' + (ROOT / 'README.md').read_text(encoding='utf-8')


def _metadata_of_delegates():
    return '\n'.join(['Metadata-Version: 2.1', 'Name: permafrost-delegates', f'Version: {version()}',
                      'Summary: The libraries of the delegates of permafrost: oneDNN and XNNPACK',
                      'License-File: LICENSE', f'Requires-Dist: permafrost=={version()}']) + '\n'


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
    taken = bundle(extension, staged / 'libraries', 'libraries', f'../{DELEGATES}')
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
    scripts = ''.join(f'{tool} = permafrost.command_line:main\n' for tool in tools())
    files[f'{info}/entry_points.txt'] = (f'[console_scripts]\n{scripts}'.encode(), False)
    return _finish('permafrost', metadata(), tag, files, taken, out)


def assemble_delegates(library, work, out):
    """Makes the wheel permafrost-delegates, which serves every version of Python.

    Args:
      library: the bundle, as Bazel built it.
      work: an empty folder to work in.
      out: the folder for the wheel.

    Returns:
      The path of the wheel.
    """
    staged = pathlib.Path(work) / DELEGATES
    staged.mkdir()
    (staged / '__init__.py').write_text('"""Libraries of the delegates of permafrost, which loads them itself."""\n',
                                        encoding='utf-8')
    shutil.copyfile(library, staged / BUNDLE)
    _run('strip', '--strip-unneeded', str(staged / BUNDLE))
    taken = bundle(staged / BUNDLE, staged, '')
    tag = f'py3-none-{platform_tag(sorted(staged.glob("*.so*")))}'
    files = {path.relative_to(work).as_posix(): (path.read_bytes(), '.so' in path.name) for path in sorted(staged.iterdir())}
    return _finish(DELEGATES, _metadata_of_delegates(), tag, files, taken, out)


def _finish(name, about, tag, files, taken, out):
    """Writes a wheel of `files`, with the licences of the libraries `taken` from the system."""
    info = f'{name}-{version()}.dist-info'
    files[f'{info}/METADATA'] = (about.encode(), False)
    files[f'{info}/WHEEL'] = (f'Wheel-Version: 1.0\nGenerator: permafrost\nRoot-Is-Purelib: false\nTag: {tag}\n'.encode(),
                              False)
    files[f'{info}/licenses/LICENSE'] = ((ROOT / 'LICENSE').read_bytes(), False)
    for package, path in sorted(licenses(taken).items()):
        files[f'{info}/licenses/{package}'] = (path.read_bytes(), False)
    wheel = pathlib.Path(out) / f'{name}-{version()}-{tag}.whl'
    _write(wheel, files)
    return wheel
