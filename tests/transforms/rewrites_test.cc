// Tests code shared by passes.
#include "graph/wire_format/tensor_proto.h"
#include "gtest/gtest.h"
#include "transforms/pass.h"
#include "transforms/rewrites/attr_content.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/redirection.h"

namespace permafrost {
namespace {

std::string Inputs(const Node& node) {
  std::string text;
  for (int i = 0; i < node.num_inputs(); ++i) absl::StrAppend(&text, i > 0 ? " " : "", node.input(i).ToString());
  return text;
}

class RedirectionTest : public testing::Test {
 protected:
  RedirectionTest() {
    for (const char* name : {"a", "b", "c"}) *graph_.AddNode(name, ops::kNoOp);
    node_ = *graph_.AddNode("node", ops::kAddN);
  }
  void Read(absl::string_view data, absl::string_view controls) {
    for (const char c : data) graph_.AddInput(node_, {Find(c), 0});
    for (const char c : controls) graph_.AddInput(node_, {Find(c), kControlPort});
  }
  Node* Find(char c) { return graph_.Find(absl::string_view(&c, 1)); }
  // Redirects from one node to another.
  bool Redirect(char from, char to, std::vector<Node*> more = {}) {
    return RedirectInputs(
        &graph_, node_,
        [&](TensorRef ref) {
          return ref.node == Find(from) ? TensorRef{Find(to), ref.port} : ref;
        },
        more);
  }

  Graph graph_;
  Node* node_;
};

TEST_F(RedirectionTest, LeavesWhatDoesNotChange) {
  Read("ab", "ac");
  EXPECT_FALSE(Redirect('x', 'b'));
  EXPECT_EQ(Inputs(*node_), "a b ^a ^c");
}

TEST_F(RedirectionTest, DropsControlInputsThatAskForNothingMore) {
  Read("a", "bca");
  EXPECT_TRUE(Redirect('b', 'c'));
  EXPECT_EQ(Inputs(*node_), "a ^c");
}

TEST_F(RedirectionTest, DropsControlInputsBesideNewDataInputs) {
  Read("a", "bc");
  EXPECT_TRUE(Redirect('a', 'b'));
  EXPECT_EQ(Inputs(*node_), "b ^c");
}

TEST_F(RedirectionTest, AddsControlInputsOnce) {
  Read("a", "b");
  EXPECT_TRUE(Redirect('x', 'x', {Find('c'), Find('b'), Find('c'), Find('a'), node_}));
  EXPECT_EQ(Inputs(*node_), "a ^b ^c");
}

TEST_F(RedirectionTest, KeepsControlInputsOfAMerge) {
  node_->set_op(ops::kMerge);
  Read("ab", "c");
  EXPECT_TRUE(Redirect('c', 'a'));
  EXPECT_EQ(Inputs(*node_), "a b ^a");
}

std::vector<std::string> Class(const Node* node) {
  const AttrValue* attr = node->FindAttr("_class");
  return attr == nullptr ? std::vector<std::string>{"none"} : *attr->AsStringList();
}

TEST(Colocation, FollowsAndDrops) {
  Graph graph;
  Node* a = *graph.AddNode("a", ops::kNoOp);
  Node* b = *graph.AddNode("b", ops::kNoOp);
  Node* c = *graph.AddNode("c", ops::kNoOp);
  a->SetAttr("_class", AttrValue::StringList(std::vector<std::string>{"loc:@gone", "other", "loc:@b"}));
  b->SetAttr("_class", AttrValue::StringList(std::vector<std::string>{"loc:@gone"}));
  c->SetAttr("_class", AttrValue::Int(1));
  EXPECT_EQ(DropDanglingColocations(&graph), 2);
  EXPECT_EQ(Class(a), (std::vector<std::string>{"other", "loc:@b"}));
  EXPECT_EQ(Class(b), std::vector<std::string>{"none"});
  EXPECT_TRUE(c->HasAttr("_class"));
  EXPECT_EQ(DropDanglingColocations(&graph), 0);

  a->SetAttr("_class", AttrValue::StringList(std::vector<std::string>{"loc:@b", "loc:@c"}));
  EXPECT_EQ(RelocateColocations(&graph, [](absl::string_view) { return "c"; }), 1);
  EXPECT_EQ(Class(a), std::vector<std::string>{"loc:@c"});
}

AttrValue Wire(const std::string& tensor_proto, std::string* kept) {
  AppendBytesField(static_cast<uint32_t>(AttrValue::Kind::kTensor), tensor_proto, kept);
  return AttrValue::FromWire(*kept, nullptr);
}

// Returns a TensorProto of `count` floats that are all `value`, stored once.
std::string Repeated(int64_t count, float value) {
  std::string proto;
  AppendVarintField(1, static_cast<uint64_t>(DType::kFloat), &proto);
  AppendBytesField(2, EncodeShapeProto({count}), &proto);
  AppendBytesField(5, absl::string_view(reinterpret_cast<const char*>(&value), 4), &proto);
  return proto;
}

TEST(AttrContent, TensorsAreComparedByValue) {
  std::string kept, huge_kept, other_kept;
  const AttrValue repeated = Wire(Repeated(2000, 1), &kept);
  const AttrValue held = AttrValue::OfTensor(Tensor::FromVector<float>({2000}, std::vector<float>(2000, 1)));
  EXPECT_TRUE(SameContent(repeated, held));
  for (const ContentHashing hashing : {ContentHashing::kSampled, ContentHashing::kWhole}) {
    EXPECT_EQ(ContentHash(repeated, hashing), ContentHash(held, hashing));
  }
  EXPECT_TRUE(IsLargeTensor(held));
  // A change between the samples affects only the whole hash and the comparison.
  std::vector<float> changed(2000, 1);
  changed[20] = 2;
  const AttrValue other = AttrValue::OfTensor(Tensor::FromVector<float>({2000}, changed));
  EXPECT_EQ(ContentHash(held, ContentHashing::kSampled), ContentHash(other, ContentHashing::kSampled));
  EXPECT_NE(ContentHash(held, ContentHashing::kWhole), ContentHash(other, ContentHashing::kWhole));
  EXPECT_FALSE(SameContent(held, other));
  // A few bytes that encode gigabytes are compared in their wire form.
  const AttrValue huge = Wire(Repeated(int64_t{1} << 40, 1), &huge_kept);
  const AttrValue other_huge = Wire(Repeated(int64_t{1} << 40, 2), &other_kept);
  EXPECT_TRUE(SameContent(huge, huge));
  EXPECT_FALSE(SameContent(huge, other_huge));
  EXPECT_FALSE(SameContent(huge, held));
}

TEST(AttrContent, KindsDiffer) {
  EXPECT_TRUE(SameContent(AttrValue::Int(1), AttrValue::Int(1)));
  EXPECT_FALSE(SameContent(AttrValue::Int(1), AttrValue::Bool(true)));
  EXPECT_FALSE(SameContent(AttrValue::String("a"), AttrValue::String("b")));
}

// Passes run on graphs that are not valid, too: nodes of an op with fewer inputs than the op has, and loops whose types
// do not fit their inputs.
TEST(MalformedNodes, AreLeftAlone) {
  for (const char* name : {"lower_to_tflite", "lower_tensor_lists", "lower_einsum", "sink_constants"}) {
    for (const Op op :
         {Op(ops::kExpm1), Op(ops::kDivNoNan), Op(ops::kErfc), Op(ops::kRFFT), Op(ops::kMatrixBandPart), Op(ops::kSize),
          Op(ops::kEinsum), Op(ops::kTensorListGetItem), Op(ops::kTensorListReserve), Op(ops::kTensorListSetItem),
          Op(ops::kTensorListStack), Op(ops::kTensorListFromTensor), Op(ops::kTensorListPushBack),
          Op(ops::kEmptyTensorList), Op(ops::kAssignAddVariableOp), Op(ops::kStatelessIf), Op(ops::kStatelessWhile)}) {
      for (int num_inputs = 0; num_inputs < 3; ++num_inputs) {
        Graph graph;
        Node* x = *graph.AddNode("x", ops::kPlaceholder);
        x->SetAttr("dtype", AttrValue::Type(DType::kFloat));
        Node* product = *graph.AddNode("product", ops::kMul);
        product->SetAttr("T", AttrValue::Type(DType::kFloat));
        graph.AddInput(product, {x, 0});
        Node* node = *graph.AddNode("node", op);
        for (int i = 0; i < num_inputs; ++i) graph.AddInput(node, {product, 0});
        for (const char* key : {"T", "Treal", "element_dtype", "dtype", "Tcond"}) {
          node->SetAttr(key, AttrValue::Type(DType::kFloat));
        }
        node->SetAttr("equation", AttrValue::String("ij,jk->ik"));
        if (op == ops::kStatelessWhile) node->SetAttr("T", AttrValue::TypeList({DType::kFloat}));
        const absl::StatusOr<const PassDefinition*> pass = FindPass(name);
        ASSERT_TRUE(pass.ok()) << pass.status();
        PassContext context;
        (void)(*pass)->run(&graph, {}, &context);
        EXPECT_NE(graph.Find("node"), nullptr) << name << " " << op.name();
      }
    }
  }
}

}  // namespace
}  // namespace permafrost
