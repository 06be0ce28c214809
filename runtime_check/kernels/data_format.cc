// DataFormatDimMap and DataFormatVecPermute: numbers and sizes of dimensions, brought from one data format to another.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// The place in the target format of each dimension of the source format.
struct PlaceState : KernelState {
  std::vector<int64_t> places;
};

struct Formats {
  std::string source, target;
};

absl::StatusOr<Formats> ReadFormats(const Node& node) {
  Formats formats;
  PF_ASSIGN_OR_RETURN(formats.source, StringAttr(node, "src_format"));
  PF_ASSIGN_OR_RETURN(formats.target, StringAttr(node, "dst_format"));
  std::string a = formats.source, b = formats.target;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  if ((a.size() != 4 && a.size() != 5) || a != b || std::adjacent_find(a.begin(), a.end()) != a.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the formats are '", formats.source, "' and '", formats.target,
                                                   "', expected two orders of the same 4 or 5 letters"));
  }
  return formats;
}

std::unique_ptr<PlaceState> PlacesOf(const Formats& formats) {
  auto state = std::make_unique<PlaceState>();
  for (const char c : formats.source) state->places.push_back(static_cast<int64_t>(formats.target.find(c)));
  return state;
}

absl::Status PrepareDimMap(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const Formats formats, ReadFormats(context->node()));
  context->SetState(PlacesOf(formats));
  return SameShape(context);
}

// Numbers count modulo the number of dimensions.
absl::Status ComputeDimMap(ComputeContext* context) {
  const std::vector<int64_t>& places = context->state<PlaceState>().places;
  DispatchOn<int32_t, int64_t>(context->input_type(0), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = context->input<T>(0);
    T* y = context->output<T>(0);
    const T rank = static_cast<T>(places.size());
    for (int64_t i = 0; i < context->input_shape(0).num_elements(); ++i) {
      y[i] = static_cast<T>(places[(x[i] % rank + rank) % rank]);
    }
  });
  return absl::OkStatus();
}

absl::Status PrepareVecPermute(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(Formats formats, ReadFormats(context->node()));
  const Shape& shape = context->input_shape(0);
  const int64_t rank = static_cast<int64_t>(formats.source.size()), spatial = rank - 2;
  if ((shape.rank() != 1 && shape.rank() != 2) || (shape.dim(0) != rank && shape.dim(0) != spatial) ||
      (shape.rank() == 2 && shape.dim(1) != 2)) {
    return absl::InvalidArgumentError(absl::StrCat("the input has the shape ", shape.ToString(),
                                                   ", expected one value, or a pair of values, for each of ", rank,
                                                   " dimensions or of ", spatial, " spatial ones"));
  }
  if (shape.dim(0) == spatial) {
    const auto is_other = [spatial](char c) { return c != 'H' && c != 'W' && (spatial == 2 || c != 'D'); };
    for (std::string* format : {&formats.source, &formats.target}) {
      format->erase(std::remove_if(format->begin(), format->end(), is_other), format->end());
      if (static_cast<int64_t>(format->size()) != spatial) {
        return absl::InvalidArgumentError(absl::StrCat("the formats do not name ", spatial,
                                                       " spatial dimensions, expected H, W and, for volumes, D"));
      }
    }
  }
  context->SetState(PlacesOf(formats));
  return SameShape(context);
}

absl::Status ComputeVecPermute(ComputeContext* context) {
  const std::vector<int64_t>& places = context->state<PlaceState>().places;
  const auto bytes = context->input_shape(0).num_elements() / static_cast<int64_t>(places.size()) *
                     static_cast<int64_t>(SizeOf(context->input_type(0)));
  const char* x = context->input_bytes(0);
  char* y = context->output_bytes(0);
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(y + places[i] * bytes, x + static_cast<int64_t>(i) * bytes, static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(DataFormatDimMap) {
  return Kernel("the number in dst_format of each dimension that x numbers in src_format")
      .TypeNumbers("T", IndexTypes())
      .InPlace(0)
      .Prepare(PrepareDimMap)
      .Compute(ComputeDimMap);
}

DEFINE_KERNEL(DataFormatVecPermute) {
  return Kernel("the values of the dimensions in src_format, in the order of dst_format")
      .TypeNumbers("T", IndexTypes())
      .Prepare(PrepareVecPermute)
      .Compute(ComputeVecPermute);
}

}  // namespace permafrost
