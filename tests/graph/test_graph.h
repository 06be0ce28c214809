// Builds small graphs for the tests of graph/.
#ifndef PERMAFROST_TESTS_GRAPH_TEST_GRAPH_H_
#define PERMAFROST_TESTS_GRAPH_TEST_GRAPH_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/graph.h"
#include "gtest/gtest.h"

namespace permafrost {

class TestGraph {
 public:
  Graph& graph() { return graph_; }
  Graph* operator->() { return &graph_; }

  // Adds a node with these data inputs ("a", "a:1") and control inputs ("^a").
  Node* Add(absl::string_view name, Op op, const std::vector<std::string>& inputs = {},
            const std::vector<std::pair<std::string, AttrValue>>& attrs = {}) {
    absl::StatusOr<Node*> node = graph_.AddNode(name, op);
    EXPECT_TRUE(node.ok()) << node.status();
    for (const std::string& input : inputs) graph_.AddInput(*node, Ref(input));
    for (const auto& [key, value] : attrs) (*node)->SetAttr(key, value);
    return *node;
  }
  Node* Float(absl::string_view name, const Shape& shape) {
    return Add(name, ops::kPlaceholder, {},
               {{"dtype", AttrValue::Type(DType::kFloat)}, {"shape", AttrValue::OfShape(shape)}});
  }
  Node* Ints(absl::string_view name, std::vector<int32_t> values) {
    const Shape shape({static_cast<int64_t>(values.size())});
    return *graph_.AddConst(name, Tensor::FromVector<int32_t>(shape, std::move(values)));
  }
  Node* Int(absl::string_view name, int32_t value) { return *graph_.AddConst(name, Tensor::Scalar<int32_t>(value)); }

  TensorRef Ref(const std::string& text) {
    if (text[0] == '^') return {graph_.Find(text.substr(1)), kControlPort};
    const size_t colon = text.find(':');
    if (colon == std::string::npos) return {graph_.Find(text), 0};
    return {graph_.Find(text.substr(0, colon)), std::stoi(text.substr(colon + 1))};
  }

 private:
  Graph graph_;
};

inline std::pair<std::string, AttrValue> FloatT() { return {"T", AttrValue::Type(DType::kFloat)}; }
inline std::pair<std::string, AttrValue> IntT() { return {"T", AttrValue::Type(DType::kInt32)}; }

// Returns the inputs of a node in the spelling of the file.
inline std::vector<std::string> InputsOf(const Node* node) {
  std::vector<std::string> inputs;
  for (int i = 0; i < node->num_inputs(); ++i) inputs.push_back(node->input(i).ToString());
  return inputs;
}

// Checks that the lists of uses contain every input exactly once and nothing else.
inline void ExpectUsesAreCurrent(const Graph& graph) {
  size_t inputs = 0, uses = 0;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    inputs += static_cast<size_t>(node->num_inputs());
    uses += node->uses().size();
    bool seen_control = false;
    for (int i = 0; i < node->num_inputs(); ++i) {
      EXPECT_EQ(node->input(i).is_control(), i >= node->num_data_inputs()) << node->name();
      seen_control = seen_control || node->input(i).is_control();
      EXPECT_TRUE(!seen_control || node->input(i).is_control()) << node->name();
    }
    for (const Use& use : node->uses()) {
      ASSERT_LT(static_cast<int>(use.index), use.consumer->num_inputs());
      EXPECT_EQ(use.consumer->input(static_cast<int>(use.index)).node, node);
    }
  }
  EXPECT_EQ(inputs, uses);
}

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_GRAPH_TEST_GRAPH_H_
