// Checks that the result of a pass does not depend on the order of the nodes in the file. Every golden case with
// shuffled nodes must give the same nodes except for names and order.
#include <algorithm>
#include <map>
#include <random>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/dtype.h"
#include "gtest/gtest.h"
#include "tests/transforms/golden_case.h"
#include "tests/transforms/golden_runs.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

constexpr int kShuffles = 4;
// Number of producers upstream that are compared for each node: more than the depth of any case.
constexpr int kRounds = 64;

// Cases whose result depends on the order of the file, as documented by the pass.
constexpr struct {
  absl::string_view pass, name, reason;
} kFollowsTheFile[] = {
    {"common_subexpressions", "swapped", "the first of equal nodes stays, with its order of operands"},
    {"merge_duplicate_nodes", "default_attributes", "the first of equal nodes stays, with the defaults that it spells"},
    {"merge_duplicate_nodes", "tensor_encodings", "the first of equal constants stays, encoded as it is"},
    {"obfuscate_names", "attributes", "names, and attributes that hold them, are numbered in the order of the file"},
};

// Returns the hash of a node without its inputs.
uint64_t Own(const Graph& graph, const Node& node) {
  uint64_t attrs = 0;  // Independent of order.
  for (const Attr& attr : node.attrs()) {
    if (attr.key == "_class") continue;  // Holds names of nodes.
    const Tensor* tensor = attr.value.held_tensor();
    if (tensor == nullptr) {
      attrs += absl::HashOf(attr.key, attr.value.encoded());
    } else if (tensor->dtype() == DType::kString) {
      attrs += absl::HashOf(attr.key, tensor->shape().dims(), tensor->strings());
    } else {
      attrs += absl::HashOf(attr.key, static_cast<int>(tensor->dtype()), tensor->shape().dims(), tensor->bytes());
    }
  }
  return absl::HashOf(node.op(), node.device(), node.num_data_inputs(), attrs,
                      graph.IsEndpoint(&node) ? node.name() : absl::string_view());
}

// Returns a hash of op, attributes and everything upstream for each node, with a description.
std::multimap<uint64_t, std::string> Canonical(const Graph& graph) {
  std::vector<uint64_t> own(graph.id_limit(), 0), now(graph.id_limit(), 0);
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) own[node->id()] = Own(graph, *node);
  now = own;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<uint64_t> next(graph.id_limit(), 0);
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      uint64_t data = own[node->id()], controls = 0;
      for (int i = 0; i < node->num_inputs(); ++i) {
        const TensorRef input = node->input(i);
        if (input.is_control()) {
          controls += absl::HashOf(now[input.node->id()]);  // Independent of order.
        } else {
          data = absl::HashOf(data, now[input.node->id()], input.port);
        }
      }
      next[node->id()] = absl::HashOf(data, controls);
    }
    now = std::move(next);
  }
  std::multimap<uint64_t, std::string> nodes;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    nodes.emplace(now[node->id()], node->Describe());
  }
  return nodes;
}

// Returns the nodes of `a` that `b` lacks.
std::vector<std::string> Missing(const std::multimap<uint64_t, std::string>& a,
                                 const std::multimap<uint64_t, std::string>& b) {
  std::vector<std::string> missing;
  for (auto it = a.begin(); it != a.end(); it = a.upper_bound(it->first)) {
    if (a.count(it->first) > b.count(it->first)) missing.push_back(it->second);
  }
  return missing;
}

TEST(FileOrder, DoesNotChangeWhatComesOut) {
  const auto cases = FindGoldenCases(kGoldenFolder);
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_FALSE(cases->empty());
  for (const GoldenCase& golden : *cases) {
    SCOPED_TRACE(golden.path);
    const bool follows = std::any_of(std::begin(kFollowsTheFile), std::end(kFollowsTheFile), [&](const auto& exempt) {
      return exempt.pass == golden.pass && exempt.name == golden.name;
    });
    if (follows) continue;
    const auto in_order = RunCase(golden);
    ASSERT_EQ(in_order.ok(), golden.expected_error.empty()) << in_order.status();
    std::mt19937 random(1);
    for (int i = 0; i < kShuffles; ++i) {
      auto graph = ReadGraphOf(golden);
      ASSERT_EQ(graph.ok(), in_order.ok() || graph.ok()) << graph.status();
      if (!graph.ok()) break;
      std::vector<Node*> nodes = (*graph)->Nodes();
      std::shuffle(nodes.begin(), nodes.end(), random);
      (*graph)->SetOrder(nodes);
      const auto shuffled = RunOver(golden.run, *std::move(graph));
      ASSERT_EQ(shuffled.ok(), in_order.ok()) << shuffled.status();
      if (!in_order.ok()) continue;
      const auto expected = Canonical(*in_order->graph), found = Canonical(*shuffled->graph);
      const std::vector<std::string> lost = Missing(expected, found), made = Missing(found, expected);
      EXPECT_TRUE(lost.empty() && made.empty())
          << "only in order: " << absl::StrJoin(lost, ", ") << "\nonly shuffled: " << absl::StrJoin(made, ", ");
      EXPECT_EQ(in_order->graph->library().size(), shuffled->graph->library().size());
    }
  }
}

}  // namespace
}  // namespace permafrost
