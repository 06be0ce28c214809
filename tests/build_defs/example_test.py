"""Builds the example workspace from a copy in another place and runs its tests, the app among them.

The selective runtime is compiled as a user compiles it. The tools, which users compile once, are those that this test was
built with: the copy's Permafrost is a folder of links to the checkout, except for the package of the tools.

    example_test.py TOOL...
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


def link_with_tools(folder, tools):
    """Fills `folder` with links to the checkout; its package //tools has only `tools`."""
    (folder / 'tools').mkdir(parents=True)
    for entry in CHECKOUT.iterdir():
        if entry.name not in ('tools', 'user.bazelrc', '.git') and not entry.name.startswith('bazel-'):
            (folder / entry.name).symlink_to(entry)
    for entry in (CHECKOUT / 'tools').iterdir():
        if entry.is_dir():
            (folder / 'tools' / entry.name).symlink_to(entry)
    for tool in tools:
        shutil.copy(tool, folder / 'tools')
    names = ', '.join(f'"{pathlib.Path(tool).name}"' for tool in tools)
    (folder / 'tools/BUILD.bazel').write_text(f'exports_files([{names}], visibility = ["//visibility:public"])\n')


def main():
    # Independent of the test's folder, because the server requires short paths.
    folder = pathlib.Path(tempfile.mkdtemp(prefix='pf_example_'))
    environment = dict(os.environ, HOME=str(folder), USER='test')
    bazel = ['bazel', f'--output_user_root={folder}/bazel', '--host_jvm_args=-Xmx600m']
    try:
        link_with_tools(folder / 'permafrost', sys.argv[1:])
        app = folder / 'app'
        shutil.copytree(CHECKOUT / 'docs/examples/bazel', app)
        workspace = (app / 'WORKSPACE').read_text()
        old = 'PERMAFROST = "../../.."'
        assert old in workspace
        (app / 'WORKSPACE').write_text(workspace.replace(old, f'PERMAFROST = "{folder}/permafrost"'))
        result = subprocess.run([*bazel, 'test', '--noshow_progress', '--symlink_prefix=/', '//...'], cwd=app,
                                env=environment, check=False, capture_output=True, text=True, errors='replace')
        print(result.stdout, result.stderr)
        for test in ('//:app_test', '//:small_test'):
            assert any(line.startswith(test) and ' PASSED ' in line for line in result.stdout.splitlines()), test
        assert result.returncode == 0, result.returncode
    finally:
        subprocess.run([*bazel, 'shutdown'], cwd=app, env=environment, check=False)
        subprocess.run(['chmod', '-R', 'u+w', str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
