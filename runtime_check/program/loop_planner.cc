// Turns the nodes of a loop into steps.
#ifndef SELECTIVE_REGISTRATION
#include "runtime_check/program/loop_planner.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/kernels/tensor_array.h"
#include "runtime_check/kernels/tensor_list.h"
#include "runtime_check/planning/buffer_placement.h"

namespace permafrost {
namespace {

using Function = IntegerStep::Function;

// Results of batched products take this much memory at once, so that they stay in the cache between the product and
// their use: half of a second-level cache of 1 MB.
constexpr int64_t kBatchedBytes = 512 << 10;
constexpr int64_t kMostAhead = 128;
// Constants up to this size are computed before the loop; larger ones are weights, which steps read where they are.
constexpr int64_t kMostFolded = 64 << 10;

absl::Status Declined(absl::string_view reason) { return absl::UnimplementedError(reason); }

// The ops that are computed in registers when their operands are integer scalars, and in rows of floats.
struct BinaryRow {
  ops::OpId op;
  std::optional<Function> integers;
  std::optional<RowFunction> rows;
};
constexpr BinaryRow kBinaries[] = {
    {ops::kAdd, Function::kAdd, RowFunction::kAdd},
    {ops::kAddV2, Function::kAdd, RowFunction::kAdd},
    {ops::kSub, Function::kSubtract, RowFunction::kSubtract},
    {ops::kMul, Function::kMultiply, RowFunction::kMultiply},
    {ops::kRealDiv, std::nullopt, RowFunction::kDivide},
    {ops::kMaximum, Function::kMaximum, RowFunction::kMaximum},
    {ops::kMinimum, Function::kMinimum, RowFunction::kMinimum},
    {ops::kSquaredDifference, std::nullopt, RowFunction::kSquaredDifference},
    {ops::kLess, Function::kLess, std::nullopt},
    {ops::kLessEqual, Function::kLessEqual, std::nullopt},
    {ops::kGreater, Function::kGreater, std::nullopt},
    {ops::kGreaterEqual, Function::kGreaterEqual, std::nullopt},
    {ops::kEqual, Function::kEqual, std::nullopt},
    {ops::kNotEqual, Function::kNotEqual, std::nullopt},
    {ops::kLogicalAnd, Function::kAnd, std::nullopt},
    {ops::kLogicalOr, Function::kOr, std::nullopt},
};

const BinaryRow* FindBinary(Op op) {
  const auto* found =
      std::find_if(std::begin(kBinaries), std::end(kBinaries), [&](const BinaryRow& row) { return op == row.op; });
  return found == std::end(kBinaries) ? nullptr : found;
}

bool GivesBool(Function function) { return function >= Function::kLess && function <= Function::kNot; }

bool IsInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kBool; }

// Ops whose cost is not in their elements: the delegate, or the plan of the body, computes them better.
bool IsHeavy(Op op) {
  static constexpr ops::OpId kHeavy[] = {
      ops::kMatMul, ops::kBatchMatMul, ops::kBatchMatMulV2,         ops::kEinsum,
      ops::kConv2D, ops::kConv3D,      ops::kDepthwiseConv2dNative, ops::kConv2DBackpropInput};
  return std::any_of(std::begin(kHeavy), std::end(kHeavy), [&](ops::OpId heavy) { return op == heavy; });
}

// The representation of a tensor of the loop in the plan.
struct Term {
  enum class Kind : uint8_t { kRows, kInteger, kObject, kJoined };
  Kind kind = Kind::kRows;
  LoopRows rows;
  int reg = -1;                    // kInteger.
  DType dtype = DType::kInvalid;   // kInteger.
  int variable = -1;               // kObject.
  int write = -1;                  // kObject: the write that made this state of the list; -1 for the variable itself.
  std::vector<LoopRows> parts;     // kJoined: columns side by side, which only a product reads.
  const Node* constant = nullptr;  // The Const that holds exactly these rows.
  int constant_port = 0;
};

}  // namespace

class LoopPlanner {
 public:
  LoopPlanner(const LoopRequest& request, const Environment& environment)
      : request_(request), form_(*request.form), environment_(environment), plan_(std::make_unique<LoopPlan>()) {}

  absl::StatusOr<std::unique_ptr<LoopPlan>> Make() {
    plan_->name_ = request_.name;
    plan_->loops_ = &BestInnerLoops();
    for (size_t i = 0; i < form_.variables.size(); ++i) PF_RETURN_IF_ERROR(AddVariable(static_cast<int>(i)));
    in_condition_ = true;
    for (const Node* node : form_.condition_nodes) PF_RETURN_IF_ERROR(Add(*node));
    in_condition_ = false;
    for (const Node* node : form_.body_nodes) PF_RETURN_IF_ERROR(Add(*node));
    PF_RETURN_IF_ERROR(Close());
    if (plan_->matrices_.empty()) return Declined("no product with a matrix that stays the same in all iterations");
    PF_RETURN_IF_ERROR(Allocate());
    return std::move(plan_);
  }

 private:
  // --- Terms --------------------------------------------------------------------------------------------------------
  absl::StatusOr<Term*> Find(TensorRef ref) {
    const auto found = terms_.find(ref);
    if (found == terms_.end()) return Declined(absl::StrCat("'", ref.ToString(), "' comes from outside of the loop"));
    return &found->second;
  }

  void Define(const Node& node, int port, Term term) {
    terms_.insert_or_assign(TensorRef{const_cast<Node*>(&node), port}, std::move(term));
  }

  int AddBase(LoopBase::Kind kind, int index) {
    LoopBase& base = plan_->bases_.emplace_back();
    base.kind = kind;
    base.index = index;
    base.first = static_cast<int>(plan_->steps_.size());
    base.last = base.first;
    return static_cast<int>(plan_->bases_.size()) - 1;
  }

  static LoopRows Dense(DType dtype, const Shape& shape, int base) {
    LoopRows rows;
    rows.dtype = dtype;
    rows.shape = shape;
    rows.base = base;
    const int rank = shape.rank();
    rows.columns = rank == 0 ? 1 : shape.dim(rank - 1);
    rows.rows = 1;
    for (int i = 0; i + 1 < rank; ++i) rows.rows *= shape.dim(i);
    rows.row_step = rows.columns;
    return rows;
  }

  absl::StatusOr<LoopRows> NewBuffer(DType dtype, const Shape& shape) {
    const int base = AddBase(LoopBase::Kind::kBuffer, -1);
    PF_ASSIGN_OR_RETURN(plan_->bases_[base].bytes, ValueBytes(dtype, shape));
    return Dense(dtype, shape, base);
  }

  static Term OfRows(LoopRows rows) {
    Term term;
    term.rows = std::move(rows);
    return term;
  }
  static Term OfInteger(int reg, DType dtype) {
    Term term;
    term.kind = Term::Kind::kInteger;
    term.reg = reg;
    term.dtype = dtype;
    return term;
  }

  int NewRegister(int64_t value = 0) {
    plan_->registers_.push_back(value);
    return static_cast<int>(plan_->registers_.size()) - 1;
  }

  int Watch(int reg) {
    std::vector<int>& watched = plan_->watched_;
    const auto found = std::find(watched.begin(), watched.end(), reg);
    if (found != watched.end()) return static_cast<int>(found - watched.begin());
    watched.push_back(reg);
    return static_cast<int>(watched.size()) - 1;
  }

  // Adds a step. Its buffers live at least until it.
  void AddStep(LoopStep step) {
    const auto position = static_cast<int>(plan_->steps_.size());
    const auto use = [&](const LoopRows& rows) {
      if (rows.base >= 0) plan_->bases_[rows.base].last = position;
    };
    for (const LoopRows& rows : step.in) use(rows);
    use(step.out);
    if (step.kernel >= 0) {
      for (const LoopRows& rows : plan_->kernels_[step.kernel]->in) use(rows);
      for (const LoopRows& rows : plan_->kernels_[step.kernel]->out) {
        use(rows);
        plan_->bases_[rows.base].first = position;
      }
    }
    plan_->steps_.push_back(std::move(step));
  }

  // Returns the rows of a term; a scalar in a register is written to memory.
  absl::StatusOr<LoopRows> RowsOf(Term* term) {
    switch (term->kind) {
      case Term::Kind::kRows:
        return term->rows;
      case Term::Kind::kInteger: {
        PF_ASSIGN_OR_RETURN(const LoopRows rows, NewBuffer(term->dtype, Shape()));
        LoopStep step;
        step.kind = LoopStep::Kind::kScalar;
        step.out = rows;
        step.watched = Watch(term->reg);
        AddStep(std::move(step));
        return rows;
      }
      case Term::Kind::kJoined: {
        PF_ASSIGN_OR_RETURN(const LoopRows joined, NewBuffer(term->rows.dtype, term->rows.shape));
        int64_t at = 0;
        for (const LoopRows& part : term->parts) {
          LoopRows to = joined;
          to.offset = at;
          to.columns = part.columns;
          at += part.columns;
          Copy(part, to);
        }
        *term = OfRows(joined);
        return joined;
      }
      case Term::Kind::kObject:
        break;
    }
    return Declined("reads a list as a whole");
  }

  void Copy(const LoopRows& from, const LoopRows& to) {
    LoopStep step;
    step.kind = LoopStep::Kind::kCopy;
    step.in[0] = from;
    step.out = to;
    AddStep(std::move(step));
  }

  // Returns the rows in one piece, aligned for kernels.
  absl::StatusOr<LoopRows> DenseRowsOf(Term* term, bool is_aligned) {
    PF_ASSIGN_OR_RETURN(const LoopRows rows, RowsOf(term));
    const bool is_at_start = rows.offset == 0 && plan_->bases_[rows.base].kind != LoopBase::Kind::kBatched;
    if (rows.IsDense() && (is_at_start || !is_aligned)) return rows;
    PF_ASSIGN_OR_RETURN(const LoopRows dense, NewBuffer(rows.dtype, rows.shape));
    Copy(rows, dense);
    return dense;
  }

  // Returns the value if it is known before the loop and small, otherwise null.
  absl::StatusOr<const Tensor*> ConstantOf(const Term& term) {
    if (term.constant == nullptr) return nullptr;
    std::unique_ptr<Tensor>& value = constants_[term.constant];
    if (value == nullptr) {
      PF_ASSIGN_OR_RETURN(const Tensor raw, ConstValue(*term.constant));
      if (raw.dtype() == DType::kString || static_cast<int64_t>(raw.bytes().size()) > kMostFolded) return nullptr;
      PF_ASSIGN_OR_RETURN(Tensor aligned, raw.Aligned());
      value = std::make_unique<Tensor>(std::move(aligned));
    }
    return value.get();
  }

  // --- Variables ----------------------------------------------------------------------------------------------------
  absl::Status AddVariable(int index) {
    const LoopVariable& variable = form_.variables[index];
    const Value& value = request_.arguments[index].value;
    Term term;
    if (HoldsObjects(value.dtype)) {
      term.kind = Term::Kind::kObject;
      term.variable = index;
    } else if (value.dtype == DType::kString || SizeOf(value.dtype) == 0) {
      return Declined(absl::StrCat("variable ", index, " is of type ", DTypeName(value.dtype)));
    } else if (IsInteger(value.dtype) && value.shape.rank() == 0) {
      term = OfInteger(NewRegister(), value.dtype);
      plan_->counters_.push_back({index, value.dtype, term.reg, -1});
      if (variable.is_invariant()) term.constant = request_.constants[index];
    } else if (variable.is_invariant()) {
      term.rows = Dense(value.dtype, value.shape, AddBase(LoopBase::Kind::kArgument, index));
      term.constant = request_.constants[index];
    } else {
      LoopState state;
      state.variable = index;
      PF_ASSIGN_OR_RETURN(state.current, NewBuffer(value.dtype, value.shape));
      term.rows = state.current;
      plan_->states_.push_back(std::move(state));
    }
    for (const TensorRef read : variable.reads) terms_.insert_or_assign(read, term);
    return absl::OkStatus();
  }

  // --- Nodes --------------------------------------------------------------------------------------------------------
  absl::Status Add(const Node& node) {
    const absl::Status status = AddNode(node);
    return status.ok() ? status : Annotate(status, node.Describe());
  }

  absl::Status AddNode(const Node& node) {
    const Op op = node.op();
    if (terms_.contains({const_cast<Node*>(&node), 0})) return absl::OkStatus();  // An argument.
    if (op == ops::kNoOp) return absl::OkStatus();
    if (op == ops::kConst) return AddConst(node);
    const auto kernel = request_.kernels->find(&node);
    if (kernel == request_.kernels->end() || kernel->second == nullptr || kernel->second->is_done_by_session()) {
      return Declined("control flow or a call inside the loop");
    }
    if (kernel->second->data() != nullptr) return Declined("has a custom kernel");
    if (op == ops::kIdentity || op == ops::kIdentityN || op == ops::kStopGradient || op == ops::kPreventGradient ||
        op == ops::kSnapshot) {
      return AddAlias(node);
    }
    if (op == ops::kTensorListGetItem) return AddRead(node, /*is_array=*/false);
    if (op == ops::kTensorArrayReadV3) return AddRead(node, /*is_array=*/true);
    if (op == ops::kTensorListSetItem) return AddWrite(node, /*is_array=*/false);
    if (op == ops::kTensorArrayWriteV3) return AddWrite(node, /*is_array=*/true);
    const OpSchema* schema = FindSchema(op);
    if (schema == nullptr || schema->traits != kPure) return Declined("has effects beyond its outputs");
    PF_ASSIGN_OR_RETURN(bool is_done, AddInteger(node));
    if (is_done) return absl::OkStatus();
    if (in_condition_) return Declined("the condition depends on more than integer scalars");
    PF_ASSIGN_OR_RETURN(is_done, AddRowStep(node));
    if (is_done) return absl::OkStatus();
    return AddKernel(node, *kernel->second);
  }

  absl::Status AddConst(const Node& node) {
    PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(node));
    return DefineConstant(node, 0, value, &node);
  }

  absl::Status DefineConstant(const Node& node, int port, const Tensor& value, const Node* constant) {
    if (value.dtype() == DType::kString || SizeOf(value.dtype()) == 0) return Declined("a constant of strings");
    Term term;
    if (IsInteger(value.dtype()) && value.shape().rank() == 0) {
      term = OfInteger(NewRegister(ReadLoopInteger(value.dtype(), value.bytes().data())), value.dtype());
    } else {
      const int base = AddBase(LoopBase::Kind::kConstant, -1);
      PF_ASSIGN_OR_RETURN(plan_->bases_[base].constant, value.Aligned());
      term.rows = Dense(value.dtype(), value.shape(), base);
    }
    term.constant = constant;
    Define(node, port, std::move(term));
    return absl::OkStatus();
  }

  absl::Status AddAlias(const Node& node) {
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      PF_ASSIGN_OR_RETURN(const Term* const input, Find(node.input(i)));
      Define(node, i, Term(*input));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> RegisterOf(TensorRef ref) {
    PF_ASSIGN_OR_RETURN(const Term* const term, Find(ref));
    if (term->kind != Term::Kind::kInteger) return Declined("an index that is no integer scalar of the loop");
    return term->reg;
  }

  // --- Lists and arrays ---------------------------------------------------------------------------------------------
  absl::Status AddRead(const Node& node, bool is_array) {
    PF_ASSIGN_OR_RETURN(const Term* const list, Find(node.input(0)));
    if (list->kind != Term::Kind::kObject || list->write >= 0 || !form_.variables[list->variable].is_invariant()) {
      return Declined("reads a list that the loop changes");
    }
    LoopRead read;
    read.variable = list->variable;
    read.is_array = is_array;
    PF_ASSIGN_OR_RETURN(const int reg, RegisterOf(node.input(1)));
    read.watched = Watch(reg);
    PF_ASSIGN_OR_RETURN(read.dtype, TypeAttr(node, is_array ? "dtype" : "element_dtype"));
    PF_ASSIGN_OR_RETURN(const ElementKind element, ElementOf(list->variable, is_array));
    if (element.dtype != read.dtype || SizeOf(read.dtype) == 0) return Declined("reads elements of another type");
    Shape shape = element.shape;
    if (!is_array) {
      PF_ASSIGN_OR_RETURN(const Term* const wanted, Find(node.input(2)));
      PF_ASSIGN_OR_RETURN(const Tensor* const dims, ConstantOf(*wanted));
      if (dims == nullptr) return Declined("the shape of the element is computed in the loop");
      PF_ASSIGN_OR_RETURN(const Shape known, ShapeFromValue(ViewOf(*dims)));
      PF_ASSIGN_OR_RETURN(shape, MergeShapes(shape, known));
    }
    if (!shape.IsFullyKnown()) return Declined("the shape of the elements is not known before the loop");
    PF_RETURN_IF_ERROR(ValueBytes(read.dtype, shape).status());
    read.shape = shape;
    read.base = AddBase(LoopBase::Kind::kRead, static_cast<int>(plan_->reads_.size()));
    Define(node, 0, OfRows(Dense(read.dtype, shape, read.base)));
    plan_->reads_.push_back(std::move(read));
    return absl::OkStatus();
  }

  struct ElementKind {
    DType dtype;
    Shape shape;
  };
  // Returns the type and shape of the elements of a list or array.
  absl::StatusOr<ElementKind> ElementOf(int variable, bool is_array) {
    const Value& value = request_.arguments[variable].value;
    if (value.objects == nullptr || value.objects->size() != 1) return Declined("reads a tensor of lists");
    const ElementStore* elements = nullptr;
    ElementKind kind;
    if (is_array) {
      PF_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ObjectAs<TensorArray>(value.objects->front()));
      if (array->is_closed) return Declined("the tensor array is closed");
      elements = &array->elements;
      kind = {array->dtype, array->shape};
    } else {
      PF_ASSIGN_OR_RETURN(const std::shared_ptr<TensorList> list, ObjectAs<TensorList>(value.objects->front()));
      elements = &list->elements;
      kind = {list->dtype, list->shape};
    }
    for (int64_t i = 0; i < elements->size() && !kind.shape.IsFullyKnown(); ++i) {
      if ((*elements)[i] != nullptr) kind.shape = (*elements)[i]->tensor.shape();
    }
    return kind;
  }

  // Inputs of a list: list, index, item. Of an array: handle, index, value, flow.
  absl::Status AddWrite(const Node& node, bool is_array) {
    PF_ASSIGN_OR_RETURN(const Term* const list, Find(node.input(0)));
    if (list->kind != Term::Kind::kObject || list->write >= 0) return Declined("writes to a list twice");
    const int variable = list->variable;
    if (form_.variables[variable].is_invariant() != is_array) return Declined("drops the list that it makes");
    for (const LoopWrite& write : plan_->writes_) {
      if (write.variable == variable) return Declined("writes to a list twice");
    }
    LoopWrite write;
    write.variable = variable;
    write.is_array = is_array;
    PF_ASSIGN_OR_RETURN(const int reg, RegisterOf(node.input(1)));
    write.watched = Watch(reg);
    PF_ASSIGN_OR_RETURN(Term * value, Find(node.input(2)));
    PF_ASSIGN_OR_RETURN(write.value, RowsOf(value));
    if (!is_array && BoolAttr(node, "resize_if_index_out_of_bounds").value_or(true)) {
      return Declined("may change the size of the list");
    }
    PF_ASSIGN_OR_RETURN(const ElementKind element, DeclaredElementOf(variable, is_array));
    if (element.dtype != write.value.dtype || !element.shape.IsCompatibleWith(write.value.shape)) {
      return Declined("writes an element of another type or shape");
    }
    Term result;
    if (is_array) {
      PF_ASSIGN_OR_RETURN(const Term* const flow, Find(node.input(3)));
      result = *flow;
    } else {
      result.kind = Term::Kind::kObject;
      result.variable = variable;
      result.write = static_cast<int>(plan_->writes_.size());
    }
    plan_->writes_.push_back(std::move(write));
    Define(node, 0, std::move(result));
    return absl::OkStatus();
  }

  // Returns the type and the shape that the list or array declares for all elements.
  absl::StatusOr<ElementKind> DeclaredElementOf(int variable, bool is_array) {
    const Value& value = request_.arguments[variable].value;
    if (value.objects == nullptr || value.objects->size() != 1) return Declined("writes to a tensor of lists");
    if (is_array) {
      PF_ASSIGN_OR_RETURN(const std::shared_ptr<TensorArray> array, ObjectAs<TensorArray>(value.objects->front()));
      if (array->is_closed) return Declined("the tensor array is closed");
      return ElementKind{array->dtype, array->shape};
    }
    PF_ASSIGN_OR_RETURN(const std::shared_ptr<TensorList> list, ObjectAs<TensorList>(value.objects->front()));
    return ElementKind{list->dtype, list->shape};
  }

  // --- Integer scalars ----------------------------------------------------------------------------------------------
  absl::StatusOr<bool> AddInteger(const Node& node) {
    if (node.num_data_inputs() < 1 || node.num_data_inputs() > 2) return false;
    IntegerStep step;
    const Term* inputs[2] = {};
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      PF_ASSIGN_OR_RETURN(inputs[i], Find(node.input(i)));
      if (inputs[i]->kind != Term::Kind::kInteger) return false;
    }
    const bool is_unary = node.num_data_inputs() == 1;
    if (is_unary && node.op() == ops::kLogicalNot) {
      step.function = Function::kNot;
    } else if (is_unary && node.op() == ops::kCast) {
      step.function = Function::kConvert;
    } else if (const BinaryRow* row = is_unary ? nullptr : FindBinary(node.op());
               row != nullptr && row->integers.has_value()) {
      step.function = *row->integers;
    } else {
      return false;
    }
    step.dtype = inputs[0]->dtype;
    if (step.function == Function::kConvert) {
      PF_ASSIGN_OR_RETURN(step.dtype, TypeAttr(node, "DstT"));
      if (!IsInteger(step.dtype)) return false;
    } else if (!is_unary && inputs[1]->dtype != step.dtype) {
      return false;
    }
    if (GivesBool(step.function)) step.dtype = DType::kBool;
    step.a = inputs[0]->reg;
    step.b = is_unary ? step.a : inputs[1]->reg;
    step.result = NewRegister();
    Define(node, 0, OfInteger(step.result, step.dtype));
    plan_->integers_.push_back(step);
    return true;
  }

  // --- Steps of rows ------------------------------------------------------------------------------------------------
  // Returns whether a view or a step of its own computes the node.
  absl::StatusOr<bool> AddRowStep(const Node& node) {
    const Op op = node.op();
    if (op == ops::kMatMul) return AddProduct(node);
    if (op == ops::kConcatV2) return AddJoin(node);
    if (op == ops::kSplit) return AddSplit(node);
    if (op == ops::kStridedSlice) return AddSlice(node);
    if (op == ops::kTile) return AddTile(node);
    if (op == ops::kSelect || op == ops::kSelectV2) return AddSelect(node);
    if (op == ops::kBiasAdd) {
      PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(node, "data_format"));
      if (format == "NHWC") return AddFunction(node, RowFunction::kAdd);
      return false;
    }
    if (const BinaryRow* row = FindBinary(op); row != nullptr && row->rows.has_value()) {
      return AddFunction(node, *row->rows);
    }
    return AddUnary(node);
  }

  absl::StatusOr<bool> AddUnary(const Node& node) {
    const InnerLoops& loops = *plan_->loops_;
    const Op op = node.op();
    void (*unary)(int64_t, const float*, float*) = op == ops::kSigmoid ? loops.sigmoid
                                                   : op == ops::kTanh  ? loops.tanh
                                                   : op == ops::kRelu  ? loops.relu
                                                   : op == ops::kRelu6 ? loops.relu6
                                                                       : nullptr;
    if (unary == nullptr || node.num_data_inputs() != 1) return false;
    PF_ASSIGN_OR_RETURN(Term * input, Find(node.input(0)));
    if (input->kind == Term::Kind::kObject) return false;
    PF_ASSIGN_OR_RETURN(const LoopRows rows, RowsOf(input));
    if (rows.dtype != DType::kFloat || (rows.columns > 1 && rows.column_step != 1)) return false;
    LoopStep step;
    step.kind = LoopStep::Kind::kUnary;
    step.unary = unary;
    step.in[0] = rows;
    PF_ASSIGN_OR_RETURN(step.out, NewBuffer(DType::kFloat, rows.shape));
    Define(node, 0, OfRows(step.out));
    AddStep(std::move(step));
    return true;
  }

  // Returns the rows as an operand of a result of `rows` rows and `columns` columns; nullopt if they do not broadcast
  // to it row by row.
  static std::optional<LoopRows> Fit(LoopRows operand, const Shape& result, int64_t rows, int64_t columns) {
    const Shape& shape = operand.shape;
    const bool is_scalar = shape.num_elements() == 1;
    const bool is_row = !is_scalar && shape.rank() >= 1 && shape.num_elements() == shape.dim(shape.rank() - 1);
    if (!is_scalar && !is_row && shape != result && (shape.rank() != 2 || result.rank() != 2)) return std::nullopt;
    if (operand.columns == 1 && columns != 1) {
      operand.column_step = 0;
    } else if (operand.columns != columns) {
      return std::nullopt;
    }
    if (operand.rows == 1 && rows != 1) {
      operand.row_step = 0;
    } else if (operand.rows != rows) {
      return std::nullopt;
    }
    operand.rows = rows;
    operand.columns = columns;
    return operand;
  }

  absl::StatusOr<bool> AddFunction(const Node& node, RowFunction function) {
    LoopRows in[2];
    for (int i = 0; i < 2; ++i) {
      PF_ASSIGN_OR_RETURN(Term * term, Find(node.input(i)));
      if (term->kind == Term::Kind::kObject) return false;
      if (term->kind == Term::Kind::kInteger) return false;
      PF_ASSIGN_OR_RETURN(in[i], RowsOf(term));
      if (in[i].dtype != DType::kFloat) return false;
    }
    PF_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(in[0].shape, in[1].shape));
    if (shape.num_elements() == 0) return false;
    LoopStep step;
    step.kind = LoopStep::Kind::kFunction;
    step.function = function;
    const LoopRows whole = Dense(DType::kFloat, shape, -1);
    for (int i = 0; i < 2; ++i) {
      const std::optional<LoopRows> fitted = Fit(in[i], shape, whole.rows, whole.columns);
      if (!fitted.has_value()) return false;
      step.in[i] = *fitted;
    }
    PF_ASSIGN_OR_RETURN(step.out, NewBuffer(DType::kFloat, shape));
    Define(node, 0, OfRows(step.out));
    AddStep(std::move(step));
    return true;
  }

  absl::StatusOr<bool> AddSelect(const Node& node) {
    LoopRows in[3];
    for (int i = 0; i < 3; ++i) {
      PF_ASSIGN_OR_RETURN(Term * term, Find(node.input(i)));
      if (term->kind == Term::Kind::kObject) return false;
      PF_ASSIGN_OR_RETURN(in[i], RowsOf(term));
    }
    if (in[0].dtype != DType::kBool || in[1].dtype != DType::kFloat || in[2].dtype != DType::kFloat) return false;
    PF_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(in[1].shape, in[2].shape));
    if (node.op() == ops::kSelect) {
      // A vector has a condition for each row.
      if (in[1].shape != in[2].shape) return false;
      if (in[0].shape != shape && in[0].shape.rank() == 1) {
        if (shape.rank() != 2 || in[0].shape.dim(0) != shape.dim(0) || !in[0].IsDense()) return false;
        in[0].shape = Shape({shape.dim(0), 1});
        in[0].rows = shape.dim(0);
        in[0].columns = 1;
        in[0].row_step = 1;
      } else if (in[0].shape != shape && in[0].shape.rank() != 0) {
        return false;
      }
    } else {
      PF_ASSIGN_OR_RETURN(shape, BroadcastShapes(in[0].shape, shape));
    }
    if (shape.num_elements() == 0) return false;
    LoopStep step;
    step.kind = LoopStep::Kind::kSelect;
    const LoopRows whole = Dense(DType::kFloat, shape, -1);
    for (int i = 0; i < 3; ++i) {
      const std::optional<LoopRows> fitted = Fit(in[i], shape, whole.rows, whole.columns);
      if (!fitted.has_value()) return false;
      step.in[i] = *fitted;
    }
    PF_ASSIGN_OR_RETURN(step.out, NewBuffer(DType::kFloat, shape));
    Define(node, 0, OfRows(step.out));
    AddStep(std::move(step));
    return true;
  }

  // --- Views --------------------------------------------------------------------------------------------------------
  absl::StatusOr<std::optional<std::vector<int64_t>>> KnownIntegers(TensorRef ref) {
    PF_ASSIGN_OR_RETURN(const Term* const term, Find(ref));
    PF_ASSIGN_OR_RETURN(const Tensor* const value, ConstantOf(*term));
    if (value == nullptr || (value->dtype() != DType::kInt32 && value->dtype() != DType::kInt64)) return std::nullopt;
    PF_ASSIGN_OR_RETURN(std::vector<int64_t> integers, IntegerValues(*value));
    return integers;
  }

  static LoopRows Columns(LoopRows rows, int64_t begin, int64_t count) {
    rows.offset += begin * rows.column_step;
    rows.columns = count;
    rows.shape.set_dim(rows.shape.rank() - 1, count);
    return rows;
  }
  static LoopRows RowRange(LoopRows rows, int64_t begin, int64_t count) {
    rows.offset += begin * rows.row_step;
    rows.rows = count;
    rows.shape.set_dim(0, count);
    return rows;
  }

  absl::StatusOr<bool> AddSplit(const Node& node) {
    PF_ASSIGN_OR_RETURN(const auto axes, KnownIntegers(node.input(0)));
    PF_ASSIGN_OR_RETURN(Term * term, Find(node.input(1)));
    PF_ASSIGN_OR_RETURN(const int64_t count, IntAttr(node, "num_split"));
    if (!axes.has_value() || axes->size() != 1 || term->kind == Term::Kind::kObject) return false;
    PF_ASSIGN_OR_RETURN(const LoopRows rows, RowsOf(term));
    const int rank = rows.shape.rank();
    const int64_t axis = (*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0];
    if (axis < 0 || axis >= rank || count < 1 || rows.shape.dim(static_cast<int>(axis)) % count != 0) return false;
    const int64_t each = rows.shape.dim(static_cast<int>(axis)) / count;
    if (axis != rank - 1 && (rank != 2 || axis != 0)) return false;
    for (int i = 0; i < count; ++i) {
      Define(node, i, OfRows(axis == rank - 1 ? Columns(rows, i * each, each) : RowRange(rows, i * each, each)));
    }
    return true;
  }

  // Ranges of rows and columns.
  absl::StatusOr<bool> AddSlice(const Node& node) {
    PF_ASSIGN_OR_RETURN(Term * term, Find(node.input(0)));
    if (term->kind == Term::Kind::kObject) return false;
    PF_ASSIGN_OR_RETURN(const auto begins, KnownIntegers(node.input(1)));
    PF_ASSIGN_OR_RETURN(const auto ends, KnownIntegers(node.input(2)));
    PF_ASSIGN_OR_RETURN(const auto strides, KnownIntegers(node.input(3)));
    if (!begins.has_value() || !ends.has_value() || !strides.has_value()) return false;
    for (const absl::string_view mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
      PF_ASSIGN_OR_RETURN(const int64_t bits, IntAttr(node, mask));
      if (bits != 0) return false;
    }
    PF_ASSIGN_OR_RETURN(const int64_t begin_mask, IntAttr(node, "begin_mask"));
    PF_ASSIGN_OR_RETURN(const int64_t end_mask, IntAttr(node, "end_mask"));
    PF_ASSIGN_OR_RETURN(LoopRows rows, RowsOf(term));
    const auto rank = static_cast<size_t>(rows.shape.rank());
    if (rank > 2 || begins->size() > rank || ends->size() != begins->size() || strides->size() != begins->size()) {
      return false;
    }
    for (size_t i = 0; i < begins->size(); ++i) {
      if ((*strides)[i] != 1) return false;
      const int64_t dim = rows.shape.dim(static_cast<int>(i));
      const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + dim : at, 0, dim); };
      const int64_t begin = (begin_mask >> i & 1) != 0 ? 0 : clamp((*begins)[i]);
      const int64_t end = (end_mask >> i & 1) != 0 ? dim : clamp((*ends)[i]);
      if (end <= begin) return false;
      rows = i + 1 == rank ? Columns(rows, begin, end - begin) : RowRange(rows, begin, end - begin);
    }
    Define(node, 0, OfRows(rows));
    return true;
  }

  // A column that is repeated.
  absl::StatusOr<bool> AddTile(const Node& node) {
    PF_ASSIGN_OR_RETURN(Term * term, Find(node.input(0)));
    PF_ASSIGN_OR_RETURN(const auto multiples, KnownIntegers(node.input(1)));
    if (term->kind != Term::Kind::kRows || !multiples.has_value()) return false;
    LoopRows rows = term->rows;
    if (rows.shape.rank() != 2 || rows.columns != 1 || multiples->size() != 2 || (*multiples)[0] != 1 ||
        (*multiples)[1] < 1) {
      return false;
    }
    rows.shape.set_dim(1, (*multiples)[1]);
    PF_RETURN_IF_ERROR(ValueBytes(rows.dtype, rows.shape).status());
    rows.columns = (*multiples)[1];
    rows.column_step = 0;
    Define(node, 0, OfRows(rows));
    return true;
  }

  absl::StatusOr<bool> AddJoin(const Node& node) {
    const int count = node.num_data_inputs() - 1;
    PF_ASSIGN_OR_RETURN(const auto axes, KnownIntegers(node.input(count)));
    if (!axes.has_value() || axes->size() != 1 || count < 1) return false;
    Term joined;
    joined.kind = Term::Kind::kJoined;
    int64_t columns = 0;
    for (int i = 0; i < count; ++i) {
      PF_ASSIGN_OR_RETURN(Term * term, Find(node.input(i)));
      if (term->kind == Term::Kind::kObject || term->kind == Term::Kind::kInteger) return false;
      PF_ASSIGN_OR_RETURN(const LoopRows rows, RowsOf(term));
      if (rows.dtype != DType::kFloat || rows.shape.rank() != 2 || (rows.columns > 1 && rows.column_step != 1)) {
        return false;
      }
      if (i > 0 && rows.rows != joined.parts[0].rows) return false;
      columns += rows.columns;
      joined.parts.push_back(rows);
    }
    if ((*axes)[0] != 1 && (*axes)[0] != -1) return false;
    joined.rows.dtype = DType::kFloat;
    joined.rows.shape = Shape({joined.parts[0].rows, columns});
    Define(node, 0, std::move(joined));
    return true;
  }

  // --- Products -----------------------------------------------------------------------------------------------------
  absl::StatusOr<bool> AddProduct(const Node& node) {
    PF_ASSIGN_OR_RETURN(const bool transpose_a, BoolAttr(node, "transpose_a"));
    PF_ASSIGN_OR_RETURN(const bool transpose_b, BoolAttr(node, "transpose_b"));
    PF_ASSIGN_OR_RETURN(Term * left, Find(node.input(0)));
    PF_ASSIGN_OR_RETURN(const Term* const right, Find(node.input(1)));
    if (transpose_a || left->kind == Term::Kind::kObject || left->kind == Term::Kind::kInteger) return false;
    if (right->kind != Term::Kind::kRows || !IsInvariant(right->rows) || right->rows.shape.rank() != 2 ||
        right->rows.dtype != DType::kFloat) {
      return Declined("both operands of the product change in the loop");
    }
    std::vector<LoopRows> parts = {left->rows};
    if (left->kind == Term::Kind::kJoined) parts = left->parts;
    LoopMatrix matrix;
    matrix.source = right->rows;
    matrix.is_transposed = transpose_b;
    matrix.shape = {transpose_b ? right->rows.columns : right->rows.rows,
                    transpose_b ? right->rows.rows : right->rows.columns};
    int64_t depth = 0;
    for (const LoopRows& part : parts) {
      if (part.dtype != DType::kFloat || part.shape.rank() != 2 || (part.columns > 1 && part.column_step != 1)) {
        return false;
      }
      depth += part.columns;
    }
    if (depth != matrix.shape.depth || matrix.shape.depth == 0 || matrix.shape.columns == 0 || parts[0].rows == 0) {
      return false;
    }
    if (right->rows.columns > 1 && right->rows.column_step != 1) return false;
    PF_ASSIGN_OR_RETURN(const int number, AddMatrix(std::move(matrix), right->constant));
    const Shape shape({parts[0].rows, plan_->matrices_[number].shape.columns});
    PF_RETURN_IF_ERROR(ValueBytes(DType::kFloat, shape).status());
    LoopRows out;
    int64_t at = 0;
    for (const LoopRows& part : parts) {
      const DepthRange range{at, at + part.columns};
      at = range.end;
      if (range.begin == 0 && plan_->bases_[part.base].kind == LoopBase::Kind::kRead && part.IsDense() &&
          part.offset == 0 && part.shape == plan_->reads_[plan_->bases_[part.base].index].shape) {
        out = AddBatched(part, number, range, shape);
        continue;
      }
      if (range.begin == 0) {
        PF_ASSIGN_OR_RETURN(out, NewBuffer(DType::kFloat, shape));
      }
      LoopStep step;
      step.kind = LoopStep::Kind::kProduct;
      step.in[0] = part;
      step.out = out;
      step.matrix = number;
      step.range = range;
      AddStep(std::move(step));
    }
    Define(node, 0, OfRows(out));
    return true;
  }

  bool IsInvariant(const LoopRows& rows) const {
    const LoopBase::Kind kind = plan_->bases_[rows.base].kind;
    return kind == LoopBase::Kind::kConstant || kind == LoopBase::Kind::kArgument;
  }

  LoopRows AddBatched(const LoopRows& part, int matrix, DepthRange range, const Shape& shape) {
    BatchedProduct batched;
    batched.read = plan_->bases_[part.base].index;
    batched.matrix = matrix;
    batched.range = range;
    batched.rows = part.rows;
    batched.base = AddBase(LoopBase::Kind::kBatched, static_cast<int>(plan_->batched_.size()));
    plan_->batched_.push_back(batched);
    return Dense(DType::kFloat, shape, batched.base);
  }

  absl::StatusOr<int> AddMatrix(LoopMatrix matrix, const Node* constant) {
    for (size_t i = 0; i < plan_->matrices_.size(); ++i) {
      const LoopMatrix& other = plan_->matrices_[i];
      if (other.source.base == matrix.source.base && other.source.offset == matrix.source.offset &&
          other.source.shape == matrix.source.shape && other.source.row_step == matrix.source.row_step &&
          other.is_transposed == matrix.is_transposed) {
        return static_cast<int>(i);
      }
    }
    const InnerLoops& loops = *plan_->loops_;
    PF_ASSIGN_OR_RETURN(const int64_t size, matrix.shape.Size(loops));
    const LoopBase& base = plan_->bases_[matrix.source.base];
    const bool is_argument = base.kind == LoopBase::Kind::kArgument;
    const Node* owner = is_argument ? request_.constants[base.index] : constant;
    if (is_argument && owner == nullptr) {
      PF_ASSIGN_OR_RETURN(matrix.own, FloatBuffer::Allocate(size));
    } else {
      // Constants of the body that are views of a Const have no node, and are packed for each plan.
      const int64_t row_step = matrix.is_transposed ? -matrix.source.row_step : matrix.source.row_step;
      const auto key = std::make_tuple(owner, is_argument ? 1 : 0, matrix.source.offset, row_step, matrix.shape.depth,
                                       matrix.shape.columns);
      std::shared_ptr<const FloatBuffer> packed;
      if (const auto found = request_.packed->find(key); owner != nullptr && found != request_.packed->end()) {
        packed = found->second;
      } else {
        PF_ASSIGN_OR_RETURN(FloatBuffer buffer, FloatBuffer::Allocate(size));
        const char* data = is_argument ? request_.arguments[base.index].value.data : base.constant.bytes().data();
        matrix.PackFrom(loops, data, buffer.data());
        packed = std::make_shared<const FloatBuffer>(std::move(buffer));
        if (owner != nullptr) request_.packed->emplace(key, packed);
      }
      matrix.constant = std::move(packed);
    }
    plan_->matrices_.push_back(std::move(matrix));
    return static_cast<int>(plan_->matrices_.size()) - 1;
  }

  // --- Other nodes --------------------------------------------------------------------------------------------------
  absl::Status AddKernel(const Node& node, const Kernel& kernel) {
    if (IsHeavy(node.op())) return Declined("a product or convolution that is not one of rows with a constant matrix");
    PF_ASSIGN_OR_RETURN(const std::vector<DType> output_types, OutputTypesFor(node, &kernel));
    auto made = std::make_unique<LoopKernel>();
    made->node = &node;
    std::vector<Term*> terms;
    std::vector<const Tensor*> values;
    std::vector<PrepareInput> inputs;
    bool is_constant = node.num_data_inputs() > 0;
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      PF_ASSIGN_OR_RETURN(Term * term, Find(node.input(i)));
      if (term->kind == Term::Kind::kObject) return Declined("reads a list as a whole");
      terms.push_back(term);
      PF_ASSIGN_OR_RETURN(const Tensor* const value, ConstantOf(*term));
      values.push_back(value);
      is_constant = is_constant && value != nullptr;
      inputs.push_back(term->kind == Term::Kind::kInteger ? PrepareInput{term->dtype, Shape()}
                                                          : PrepareInput{term->rows.dtype, term->rows.shape});
    }
    for (const DType type : output_types) {
      if (type == DType::kString || SizeOf(type) == 0) return Declined("has an output of strings or objects");
    }
    const auto value_of = [&](int i) -> absl::StatusOr<const Tensor*> { return values[i]; };
    PF_RETURN_IF_ERROR(PrepareNode(node, kernel, inputs, output_types, environment_.threads->num_threads(), value_of,
                                   &made->prepared));
    if (made->prepared.needs_value_of >= 0) return Declined("the shape of an output depends on values");
    for (const OutputSpec& output : made->prepared.outputs) {
      if (output.depends_on_values) return Declined("the shape of an output depends on values");
    }
    for (const OutputSpec& output : made->prepared.outputs) {
      PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(output.dtype, output.shape));
      is_constant = is_constant && bytes <= kMostFolded;
    }
    if (is_constant) return FoldKernel(node, *made, values);
    if (kernel.is_alias()) {
      PF_ASSIGN_OR_RETURN(const LoopRows dense, DenseRowsOf(terms[0], /*is_aligned=*/false));
      LoopRows rows = Dense(dense.dtype, made->prepared.outputs[0].shape, dense.base);
      rows.offset = dense.offset;
      rows.dtype = output_types[0];
      Term term = OfRows(rows);
      Define(node, 0, std::move(term));
      return absl::OkStatus();
    }
    for (Term* term : terms) {
      PF_ASSIGN_OR_RETURN(made->in.emplace_back(), DenseRowsOf(term, /*is_aligned=*/true));
      Value& value = made->inputs.emplace_back();
      value.dtype = made->in.back().dtype;
      value.shape = made->in.back().shape;
      PF_ASSIGN_OR_RETURN(value.bytes, ValueBytes(value.dtype, value.shape));
    }
    for (const Tensor* value : values) {
      if (value != nullptr) made->constants.push_back(*value);
    }
    for (size_t i = 0; i < output_types.size(); ++i) {
      PF_ASSIGN_OR_RETURN(made->out.emplace_back(), NewBuffer(output_types[i], made->prepared.outputs[i].shape));
      Value& value = made->outputs.emplace_back();
      value.dtype = output_types[i];
      value.shape = made->prepared.outputs[i].shape;
      PF_ASSIGN_OR_RETURN(value.bytes, ValueBytes(value.dtype, value.shape));
      Define(node, static_cast<int>(i), OfRows(made->out.back()));
    }
    for (const Value& value : made->inputs) made->input_pointers.push_back(&value);
    plan_->scratch_bytes_ = std::max(plan_->scratch_bytes_, made->prepared.scratch_bytes);
    LoopStep step;
    step.kind = LoopStep::Kind::kKernel;
    step.kernel = static_cast<int>(plan_->kernels_.size());
    plan_->kernels_.push_back(std::move(made));
    AddStep(std::move(step));
    return absl::OkStatus();
  }

  // Computes a node whose inputs are constants.
  absl::Status FoldKernel(const Node& node, const LoopKernel& kernel, const std::vector<const Tensor*>& inputs) {
    std::vector<Value> values, outputs(kernel.prepared.outputs.size());
    values.reserve(inputs.size());
    std::vector<const Value*> pointers;
    for (const Tensor* input : inputs) pointers.push_back(&values.emplace_back(ViewOf(*input)));
    const Kernel& definition = *request_.kernels->find(&node)->second;
    if (definition.is_alias()) {
      PF_ASSIGN_OR_RETURN(const Tensor reshaped, inputs[0]->Reshaped(kernel.prepared.outputs[0].shape));
      return DefineFolded(node, 0, reshaped);
    }
    PF_ASSIGN_OR_RETURN(const std::vector<HeapOutput> made,
                        ComputeNode(node, kernel.prepared, pointers, outputs.data(), environment_));
    for (size_t i = 0; i < outputs.size(); ++i) {
      PF_RETURN_IF_ERROR(DefineFolded(node, static_cast<int>(i), made[i].tensor));
    }
    return absl::OkStatus();
  }

  absl::Status DefineFolded(const Node& node, int port, const Tensor& value) {
    // Only the first output is found again as a constant; the others are rows of a constant base.
    PF_RETURN_IF_ERROR(DefineConstant(node, port, value, port == 0 ? &node : nullptr));
    if (port == 0) constants_[&node] = std::make_unique<Tensor>(value);
    return absl::OkStatus();
  }

  // --- The end of an iteration --------------------------------------------------------------------------------------
  absl::Status Close() {
    PF_ASSIGN_OR_RETURN(const Term* const condition, Find(form_.condition));
    if (condition->kind != Term::Kind::kInteger) return Declined("the condition is no integer scalar of the loop");
    plan_->condition_ = condition->reg;
    for (LoopCounter& counter : plan_->counters_) {
      const LoopVariable& variable = form_.variables[counter.variable];
      if (variable.is_invariant()) continue;
      PF_ASSIGN_OR_RETURN(const Term* const next, Find(variable.next));
      if (next->kind != Term::Kind::kInteger || next->dtype != counter.dtype) {
        return Declined(absl::StrCat("'", variable.next.ToString(), "' is no integer scalar of the loop"));
      }
      counter.next = next->reg;
    }
    PF_RETURN_IF_ERROR(CloseStates());
    for (size_t i = 0; i < form_.variables.size(); ++i) {
      const LoopVariable& variable = form_.variables[i];
      if (!HoldsObjects(request_.arguments[i].value.dtype) || variable.is_invariant()) continue;
      PF_ASSIGN_OR_RETURN(const Term* const next, Find(variable.next));
      if (next->kind != Term::Kind::kObject || next->variable != static_cast<int>(i) || next->write < 0) {
        return Declined(absl::StrCat("'", variable.next.ToString(), "' is not the list of the iteration before"));
      }
    }
    // An array that is read and written has an order of accesses that a plan does not keep.
    for (const LoopRead& read : plan_->reads_) {
      for (const LoopWrite& write : plan_->writes_) {
        const auto object = [&](int variable) { return request_.arguments[variable].value.objects->front(); };
        if (read.is_array && write.is_array && object(read.variable) == object(write.variable)) {
          return Declined("a tensor array that is read and written");
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CloseStates() {
    for (LoopState& state : plan_->states_) {
      const LoopVariable& variable = form_.variables[state.variable];
      PF_ASSIGN_OR_RETURN(Term * next, Find(variable.next));
      PF_ASSIGN_OR_RETURN(state.next, RowsOf(next));
      if (state.next.dtype != state.current.dtype || state.next.shape != state.current.shape) {
        return Declined(absl::StrCat("'", variable.next.ToString(), "' has the shape ", state.next.shape.ToString(),
                                     ", expected ", state.current.shape.ToString()));
      }
    }
    // All variables change at the same time, so a next value that is the current value of another is saved first.
    for (LoopState& state : plan_->states_) {
      if (state.IsUnchanged()) continue;
      const bool is_current = std::any_of(plan_->states_.begin(), plan_->states_.end(), [&](const LoopState& other) {
        return other.current.base == state.next.base;
      });
      if (!is_current) continue;
      PF_ASSIGN_OR_RETURN(const LoopRows saved, NewBuffer(state.next.dtype, state.next.shape));
      Copy(state.next, saved);
      state.next = saved;
    }
    return absl::OkStatus();
  }

  // --- Memory -------------------------------------------------------------------------------------------------------
  absl::Status Allocate() {
    const auto end = static_cast<int>(plan_->steps_.size());
    // States live on between iterations; what the end of an iteration reads lives until then.
    for (const LoopState& state : plan_->states_) {
      plan_->bases_[state.current.base].first = 0;
      plan_->bases_[state.current.base].last = end;
      plan_->bases_[state.next.base].last = end;
    }
    for (const LoopWrite& write : plan_->writes_) plan_->bases_[write.value.base].last = end;
    std::vector<Buffer> buffers;
    for (const LoopBase& base : plan_->bases_) {
      if (base.kind == LoopBase::Kind::kBuffer) buffers.push_back({base.bytes, base.first, base.last, 0});
    }
    PF_ASSIGN_OR_RETURN(plan_->arena_bytes_, PlaceBuffers(&buffers));
    size_t number = 0;
    for (LoopBase& base : plan_->bases_) {
      if (base.kind == LoopBase::Kind::kBuffer) base.offset = buffers[number++].offset;
    }
    int64_t zeros = 0, per_iteration = 1;
    for (const LoopRead& read : plan_->reads_) {
      PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(read.dtype, read.shape));
      zeros = std::max(zeros, bytes);
    }
    std::vector<int64_t> sizes;
    for (const BatchedProduct& batched : plan_->batched_) {
      const int64_t columns = plan_->matrices_[batched.matrix].shape.columns;
      per_iteration += batched.rows * columns * static_cast<int64_t>(sizeof(float));
    }
    plan_->ahead_ = std::clamp<int64_t>(kBatchedBytes / per_iteration, 1, kMostAhead);
    for (const BatchedProduct& batched : plan_->batched_) {
      PF_ASSIGN_OR_RETURN(const int64_t in, Ahead(batched.rows, batched.range.end - batched.range.begin));
      PF_ASSIGN_OR_RETURN(const int64_t out, Ahead(batched.rows, plan_->matrices_[batched.matrix].shape.columns));
      sizes.push_back(in);
      sizes.push_back(out);
    }
    return Place(zeros, sizes);
  }

  // Returns the bytes of a row matrix for all iterations that are batched.
  absl::StatusOr<int64_t> Ahead(int64_t rows, int64_t columns) const {
    return ValueBytes(DType::kFloat, Shape({plan_->ahead_, rows, columns}));
  }

  absl::Status Place(int64_t zeros, const std::vector<int64_t>& sizes) {
    int64_t total = 0;
    const auto add = [&](int64_t bytes) -> absl::StatusOr<int64_t> {
      const int64_t at = total;
      int64_t end = 0;
      if (__builtin_add_overflow(total, bytes, &end) || __builtin_add_overflow(end, kBufferAlignment, &end)) {
        return absl::ResourceExhaustedError("the buffers of the loop are too large");
      }
      total = end / kBufferAlignment * kBufferAlignment;
      return at;
    };
    PF_ASSIGN_OR_RETURN(const int64_t arena, add(plan_->arena_bytes_));
    PF_ASSIGN_OR_RETURN(const int64_t scratch, add(plan_->scratch_bytes_));
    PF_ASSIGN_OR_RETURN(const int64_t zero, add(zeros));
    std::vector<int64_t> offsets;
    for (const int64_t size : sizes) {
      PF_ASSIGN_OR_RETURN(offsets.emplace_back(), add(size));
    }
    PF_ASSIGN_OR_RETURN(plan_->reservation_, Reservation::Take(environment_.budget, total, "the buffers of the loop"));
    char* memory = nullptr;
    PF_ASSIGN_OR_RETURN(plan_->memory_, Tensor::Allocate(DType::kInt8, Shape({total}), &memory));
    plan_->arena_ = memory + arena;
    plan_->scratch_ = memory + scratch;
    plan_->zeros_ = memory + zero;
    std::memset(plan_->zeros_, 0, static_cast<size_t>(zeros));
    for (size_t i = 0; i < offsets.size(); i += 2) {
      plan_->gathered_.push_back(reinterpret_cast<float*>(memory + offsets[i]));
      plan_->results_.push_back(reinterpret_cast<float*>(memory + offsets[i + 1]));
    }
    return absl::OkStatus();
  }

  const LoopRequest& request_;
  const LoopForm& form_;
  const Environment& environment_;
  std::unique_ptr<LoopPlan> plan_;
  bool in_condition_ = false;
  absl::node_hash_map<TensorRef, Term> terms_;  // Terms keep their address.
  absl::flat_hash_map<const Node*, std::unique_ptr<Tensor>> constants_;
};

absl::StatusOr<std::unique_ptr<LoopPlan>> MakeLoopPlan(const LoopRequest& request, const Environment& environment) {
  return LoopPlanner(request, environment).Make();
}

}  // namespace permafrost

#endif
