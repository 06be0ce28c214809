"""Programs that are linked statically with musl, whose part is a few kilobytes; that of glibc is at least 690."""

load("@rules_cc//cc:defs.bzl", "cc_binary")

_NO_UNWINDING = "//tests/bench/size:no_unwinding.lds"

_MUSL = ["@musl//:crt1.o", "@musl//:crti.o", "@musl//:libc.a", "@musl//:crtn.o"]

def musl_binary(name, deps, linkopts = [], **kwargs):
    """A cc_binary without exceptions that is linked with musl, stripped.

    Args:
      name: of the program.
      deps: as of any cc_binary; none may throw.
      linkopts: as of any cc_binary.
      **kwargs: as of any cc_binary.
    """
    cc_binary(
        name = name,
        additional_linker_inputs = _MUSL + [_NO_UNWINDING],
        features = ["-supports_start_end_lib"],  # Supported only by gold.
        linkopts = [
            "-fuse-ld=bfd",  # The only linker that accepts a script in addition to its own.
            "-Wl,-T,$(location %s)" % _NO_UNWINDING,
            "-static",
            "-no-pie",
            "-nostdlib",
            "-nostartfiles",
            "$(location @musl//:crt1.o)",
            "$(location @musl//:crti.o)",
            "-Wl,--start-group",
            "-l:libstdc++.a",
            "-l:libgcc.a",
            "-l:libgcc_eh.a",
            "$(location @musl//:libc.a)",
            "-Wl,--end-group",
            "$(location @musl//:crtn.o)",
            "-Wl,--gc-sections",
            "-Wl,--build-id=none",
            "-Wl,-z,norelro",
            "-Wl,-s",
        ] + linkopts,
        deps = deps + [
            "//selective:musl",
            "//selective:no_exceptions",
            "//selective:small_malloc",
        ],
        **kwargs
    )
