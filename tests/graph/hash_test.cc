// The structural hash sees every edit and is the same for the same graph.
#include "graph/hash.h"

#include <functional>

#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

TEST(HashTest, EveryEditCounts) {
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

}  // namespace
}  // namespace permafrost
