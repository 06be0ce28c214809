// Tests that the structural hash changes with every edit and is equal for equal graphs.
#include "graph/validation/hash.h"

#include <functional>

#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

TEST(HashTest, EveryEditChangesTheHash) {
  TestGraph g;
  Node* a = g.Int("a", 1);
  Node* b = g.Add("b", ops::kIdentity, {"a"}, {IntT()});
  const std::vector<std::function<void()>> edits = {
      [&] { b->SetAttr("T", AttrValue::Type(DType::kInt64)); },
      [&] { a->SetAttr("value", AttrValue::OfTensor(Tensor::Scalar<int32_t>(2))); },
      [&] { b->set_device("/cpu:0"); },
      [&] { b->set_op(ops::kSnapshot); },
      [&] { g->AddControlInput(b, a); },
      [&] {
        g->SetInput(b, 0, {a, 1});
      },
      [&] { ASSERT_TRUE(g->Rename(b, "c").ok()); },
      [&] { g->MoveBefore(b, a); },
      [&] { g->set_versions("\x22\x02\x08\x16"); },
      [&] { b->RemoveAttr("T"); },
      [&] {
        a->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector<float>({1000}, std::vector<float>(1000, 1.0f))));
      },
      [&] {
        a->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector<float>({1000}, std::vector<float>(1000, 2.0f))));
      },
  };
  uint64_t before = StructuralHash(g.graph());
  for (size_t i = 0; i < edits.size(); ++i) {
    EXPECT_EQ(StructuralHash(g.graph()), before);
    edits[i]();
    const uint64_t after = StructuralHash(g.graph());
    EXPECT_NE(after, before) << "edit " << i;
    before = after;
  }
}

// The hash `meaning` distinguishes edits that may make a graph invalid from those that cannot.
TEST(HashTest, DistinguishesMeaningFromSpelling) {
  TestGraph g;
  Node* a = g.Int("a", 1);
  Node* b = g.Add("b", ops::kIdentity, {"a"}, {IntT()});
  const auto changes = [&](const std::function<void()>& edit) {
    const GraphHashes before = HashGraph(g.graph());
    EXPECT_EQ(before.structural, StructuralHash(g.graph()));
    edit();
    const GraphHashes after = HashGraph(g.graph());
    return std::make_pair(after.structural != before.structural, after.meaning != before.meaning);
  };
  const auto spelling = std::make_pair(true, false), meaning = std::make_pair(true, true);
  EXPECT_EQ(changes([&] { b->set_device("/cpu:0"); }), spelling);
  EXPECT_EQ(changes([&] { ASSERT_TRUE(g->Rename(b, "c").ok()); }), spelling);
  EXPECT_EQ(changes([&] { g->MoveBefore(b, a); }), spelling);
  EXPECT_EQ(changes([&] { b->set_extra_fields("\x30\x01"); }), spelling);
  EXPECT_EQ(changes([&] { b->SetAttr("T", AttrValue::Type(DType::kInt64)); }), meaning);
  EXPECT_EQ(changes([&] { b->RemoveAttr("T"); }), meaning);
  EXPECT_EQ(changes([&] { b->set_op(ops::kSnapshot); }), meaning);
  EXPECT_EQ(changes([&] { g->AddControlInput(b, a); }), meaning);
  EXPECT_EQ(changes([&] { g->SetInput(b, 0, {a, 1}); }), meaning);
  EXPECT_EQ(changes([&] { a->SetAttr("value", AttrValue::OfTensor(Tensor::Scalar<int32_t>(2))); }), meaning);
  EXPECT_EQ(changes([&] { g->ClearInputs(b); }), meaning);
  EXPECT_EQ(changes([&] { ASSERT_TRUE(g->RemoveNode(b).ok()); }), meaning);
  EXPECT_EQ(changes([&] { g->set_versions("\x22\x02\x08\x16"); }), meaning);
  EXPECT_EQ(changes([&] { ASSERT_TRUE(g->DeclareInterface({}, {"a"}).ok()); }), std::make_pair(false, true));
}

}  // namespace
}  // namespace permafrost
