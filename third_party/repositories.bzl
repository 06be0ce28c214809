"""External repositories. Nothing is downloaded: each is a folder of the distribution, installed by script/install_deps, or
a folder of third_party/."""

load(":cross_tools.bzl", "cross_tools")
load(":musl.bzl", "musl")
load(":python_headers.bzl", "python_headers")

# The libraries, each with the folder of its headers, so that a missing package gives an error that names the folder. None: the
# headers have no folder of their own. A repository of all of /usr/include would also be searched for the headers of
# other libraries.
LIBRARIES = {
    "absl": "/usr/include/absl",
    "benchmark": "/usr/include/benchmark",
    "eigen": "/usr/include/eigen3",
    "flatbuffers": "/usr/include/flatbuffers",
    "gtest": "/usr/include/gtest",
    "jpeg": None,
    "leveldb": "/usr/include/leveldb",
    "onednn": "/usr/include/oneapi/dnnl",
    "opencl_headers": "/usr/include/CL",
    "png": None,
    "protobuf": "/usr/include/google/protobuf",
    "pybind11": "/usr/include/pybind11",
    "snappy": None,
    "sodium": "/usr/include/sodium",
    "xnnpack": None,
    "zlib": None,
    "zstd": None,
}

# A folder of the checkout for a repository that has no files.
NO_FILES = "third_party/rules_cc"

def permafrost_tools():
    """Declares the repositories that are found by looking at the machine."""
    python_headers(name = "python")
    cross_tools(name = "cross_tools")

    # A C library for small programs (tests/bench/size).
    musl(name = "musl")

def permafrost_repositories(checkout = "."):
    """Declares all repositories that Permafrost is built with.

    Args:
      checkout: the folder of Permafrost, relative to the root of the calling workspace.
    """

    # Repositories that Bazel's own rules load.

    native.local_repository(
        name = "rules_cc",
        path = checkout + "/third_party/rules_cc",
    )

    native.local_repository(
        name = "rules_java",
        path = "/usr/share/bazel/rules/java",
    )

    native.local_repository(
        name = "rules_proto",
        path = "/usr/share/bazel/rules/proto",
    )

    native.local_repository(
        name = "bazel_skylib",
        path = "/usr/share/bazel/tools/skylib",
    )

    native.new_local_repository(
        name = "remote_coverage_tools",
        build_file = "@permafrost//third_party:coverage.BUILD",
        path = checkout + "/" + NO_FILES,
    )

    for name, folder in LIBRARIES.items():
        native.new_local_repository(
            name = name,
            build_file = "@permafrost//third_party:%s.BUILD" % name,
            path = folder or checkout + "/" + NO_FILES,
        )

    permafrost_tools()
