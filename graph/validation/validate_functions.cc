// Implements the checks of the function library and of its callers.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/validation/problem_list.h"
#include "graph/validation/validate.h"

namespace permafrost {
namespace {

class FunctionValidator {
 public:
  explicit FunctionValidator(const FunctionLibrary& library) : library_(library) {}

  absl::Status Run(const Graph& graph) {
    CheckCalls(graph, "");
    for (const Function* function : library_.functions()) {
      if (function->signature().attrs.empty()) Add({std::string(function->name()), {}});
    }
    // A function with attributes has one body for each set of values. Their number is bounded here, because attributes
    // that grow from call to call would produce infinitely many.
    constexpr size_t kMostBodies = 100000;
    for (size_t i = 0; i < waiting_.size() && i < kMostBodies && !IsFull(); ++i) {
      const FunctionRef call = waiting_[i];
      const std::string place = absl::StrCat("function '", call.name, "': ");
      const absl::StatusOr<std::unique_ptr<Graph>> body = library_.Instantiate(call);
      if (absl::IsFailedPrecondition(body.status())) continue;
      if (!body.ok()) {
        Report(body.status().message());
        continue;
      }
      CheckCalls(**body, place);
      if (const absl::Status valid = Validate(**body); !valid.ok()) Report(absl::StrCat(place, valid.message()));
    }
    return problems_.ToStatus();
  }

 private:
  bool IsFull() const { return problems_.IsFull(); }
  void Report(absl::string_view problem) { problems_.Report(problem); }

  void Add(FunctionRef call) {
    if (seen_.insert(AttrValue::Function(call).Encoded()).second) waiting_.push_back(std::move(call));
  }

  void CheckCalls(const Graph& graph, absl::string_view place) {
    for (const Node* node = graph.first(); node != nullptr && !IsFull(); node = node->next()) {
      for (const Attr& attr : node->attrs()) {
        const absl::Status read = attr.value.VisitFunctions([&](absl::string_view name) {
          if (library_.Find(name) != nullptr) return;
          Report(absl::StrCat(place, node->Describe(), ": attr '", attr.key,
                              "': ", library_.Require(name).status().message()));
        });
        if (!read.ok()) Report(absl::StrCat(place, node->Describe(), ": attr '", attr.key, "' ", read.message()));
      }
      const Op op = node->op();
      if (op == ops::kPartitionedCall || op == ops::kStatefulPartitionedCall) {
        CheckCall(*node, place, "f", "Tin", "Tout");
      } else if (op == ops::kIf || op == ops::kStatelessIf) {
        CheckCall(*node, place, "then_branch", "Tin", "Tout");
        CheckCall(*node, place, "else_branch", "Tin", "Tout");
      } else if (op == ops::kWhile || op == ops::kStatelessWhile) {
        CheckCall(*node, place, "cond", "T", "");
        CheckCall(*node, place, "body", "T", "T");
      } else if (op == ops::kCase || op == ops::kStatelessCase) {
        CheckCall(*node, place, "branches", "Tin", "Tout");
      }
    }
  }

  // Compares the types that attributes `in` and `out` (may be empty) list with the inputs and outputs of the functions
  // in attribute `key`.
  void CheckCall(const Node& node, absl::string_view place, absl::string_view key, absl::string_view in,
                 absl::string_view out) {
    const AttrValue* attr = node.FindAttr(key);
    if (attr == nullptr) {
      Report(absl::StrCat(place, node.Describe(), ": attr '", key, "' is missing"));
      return;
    }
    std::vector<FunctionRef> functions;
    if (absl::StatusOr<FunctionRef> function = attr->AsFunction(); function.ok()) {
      functions.push_back(*std::move(function));
    } else if (auto list = attr->AsFunctionList(); list.ok()) {
      functions = *std::move(list);
    }
    for (FunctionRef& function : functions) {
      if (library_.Find(function.name) == nullptr) continue;  // Already reported.
      Compare(node, place, in, function, library_.InputTypes(function), "takes");
      if (!out.empty()) Compare(node, place, out, function, library_.OutputTypes(function), "returns");
      if (!library_.Find(function.name)->signature().attrs.empty()) Add(std::move(function));
    }
  }

  void Compare(const Node& node, absl::string_view place, absl::string_view key, const FunctionRef& function,
               const absl::StatusOr<std::vector<DType>>& expected, absl::string_view verb) {
    const absl::StatusOr<std::vector<DType>> found = TypeListAttr(node, key);
    if (!found.ok() || !expected.ok()) {
      Report(absl::StrCat(place, node.Describe(), ": ",
                          found.ok() ? expected.status().message() : found.status().message()));
      return;
    }
    const auto text = [](const std::vector<DType>& types) {
      return absl::StrJoin(types, " ", [](std::string* to, DType type) { to->append(DTypeName(type)); });
    };
    if (*found == *expected) return;
    Report(absl::StrCat(place, node.Describe(), ": attr '", key, "' is (", text(*found), "), but function '",
                        function.name, "' ", verb, " (", text(*expected), ")"));
  }

  const FunctionLibrary& library_;
  absl::flat_hash_set<std::string> seen_;
  std::vector<FunctionRef> waiting_;
  ProblemList problems_;
};

}  // namespace

absl::Status ValidateFunctions(const Graph& graph) {
  absl::StatusOr<FunctionLibrary> library = FunctionLibrary::Of(graph);
  if (!library.ok()) return absl::InvalidArgumentError(library.status().message());
  return FunctionValidator(*library).Run(graph);
}

}  // namespace permafrost
