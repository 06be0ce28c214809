"""Declares a fuzz target as a test and as a libFuzzer program."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_test")

def fuzz_target(name, iterations, deps, data = [], most_memory = None):
    """Declares the test <target>_fuzz_test, and <target>_fuzzer for --config=fuzz.

    The source is <target>_fuzz.cc, which defines LLVMFuzzerTestOneInput, and the corpus is the folder corpus/<target>.

    Args:
      name: the name of the test.
      iterations: the number of mutations in a test run, which then takes seconds.
      deps: the dependencies of the source.
      data: the files that the target reads, besides the corpus.
      most_memory: the memory that an input may take: bytes, and a factor of its size.
    """
    target = name[:-len("_fuzz_test")]
    cc_test(
        name = name,
        size = "medium",
        srcs = [target + "_fuzz.cc"],
        data = native.glob(["corpus/%s/*" % target]) + data,
        env = dict(
            {"FUZZ_MOST_MEMORY": "%d,%d" % most_memory} if most_memory else {},
            FUZZ_CORPUS = "tests/fuzz/corpus/" + target,
            FUZZ_ITERATIONS = str(iterations),
        ),
        deps = [":fuzz_test_main"] + deps,
    )
    cc_binary(
        name = target + "_fuzzer",
        testonly = True,
        srcs = [target + "_fuzz.cc"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps,
    )
