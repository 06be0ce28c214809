// Looks up values by the names under which a variable may have been saved.
#include "transforms/freeze/variable_values.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

struct Extent {
  int64_t start = 0;
  int64_t length = 0;
};

// Parses "20 3 0,10:-": each dimension of the whole followed by a blank, then the extents.
absl::Status ParseSlice(absl::string_view text, const Shape& shape, std::vector<Extent>* extents) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no slice of a tensor of shape ", shape.ToString()));
  };
  const std::vector<absl::string_view> pieces = absl::StrSplit(text, ' ', absl::SkipEmpty());
  const auto rank = static_cast<size_t>(shape.rank());
  if (pieces.size() != rank + 1) return invalid();
  const std::vector<absl::string_view> parts = absl::StrSplit(pieces.back(), ':');
  if (parts.size() != rank) return invalid();
  for (size_t i = 0; i < rank; ++i) {
    int64_t whole = 0;
    if (!absl::SimpleAtoi(pieces[i], &whole) || whole != shape.dim(static_cast<int>(i))) return invalid();
    Extent& extent = extents->emplace_back();
    extent.length = whole;
    if (parts[i] == "-") continue;
    const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(parts[i], absl::MaxSplits(',', 1));
    if (!absl::SimpleAtoi(numbers.first, &extent.start) || !absl::SimpleAtoi(numbers.second, &extent.length)) {
      return invalid();
    }
    if (extent.start < 0 || extent.length < 0 || extent.start > whole || extent.length > whole - extent.start) {
      return invalid();
    }
  }
  return absl::OkStatus();
}

constexpr absl::string_view kPartInfix = "/part_";
// Maximum number of parts; each part inspects the parts before it. TensorFlow creates at most one per server.
constexpr int64_t kMostParts = 4096;

// Splits "v/part_2" into "v" and 2.
bool ParsePart(absl::string_view name, absl::string_view* base, int64_t* index) {
  const size_t at = name.rfind(kPartInfix);
  if (at == absl::string_view::npos || at == 0) return false;
  *base = name.substr(0, at);
  return absl::SimpleAtoi(name.substr(at + kPartInfix.size()), index) && *index >= 0 && *index < kMostParts;
}

}  // namespace

std::string VariableName(const Node& variable) {
  if (const absl::StatusOr<std::string> name = StringAttr(variable, "shared_name"); name.ok() && !name->empty()) {
    return *name;
  }
  return std::string(variable.name());
}

absl::StatusOr<Tensor> Slice(const Tensor& whole, absl::string_view slice) {
  std::vector<Extent> extents;
  PF_RETURN_IF_ERROR(ParseSlice(slice, whole.shape(), &extents));
  const size_t element = SizeOf(whole.dtype());
  if (element == 0) {
    return absl::InvalidArgumentError(absl::StrCat("a slice of a ", DTypeName(whole.dtype()), " tensor"));
  }
  const int rank = whole.shape().rank();
  Shape shape = whole.shape();
  for (int i = 0; i < rank; ++i) shape.set_dim(i, extents[i].length);
  if (shape == whole.shape()) return whole;
  // The elements after the last cut dimension are contiguous, and so is the extent of that dimension.
  int last_cut = 0;
  for (int i = 0; i < rank; ++i) {
    if (shape.dim(i) != whole.shape().dim(i)) last_cut = i;
  }
  std::vector<int64_t> strides(rank, static_cast<int64_t>(element));  // Bytes.
  for (int i = rank - 2; i >= 0; --i) strides[i] = strides[i + 1] * whole.shape().dim(i + 1);
  const auto run = static_cast<size_t>(extents[last_cut].length * strides[last_cut]);
  int64_t runs = 1;
  for (int i = 0; i < last_cut; ++i) runs *= extents[i].length;
  const auto at = [&](int64_t index) {
    int64_t offset = extents[last_cut].start * strides[last_cut];
    for (int i = last_cut - 1; i >= 0; --i) {
      offset += (extents[i].start + index % extents[i].length) * strides[i];
      index /= extents[i].length;
    }
    return static_cast<size_t>(offset);
  };
  if (runs == 1) return Tensor::FromBytes(whole.dtype(), shape, whole.bytes().substr(at(0), run), whole.owner());
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(run * static_cast<size_t>(runs));
  for (int64_t i = 0; i < runs; ++i) absl::StrAppend(bytes.get(), whole.bytes().substr(at(i), run));
  return Tensor::FromBytes(whole.dtype(), shape, *bytes, bytes);
}

VariableValues::VariableValues(const Graph& graph, const VariableSource& source, const VariableNaming& naming)
    : graph_(graph), source_(source), naming_(naming) {
  for (const VariableInfo& info : source.variables()) saved_.emplace(info.name, &info);
}

absl::StatusOr<VariableValues::Value> VariableValues::Of(const Node& variable) const {
  const std::string name = VariableName(variable);
  if (const auto found = naming_.saved_names.find(variable.name()); found != naming_.saved_names.end()) {
    return Read(variable, found->second);
  }
  for (const absl::string_view candidate : {absl::string_view(name), variable.name()}) {
    if (Has(candidate)) return Read(variable, {std::string(candidate), ""});
    const auto key = naming_.keys_by_full_name.find(candidate);
    if (key != naming_.keys_by_full_name.end() && Has(key->second)) return Read(variable, {key->second, ""});
    const std::string path = absl::StrCat(candidate, kVariableValueSuffix);
    if (Has(path)) return Read(variable, {path, ""});
    SavedName part;
    if (FindPart(variable, candidate, &part)) return Read(variable, part);
  }
  return Missing(variable, name);
}

// Finds the slice of a part whose variable was saved whole. The parts are concatenated in one dimension.
bool VariableValues::FindPart(const Node& variable, absl::string_view name, SavedName* part) const {
  absl::string_view base;
  int64_t index = 0;
  if (!ParsePart(name, &base, &index) || !Has(base)) return false;
  const Shape& whole = saved_.find(base)->second->shape;
  const absl::StatusOr<Shape> own = ShapeAttr(variable, "shape");
  if (!own.ok() || !own->IsFullyKnown() || !whole.has_rank() || own->rank() != whole.rank()) return false;
  int cut = -1;
  for (int i = 0; i < whole.rank(); ++i) {
    if (own->dim(i) == whole.dim(i)) continue;
    if (cut != -1) return false;
    cut = i;
  }
  int64_t start = 0;
  for (int64_t i = 0; cut != -1 && i < index; ++i) {
    const Node* before = graph_.Find(absl::StrCat(base, kPartInfix, i));
    if (before == nullptr) return false;
    const absl::StatusOr<Shape> shape = ShapeAttr(*before, "shape");
    if (!shape.ok() || !shape->IsFullyKnown() || shape->rank() != whole.rank()) return false;
    if (shape->dim(cut) < 0 || shape->dim(cut) > whole.dim(cut) - start) return false;
    start += shape->dim(cut);
  }
  part->key = std::string(base);
  std::string extents;
  for (int i = 0; i < whole.rank(); ++i) {
    absl::StrAppend(&part->slice, whole.dim(i), " ");
    absl::StrAppend(&extents, i == 0 ? "" : ":", i == cut ? absl::StrCat(start, ",", own->dim(i)) : "-");
  }
  part->slice += extents;
  return true;
}

absl::Status VariableValues::Missing(const Node& variable, absl::string_view name) const {
  std::vector<absl::string_view> names;
  for (const VariableInfo& info : source_.variables()) names.push_back(info.name);
  return absl::NotFoundError(absl::StrCat(variable.Describe(), ": the checkpoint has no value for variable '", name,
                                          "'", DidYouMean(name, names)));
}

absl::StatusOr<VariableValues::Value> VariableValues::Read(const Node& variable, const SavedName& name) const {
  Value value;
  value.key = name.key;
  if (!naming_.average_suffix.empty()) {
    const std::string average = absl::StrCat(name.key, naming_.average_suffix);
    if (Has(average)) {
      value.key = average;
      value.is_average = true;
    }
  }
  if (!Has(value.key)) return Missing(variable, value.key);
  const std::string place = absl::StrCat(variable.Describe(), ": variable '", value.key, "' of the checkpoint");
  absl::StatusOr<Tensor> tensor = source_.Read(value.key);
  if (!tensor.ok()) return Annotate(tensor.status(), variable.Describe());
  value.tensor = *std::move(tensor);
  if (!name.slice.empty()) {
    absl::StatusOr<Tensor> slice = Slice(value.tensor, name.slice);
    if (!slice.ok()) return Annotate(slice.status(), place);
    value.tensor = *std::move(slice);
  }
  const absl::StatusOr<DType> dtype = TypeAttr(variable, "dtype");
  if (dtype.ok() && *dtype != value.tensor.dtype()) {
    return absl::FailedPreconditionError(
        absl::StrCat(place, " is ", DTypeName(value.tensor.dtype()), ", expected ", DTypeName(*dtype)));
  }
  const absl::StatusOr<Shape> shape = ShapeAttr(variable, "shape");
  // A Variable of unknown shape has the attribute [], as a scalar does.
  const bool is_open = shape.ok() && variable.op() == ops::kVariable && shape->has_rank() && shape->rank() == 0;
  if (shape.ok() && !is_open && !shape->IsCompatibleWith(value.tensor.shape())) {
    return absl::FailedPreconditionError(
        absl::StrCat(place, " has shape ", value.tensor.shape().ToString(), ", expected ", shape->ToString()));
  }
  return value;
}

}  // namespace permafrost
