// Builds small graphs for tests from text with one line per node.
#ifndef PERMAFROST_TESTS_TOOLS_GRAPH_FROM_TEXT_H_
#define PERMAFROST_TESTS_TOOLS_GRAPH_FROM_TEXT_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/attr.h"
#include "graph/graph.h"
#include "graph/ops/op_schema.h"

namespace permafrost {

// Returns the graph. Each line is "name = Op(input, input:1, ^control)"; a node comes after its inputs. Type attributes
// required by the op's schema are float. A Placeholder is float [2], a Const the float vector [1, 2].
inline std::unique_ptr<Graph> GraphFromText(const std::string& text) {
  auto graph = std::make_unique<Graph>();
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::vector<std::string> pieces = absl::StrSplit(line, absl::ByAnyChar(" =(),"), absl::SkipEmpty());
    Node* node = graph->AddNode(pieces.at(0), Op::Named(pieces.at(1))).value();
    for (size_t i = 2; i < pieces.size(); ++i) {
      if (pieces[i][0] == '^') {
        graph->AddControlInput(node, graph->Find(pieces[i].substr(1)));
        continue;
      }
      const std::pair<std::string, std::string> name = absl::StrSplit(pieces[i], absl::MaxSplits(':', 1));
      graph->AddInput(node, {graph->Find(name.first), name.second.empty() ? 0 : std::stoi(name.second)});
    }
    if (const OpSchema* schema = FindSchema(node->op()); schema != nullptr) {
      for (const AttrSpec& attr : schema->attrs) {
        if (attr.kind == AttrValue::Kind::kType && !attr.is_list && !attr.has_default) {
          node->SetAttr(attr.name, AttrValue::Type(DType::kFloat));
        }
      }
    }
    if (node->op() == ops::kPlaceholder) node->SetAttr("shape", AttrValue::OfShape({2}));
    if (node->op() == ops::kConst) {
      node->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector<float>({2}, {1, 2})));
    }
  }
  return graph;
}

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TOOLS_GRAPH_FROM_TEXT_H_
