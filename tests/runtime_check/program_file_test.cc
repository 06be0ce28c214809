// Tests of program files: what they express, equality with sessions, and damaged files.
#include "runtime_check/program_file/program_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/wire.h"
#include "runtime_check/program_file/program_session.h"
#include "runtime_check/program_file/program_signature.h"
#include "runtime_check/program_file/program_writer.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

// relu(x + c), reshaped, added to itself; and the shape of x.
std::unique_ptr<SmallGraph> Example() {
  auto graph = std::make_unique<SmallGraph>();
  SmallGraph& made = *graph;
  made.Placeholder("x", DType::kFloat, Shape{kUnknownDim, 2});
  made.Const("c", Floats({2}, {1, -1}));
  made.Float("sum", "AddV2", {"x", "c"});
  made.Float("relu", "Relu", {"sum"});
  made.Const("size", Tensor::FromVector<int32_t>({1}, {2}));
  made.Add("flat", "Reshape", {"relu", "size"},
           {{"T", AttrValue::Type(DType::kFloat)}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  made.Float("y", "AddV2", {"flat", "flat"});
  made.Add("shape", "Shape", {"x"},
           {{"T", AttrValue::Type(DType::kFloat)}, {"out_type", AttrValue::Type(DType::kInt32)}});
  return graph;
}

std::string Written(const Graph& graph, const std::vector<std::string>& feeds,
                    const std::vector<std::string>& fetches) {
  const absl::StatusOr<std::string> bytes = MakeProgramFile(graph, feeds, fetches);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or("");
}

absl::Status StatusOf(const std::string& bytes, const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches) {
  const absl::StatusOr<std::unique_ptr<ProgramFile>> program = ProgramFile::Read(bytes, nullptr);
  if (!program.ok()) return program.status();
  return ProgramSession::Create(**program, feeds, fetches).status();
}

TEST(ProgramFileTest, ComputesWhatASessionComputes) {
  const std::unique_ptr<SmallGraph> example = Example();
  const std::vector<std::string> feeds = {"x"}, fetches = {"y", "shape", "relu", "c"};
  const std::string bytes = Written(example->graph(), feeds, fetches);
  EXPECT_EQ(bytes, Written(example->graph(), feeds, fetches));
  const auto program = ProgramFile::Read(bytes, nullptr).value();
  // The reshape shares memory, and the shape is known.
  EXPECT_EQ(program->steps().size(), 3u);
  const auto session = ProgramSession::Create(*program, feeds, fetches).value();
  const auto reference = Session::Create(example->graph(), feeds, fetches).value();
  for (const float scale : {1.0f, -3.0f, 0.5f}) {
    const Tensor x = Floats({1, 2}, {2 * scale, 5 * scale});
    EXPECT_EQ(session->Run({x}).value(), reference->Run({x}).value());
  }
  EXPECT_EQ(session->Inputs()[0].shape, (Shape{1, 2}));
  EXPECT_EQ(session->Plan({Shape{1, 2}}).value()[0].shape, Shape{2});
  std::vector<float> y(2), relu(2), c(2);
  std::vector<int32_t> shape(2);
  const auto span = [](auto& values) {
    return absl::MakeSpan(reinterpret_cast<char*>(values.data()), values.size() * sizeof(values[0]));
  };
  EXPECT_TRUE(session->RunInto({Floats({1, 2}, {2, 5})}, {span(y), span(shape), span(relu), span(c)}).ok());
  EXPECT_EQ(y, (std::vector<float>{6, 8}));
  EXPECT_EQ(shape, (std::vector<int32_t>{1, 2}));
}

TEST(ProgramFileTest, ReportsWrongCalls) {
  const std::unique_ptr<SmallGraph> example = Example();
  const std::string bytes = Written(example->graph(), {"x"}, {"y"});
  const auto program = ProgramFile::Read(bytes, nullptr).value();
  const auto refused = [&](const std::vector<std::string>& feeds, const std::vector<std::string>& fetches) {
    return std::string(ProgramSession::Create(*program, feeds, fetches).status().message());
  };
  EXPECT_EQ(refused({"z"}, {"y"}), "input 'z': the program has 'x'");
  EXPECT_EQ(refused({"x"}, {"relu"}), "output 'relu': the program has 'y'");
  EXPECT_EQ(refused({}, {"y"}), "found 0 inputs, expected 1");
  EXPECT_EQ(refused({"x"}, {"y", "y"}), "output 'y' is named twice");
  const auto session = ProgramSession::Create(*program, {"x"}, {"y"}).value();
  EXPECT_EQ(session->Run({Floats({2, 2}, {1, 2, 3, 4})}).status().message(),
            "input 'x': found shape [2,2], expected [1,2]");
  EXPECT_EQ(session->Run({Tensor::FromVector<int32_t>({1, 2}, {1, 2})}).status().message(),
            "input 'x': found type int32, expected float");
  SessionOptions options;
  options.memory_limit = 10;
  EXPECT_EQ(ProgramSession::Create(*program, {"x"}, {"y"}, options).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ProgramFileTest, RefusesWhatItCannotExpress) {
  SmallGraph made;
  made.Placeholder("x", DType::kFloat, Shape{kUnknownDim, kUnknownDim});
  made.Float("y", "Relu", {"x"});
  EXPECT_EQ(MakeProgramFile(made.graph(), {"x"}, {"y"}).status().code(), absl::StatusCode::kInvalidArgument);
  SmallGraph values;
  values.Placeholder("x", DType::kFloat, Shape{3});
  values.Add("y", "Where", {"x"}, {{"T", AttrValue::Type(DType::kFloat)}});
  EXPECT_EQ(MakeProgramFile(values.graph(), {"x"}, {"y"}).status().message(),
            "node 'y' (Where): a shape that is known only during the run, which a program file cannot express");
}

TEST(ProgramFileTest, RefusesTruncatedFiles) {
  const std::unique_ptr<SmallGraph> example = Example();
  const std::string bytes = Written(example->graph(), {"x"}, {"y", "c"});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const absl::Status status = StatusOf(bytes.substr(0, size), {"x"}, {"y", "c"});
    // Only zeros after the last constant may be missing.
    if (size > bytes.size() - kProgramAlignment) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
  }
}

// A file made by hand, with one step that adds the float tensors 0 and 1 to 2.
struct HandMade {
  struct Entry {
    int dtype = 1;
    std::vector<int64_t> dims = {4};
    int place = 1;
    uint64_t offset = 0;
  };
  uint64_t arena = 128;
  std::vector<Entry> tensors = {{1, {4}, 3, 0}, {1, {4}, 1, 0}, {1, {4}, 1, 64}};
  std::vector<uint64_t> inputs = {0, 1}, outputs = {2};
  std::string op = "AddV2";
  DType type = DType::kFloat;

  std::string Bytes() const {
    std::string directory;
    AppendVarintField(1, arena, &directory);
    for (const Entry& tensor : tensors) {
      std::string entry;
      AppendVarintField(1, static_cast<uint64_t>(tensor.dtype), &entry);
      for (const int64_t dim : tensor.dims) AppendVarintField(2, static_cast<uint64_t>(dim), &entry);
      AppendVarintField(3, static_cast<uint64_t>(tensor.place), &entry);
      AppendVarintField(4, tensor.offset, &entry);
      AppendBytesField(2, entry, &directory);
    }
    for (const int field : {3, 4}) {
      std::string endpoint;
      AppendVarintField(1, field == 3 ? 0 : 2, &endpoint);
      AppendBytesField(2, field == 3 ? "x" : "y", &endpoint);
      AppendBytesField(static_cast<uint32_t>(field), endpoint, &directory);
    }
    std::string step, attr;
    AppendBytesField(1, op, &step);
    AppendBytesField(2, "step", &step);
    for (const uint64_t tensor : inputs) AppendVarintField(3, tensor, &step);
    for (const uint64_t tensor : outputs) AppendVarintField(4, tensor, &step);
    AppendBytesField(1, "T", &attr);
    AppendBytesField(2, AttrValue::Type(type).Encoded(), &attr);
    AppendBytesField(5, attr, &step);
    AppendBytesField(5, step, &directory);
    std::string bytes(kProgramMagic);
    const uint64_t size = directory.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += directory;
    return bytes;
  }
  absl::Status Status() const { return StatusOf(Bytes(), {"x"}, {"y"}); }
  void ExpectDataLoss() const { EXPECT_EQ(Status().code(), absl::StatusCode::kDataLoss) << Status(); }
};

TEST(ProgramFileTest, ChecksEveryPlaceAndType) {
  ASSERT_TRUE(HandMade().Status().ok()) << HandMade().Status();
  HandMade file;
  file.tensors[2].offset = 128;  // Beyond the arena.
  file.ExpectDataLoss();
  file = {};
  file.tensors[2].offset = 16;  // Not aligned.
  file.ExpectDataLoss();
  file = {};
  file.tensors[2].offset = ~uint64_t{63};  // The sum with the size wraps.
  file.ExpectDataLoss();
  file = {};
  file.arena = UINT64_MAX;
  file.ExpectDataLoss();
  file = {};
  file.tensors[1].place = 2;  // The file has no constants.
  file.ExpectDataLoss();
  file = {};
  file.tensors[0].offset = 1;  // There is one input.
  file.ExpectDataLoss();
  file = {};
  file.tensors[2].dims = {5};  // Another shape than the kernel computes.
  file.ExpectDataLoss();
  file = {};
  file.tensors[1].dims = {int64_t{1} << 62};
  file.ExpectDataLoss();
  for (const int dtype : {0, 7, 20, 63, 1000}) {  // Unknown types, strings and resources.
    file = {};
    file.tensors[1].dtype = dtype;
    file.ExpectDataLoss();
  }
  file = {};
  file.tensors[1].dtype = 3;  // Not the type of the op.
  file.ExpectDataLoss();
  file = {};
  file.type = DType::kInt32;
  file.ExpectDataLoss();
  file = {};
  file.inputs = {0};
  file.ExpectDataLoss();
  file = {};
  file.inputs = {0, 1, 1};
  file.ExpectDataLoss();
  file = {};
  file.inputs = {0, 9};
  file.ExpectDataLoss();
  file = {};
  file.outputs = {};
  file.ExpectDataLoss();
  file = {};
  file.outputs = {0};  // The memory of an input.
  file.ExpectDataLoss();
}

TEST(ProgramFileTest, ChecksThatMemoryIsFree) {
  HandMade file;
  file.tensors[2].offset = 0;  // In place, as the kernel allows.
  EXPECT_TRUE(file.Status().ok()) << file.Status();
  file.inputs = {1, 1};  // In place of two inputs.
  file.ExpectDataLoss();
  file = {};
  file.arena = 1024;
  for (HandMade::Entry& tensor : file.tensors) tensor.dims = {64};
  EXPECT_EQ(file.tensors[2].offset, 64u);  // Overlaps an input, at another address.
  file.ExpectDataLoss();
}

TEST(ProgramFileTest, RefusesOpsOfTheSession) {
  HandMade file;
  file.op = "Identity";  // An alias, which needs no step.
  file.inputs = {0};
  file.ExpectDataLoss();
  file = {};
  file.op = "Line\n";
  file.ExpectDataLoss();
  file = {};
  file.op = "Nonsense";
  EXPECT_EQ(file.Status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ProgramSignatureTest, ComparesAttributes) {
  SmallGraph made;
  made.Placeholder("x", DType::kFloat, Shape{2});
  const Node* node = made.Float("y", "Relu", {"x"});
  const std::string attrs = SignatureAttrs(*node).value();
  EXPECT_EQ(attrs, "T:3001");
  EXPECT_TRUE(HasSignatureAttrs(*node, attrs));
  EXPECT_TRUE(HasSignatureAttrs(*node, "T:3001 T:3001"));
  for (const char* other : {"T:3002", "T:30", "T:300100", "U:3001", "T:3001 N:1801"}) {
    EXPECT_FALSE(HasSignatureAttrs(*node, other)) << other;
  }
}

}  // namespace
}  // namespace permafrost
