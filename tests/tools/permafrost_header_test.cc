// Tests of the header for a selective build of Permafrost's runtime.
#include "tools/selective/permafrost_header.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "graph/base/selection.h"
#include "graph/graph.h"
#include "tools/command_line/cli.h"

namespace permafrost {
namespace {

absl::Status Add(absl::string_view op, const std::vector<Attr>& attrs, Selection* selection) {
  return Select({"n", op, "", attrs, "", false}, selection);
}

TEST(SelectTest, CollectsTypesByOp) {
  Selection selection;
  ASSERT_TRUE(Add("Relu", {{"T", AttrValue::Type(DType::kFloat)}}, &selection).ok());
  ASSERT_TRUE(Add("Relu", {{"T", AttrValue::Type(DType::kDouble)}}, &selection).ok());
  ASSERT_TRUE(Add("Const", {{"dtype", AttrValue::Type(DType::kInt64)}}, &selection).ok());
  EXPECT_EQ(selection.ops.at("Relu").at("T"), (std::set<DType>{DType::kFloat, DType::kDouble}));
  EXPECT_EQ(selection.types, (std::set<DType>{DType::kFloat, DType::kDouble, DType::kInt64}));
}

TEST(SelectTest, CountsFixedTypesAndDefaults) {
  Selection selection;
  // The condition is bool, and the type of the shape by default int32.
  ASSERT_TRUE(Add("Select", {{"T", AttrValue::Type(DType::kFloat)}}, &selection).ok());
  EXPECT_EQ(selection.types.count(DType::kBool), 1);
  ASSERT_TRUE(Add("Shape", {{"T", AttrValue::Type(DType::kFloat)}}, &selection).ok());
  EXPECT_EQ(selection.types.count(DType::kInt32), 1);
}

TEST(SelectTest, TellsAllTypesOfAnOp) {
  Selection selection;
  ASSERT_TRUE(Add("Pad", {{"T", AttrValue::Type(DType::kFloat)}}, &selection).ok());
  // Paddings are int32 by default; the kernel has no condition on their type.
  EXPECT_EQ(selection.ops.at("Pad").at(""), (std::set<DType>{DType::kFloat, DType::kInt32}));
  EXPECT_EQ(selection.ops.at("Pad").at("T"), (std::set<DType>{DType::kFloat}));
}

TEST(SelectTest, ListsWhatFunctionsNeed) {
  Selection selection;
  SelectFunctions(&selection);
  EXPECT_EQ(selection.ops.count("_Arg") + selection.ops.count("_Retval") + selection.ops.count("PartitionedCall"), 3);
}

TEST(SelectTest, NamesWhatIsMissingAndKeepsTheSelection) {
  Selection selection;
  EXPECT_EQ(Add("Reluu", {}, &selection).message().substr(0, 40), "no kernel for op 'Reluu'; did you mean '");
  EXPECT_EQ(Add("Softmax", {{"T", AttrValue::Type(DType::kInt32)}}, &selection).message().substr(0, 58),
            "no kernel for op 'Softmax' with T = int32, there are float");
  EXPECT_TRUE(selection.ops.empty());
  EXPECT_TRUE(selection.types.empty());
}

TEST(PermafrostHeaderTest, IsForThisVersion) {
  int major = 0, minor = 0, patch = 0;
  ASSERT_EQ(std::sscanf(std::string(kVersion).c_str(), "%d.%d.%d", &major, &minor, &patch), 3);
  EXPECT_EQ(selection::kVersion, 10000 * major + 100 * minor + patch);
}

TEST(PermafrostHeaderTest, IsTheSameTwice) {
  Selection selection;
  ASSERT_TRUE(Add("Relu", {{"T", AttrValue::Type(DType::kFloat)}}, &selection).ok());
  const std::string header = PermafrostHeader(selection, "tool --graphs=\"x\"");
  EXPECT_EQ(header, PermafrostHeader(selection, "tool --graphs=\"x\""));
  EXPECT_NE(header.find("{\"Relu\", \"T\", 0x2},  // float\n"), header.npos);
  EXPECT_NE(header.find("tool --graphs=\\\"x\\\"\";"), header.npos);
}

}  // namespace
}  // namespace permafrost
