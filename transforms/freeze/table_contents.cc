// Finds the nodes that fill tables, in the graph or in functions of the initialiser, and adds equivalent nodes.
#include "transforms/freeze/table_contents.h"

#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "transforms/pass.h"
#include "transforms/rewrites/call_inlining.h"

namespace permafrost {
namespace {

// TensorFlow's special column numbers.
constexpr int64_t kWholeLine = -2;
constexpr int64_t kLineNumber = -1;

bool TakesEntries(Op op) {
  return op == ops::kInitializeTable || op == ops::kInitializeTableV2 || op == ops::kLookupTableImport ||
         op == ops::kLookupTableImportV2;
}

bool TakesFile(Op op) { return op == ops::kInitializeTableFromTextFile || op == ops::kInitializeTableFromTextFileV2; }

// Returns the producer of input `index`, looking through Identity nodes and variables. The origin of a variable is the
// value assigned to it, since variables hold the paths of asset files.
const Node* Origin(const Node& node, int index) {
  const Node* origin = node.input(index).node;
  // Bounded, since a variable may be assigned a value that depends on itself.
  for (size_t steps = 0; steps < 100 && origin->num_data_inputs() == 1; ++steps) {
    const Node* next = nullptr;
    if (origin->op() == ops::kIdentity) {
      next = origin->input(0).node;
    } else if (origin->op() == ops::kReadVariableOp) {
      for (const Use& use : origin->input(0).node->uses()) {
        if (use.consumer->op() == ops::kAssignVariableOp && use.index == 0 && use.consumer->num_data_inputs() == 2) {
          next = use.consumer->input(1).node;
        }
      }
    }
    if (next == nullptr) break;
    origin = next;
  }
  return origin;
}

template <typename T>
absl::StatusOr<Tensor> Numbers(const std::vector<std::string>& texts) {
  std::vector<T> numbers(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    bool is_number;
    if constexpr (std::is_same_v<T, float>) {
      is_number = absl::SimpleAtof(texts[i], &numbers[i]);
    } else if constexpr (std::is_same_v<T, double>) {
      is_number = absl::SimpleAtod(texts[i], &numbers[i]);
    } else {
      is_number = absl::SimpleAtoi(texts[i], &numbers[i]);
    }
    if (!is_number) return absl::InvalidArgumentError(absl::StrCat("line ", i + 1, ": expected a number"));
  }
  const auto count = static_cast<int64_t>(numbers.size());
  return Tensor::FromVector(Shape({count}), std::move(numbers));
}

absl::StatusOr<Tensor> Column(std::vector<std::string> texts, DType dtype) {
  switch (dtype) {
    case DType::kString: {
      const auto count = static_cast<int64_t>(texts.size());
      return Tensor::FromStrings(Shape({count}), std::move(texts));
    }
    case DType::kInt64:
      return Numbers<int64_t>(texts);
    case DType::kInt32:
      return Numbers<int32_t>(texts);
    case DType::kFloat:
      return Numbers<float>(texts);
    case DType::kDouble:
      return Numbers<double>(texts);
    default:
      return absl::UnimplementedError(absl::StrCat("a table of ", DTypeName(dtype), " from a file"));
  }
}

// Returns the lines of a file that the node describes, as keys and values.
absl::StatusOr<std::pair<Tensor, Tensor>> ReadLines(const Node& node, const Node& table, const std::string& text) {
  PF_ASSIGN_OR_RETURN(const int64_t key_column, IntAttr(node, "key_index"));
  PF_ASSIGN_OR_RETURN(const int64_t value_column, IntAttr(node, "value_index"));
  PF_ASSIGN_OR_RETURN(const int64_t size, IntAttr(node, "vocab_size"));
  PF_ASSIGN_OR_RETURN(const std::string delimiter, StringAttr(node, "delimiter"));
  PF_ASSIGN_OR_RETURN(const int64_t first_number, IntAttr(node, "offset"));
  PF_ASSIGN_OR_RETURN(const DType key_type, TypeAttr(table, "key_dtype"));
  PF_ASSIGN_OR_RETURN(const DType value_type, TypeAttr(table, "value_dtype"));
  // TensorFlow drops all carriage returns.
  const std::string lines_of_text = absl::StrReplaceAll(text, {{"\r", ""}});
  std::vector<absl::string_view> lines = absl::StrSplit(lines_of_text, '\n');
  if (lines.back().empty()) lines.pop_back();
  if (size >= 0) {
    if (static_cast<int64_t>(lines.size()) < size) {
      return absl::InvalidArgumentError(absl::StrCat("found ", lines.size(), " lines, expected ", size));
    }
    lines.resize(static_cast<size_t>(size));
  }
  std::vector<std::string> keys, values;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<absl::string_view> columns = absl::StrSplit(lines[i], delimiter);
    const auto add = [&](int64_t column, std::vector<std::string>* texts) -> absl::Status {
      if (column == kWholeLine) {
        texts->emplace_back(lines[i]);
      } else if (column == kLineNumber) {
        int64_t number;
        if (__builtin_add_overflow(first_number, static_cast<int64_t>(i), &number)) {
          return absl::InvalidArgumentError(
              absl::StrCat("attr 'offset' is ", first_number, ", expected a smaller one"));
        }
        texts->push_back(absl::StrCat(number));
      } else if (column >= 0 && column < static_cast<int64_t>(columns.size())) {
        texts->emplace_back(columns[static_cast<size_t>(column)]);
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", i + 1, ": found ", columns.size(), " columns, expected a column ", column));
      }
      return absl::OkStatus();
    };
    PF_RETURN_IF_ERROR(add(key_column, &keys));
    PF_RETURN_IF_ERROR(add(value_column, &values));
  }
  PF_ASSIGN_OR_RETURN(Tensor key_tensor, Column(std::move(keys), key_type));
  PF_ASSIGN_OR_RETURN(Tensor value_tensor, Column(std::move(values), value_type));
  return std::make_pair(std::move(key_tensor), std::move(value_tensor));
}

}  // namespace

bool IsLookupTable(Op op) {
  return op == ops::kHashTable || op == ops::kHashTableV2 || op == ops::kMutableHashTable ||
         op == ops::kMutableHashTableV2;
}

absl::StatusOr<TableContents> TableContents::Of(const Graph& graph, absl::string_view initializer,
                                                const AssetReader& read_asset) {
  TableContents contents;
  bool has_table = false;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) has_table |= IsLookupTable(node->op());
  if (!has_table) return contents;
  const std::unique_ptr<Graph> copy = graph.Clone();
  PF_ASSIGN_OR_RETURN(const FunctionLibrary library, FunctionLibrary::Of(*copy));
  if (!library.empty()) {
    PassContext context;
    CallInlining inlining(library, {}, &context);
    // Freezing continues without the entries if calls cannot be inlined, for example because of recursion.
    if (!inlining.InlineCalls(copy.get()).ok()) return contents;
  }
  Node* const root = copy->Find(initializer);
  std::vector<bool> runs(copy->id_limit(), true);
  if (root != nullptr) runs = ReachedBackwards(*copy, {root}, {});
  for (const Node* node = copy->first(); node != nullptr; node = node->next()) {
    if (!runs[node->id()] || node->num_data_inputs() < 2) continue;
    const Node* table = Origin(*node, 0);
    if (!IsLookupTable(table->op())) continue;
    Entries entries;
    if (TakesEntries(node->op()) && node->num_data_inputs() == 3) {
      const Node *keys = Origin(*node, 1), *values = Origin(*node, 2);
      if (keys->op() != ops::kConst || values->op() != ops::kConst) continue;
      PF_ASSIGN_OR_RETURN(entries.keys, ConstValue(*keys));
      PF_ASSIGN_OR_RETURN(entries.values, ConstValue(*values));
    } else if (TakesFile(node->op()) && read_asset != nullptr) {
      absl::StatusOr<std::string> text = read_asset(Origin(*node, 1)->name());
      PF_RETURN_IF_ERROR(Annotate(text.status(), node->Describe()));
      absl::StatusOr<std::pair<Tensor, Tensor>> columns = ReadLines(*node, *table, *text);
      PF_RETURN_IF_ERROR(Annotate(columns.status(), node->Describe()));
      std::tie(entries.keys, entries.values) = *std::move(columns);
    } else {
      continue;
    }
    contents.entries_.insert_or_assign(std::string(table->name()), std::move(entries));
  }
  return contents;
}

absl::Status TableContents::AddTo(Graph* graph) const {
  for (const auto& [name, entries] : entries_) {
    Node* const table = graph->Find(name);
    if (table == nullptr || !IsLookupTable(table->op())) continue;
    std::vector<Node*> readers;
    for (const Use& use : table->uses()) readers.push_back(use.consumer);
    Node* const position = table->next();
    const bool is_old = table->op() == ops::kHashTable || table->op() == ops::kMutableHashTable;
    const bool is_mutable = table->op() == ops::kMutableHashTable || table->op() == ops::kMutableHashTableV2;
    PF_ASSIGN_OR_RETURN(Node* const keys,
                        graph->AddConst(graph->UniqueName(absl::StrCat(name, "/keys")), entries.keys, position));
    PF_ASSIGN_OR_RETURN(Node* const values,
                        graph->AddConst(graph->UniqueName(absl::StrCat(name, "/values")), entries.values, position));
    const Op op = is_mutable ? (is_old ? ops::kLookupTableImport : ops::kLookupTableImportV2)
                             : (is_old ? ops::kInitializeTable : ops::kInitializeTableV2);
    PF_ASSIGN_OR_RETURN(Node* const fill,
                        graph->AddNode(graph->UniqueName(absl::StrCat(name, "/initialize")), op, position));
    fill->SetAttr(is_mutable ? "Tin" : "Tkey", AttrValue::Type(entries.keys.dtype()));
    fill->SetAttr(is_mutable ? "Tout" : "Tval", AttrValue::Type(entries.values.dtype()));
    for (Node* const input : {table, keys, values}) graph->AddInput(fill, {input, 0});
    for (Node* const reader : readers) graph->AddControlInput(reader, fill);
  }
  return absl::OkStatus();
}

}  // namespace permafrost
