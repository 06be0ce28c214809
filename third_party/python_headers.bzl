"""The headers of the Python version that the extension is built for.

--repo_env=PYTHON_BIN_PATH=... selects the interpreter. The default is that of the distribution, which also runs the
tests.
"""

_BUILD = """package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)
"""

def _python_headers_impl(repository_ctx):
    interpreter = repository_ctx.os.environ.get("PYTHON_BIN_PATH", "/usr/bin/python3")
    result = repository_ctx.execute([
        interpreter,
        "-c",
        "import sysconfig; print(sysconfig.get_path('include'))",
    ])
    folder = result.stdout.strip()
    if result.return_code != 0 or not repository_ctx.path(folder + "/Python.h").exists:
        fail("found no Python.h of %s in '%s'; install its headers (script/install_deps installs the distribution's)" %
             (interpreter, folder))
    repository_ctx.symlink(folder, "include")
    repository_ctx.file("BUILD.bazel", _BUILD)

python_headers = repository_rule(
    implementation = _python_headers_impl,
    configure = True,
    environ = ["PYTHON_BIN_PATH"],
)
