// Resource variables: handles, reading, assignment, gathering and scattering of rows.
#include "runtime_check/kernels/variable.h"

#include <complex>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/slice_index.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {

absl::StatusOr<VariableRef> InitializedVariable(const ComputeContext* context, DType dtype) {
  PF_ASSIGN_OR_RETURN(VariableRef variable, ObjectInput<Variable>(context, 0));
  if (!variable->is_initialized()) {
    return absl::FailedPreconditionError("the variable has no value: no initialiser of the graph assigns one");
  }
  if (variable->dtype == dtype) return variable;
  return absl::InvalidArgumentError(
      absl::StrCat("the variable is ", DTypeName(variable->dtype), ", expected ", DTypeName(dtype)));
}

absl::Status Assign(ComputeContext* context, int i, Variable* variable) {
  const DType dtype = context->input_type(i);
  const Shape& shape = context->input_shape(i);
  if (dtype != variable->dtype || !variable->declared.IsCompatibleWith(shape)) {
    return absl::InvalidArgumentError(absl::StrCat("found a ", DTypeName(dtype), " tensor of shape ", shape.ToString(),
                                                   ", expected the type ", DTypeName(variable->dtype),
                                                   " and the shape ", variable->declared.ToString()));
  }
  const bool is_text = dtype == DType::kString;
  const auto size = static_cast<int64_t>(is_text ? sizeof(std::string) : SizeOf(dtype));
  if (size == 0) return absl::UnimplementedError(absl::StrCat("a variable of ", DTypeName(dtype)));
  const int64_t bytes = shape.num_elements() * size;
  if (!is_text && variable->is_initialized() && variable->value.shape() == shape) {
    if (bytes > 0) std::memmove(variable->elements, context->input_bytes(i), static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(Reservation reservation, Reservation::Take(&context->budget(), bytes, "the value of a variable"));
  Tensor tensor;
  char* elements = nullptr;
  if (is_text) {
    tensor = Tensor::FromStrings(shape, context->input_strings(i));
  } else {
    PF_ASSIGN_OR_RETURN(tensor, Tensor::Allocate(dtype, shape, &elements));
    if (bytes > 0) std::memcpy(elements, context->input_bytes(i), static_cast<size_t>(bytes));
  }
  variable->value = std::move(tensor);
  variable->elements = elements;
  variable->reservation = std::move(reservation);
  return absl::OkStatus();
}

namespace {

// Returns the shape of the variable that input 0 refers to, if the handle is made by a node whose attributes determine
// it; else an unknown rank.
Shape DeclaredShape(const PrepareContext& context) {
  const Node* handle = context.node().num_data_inputs() > 0 ? context.node().input(0).node : nullptr;
  if (handle == nullptr || handle->op() != ops::kVarHandleOp) return Shape::UnknownRank();
  return ShapeAttr(*handle, "shape").value_or(Shape::UnknownRank());
}

absl::Status PrepareEffect(PrepareContext*) { return absl::OkStatus(); }

absl::Status PrepareScalar(PrepareContext* context) {
  context->SetOutputShape(0, Shape());
  return absl::OkStatus();
}

// Variables with the same name are one variable.
absl::Status ComputeHandle(ComputeContext* context) {
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(const std::string container, StringAttr(node, "container"));
  PF_ASSIGN_OR_RETURN(const std::string shared_name, StringAttr(node, "shared_name"));
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(node, "dtype"));
  PF_ASSIGN_OR_RETURN(Shape shape, ShapeAttr(node, "shape"));
  const std::string name =
      absl::StrCat("variable/", container, "/", shared_name.empty() ? std::string(node.name()) : shared_name);
  ObjectRef object = context->resources()->Find(name);
  if (object == nullptr) {
    auto made = std::make_shared<Variable>();
    made->dtype = dtype;
    made->declared = std::move(shape);
    object = std::move(made);
    context->resources()->Add(name, object);
  }
  PF_ASSIGN_OR_RETURN(const VariableRef variable, ObjectAs<Variable>(object));
  if (variable->dtype != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("the variable of that name is ", DTypeName(variable->dtype), ", expected ", DTypeName(dtype)));
  }
  context->output_objects(0).front() = std::move(object);
  return absl::OkStatus();
}

absl::Status ComputeIsInitialized(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, ObjectInput<Variable>(context, 0));
  *context->output<bool>(0) = variable->is_initialized();
  return absl::OkStatus();
}

// --- Reading ---------------------------------------------------------------------------------------------------------

// Sets output 0 to a shape that follows from the variable's: now if it is known, else after Compute.
absl::Status SetOrDefer(PrepareContext* context, const Shape& shape) {
  if (shape.IsFullyKnown()) return SetCheckedShape(context, 0, shape);
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

// Allocates output 0 unless Prepare has set its shape.
absl::Status AllocateOrCheck(ComputeContext* context, const Shape& shape) {
  if (!context->output_shape(0).IsFullyKnown()) return context->AllocateOutput(0, shape);
  if (context->output_shape(0) == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the variable gives the shape ", shape.ToString(), ", expected ",
                                                 context->output_shape(0).ToString()));
}

absl::Status PrepareRead(PrepareContext* context) { return SetOrDefer(context, DeclaredShape(*context)); }

absl::Status ComputeRead(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, context->output_type(0)));
  PF_RETURN_IF_ERROR(AllocateOrCheck(context, variable->value.shape()));
  if (variable->dtype == DType::kString) {
    context->output_strings(0) = variable->value.strings();
  } else if (!variable->value.bytes().empty()) {
    std::memcpy(context->output_bytes(0), variable->elements, variable->value.bytes().size());
  }
  return absl::OkStatus();
}

absl::Status PrepareShape(PrepareContext* context) {
  const Shape shape = DeclaredShape(*context);
  return SetOrDefer(context, shape.has_rank() ? Shape({shape.rank()}) : Shape::UnknownRank());
}

absl::Status ComputeShape(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, ObjectInput<Variable>(context, 0));
  PF_RETURN_IF_ERROR(InitializedVariable(context, variable->dtype).status());
  const Shape& shape = variable->value.shape();
  PF_RETURN_IF_ERROR(AllocateOrCheck(context, Shape({shape.rank()})));
  DispatchOn<int32_t, int64_t>(context->output_type(0), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* output = context->output<T>(0);
    for (int d = 0; d < shape.rank(); ++d) output[d] = static_cast<T>(shape.dim(d));
  });
  return absl::OkStatus();
}

// Returns the shape of rows gathered along axis `batch`, of which the dimensions before are common to both; of unknown
// rank if that of `params` is unknown.
absl::StatusOr<Shape> GatheredShape(const Shape& params, const Shape& indices, int64_t batch) {
  if (!params.has_rank()) return Shape::UnknownRank();
  if (batch < 0 || batch > indices.rank() || batch >= params.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("batch_dims is ", batch, ", with a variable of shape ",
                                                   params.ToString(), " and indices of shape ", indices.ToString()));
  }
  Shape output = indices;
  for (int d = 0; d < params.rank(); ++d) {
    if (d < batch && params.dim(d) >= 0 && params.dim(d) != indices.dim(d)) {
      return absl::InvalidArgumentError(absl::StrCat("the variable has the shape ", params.ToString(), " and indices ",
                                                     indices.ToString(), ", which differ in the batch dimension ", d));
    }
    if (d > batch) output.AddDim(params.dim(d));
  }
  return output;
}

absl::Status PrepareGather(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t batch, IntAttr(context->node(), "batch_dims"));
  PF_ASSIGN_OR_RETURN(const Shape shape, GatheredShape(DeclaredShape(*context), context->input_shape(1), batch));
  return SetOrDefer(context, shape);
}

absl::Status BadIndex(int64_t index, int64_t size) {
  return absl::InvalidArgumentError(absl::StrCat("found the index ", index, ", expected a value in [0, ", size, ")"));
}

absl::Status ComputeGather(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, context->output_type(0)));
  PF_ASSIGN_OR_RETURN(const int64_t batch, IntAttr(context->node(), "batch_dims"));
  const Shape& params = variable->value.shape();
  const Shape& indices_shape = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const Shape shape, GatheredShape(params, indices_shape, batch));
  PF_RETURN_IF_ERROR(AllocateOrCheck(context, shape));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntegersOf(context->input_at(1)));
  const int axis = static_cast<int>(batch);
  const int64_t size = params.dim(axis);
  for (const int64_t index : indices) {
    if (index < 0 || index >= size) return BadIndex(index, size);
  }
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t bytes = ProductOfDims(params, axis + 1, params.rank()) * static_cast<int64_t>(SizeOf(variable->dtype));
  const int64_t rows_in_batch = ProductOfDims(indices_shape, axis, indices_shape.rank());
  char* output = context->output_bytes(0);
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / rows_in_batch * size + indices[i];
    std::memcpy(output + static_cast<int64_t>(i) * bytes, variable->elements + row * bytes, static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

absl::Status PrepareGatherNd(PrepareContext* context) {
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

absl::Status ComputeGatherNd(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, context->output_type(0)));
  const Shape &params = variable->value.shape(), &indices_shape = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<SliceIndex> index, ReadSliceIndex(context->node(), indices_shape, params));
  const Shape shape = ShapeOfSlices(*index, indices_shape, params);
  PF_RETURN_IF_ERROR(shape.CheckedNumElements().status());
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntegersOf(context->input_at(1)));
  const int64_t bytes = index->slice_elements * static_cast<int64_t>(SizeOf(variable->dtype));
  for (int64_t row = 0; row < index->num_rows; ++row) {
    const int64_t slice = index->SliceOf(indices.data() + row * static_cast<int64_t>(index->dims.size()));
    if (slice < 0) return BadRow(row);
    std::memcpy(context->output_bytes(0) + row * bytes, variable->elements + slice * bytes, static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

// --- Assignment ------------------------------------------------------------------------------------------------------

absl::Status ComputeAssign(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, ObjectInput<Variable>(context, 0));
  return Assign(context, 1, variable.get());
}

struct Plus {
  template <typename T>
  static T Of(T x, T update) {
    return Narrow<T>(Widen(x) + Widen(update));
  }
};
struct Minus {
  template <typename T>
  static T Of(T x, T update) {
    return Narrow<T>(Widen(x) - Widen(update));
  }
};

struct Times {
  template <typename T>
  static T Of(T x, T update) {
    return Narrow<T>(Widen(x) * Widen(update));
  }
};
// Integers are rounded towards zero. REQUIRES: no integer is divided by zero.
struct Quotient {
  template <typename T>
  static T Of(T x, T update) {
    if constexpr (!std::is_integral_v<T>) {
      return Narrow<T>(Widen(x) / Widen(update));
    } else if constexpr (std::is_signed_v<T>) {
      // The negative of the least number wraps around.
      return update == T{-1} ? Minus::Of(T{0}, x) : static_cast<T>(x / update);
    } else {
      return static_cast<T>(x / update);
    }
  }
};
struct Smaller {
  template <typename T>
  static T Of(T x, T update) {
    return Comparable(update) < Comparable(x) ? update : x;
  }
};
struct Larger {
  template <typename T>
  static T Of(T x, T update) {
    return Comparable(x) < Comparable(update) ? update : x;
  }
};

template <typename F>
bool DispatchOnRealNumbers(DType dtype, F&& f) {
  return DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                    uint64_t>(dtype, std::forward<F>(f));
}

template <typename F>
bool DispatchOnNumbers(DType dtype, F&& f) {
  return DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                    uint64_t, std::complex<float>, std::complex<double>>(dtype, std::forward<F>(f));
}

template <typename Update>
absl::Status ComputeUpdate(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, context->input_type(1)));
  if (context->input_shape(1) != variable->value.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("found a value of shape ", context->input_shape(1).ToString(),
                                                   ", expected the variable's, ", variable->value.shape().ToString()));
  }
  DispatchOnNumbers(variable->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* update = context->input<T>(1);
    T* x = reinterpret_cast<T*>(variable->elements);
    for (int64_t i = 0; i < variable->value.shape().num_elements(); ++i) x[i] = Update::Of(x[i], update[i]);
  });
  return absl::OkStatus();
}

struct Replacement {
  template <typename T>
  static T Of(T, T update) {
    return update;
  }
};

// Calls f with the C++ type of the elements. Minimum and maximum have no complex numbers.
template <typename Update, typename F>
void DispatchFor(DType dtype, F&& f) {
  if constexpr (std::is_same_v<Update, Smaller> || std::is_same_v<Update, Larger>) {
    DispatchOnRealNumbers(dtype, std::forward<F>(f));
  } else {
    DispatchOnNumbers(dtype, std::forward<F>(f));
  }
}

// Updates `size` elements with those of `update`, or with its first one.
template <typename Update, typename T>
absl::Status UpdateRow(T* row, const T* update, int64_t size, bool is_scalar) {
  for (int64_t j = 0; j < size; ++j) {
    const T& x = update[is_scalar ? 0 : j];
    if constexpr (std::is_same_v<Update, Quotient> && std::is_integral_v<T>) {
      if (x == 0) return absl::InvalidArgumentError("'updates' holds the divisor 0");
    }
    row[j] = Update::Of(row[j], x);
  }
  return absl::OkStatus();
}

// Updates the rows that input 1 names with those of input 2, which may also be a scalar.
template <typename Update>
absl::Status ComputeScatter(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, context->input_type(2)));
  const Shape& shape = variable->value.shape();
  if (shape.rank() == 0) return absl::InvalidArgumentError("the variable is a scalar, expected a rank of at least 1");
  const bool is_scalar = context->input_shape(2).rank() == 0;
  PF_ASSIGN_OR_RETURN(const Shape rows, GatheredShape(shape, context->input_shape(1), 0));
  if (!is_scalar && context->input_shape(2) != rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("'updates' has the shape ", context->input_shape(2).ToString(), ", expected ", rows.ToString()));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntegersOf(context->input_at(1)));
  for (const int64_t index : indices) {
    if (index < 0 || index >= shape.dim(0)) return BadIndex(index, shape.dim(0));
  }
  const int64_t size = ProductOfDims(shape, 1, shape.rank());
  absl::Status status;
  DispatchFor<Update>(variable->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* update = context->input<T>(2);
    for (size_t i = 0; i < indices.size() && status.ok(); ++i) {
      T* row = reinterpret_cast<T*>(variable->elements) + indices[i] * size;
      status = UpdateRow<Update>(row, is_scalar ? update : update + static_cast<int64_t>(i) * size, size, is_scalar);
    }
  });
  return status;
}

// Updates the slices that the rows of input 1 address with those of input 2.
template <typename Update>
absl::Status ComputeScatterNd(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const VariableRef variable, InitializedVariable(context, context->input_type(2)));
  const Shape &target = variable->value.shape(), &indices_shape = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<SliceIndex> index, ReadSliceIndex(context->node(), indices_shape, target));
  const Shape shape = ShapeOfSlices(*index, indices_shape, target);
  if (context->input_shape(2) != shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("'updates' has the shape ", context->input_shape(2).ToString(), ", expected ", shape.ToString()));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntegersOf(context->input_at(1)));
  const auto depth = static_cast<int64_t>(index->dims.size());
  const int64_t size = index->slice_elements;
  for (int64_t row = 0; row < index->num_rows; ++row) {
    if (!index->skips_bad_rows && index->SliceOf(indices.data() + row * depth) < 0) return BadRow(row);
  }
  absl::Status status;
  DispatchFor<Update>(variable->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* update = context->input<T>(2);
    for (int64_t row = 0; row < index->num_rows && status.ok(); ++row) {
      const int64_t slice = index->SliceOf(indices.data() + row * depth);
      if (slice < 0) continue;
      T* elements = reinterpret_cast<T*>(variable->elements) + slice * size;
      status = UpdateRow<Update>(elements, update + row * size, size, /*is_scalar=*/false);
    }
  });
  return status;
}

Kernel UpdateKernel(const char* formula, ComputeFunction compute, const char* type_attr = "dtype",
                    std::vector<DType> types = NumberAndComplexTypes()) {
  return Kernel(formula).TypeNumbers(type_attr, std::move(types)).UsesState().Prepare(PrepareEffect).Compute(compute);
}

}  // namespace

DEFINE_KERNEL(VarHandleOp) {
  return Kernel("the variable of that name")
      .TypeNumbers("dtype", MovableAndStringTypes())
      .UsesState()
      .Prepare(PrepareScalar)
      .Compute(ComputeHandle);
}

DEFINE_KERNEL(ReadVariableOp) {
  return Kernel("the value of the variable")
      .TypeNumbers("dtype", MovableAndStringTypes())
      .UsesState()
      .Prepare(PrepareRead)
      .Compute(ComputeRead);
}

DEFINE_KERNEL(VarIsInitializedOp) {
  return Kernel("true if the variable has a value").UsesState().Prepare(PrepareScalar).Compute(ComputeIsInitialized);
}

DEFINE_KERNEL(VariableShape) {
  return Kernel("the shape of the variable's value").UsesState().Prepare(PrepareShape).Compute(ComputeShape);
}

DEFINE_KERNEL(ResourceGather) {
  return Kernel("the rows of the variable at the indices")
      .TypeNumbers("dtype", MovableTypes())
      .UsesState()
      .Prepare(PrepareGather)
      .Compute(ComputeGather);
}

DEFINE_KERNEL(ResourceGatherNd) {
  return Kernel("the slices of the variable that the rows of indices address")
      .TypeNumbers("dtype", MovableTypes())
      .UsesState()
      .Prepare(PrepareGatherNd)
      .Compute(ComputeGatherNd);
}

DEFINE_KERNEL(AssignVariableOp) {
  return Kernel("assigns a value to the variable")
      .TypeNumbers("dtype", MovableAndStringTypes())
      .UsesState()
      .Prepare(PrepareEffect)
      .Compute(ComputeAssign);
}

DEFINE_KERNEL(AssignAddVariableOp) {
  return UpdateKernel("adds a value of the same shape to the variable", ComputeUpdate<Plus>);
}

DEFINE_KERNEL(AssignSubVariableOp) {
  return UpdateKernel("subtracts a value of the same shape from the variable", ComputeUpdate<Minus>);
}

DEFINE_KERNEL(ResourceScatterAdd) {
  return UpdateKernel("adds the updates, or a scalar, to the rows of the variable at the indices",
                      ComputeScatter<Plus>);
}

DEFINE_KERNEL(ResourceScatterUpdate) {
  return UpdateKernel("replaces the rows of the variable at the indices by the updates, or by a scalar",
                      ComputeScatter<Replacement>);
}

DEFINE_KERNEL(ResourceScatterSub) {
  return UpdateKernel("subtracts the updates, or a scalar, from the rows of the variable at the indices",
                      ComputeScatter<Minus>);
}

DEFINE_KERNEL(ResourceScatterMul) {
  return UpdateKernel("multiplies the rows of the variable at the indices by the updates, or by a scalar",
                      ComputeScatter<Times>);
}

DEFINE_KERNEL(ResourceScatterDiv) {
  return UpdateKernel("divides the rows of the variable at the indices by the updates, or by a scalar",
                      ComputeScatter<Quotient>);
}

DEFINE_KERNEL(ResourceScatterMin) {
  return UpdateKernel("the minimum of the rows of the variable at the indices and the updates, or a scalar",
                      ComputeScatter<Smaller>, "dtype", NumberTypes());
}

DEFINE_KERNEL(ResourceScatterMax) {
  return UpdateKernel("the maximum of the rows of the variable at the indices and the updates, or a scalar",
                      ComputeScatter<Larger>, "dtype", NumberTypes());
}

DEFINE_KERNEL(ResourceScatterNdUpdate) {
  return UpdateKernel("replaces the slices of the variable that the rows of indices address by the updates",
                      ComputeScatterNd<Replacement>, "T");
}

DEFINE_KERNEL(ResourceScatterNdAdd) {
  return UpdateKernel("adds the updates to the slices of the variable that the rows of indices address",
                      ComputeScatterNd<Plus>, "T");
}

DEFINE_KERNEL(ResourceScatterNdSub) {
  return UpdateKernel("subtracts the updates from the slices of the variable that the rows of indices address",
                      ComputeScatterNd<Minus>, "T");
}

DEFINE_KERNEL(ResourceScatterNdMin) {
  return UpdateKernel("the minimum of the updates and the slices of the variable that the rows of indices address",
                      ComputeScatterNd<Smaller>, "T", NumberTypes());
}

DEFINE_KERNEL(ResourceScatterNdMax) {
  return UpdateKernel("the maximum of the updates and the slices of the variable that the rows of indices address",
                      ComputeScatterNd<Larger>, "T", NumberTypes());
}

}  // namespace permafrost
