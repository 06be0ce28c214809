// Tests that the op table is well-formed and that types are resolved from it.
#include "graph/ops/op_schema.h"

#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

TEST(OpSchemaTest, EveryRowIsWellFormed) {
  absl::string_view previous;
  for (uint32_t id = 0; id < ops::kNumKnownOps; ++id) {
    const Op op = static_cast<ops::OpId>(id);
    const OpSchema& schema = *FindSchema(op);
    EXPECT_LT(previous, op.name());
    previous = op.name();
    EXPECT_EQ(Op::Named(op.name()), op);
    for (const auto* args : {&schema.inputs, &schema.outputs}) {
      for (const ArgSpec& arg : *args) {
        const AttrSpec* type = schema.FindAttr(arg.type_attr);
        if (arg.type_attr.empty()) {
          EXPECT_NE(arg.type, DType::kInvalid) << op.name() << " " << arg.name;
        } else {
          ASSERT_NE(type, nullptr) << op.name() << " " << arg.name;
          EXPECT_EQ(type->kind, AttrValue::Kind::kType) << op.name() << " " << arg.name;
          EXPECT_EQ(type->is_list, arg.is_type_list) << op.name() << " " << arg.name;
        }
        if (!arg.number_attr.empty()) {
          ASSERT_NE(schema.FindAttr(arg.number_attr), nullptr) << op.name() << " " << arg.name;
          EXPECT_EQ(schema.FindAttr(arg.number_attr)->kind, AttrValue::Kind::kInt);
        }
      }
    }
    for (const AttrSpec& attr : schema.attrs) {
      EXPECT_NE(attr.kind, AttrValue::Kind::kNone) << op.name() << " " << attr.name;
      for (const DType type : attr.allowed_types) EXPECT_NE(type, DType::kInvalid) << op.name() << " " << attr.name;
      if (!attr.has_default) continue;
      const AttrValue::Kind expected = attr.is_list ? AttrValue::Kind::kList : attr.kind;
      EXPECT_EQ(attr.default_value.kind(), expected) << op.name() << " " << attr.name;
    }
    for (const TypeRelation& relation : schema.type_relations) {
      for (const std::string& name : {relation.attr, relation.other}) {
        const AttrSpec* attr = schema.FindAttr(name);
        ASSERT_NE(attr, nullptr) << op.name() << " " << name;
        EXPECT_EQ(attr->kind, AttrValue::Kind::kType) << op.name() << " " << name;
      }
    }
    EXPECT_NE(schema.shape_function, nullptr);
  }
}

TEST(OpSchemaTest, DefaultsAreRead) {
  EXPECT_EQ(*DefaultAttr(ops::kConv2D, "dilations")->AsIntList(), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(*DefaultAttr(ops::kPlaceholder, "shape")->AsShape(), Shape::UnknownRank());
  EXPECT_EQ(*DefaultAttr(ops::kPrintV2, "end")->AsString(), "\n");
  EXPECT_EQ(DefaultAttr(ops::kConv2D, "strides"), nullptr);
}

TEST(OpSchemaTest, TypesAndCountsComeFromAttributes) {
  TestGraph g;
  Node* node = g.Add("n", ops::kIdentityN, {}, {{"T", AttrValue::TypeList({DType::kFloat, DType::kInt32})}});
  EXPECT_EQ(*OutputTypes(*node), (std::vector<DType>{DType::kFloat, DType::kInt32}));
  EXPECT_EQ(*NumInputs(*node), 2);
  Node* pack = g.Add("p", ops::kPack, {}, {FloatT(), {"N", AttrValue::Int(3)}});
  EXPECT_EQ(InputTypes(*pack)->size(), 3u);
  EXPECT_EQ(*NumOutputs(*pack), 1);
  pack->SetAttr("N", AttrValue::Int(INT64_MAX));
  EXPECT_EQ(NumInputs(*pack).status().message(),
            "node 'p' (Pack): attr 'N' specifies 9223372036854775807 tensors, expected 0 to 65536");
  pack->RemoveAttr("N");
  EXPECT_FALSE(InputTypes(*pack).ok());
  EXPECT_EQ(OutputTypes(*g.Add("f", Op::Named("Foreign"))).status().code(), absl::StatusCode::kNotFound);
}

// All ops with a type attribute for complex numbers and one for real ones, of which one determines the other.
TEST(OpSchemaTest, ComplexTypesAreRelatedToTheirParts) {
  int related = 0;
  for (uint32_t id = 0; id < ops::kNumKnownOps; ++id) {
    const Op op = static_cast<ops::OpId>(id);
    const OpSchema& schema = *FindSchema(op);
    const AttrSpec *complex = nullptr, *real = nullptr;
    for (const AttrSpec& attr : schema.attrs) {
      if (attr.allowed_types == std::vector<DType>{DType::kComplex64, DType::kComplex128}) complex = &attr;
      if (attr.allowed_types == std::vector<DType>{DType::kFloat, DType::kDouble}) real = &attr;
    }
    if (complex == nullptr || real == nullptr) continue;
    ++related;
    ASSERT_EQ(schema.type_relations.size(), 1u) << op.name();
    EXPECT_EQ(schema.type_relations[0].attr, complex->name) << op.name();
    EXPECT_EQ(schema.type_relations[0].other, real->name) << op.name();
    EXPECT_TRUE(schema.type_relations[0].is_complex_of) << op.name();
  }
  EXPECT_GE(related, 9);
}

TEST(OpSchemaTest, RelationsAreChecked) {
  TestGraph g;
  Node* node = g.Add("n", ops::kRFFT);
  EXPECT_EQ(CheckTypeRelations(*node), absl::OkStatus()) << "the defaults fit";
  node->SetAttr("Treal", AttrValue::Type(DType::kDouble));
  EXPECT_EQ(
      CheckTypeRelations(*node).message(),
      "node 'n' (RFFT): attr 'Tcomplex' is complex64 and 'Treal' is double, expected 'Tcomplex' to be the complex "
      "type with parts of that type");
  node->SetAttr("Tcomplex", AttrValue::Type(DType::kComplex128));
  EXPECT_EQ(CheckTypeRelations(*node), absl::OkStatus());
  node->SetAttr("Treal", AttrValue::Type(DType::kBool));
  EXPECT_EQ(CheckTypeRelations(*node).code(), absl::StatusCode::kInvalidArgument) << "nothing is complex of bool";
}

}  // namespace
}  // namespace permafrost
