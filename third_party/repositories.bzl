"""External repositories. Nothing is downloaded: each is a folder of the distribution, installed by script/install_deps, or
a folder of third_party/."""

load(":cross_tools.bzl", "cross_tools")
load(":musl.bzl", "musl")
load(":python_headers.bzl", "python_headers")

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
        path = checkout + "/third_party/rules_cc",
    )

    # Libraries. Each path is the library's own header folder, if it has one, so that a missing package gives an error
    # that names the folder.

    native.new_local_repository(
        name = "absl",
        build_file = "@permafrost//third_party:absl.BUILD",
        path = "/usr/include/absl",
    )

    native.new_local_repository(
        name = "benchmark",
        build_file = "@permafrost//third_party:benchmark.BUILD",
        path = "/usr/include/benchmark",
    )

    native.new_local_repository(
        name = "eigen",
        build_file = "@permafrost//third_party:eigen.BUILD",
        path = "/usr/include/eigen3",
    )

    native.new_local_repository(
        name = "flatbuffers",
        build_file = "@permafrost//third_party:flatbuffers.BUILD",
        path = "/usr/include/flatbuffers",
    )

    native.new_local_repository(
        name = "gtest",
        build_file = "@permafrost//third_party:gtest.BUILD",
        path = "/usr/include/gtest",
    )

    native.new_local_repository(
        name = "leveldb",
        build_file = "@permafrost//third_party:leveldb.BUILD",
        path = "/usr/include/leveldb",
    )

    native.new_local_repository(
        name = "onednn",
        build_file = "@permafrost//third_party:onednn.BUILD",
        path = "/usr/include/oneapi/dnnl",
    )

    # A folder of headers that are included as <CL/...>, so that a missing package gives an error that names it.
    native.new_local_repository(
        name = "opencl_headers",
        build_file = "@permafrost//third_party:opencl_headers.BUILD",
        path = "/usr/include/CL",
    )

    native.new_local_repository(
        name = "protobuf",
        build_file = "@permafrost//third_party:protobuf.BUILD",
        path = "/usr/include/google/protobuf",
    )

    native.new_local_repository(
        name = "pybind11",
        build_file = "@permafrost//third_party:pybind11.BUILD",
        path = "/usr/include/pybind11",
    )

    python_headers(name = "python")

    native.new_local_repository(
        name = "snappy",
        build_file = "@permafrost//third_party:snappy.BUILD",
        path = checkout + "/third_party/rules_cc",
    )

    native.new_local_repository(
        name = "sodium",
        build_file = "@permafrost//third_party:sodium.BUILD",
        path = "/usr/include/sodium",
    )

    cross_tools(name = "cross_tools")

    # A C library for small programs (tests/bench/size).
    musl(name = "musl")

    # The headers of these libraries have no folder of their own. A repository of all of /usr/include would also be
    # searched for the headers of other libraries.

    native.new_local_repository(
        name = "jpeg",
        build_file = "@permafrost//third_party:jpeg.BUILD",
        path = checkout + "/third_party/rules_cc",
    )

    native.new_local_repository(
        name = "png",
        build_file = "@permafrost//third_party:png.BUILD",
        path = checkout + "/third_party/rules_cc",
    )

    native.new_local_repository(
        name = "xnnpack",
        build_file = "@permafrost//third_party:xnnpack.BUILD",
        path = checkout + "/third_party/rules_cc",
    )

    native.new_local_repository(
        name = "zstd",
        build_file = "@permafrost//third_party:zstd.BUILD",
        path = checkout + "/third_party/rules_cc",
    )

    native.new_local_repository(
        name = "zlib",
        build_file = "@permafrost//third_party:zlib.BUILD",
        path = checkout + "/third_party/rules_cc",
    )
