// Tests the opencl delegate on an OpenCL library that fails: lost devices, lack of memory, compilers that reject
// kernels, and wrong results. Runs always complete, with the answers of the reference kernels. Skipped without a
// device.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/opencl/opencl_delegate.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

constexpr char kLibrary[] = "tests/runtime_check/delegates/libraries/faulty_opencl.so";

template <typename F>
F Control(const char* name) {
  static void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<F>(dlsym(library, name));
}
void Fail(long from, cl_int code) { Control<void (*)(long, cl_int)>("faulty_opencl_fail")(from, code); }
void Corrupt(bool whether) { Control<void (*)(bool)>("faulty_opencl_corrupt")(whether); }
void Reject(const char* text) { Control<void (*)(const char*)>("faulty_opencl_reject")(text); }
void Hide(int what) { Control<void (*)(int)>("faulty_opencl_hide")(what); }
void Limit(unsigned long buffer, unsigned long memory) {
  Control<void (*)(unsigned long, unsigned long)>("faulty_opencl_limit")(buffer, memory);
}
long Calls() { return Control<long (*)()>("faulty_opencl_calls")(); }
long Sources() { return Control<long (*)()>("faulty_opencl_sources")(); }
long Objects() { return Control<long (*)()>("faulty_opencl_objects")(); }

// Blobs in memory.
class Blobs final : public DelegateBlobs {
 public:
  std::optional<std::string> Read(const std::string& key) override {
    const auto found = blobs.find(key);
    return found == blobs.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  void Write(const std::string& key, absl::string_view bytes) override { blobs[key] = std::string(bytes); }

  std::map<std::string, std::string> blobs;
};

// The parameter is OpenClOptions::copies_buffers.
class OpenClFaultsTest : public testing::TestWithParam<bool> {
 protected:
  OpenClFaultsTest() : graph_({1, 6, 5, 3}), input_(SomeFloats({1, 6, 5, 3}, 1)) {
    graph_.Convolution("conv", "x", {3, 3, 3, 4});
    graph_.Float("relu", "Relu", {"conv"});
    graph_.Float("softmax", "Softmax", {"relu"});
  }
  void SetUp() override {
    const auto made = MakeOpenClDelegate();
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
    const auto reference = MakeSession(nullptr, graph_.graph(), {"x"}, {"softmax"}, 1);
    ASSERT_TRUE(reference.ok()) << reference.status();
    const auto outputs = (*reference)->Run({input_});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    expected_ = ToVector((*outputs)[0]);
  }
  void TearDown() override {
    Fail(0, 0);
    Corrupt(false);
    Reject("");
    Hide(0);
    Limit(0, 0);
    EXPECT_EQ(Objects(), 0);
  }

  absl::StatusOr<std::shared_ptr<const Delegate>> Make(std::shared_ptr<DelegateBlobs> blobs = nullptr) const {
    OpenClOptions options;
    options.blobs = std::move(blobs);
    options.loader = kLibrary;
    options.copies_buffers = GetParam();
    return MakeOpenClDelegate(options);
  }

  // Runs the graph twice and compares the results. Returns the report.
  DelegationReport Run(const std::shared_ptr<const Delegate>& delegate) const {
    const auto session = MakeSession(AlwaysWorthwhile(delegate), graph_.graph(), {"x"}, {"softmax"}, 1);
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return {};
    for (int i = 0; i < 2; ++i) {
      const auto outputs = (*session)->Run({input_});
      EXPECT_TRUE(outputs.ok()) << outputs.status();
      if (!outputs.ok()) return {};
      EXPECT_THAT(ToVector((*outputs)[0]), Pointwise(FloatNear(1e-5f), expected_));
    }
    return (*session)->report().delegation;
  }

  ImageGraph graph_;
  const Tensor input_;
  std::vector<float> expected_;
};

// A device that is lost at any call, or has no more memory from then on.
TEST_P(OpenClFaultsTest, CompletesWhereverTheDeviceFails) {
  Fail(0, 0);
  {
    const auto delegate = Make();
    ASSERT_TRUE(delegate.ok()) << delegate.status();
    const DelegationReport report = Run(*delegate);
    EXPECT_EQ(report.failure, "");
    ASSERT_FALSE(report.partitions.empty());
  }
  const long calls = Calls();
  ASSERT_GT(calls, 50);
  int num_refused = 0, num_failed = 0;
  for (long from = 1; from <= calls; ++from) {
    const cl_int code = from % 2 == 0 ? CL_OUT_OF_RESOURCES : CL_DEVICE_NOT_AVAILABLE;
    SCOPED_TRACE(absl::StrCat("call ", from, " of ", calls, " fails with ", code));
    Fail(from, code);
    {
      const auto delegate = Make();
      if (!delegate.ok()) {
        EXPECT_NE(delegate.status().message(), "");
        continue;
      }
      const DelegationReport report = Run(*delegate);
      // The fault is always told, with the call that failed.
      bool is_told = absl::StrContains(report.failure, "OpenCL, cl");
      num_failed += is_told ? 1 : 0;
      for (const DelegationReport::Left& left : report.left) {
        if (absl::StrContains(left.reason, "OpenCL, cl")) is_told = true, ++num_refused;
      }
      EXPECT_TRUE(is_told) << report.failure;
    }
    ASSERT_EQ(Objects(), 0);
  }
  EXPECT_GT(num_refused, 0);
  EXPECT_GT(num_failed, 0);
}

TEST_P(OpenClFaultsTest, RefusesNodesWhoseKernelsComputeWrong) {
  Corrupt(true);
  const auto delegate = Make();
  ASSERT_TRUE(delegate.ok()) << delegate.status();
  const DelegationReport report = Run(*delegate);
  EXPECT_TRUE(report.partitions.empty());
  ASSERT_EQ(report.left.size(), 3u);
  for (const DelegationReport::Left& left : report.left) {
    EXPECT_THAT(left.reason, AllOf(HasSubstr("computes wrong on"), HasSubstr("is 12345, expected"))) << left.node;
  }
}

TEST_P(OpenClFaultsTest, RefusesNodesWhoseKernelsDoNotCompile) {
  Reject("__kernel void softmax(");
  const auto delegate = Make();
  ASSERT_TRUE(delegate.ok()) << delegate.status();
  const DelegationReport report = Run(*delegate);
  ASSERT_EQ(report.partitions.size(), 1u);
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_EQ(report.left[0].node, "softmax");
  EXPECT_THAT(report.left[0].reason, AllOf(HasSubstr("rejects a kernel"), HasSubstr("this driver has a bug")));
}

TEST_P(OpenClFaultsTest, SaysThatThereIsNoDriver) {
  for (const int hidden : {1, 2, 3}) {
    Hide(hidden);
    const absl::Status status = Make().status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << hidden << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(hidden == 1   ? "OpenCL, clGetPlatformIDs: no driver is installed (-1001)"
                          : hidden == 2 ? "found 0 OpenCL drivers, but no available device with a compiler"
                                        : " OpenCL drivers, but no available device with a compiler"));
  }
}

// Models larger than the memory of the device, and weights larger than its largest buffer.
TEST_P(OpenClFaultsTest, LeavesLargeModelsToTheKernels) {
  const auto run = [&](unsigned long buffer, unsigned long memory) {
    Limit(buffer, memory);
    const auto delegate = Make();
    EXPECT_TRUE(delegate.ok()) << delegate.status();
    return delegate.ok() ? Run(*delegate) : DelegationReport();
  };
  // The convolution needs 2560 bytes for its table and weights.
  DelegationReport report = run(512, 0);
  ASSERT_FALSE(report.left.empty());
  EXPECT_EQ(report.left[0].node, "conv");
  EXPECT_THAT(report.left[0].reason, HasSubstr(" bytes exceeds the limit of "));
  report = run(0, 64);
  EXPECT_TRUE(report.partitions.empty());
  ASSERT_EQ(report.left.size(), 3u);
  EXPECT_THAT(report.left[0].reason, AllOf(HasSubstr("needs "), HasSubstr(" has 64")));
  report = run(0, 0);
  EXPECT_EQ(report.partitions.size(), 1u);
}

// Programs are compiled once; what the driver does not accept is compiled again.
TEST_P(OpenClFaultsTest, KeepsPrograms) {
  const auto blobs = std::make_shared<Blobs>();
  const auto sources_of_run = [&] {
    const long before = Sources();
    const auto delegate = Make(blobs);
    EXPECT_TRUE(delegate.ok()) << delegate.status();
    const DelegationReport report = Run(*delegate);
    EXPECT_EQ(report.partitions.size(), 1u);
    EXPECT_EQ(report.failure, "");
    return Sources() - before;
  };
  const long compiled = sources_of_run();
  ASSERT_GT(compiled, 1);
  // A blob for each program, and one for the checks.
  EXPECT_EQ(blobs->blobs.size(), static_cast<size_t>(compiled) + 1);
  EXPECT_EQ(sources_of_run(), 0);
  const auto kept = blobs->blobs;
  for (const std::string& damaged : {std::string(), std::string("x"), std::string(5000, 'y')}) {
    for (auto& [key, bytes] : blobs->blobs) bytes = damaged;
    EXPECT_EQ(sources_of_run(), compiled) << damaged.size();
    EXPECT_EQ(sources_of_run(), 0);
  }
  // A device that computes wrong is found if the kept checks are those of another driver.
  blobs->blobs = kept;
  for (auto& [key, bytes] : blobs->blobs) {
    if (absl::StartsWith(key, "opencl checks")) bytes.clear();
  }
  Corrupt(true);
  const auto delegate = Make(blobs);
  ASSERT_TRUE(delegate.ok()) << delegate.status();
  EXPECT_TRUE(Run(*delegate).partitions.empty());
}

// A call that fails while programs are read or stored is no fault of the run.
TEST_P(OpenClFaultsTest, CompletesWhereverTheDeviceFailsWithPrograms) {
  const auto full = std::make_shared<Blobs>();
  const auto make = Make(full);
  ASSERT_TRUE(make.ok()) << make.status();
  Run(*make);
  Fail(0, 0);
  {
    const auto delegate = Make(std::make_shared<Blobs>(*full));
    ASSERT_TRUE(delegate.ok()) << delegate.status();
    Run(*delegate);
  }
  const long calls = Calls();
  for (long from = 1; from <= calls; from += 7) {
    SCOPED_TRACE(absl::StrCat("call ", from, " of ", calls));
    Fail(from, CL_OUT_OF_RESOURCES);
    const auto delegate = Make(std::make_shared<Blobs>(*full));
    if (delegate.ok()) Run(*delegate);
  }
}

INSTANTIATE_TEST_SUITE_P(, OpenClFaultsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Copies" : "SharesMemory"; });

}  // namespace
}  // namespace permafrost
