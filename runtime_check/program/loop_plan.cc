// Runs fused loops.
#ifndef SELECTIVE_REGISTRATION
#include "runtime_check/program/loop_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/kernels/tensor_array.h"
#include "runtime_check/kernels/tensor_list.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// Elements of a step that are worth a thread of their own: several microseconds of arithmetic.
constexpr int64_t kGrain = 1 << 14;

int64_t Compute(const IntegerStep& step, int64_t a, int64_t b) {
  using Function = IntegerStep::Function;
  const auto wrapped = [&](uint64_t value) {
    return step.dtype == DType::kInt32 ? static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(value)))
                                       : static_cast<int64_t>(value);
  };
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (step.function) {
    case Function::kAdd:
      return wrapped(x + y);
    case Function::kSubtract:
      return wrapped(x - y);
    case Function::kMultiply:
      return wrapped(x * y);
    case Function::kMinimum:
      return std::min(a, b);
    case Function::kMaximum:
      return std::max(a, b);
    case Function::kLess:
      return a < b;
    case Function::kLessEqual:
      return a <= b;
    case Function::kGreater:
      return a > b;
    case Function::kGreaterEqual:
      return a >= b;
    case Function::kEqual:
      return a == b;
    case Function::kNotEqual:
      return a != b;
    case Function::kAnd:
      return a != 0 && b != 0;
    case Function::kOr:
      return a != 0 || b != 0;
    case Function::kNot:
      return a == 0;
    case Function::kConvert:
      return step.dtype == DType::kBool ? a != 0 : wrapped(x);
  }
  return 0;
}

void WriteInteger(DType dtype, int64_t value, char* data) {
  if (dtype == DType::kBool) {
    *data = value != 0 ? 1 : 0;
  } else if (dtype == DType::kInt32) {
    const auto narrow = static_cast<int32_t>(value);
    std::memcpy(data, &narrow, sizeof(narrow));
  } else {
    std::memcpy(data, &value, sizeof(value));
  }
}

// Copies rows of elements of `size` bytes.
void CopyRows(const LoopRows& from, const char* source, const LoopRows& to, char* target, size_t size) {
  const auto bytes = static_cast<size_t>(from.columns) * size;
  if (from.IsDense() && to.IsDense()) {
    if (from.rows * from.columns > 0) std::memcpy(target, source, static_cast<size_t>(from.rows) * bytes);
    return;
  }
  for (int64_t r = 0; r < from.rows; ++r) {
    const char* in = source + r * from.row_step * static_cast<int64_t>(size);
    char* out = target + r * to.row_step * static_cast<int64_t>(size);
    if (from.columns <= 1 || from.column_step == 1) {
      if (bytes > 0) std::memcpy(out, in, bytes);
      continue;
    }
    for (int64_t c = 0; c < from.columns; ++c) {
      std::memcpy(out + c * static_cast<int64_t>(size), in + c * from.column_step * static_cast<int64_t>(size), size);
    }
  }
}

}  // namespace

int64_t ReadLoopInteger(DType dtype, const char* data) {
  if (dtype == DType::kBool) return *data != 0 ? 1 : 0;
  if (dtype == DType::kInt32) {
    int32_t value;
    std::memcpy(&value, data, sizeof(value));
    return value;
  }
  int64_t value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

void LoopMatrix::PackFrom(const InnerLoops& loops, const char* data, float* packed) const {
  const float* first = reinterpret_cast<const float*>(data) + source.offset;
  Pack(loops, shape, first, is_transposed ? 1 : source.row_step, is_transposed ? source.row_step : 1, packed);
}

// One run of a plan.
class LoopRun {
 public:
  LoopRun(LoopPlan* plan, absl::Span<const Passed> arguments, const Environment& environment)
      : plan_(*plan), arguments_(arguments), environment_(environment), registers_(plan->registers_) {}

  absl::StatusOr<std::optional<std::vector<Passed>>> Run() {
    PF_ASSIGN_OR_RETURN(bool is_possible, Begin());
    int64_t num_done = 0;
    while (is_possible) {
      const int64_t count = PlanAhead();
      if (count == 0) break;
      PF_ASSIGN_OR_RETURN(is_possible, Collect(count));
      if (!is_possible) break;
      RunBatched(count);
      for (int64_t i = 0; i < count && is_possible; ++i) {
        PF_RETURN_IF_ERROR(RunIteration(i));
        PF_ASSIGN_OR_RETURN(is_possible, Write(i));
        UpdateStates();
        if (environment_.limits != nullptr) {
          PF_RETURN_IF_ERROR(environment_.limits->CheckIteration(++num_done, plan_.name_));
        }
      }
    }
    if (!is_possible) return std::nullopt;
    plan_.most_iterations_ = std::max(plan_.most_iterations_, num_planned_);
    return Finish();
  }

 private:
  char* At(const LoopRows& rows) const {
    return pointers_[rows.base] + rows.offset * static_cast<int64_t>(SizeOf(rows.dtype));
  }
  float* FloatsAt(const LoopRows& rows) const { return reinterpret_cast<float*>(At(rows)); }

  // A list or array that the loop reads or writes.
  struct Access {
    const ElementStore* elements = nullptr;
    std::shared_ptr<TensorArray> array;
    std::shared_ptr<TensorList> list;
    std::vector<bool> is_read;  // Of an array: by element.
  };

  absl::StatusOr<Access> AccessOf(int variable, bool is_array) {
    Access access;
    const Value& value = arguments_[variable].value;
    if (is_array) {
      PF_ASSIGN_OR_RETURN(access.array, ObjectAs<TensorArray>(value.objects->front()));
      access.elements = &access.array->elements;
      access.is_read.assign(static_cast<size_t>(access.elements->size()), false);
    } else {
      PF_ASSIGN_OR_RETURN(access.list, ObjectAs<TensorList>(value.objects->front()));
      access.elements = &access.list->elements;
    }
    return access;
  }

  // Binds the arguments. Returns false if the plan cannot run.
  absl::StatusOr<bool> Begin() {
    pointers_.resize(plan_.bases_.size(), nullptr);
    for (size_t i = 0; i < plan_.bases_.size(); ++i) {
      const LoopBase& base = plan_.bases_[i];
      if (base.kind == LoopBase::Kind::kBuffer) pointers_[i] = plan_.arena_ + base.offset;
      if (base.kind == LoopBase::Kind::kConstant) pointers_[i] = const_cast<char*>(base.constant.bytes().data());
      if (base.kind == LoopBase::Kind::kArgument) pointers_[i] = arguments_[base.index].value.data;
    }
    for (const LoopCounter& counter : plan_.counters_) {
      registers_[counter.current] = ReadLoopInteger(counter.dtype, arguments_[counter.variable].value.data);
    }
    for (const LoopState& state : plan_.states_) {
      const Value& value = arguments_[state.variable].value;
      PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(value.dtype, value.shape));
      if (bytes > 0) std::memcpy(At(state.current), value.data, static_cast<size_t>(bytes));
    }
    for (LoopMatrix& matrix : plan_.matrices_) {
      if (matrix.constant == nullptr) {
        matrix.PackFrom(*plan_.loops_, pointers_[matrix.source.base], matrix.own.data());
      }
    }
    for (const LoopRead& read : plan_.reads_) {
      PF_ASSIGN_OR_RETURN(reads_.emplace_back(), AccessOf(read.variable, read.is_array));
    }
    for (const LoopWrite& write : plan_.writes_) {
      PF_ASSIGN_OR_RETURN(writes_.emplace_back(), AccessOf(write.variable, write.is_array));
      made_.emplace_back();
    }
    next_.resize(plan_.counters_.size());
    return !SharesArrays();
  }

  // Returns whether an array is accessed through two variables, in an order that the plan does not keep.
  bool SharesArrays() const {
    for (size_t w = 0; w < writes_.size(); ++w) {
      if (writes_[w].array == nullptr) continue;
      const auto is_same = [&](const Access& other) { return other.array == writes_[w].array; };
      if (std::any_of(reads_.begin(), reads_.end(), is_same)) return true;
      if (std::count_if(writes_.begin(), writes_.end(), is_same) > 1) return true;
    }
    for (size_t r = 0; r < reads_.size(); ++r) {
      const auto is_same = [&](const Access& other) {
        return other.array != nullptr && other.array == reads_[r].array && other.array->clears_after_read;
      };
      if (std::count_if(reads_.begin(), reads_.end(), is_same) > 1) return true;
    }
    return false;
  }

  // Computes the registers of the next iterations, up to the number that is batched. Returns that number; 0 if the loop
  // has ended.
  int64_t PlanAhead() {
    watched_.clear();
    int64_t count = 0;
    for (; count < plan_.ahead_ && !has_ended_; ++count) {
      for (const IntegerStep& step : plan_.integers_) {
        registers_[step.result] = Compute(step, registers_[step.a], registers_[step.b]);
      }
      if (registers_[plan_.condition_] == 0) {
        has_ended_ = true;
        break;
      }
      for (const int reg : plan_.watched_) watched_.push_back(registers_[reg]);
      // All variables change at the same time.
      for (size_t i = 0; i < plan_.counters_.size(); ++i) {
        const LoopCounter& counter = plan_.counters_[i];
        next_[i] = registers_[counter.next < 0 ? counter.current : counter.next];
      }
      for (size_t i = 0; i < plan_.counters_.size(); ++i) registers_[plan_.counters_[i].current] = next_[i];
    }
    num_planned_ += count;
    return count;
  }

  int64_t Watched(int64_t iteration, int watched) const {
    return watched_[static_cast<size_t>(iteration) * plan_.watched_.size() + static_cast<size_t>(watched)];
  }

  // Finds the elements that the next `count` iterations read. Returns false if one does not fit.
  absl::StatusOr<bool> Collect(int64_t count) {
    elements_.resize(plan_.reads_.size());
    for (size_t r = 0; r < plan_.reads_.size(); ++r) {
      const LoopRead& read = plan_.reads_[r];
      Access& access = reads_[r];
      elements_[r].clear();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t index = Watched(i, read.watched);
        if (index < 0 || index >= access.elements->size()) return false;
        if (access.array != nullptr) {
          const auto position = static_cast<size_t>(index);
          if (access.array->cleared[position]) return false;
          if (access.is_read[position] && access.array->clears_after_read) return false;
          access.is_read[position] = true;
        }
        const ElementRef& element = (*access.elements)[index];
        if (element == nullptr) {
          elements_[r].push_back(plan_.zeros_);
          continue;
        }
        if (element->tensor.dtype() != read.dtype || element->tensor.shape() != read.shape) return false;
        elements_[r].push_back(element->tensor.bytes().data());
      }
    }
    return true;
  }

  void RunBatched(int64_t count) {
    for (size_t b = 0; b < plan_.batched_.size(); ++b) {
      const BatchedProduct& batched = plan_.batched_[b];
      const LoopMatrix& matrix = plan_.matrices_[batched.matrix];
      const int64_t depth = batched.range.end - batched.range.begin;
      const int64_t size = batched.rows * depth;
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(plan_.gathered_[b] + i * size, elements_[batched.read][static_cast<size_t>(i)],
                    static_cast<size_t>(size) * sizeof(float));
      }
      ParallelMultiplyPart(*plan_.loops_, *environment_.threads, count * batched.rows, matrix.shape, batched.range,
                           plan_.gathered_[b], depth, matrix.packed(), plan_.results_[b], matrix.shape.columns);
    }
  }

  absl::Status RunIteration(int64_t i) {
    for (size_t r = 0; r < plan_.reads_.size(); ++r) {
      pointers_[plan_.reads_[r].base] = const_cast<char*>(elements_[r][static_cast<size_t>(i)]);
    }
    for (size_t b = 0; b < plan_.batched_.size(); ++b) {
      const BatchedProduct& batched = plan_.batched_[b];
      pointers_[batched.base] =
          reinterpret_cast<char*>(plan_.results_[b] + i * batched.rows * plan_.matrices_[batched.matrix].shape.columns);
    }
    for (const LoopStep& step : plan_.steps_) PF_RETURN_IF_ERROR(RunStep(step, i));
    return absl::OkStatus();
  }

  // Calls body(row, count) for each row of the result, on all threads where that pays. Rows without gaps are one.
  template <typename Body>
  void ForEachRow(const LoopStep& step, int num_inputs, Body body) const {
    const int64_t rows = step.out.rows, columns = step.out.columns;
    bool is_whole = step.out.IsDense();
    for (int i = 0; i < num_inputs; ++i) {
      const LoopRows& in = step.in[i];
      const bool is_one = in.column_step == 0 && in.row_step == 0;
      const bool is_dense = in.column_step == 1 && (rows == 1 || in.row_step == columns);
      is_whole = is_whole && (is_one || is_dense);
    }
    if (is_whole && rows * columns < 2 * kGrain) {
      body(0, rows * columns);
      return;
    }
    environment_.threads->ParallelFor(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1)),
                                      [&](int64_t begin, int64_t end) {
                                        for (int64_t r = begin; r < end; ++r) body(r, columns);
                                      });
  }

  absl::Status RunStep(const LoopStep& step, int64_t iteration) {
    switch (step.kind) {
      case LoopStep::Kind::kProduct: {
        const LoopMatrix& matrix = plan_.matrices_[step.matrix];
        ParallelMultiplyPart(*plan_.loops_, *environment_.threads, step.in[0].rows, matrix.shape, step.range,
                             FloatsAt(step.in[0]), step.in[0].row_step, matrix.packed(), FloatsAt(step.out),
                             step.out.row_step);
        return absl::OkStatus();
      }
      case LoopStep::Kind::kFunction: {
        const float *x = FloatsAt(step.in[0]), *y = FloatsAt(step.in[1]);
        float* z = FloatsAt(step.out);
        ForEachRow(step, 2, [&](int64_t r, int64_t count) {
          ApplyToRow(step.function, x + r * step.in[0].row_step, step.in[0].column_step == 0,
                     y + r * step.in[1].row_step, step.in[1].column_step == 0, z + r * step.out.row_step, count);
        });
        return absl::OkStatus();
      }
      case LoopStep::Kind::kUnary: {
        const float* x = FloatsAt(step.in[0]);
        float* z = FloatsAt(step.out);
        ForEachRow(step, 1, [&](int64_t r, int64_t count) {
          step.unary(count, x + r * step.in[0].row_step, z + r * step.out.row_step);
        });
        return absl::OkStatus();
      }
      case LoopStep::Kind::kSelect: {
        const bool* condition = reinterpret_cast<const bool*>(At(step.in[0]));
        const float *x = FloatsAt(step.in[1]), *y = FloatsAt(step.in[2]);
        float* z = FloatsAt(step.out);
        ForEachRow(step, 3, [&](int64_t r, int64_t count) {
          SelectInRow(condition + r * step.in[0].row_step, step.in[0].column_step == 0, x + r * step.in[1].row_step,
                      step.in[1].column_step == 0, y + r * step.in[2].row_step, step.in[2].column_step == 0,
                      z + r * step.out.row_step, count);
        });
        return absl::OkStatus();
      }
      case LoopStep::Kind::kCopy:
        CopyRows(step.in[0], At(step.in[0]), step.out, At(step.out), SizeOf(step.out.dtype));
        return absl::OkStatus();
      case LoopStep::Kind::kScalar:
        WriteInteger(step.out.dtype, Watched(iteration, step.watched), At(step.out));
        return absl::OkStatus();
      case LoopStep::Kind::kKernel:
        return RunKernelStep(plan_.kernels_[step.kernel].get());
    }
    return absl::OkStatus();
  }

  absl::Status RunKernelStep(LoopKernel* kernel) {
    for (size_t i = 0; i < kernel->in.size(); ++i) {
      kernel->inputs[i].data = kernel->prepared.released[i] ? nullptr : At(kernel->in[i]);
    }
    for (size_t i = 0; i < kernel->out.size(); ++i) kernel->outputs[i].data = At(kernel->out[i]);
    NodeContext context(kernel->node, kernel->input_pointers, kernel->outputs.data(),
                        static_cast<int>(kernel->outputs.size()), plan_.scratch_, kernel->prepared.state.get(),
                        &environment_);
    return Annotate(RunKernel(kernel->prepared.compute, &context), kernel->node->Describe());
  }

  // An element that this run made, which it may overwrite until the end.
  struct Made {
    std::shared_ptr<StoredElement> element;
    char* data = nullptr;
  };

  // Stores the elements that the iteration writes. Returns false if one does not fit.
  absl::StatusOr<bool> Write(int64_t i) {
    for (size_t w = 0; w < plan_.writes_.size(); ++w) {
      const LoopWrite& write = plan_.writes_[w];
      const Access& access = writes_[w];
      const int64_t index = Watched(i, write.watched);
      const bool is_inside = index >= 0 && index < access.elements->size();
      if (access.array == nullptr) {
        if (!is_inside) return false;
      } else {
        if (index < 0 || (!is_inside && !access.array->is_dynamic) || made_[w].contains(index)) return false;
        if (is_inside && ((*access.elements)[index] != nullptr || access.array->cleared[static_cast<size_t>(index)])) {
          return false;
        }
      }
      Made& made = made_[w][index];
      if (made.element == nullptr) {
        made.element = std::make_shared<StoredElement>();
        PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(write.value.dtype, write.value.shape));
        PF_ASSIGN_OR_RETURN(made.element->reservation, Reservation::Take(environment_.budget, bytes, "an element"));
        PF_ASSIGN_OR_RETURN(made.element->tensor, Tensor::Allocate(write.value.dtype, write.value.shape, &made.data));
      }
      LoopRows dense = write.value;
      dense.row_step = dense.columns;
      dense.column_step = 1;
      CopyRows(write.value, At(write.value), dense, made.data, SizeOf(write.value.dtype));
    }
    return true;
  }

  void UpdateStates() {
    for (const LoopState& state : plan_.states_) {
      if (state.IsUnchanged()) continue;
      CopyRows(state.next, At(state.next), state.current, At(state.current), SizeOf(state.current.dtype));
    }
  }

  absl::StatusOr<std::optional<std::vector<Passed>>> Finish() {
    std::vector<Passed> results(arguments_.begin(), arguments_.end());
    if (num_planned_ == 0) return results;
    for (const LoopCounter& counter : plan_.counters_) {
      if (counter.next < 0) continue;
      PF_ASSIGN_OR_RETURN(Passed result, NewResult(counter.dtype, Shape()));
      WriteInteger(counter.dtype, registers_[counter.current], result.value.data);
      results[counter.variable] = std::move(result);
    }
    for (const LoopState& state : plan_.states_) {
      if (state.IsUnchanged()) continue;
      PF_ASSIGN_OR_RETURN(Passed result, NewResult(state.current.dtype, state.current.shape));
      CopyRows(state.current, At(state.current), state.current, result.value.data, SizeOf(state.current.dtype));
      results[state.variable] = std::move(result);
    }
    std::vector<Passed> lists(plan_.writes_.size());
    for (size_t w = 0; w < plan_.writes_.size(); ++w) {
      if (writes_[w].list == nullptr) continue;
      PF_ASSIGN_OR_RETURN(lists[w], NewList(*writes_[w].list, &made_[w]));
      results[plan_.writes_[w].variable] = lists[w];
    }
    PF_RETURN_IF_ERROR(FinishArrays());
    return results;
  }

  absl::StatusOr<Passed> NewResult(DType dtype, const Shape& shape) {
    Passed result;
    result.held = std::make_shared<HeapOutput>();
    PF_ASSIGN_OR_RETURN(*result.held, AllocateHeapOutput(dtype, shape, environment_.budget, &result.value));
    return result;
  }

  absl::StatusOr<Passed> NewList(const TensorList& before, absl::flat_hash_map<int64_t, Made>* made) {
    auto list = std::make_shared<TensorList>();
    list->dtype = before.dtype;
    list->shape = before.shape;
    list->most = before.most;
    PF_ASSIGN_OR_RETURN(list->elements, before.elements.Copy(environment_.budget));
    for (auto& [index, element] : *made) list->elements.Set(index, std::move(element.element));
    PF_ASSIGN_OR_RETURN(Passed result, NewResult(DType::kVariant, Shape()));
    result.value.objects->front() = std::move(list);
    return result;
  }

  // Applies the accesses to tensor arrays, which were checked before.
  absl::Status FinishArrays() {
    for (const Access& access : reads_) {
      if (access.array == nullptr || !access.array->clears_after_read) continue;
      for (size_t i = 0; i < access.is_read.size(); ++i) {
        if (access.is_read[i]) {
          PF_RETURN_IF_ERROR(GetElement(access.array.get(), static_cast<int64_t>(i)).status());
        }
      }
    }
    for (size_t w = 0; w < plan_.writes_.size(); ++w) {
      if (writes_[w].array == nullptr) continue;
      for (auto& [index, element] : made_[w]) {
        PF_RETURN_IF_ERROR(PutElement(environment_.budget, writes_[w].array.get(), index, std::move(element.element)));
      }
    }
    return absl::OkStatus();
  }

  LoopPlan& plan_;
  absl::Span<const Passed> arguments_;
  const Environment& environment_;
  std::vector<int64_t> registers_;
  std::vector<int64_t> next_;     // By counter.
  std::vector<int64_t> watched_;  // By iteration and watched register.
  bool has_ended_ = false;
  int64_t num_planned_ = 0;      // Iterations.
  std::vector<char*> pointers_;  // By base.
  std::vector<Access> reads_, writes_;
  std::vector<std::vector<const char*>> elements_;        // By read and iteration.
  std::vector<absl::flat_hash_map<int64_t, Made>> made_;  // By write and index.
};

absl::StatusOr<std::optional<std::vector<Passed>>> LoopPlan::Run(absl::Span<const Passed> arguments,
                                                                 const Environment& environment) {
  return LoopRun(this, arguments, environment).Run();
}

std::vector<std::string> LoopPlan::Describe() const {
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat(steps_.size(), " steps in each of up to ", most_iterations_, " iterations"));
  for (const BatchedProduct& batched : batched_) {
    const PackedShape& shape = matrices_[batched.matrix].shape;
    lines.push_back(absl::StrCat("product of ", batched.rows, "x", batched.range.end - batched.range.begin, " and ",
                                 batched.range.end - batched.range.begin, "x", shape.columns,
                                 ahead_ == 1 ? "" : absl::StrCat(" for up to ", ahead_, " iterations at once")));
  }
  for (const LoopStep& step : steps_) {
    if (step.kind == LoopStep::Kind::kProduct) {
      lines.push_back(absl::StrCat("product of ", step.in[0].rows, "x", step.in[0].columns, " and ",
                                   step.range.end - step.range.begin, "x", matrices_[step.matrix].shape.columns));
    } else if (step.kind == LoopStep::Kind::kKernel) {
      lines.push_back(absl::StrCat("kernel of ", kernels_[step.kernel]->node->Describe()));
    }
  }
  return lines;
}

}  // namespace permafrost

#endif
