// Runs the ops that call functions: a plain call, a branch, a loop.
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/program/functions.h"
#include "runtime_check/program/fused_loop.h"

namespace permafrost {
namespace {

// Evaluates a condition as TensorFlow does: a scalar is true unless it is zero or an empty string, any other tensor
// unless it has no elements.
absl::StatusOr<bool> IsTrue(const Value& value) {
  if (value.shape.rank() > 0) return value.shape.num_elements() > 0;
  if (value.dtype == DType::kString) return !value.strings->front().empty();
  bool result = false;
  const bool known =
      DispatchOn<bool, float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(
          value.dtype, [&](auto tag) {
            using T = typename decltype(tag)::type;
            T number;
            std::memcpy(&number, value.data, sizeof(number));
            result = number != T(0);
          });
  if (!known) return absl::UnimplementedError(absl::StrCat("a condition of type ", DTypeName(value.dtype)));
  return result;
}

absl::StatusOr<size_t> Branch(const Value& index, size_t count) {
  if (index.dtype != DType::kInt32 || index.shape.rank() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the branch index is ", DTypeName(index.dtype), " ",
                                                   index.shape.ToString(), ", expected an int32 scalar"));
  }
  int32_t number;
  std::memcpy(&number, index.data, sizeof(number));
  // An index out of range selects the last branch.
  return number < 0 || static_cast<size_t>(number) >= count ? count - 1 : static_cast<size_t>(number);
}

absl::Status CheckNotCancelled(const Environment& environment, int64_t iteration, const std::string& body) {
  if (environment.limits == nullptr) return absl::OkStatus();
  return environment.limits->CheckIteration(iteration, body);
}

absl::StatusOr<std::vector<Passed>> While(const Program& program, const ProgramNode& node,
                                          std::vector<Passed> arguments, const Environment& environment) {
  const FunctionCall& call = program.calls[node.call];
  CompiledFunction& condition = *call.functions[0];
  CompiledFunction& body = *call.functions[1];
  if constexpr (kFusesLoops) {
    if (environment.fuse_loops) {
      std::shared_ptr<FusedLoop>& fused = *call.fused;
      if (fused == nullptr) {
        fused = FusedLoop::OfWhile(program, node, condition.program(), body.program(), body.name());
      }
      PF_ASSIGN_OR_RETURN(std::optional<std::vector<Passed>> results, fused->Run(arguments, environment));
      if (results.has_value()) return *std::move(results);
    }
  }
  for (int64_t iteration = 1;; ++iteration) {
    {
      PF_ASSIGN_OR_RETURN(const std::vector<Passed> decision, condition.Call(arguments, environment));
      if (decision.size() != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("function '", condition.name(), "' gives ", decision.size(), " results, expected 1"));
      }
      PF_ASSIGN_OR_RETURN(const bool again, IsTrue(decision[0].value));
      if (!again) return arguments;
    }
    PF_ASSIGN_OR_RETURN(arguments, body.Call(arguments, environment));
    PF_RETURN_IF_ERROR(CheckNotCancelled(environment, iteration, body.name()));
  }
}

}  // namespace

absl::StatusOr<std::vector<Passed>> RunCall(const Program& program, const ProgramNode& node,
                                            std::vector<Passed> arguments, const Environment& environment) {
  const FunctionCall& call = program.calls[node.call];
  if (call.kind == FunctionCall::Kind::kWhile) return While(program, node, std::move(arguments), environment);
  size_t choice = 0;
  if (call.kind == FunctionCall::Kind::kIf) {
    PF_ASSIGN_OR_RETURN(const bool condition, IsTrue(arguments[0].value));
    choice = condition ? 0 : 1;
  } else if (call.kind == FunctionCall::Kind::kCase) {
    PF_ASSIGN_OR_RETURN(choice, Branch(arguments[0].value, call.functions.size()));
  }
  const size_t first = call.kind == FunctionCall::Kind::kCall ? 0 : 1;
  return call.functions[choice]->Call(absl::MakeConstSpan(arguments).subspan(first), environment);
}

}  // namespace permafrost
