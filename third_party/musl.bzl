"""musl: the distribution's C library for statically linked programs, for each supported processor.

Programs are compiled against the headers of glibc, with which musl's binary interface is compatible, and linked by
musl_binary of tests/bench/size. If the library is not installed, only builds that need it fail. script/install_deps
installs that of the machine, script/install_deps --aarch64 the other.
"""

# By value of --cpu. The first is used for any other value.
_FOLDERS = {
    "k8": "/usr/lib/x86_64-linux-musl",
    "aarch64": "/usr/local/aarch64-linux-gnu/musl",
}

_FILES = ["crt1.o", "crti.o", "crtn.o", "libc.a"]

_SETTING = """
config_setting(
    name = "{cpu}",
    values = {{"cpu": "{cpu}"}},
)
"""

_FILE = """
alias(
    name = "{file}",
    actual = select({choices}),
)
"""

def _musl_impl(repository_ctx):
    text = 'package(default_visibility = ["//visibility:public"])\n'
    for cpu, folder in _FOLDERS.items():
        repository_ctx.symlink(folder, cpu + "_files")
        text += _SETTING.format(cpu = cpu)
    for file in _FILES:
        choices = {":" + cpu: "%s_files/%s" % (cpu, file) for cpu in _FOLDERS}
        choices["//conditions:default"] = choices.values()[0]
        text += _FILE.format(file = file, choices = repr(choices))
    repository_ctx.file("BUILD.bazel", text)

musl = repository_rule(
    implementation = _musl_impl,
    configure = True,
)
