// Tests of delegates from shared libraries: the example of the guide, and libraries with one fault each.
#include "runtime_check/delegates/external/external_delegate.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/custom_ops/custom_ops.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kExample[] = "docs/examples/add_relu_delegate.so";

std::string Faulty(const std::string& fault) {
  return absl::StrCat("tests/runtime_check/delegates/libraries/delegate_", fault, ".so");
}

std::shared_ptr<const Delegate> Load(const std::string& path) {
  auto delegate = LoadExternalDelegate(path);
  EXPECT_TRUE(delegate.ok()) << delegate.status();
  return delegate.ok() ? *std::move(delegate) : nullptr;
}

std::unique_ptr<Session> Make(const SmallGraph& small, const std::vector<std::string>& fetches,
                              std::shared_ptr<const Delegate> delegate) {
  SessionOptions options;
  options.delegate = std::move(delegate);
  auto session = Session::Create(small.graph(), {"x"}, fetches, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

// 2 relu(x + c), in three nodes that the example supports and two that it does not.
void Fill(SmallGraph* small) {
  small->Placeholder("x", DType::kFloat, {kUnknownDim});
  small->Const("c", Floats({3}, {-1, 0, 1}));
  small->Const("one", Floats({}, {1}));
  small->Float("sum", "AddV2", {"x", "c"});
  small->Float("relu", "Relu", {"sum"});
  small->Float("twice", "Add", {"relu", "relu"});
  small->Float("less", "Sub", {"twice", "one"});
  small->Float("more", "AddV2", {"less", "one"});
}

void CheckExample(const std::string& path) {
  SmallGraph small;
  Fill(&small);
  const auto session = Make(small, {"more", "relu"}, Load(path));
  for (int round = 0; round < 2; ++round) {
    const auto outputs = session->Run({Floats({3}, {0, 2, 3})});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(0, 4, 8));
    EXPECT_THAT(ToVector((*outputs)[1]), ElementsAre(0, 2, 4));
  }
  const DelegationReport& report = session->report().delegation;
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_EQ(report.partitions[0].delegate, "add_relu");
  EXPECT_THAT(report.partitions[0].nodes, ElementsAre("sum", "relu", "twice"));
  EXPECT_THAT(report.partitions[0].pieces,
              ElementsAre("sum: add in a plain loop", "relu: relu in a plain loop", "twice: add in a plain loop"));
  EXPECT_EQ(report.partitions[0].scratch_bytes, 3 * 64 + 64) << "of a constant none";
  ASSERT_THAT(report.left, SizeIs(2));
  EXPECT_EQ(report.left[0].reason, "runs additions and Relu only");
  EXPECT_EQ(report.left[1].reason, "does not broadcast");
}

TEST(ExternalDelegateTest, TheExampleRuns) { CheckExample(kExample); }

TEST(ExternalDelegateTest, ALibraryOfVersion1_0Runs) { CheckExample("docs/examples/add_relu_delegate_1_0.so"); }

// Returns the command between two code fences of a page that makes `output`.
std::string DocumentedCommand(const std::string& page, const std::string& output) {
  std::ifstream file(page);
  std::stringstream text;
  text << file.rdbuf();
  for (const absl::string_view line : absl::StrSplit(text.str(), '\n')) {
    if (absl::StartsWith(line, "cc ") && absl::StrContains(line, absl::StrCat("-o ", output, " "))) {
      return std::string(line);
    }
  }
  return "";
}

TEST(ExternalDelegateTest, TheDocumentedCommandBuildsTheExample) {
  const std::string command = DocumentedCommand("docs/writing_a_delegate.md", "add_relu_delegate.so");
  ASSERT_THAT(command, HasSubstr("-o add_relu_delegate.so "));
  const std::string path = absl::StrCat(testing::TempDir(), "/add_relu_delegate.so");
  ASSERT_EQ(std::system(absl::StrReplaceAll(command, {{"-o add_relu_delegate.so", absl::StrCat("-o ", path)}}).c_str()),
            0)
      << command;
  CheckExample(path);
}

TEST(ExternalDelegateTest, TheDocumentedCommandBuildsTheDsp) {
  const std::string command = DocumentedCommand("docs/writing_a_delegate.md", "dsp_int8.so");
  ASSERT_THAT(command, HasSubstr("-o dsp_int8.so "));
  const std::string path = absl::StrCat(testing::TempDir(), "/dsp_int8.so");
  ASSERT_EQ(std::system(absl::StrReplaceAll(command, {{"-o dsp_int8.so", absl::StrCat("-o ", path)}}).c_str()), 0)
      << command;
  EXPECT_EQ(Load(path)->name(), "dsp_int8");
}

TEST(ExternalDelegateTest, TheDocumentedCommandBuildsTheCustomOp) {
  const std::string command = DocumentedCommand("docs/writing_a_custom_op.md", "leaky_clip.so");
  ASSERT_THAT(command, HasSubstr("-o leaky_clip.so "));
  const std::string path = absl::StrCat(testing::TempDir(), "/leaky_clip.so");
  ASSERT_EQ(std::system(absl::StrReplaceAll(command, {{"-o leaky_clip.so", absl::StrCat("-o ", path)}}).c_str()), 0)
      << command;
  const auto ops = LoadCustomOps({path});
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_NE(ops->kernels(Op::Named("LeakyClip")), nullptr);
}

TEST(ExternalDelegateTest, StaysLoadedAsLongAsItIsNeeded) {
  SmallGraph small;
  Fill(&small);
  auto delegate = Load(kExample);
  auto session = Make(small, {"more"}, std::move(delegate));
  const auto again = Load(kExample);
  ASSERT_TRUE(session->Run({Floats({3}, {0, 2, 3})}).ok());
  session.reset();
  EXPECT_THAT(ToVector((*Make(small, {"more"}, again)->Run({Floats({3}, {0, 2, 3})}))[0]), ElementsAre(0, 4, 8));
}

TEST(ExternalDelegateTest, RefusesWhatIsNoDelegate) {
  const auto check = [](const std::string& path, absl::StatusCode code, const std::string& message) {
    const absl::Status status = LoadExternalDelegate(path).status();
    EXPECT_EQ(status.code(), code) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  check("", absl::StatusCode::kInvalidArgument, "the path of a shared library is empty");
  check("no/such.so", absl::StatusCode::kNotFound, "'no/such.so': no such file");
  check("docs", absl::StatusCode::kInvalidArgument, "'docs' cannot be loaded as a shared library: ");
  check("docs/writing_a_delegate.md", absl::StatusCode::kInvalidArgument, "cannot be loaded as a shared library: ");
  check(Faulty("HAS_NO_ENTRY"), absl::StatusCode::kInvalidArgument, ".so' does not export 'permafrost_delegate_entry'");
  check(Faulty("IS_OF_ANOTHER_MAJOR_VERSION"), absl::StatusCode::kFailedPrecondition,
        ".so': is built for version 2.7 of the interface, expected 1.x; rebuild it with the header of this version");
  check(Faulty("SAYS_NO_VERSION"), absl::StatusCode::kFailedPrecondition, "is built for version 0.0");
  check(Faulty("FAILS"), absl::StatusCode::kInternal,
        "FAILS.so': permafrost_delegate_entry failed: the device does not answer");
  check(Faulty("HAS_NO_NAME"), absl::StatusCode::kInternal, "permafrost_delegate_entry does not set 'name'");
  check(Faulty("HAS_NO_SUPPORTS"), absl::StatusCode::kInternal, "permafrost_delegate_entry does not set 'supports'");
  check(Faulty("HAS_NO_COMPILE"), absl::StatusCode::kInternal, "permafrost_delegate_entry does not set 'compile'");
}

void Negations(SmallGraph* small) {
  small->Placeholder("x", DType::kFloat, {2});
  small->Float("a", "Neg", {"x"});
  small->Float("b", "Relu", {"a"});
}

DelegationReport ReportOf(const std::string& fault, const std::vector<std::string>& fetches = {"b"}) {
  SmallGraph small;
  Negations(&small);
  const auto session = Make(small, fetches, Load(Faulty(fault)));
  const auto outputs = session->Run({Floats({2}, {1, -2})});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(outputs.ok() ? ToVector((*outputs)[0]) : std::vector<float>(), ElementsAre(0, 2));
  return session->report().delegation;
}

TEST(ExternalDelegateTest, FaultsEndWithTheReferenceKernels) {
  DelegationReport report = ReportOf("FAILS_HALF_WAY");
  EXPECT_THAT(report.partitions, IsEmpty());
  EXPECT_THAT(report.failure, EndsWith("node 'a...a#0' (faulty): the device is gone"));
  report = ReportOf("GIVES_NOTHING_TO_RUN");
  EXPECT_THAT(report.partitions, IsEmpty());
  EXPECT_EQ(report.left[0].reason,
            "the delegate failed to compile its partition: the library returns no function to run");
  report = ReportOf("ASKS_FOR_TOO_MUCH");
  EXPECT_THAT(report.left[0].reason, HasSubstr("the library requests 18446744073709551615 bytes"));
}

TEST(ExternalDelegateTest, ReasonsAreTextsWhateverTheLibraryWrites) {
  EXPECT_EQ(ReportOf("GIVES_NO_REASON").left[0].reason, "the library gives no reason (result 1)");
  EXPECT_EQ(ReportOf("FORGETS_THE_END_OF_TEXTS").left[0].reason, std::string(1023, 'x'));
}

TEST(ExternalDelegateTest, ANewerMinorVersionServes) {
  EXPECT_THAT(ReportOf("IS_OF_A_NEWER_MINOR_VERSION").partitions, SizeIs(1));
}

TEST(ExternalDelegateTest, LibrariesReadAttributesAndConstants) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2, 3});
  small.Const("c", Floats({3}, {2.5f, 0, 0}));
  Node* node = small.Float("node", "AddV2", {"x", "c"});
  const std::vector<std::pair<std::string, AttrValue>> attrs = {
      {"int", AttrValue::Int(-5)},
      {"float", AttrValue::Float(0.5f)},
      {"bool", AttrValue::Bool(true)},
      {"shape", AttrValue::OfShape(Shape({7, kUnknownDim, 9}))},
      {"any_shape", AttrValue::OfShape(Shape::UnknownRank())},
      {"string", AttrValue::String("SAME")},
      {"long", AttrValue::String("0123456789")},
      {"ints", AttrValue::IntList({1, -2, 3})},
      {"floats", AttrValue::FloatList({0.25f})},
      {"types", AttrValue::TypeList({DType::kInt64, DType::kHalf})},
      {"strings", AttrValue::StringList({"a", "bc"})}};
  for (const auto& [key, value] : attrs) node->SetAttr(key, value);
  const auto session = Make(small, {"node"}, Load("tests/runtime_check/delegates/libraries/attribute_reader.so"));
  ASSERT_TRUE(session->Plan({Shape({2, 3})}).ok());
  ASSERT_THAT(session->report().delegation.left, SizeIs(1));
  EXPECT_EQ(session->report().delegation.left[0].reason,
            "node AddV2: 1/2/24 1/1/12=2.5,aligned:1 1/2/24; int 0 -5; float 0 0.5; bool 0 1; type 0 1; "
            "shape 0 3 7 -1; any 0 -1; string 0 4 SAME; long 0 10 01234567; size 0 10; ints 0 3 1 -2; floats 0 1 0.25; "
            "types 0 2 9 19; strings 0 2 0 bc 3; missing 3 3; wrong 4 4");
}

}  // namespace
}  // namespace permafrost
