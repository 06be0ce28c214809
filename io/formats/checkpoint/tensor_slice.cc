// Implements decoding of slices, their keys, and the assembly of variables from slices.
#include "io/formats/checkpoint/tensor_slice.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "io/formats/checkpoint/ordered_code.h"

namespace permafrost {
namespace {

enum SliceField : uint32_t { kExtent = 1 };
enum ExtentField : uint32_t { kStart = 1, kLength = 2 };

absl::StatusOr<SliceExtent> ParseExtent(absl::string_view encoded) {
  SliceExtent extent;
  PF_RETURN_IF_ERROR(ForEachField(encoded, [&](const WireField& field) {
    if (field.type != WireType::kVarint) return absl::OkStatus();
    const auto value = static_cast<int64_t>(field.value);
    if (field.number == kStart) extent.start = value;
    if (field.number == kLength) {
      if (value < 0) return absl::DataLossError(absl::StrCat("found a slice of length ", value));
      extent.length = value;
    }
    return absl::OkStatus();
  }));
  return extent;
}

constexpr uint64_t kWordBits = 64;

// Sets bits first to first + count - 1. Returns false if one of them was already set. REQUIRES: count > 0.
bool SetBits(uint64_t first, uint64_t count, std::vector<uint64_t>* words) {
  const uint64_t last = first + count - 1;
  uint64_t already = 0;
  for (uint64_t word = first / kWordBits; word <= last / kWordBits; ++word) {
    uint64_t bits = ~uint64_t{0};
    if (word == first / kWordBits) bits &= ~uint64_t{0} << (first % kWordBits);
    if (word == last / kWordBits) bits &= ~uint64_t{0} >> (kWordBits - 1 - last % kWordBits);
    already |= (*words)[word] & bits;
    (*words)[word] |= bits;
  }
  return already == 0;
}

}  // namespace

absl::StatusOr<TensorSlice> ParseTensorSlice(absl::string_view encoded) {
  TensorSlice slice;
  PF_RETURN_IF_ERROR(ForEachField(encoded, [&](const WireField& field) {
    if (!IsMessage(field, kExtent)) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(const SliceExtent extent, ParseExtent(field.bytes));
    slice.push_back(extent);
    return absl::OkStatus();
  }));
  return slice;
}

std::string ToString(const TensorSlice& slice) {
  return absl::StrCat("[",
                      absl::StrJoin(slice, ", ",
                                    [](std::string* out, const SliceExtent& extent) {
                                      if (extent.length == SliceExtent::kAll) {
                                        absl::StrAppend(out, ":");
                                      } else {
                                        absl::StrAppend(out, extent.start, "+", extent.length);
                                      }
                                    }),
                      "]");
}

absl::StatusOr<Shape> SliceShape(const TensorSlice& slice, const Shape& whole) {
  bool fits = static_cast<int>(slice.size()) == whole.rank();
  Shape shape;
  for (int i = 0; fits && i < whole.rank(); ++i) {
    const SliceExtent& extent = slice[i];
    if (extent.length == SliceExtent::kAll) {
      fits = extent.start == 0;
      shape.AddDim(whole.dim(i));
    } else {
      fits = extent.start >= 0 && extent.start <= whole.dim(i) && extent.length <= whole.dim(i) - extent.start;
      shape.AddDim(extent.length);
    }
  }
  if (!fits) {
    return absl::DataLossError(
        absl::StrCat("found the slice ", ToString(slice), " of a variable of shape ", whole.ToString()));
  }
  return shape;
}

std::string SliceKey(absl::string_view name, const TensorSlice& slice) {
  // The 0 in front distinguishes these keys from the names of variables.
  std::string key;
  AppendOrdered(uint64_t{0}, &key);
  AppendOrdered(name, &key);
  AppendOrdered(uint64_t{slice.size()}, &key);
  for (const SliceExtent& extent : slice) {
    AppendOrdered(extent.start, &key);
    AppendOrdered(extent.length, &key);
  }
  return key;
}

absl::StatusOr<SliceAssembler> SliceAssembler::Create(DType dtype, const Shape& whole) {
  SliceAssembler assembler(dtype, whole);
  PF_ASSIGN_OR_RETURN(const int64_t count, whole.CheckedNumElements());
  if (dtype == DType::kString) {
    assembler.strings_.resize(static_cast<size_t>(count));
  } else {
    PF_ASSIGN_OR_RETURN(assembler.tensor_, Tensor::Allocate(dtype, whole, &assembler.data_));
  }
  assembler.is_set_.resize((static_cast<uint64_t>(count) + kWordBits - 1) / kWordBits);
  return assembler;
}

absl::Status SliceAssembler::Add(const TensorSlice& slice, const Tensor& part) {
  const Shape& shape = part.shape();
  const int64_t count = part.num_elements();
  if (count == 0) return absl::OkStatus();
  // Dimensions from `inner` on are contiguous and copied as one run: all but the first of them are complete.
  int inner = whole_.rank();
  int64_t run = 1;
  while (inner > 0) {
    --inner;
    run *= shape.dim(inner);
    if (shape.dim(inner) != whole_.dim(inner)) break;
  }
  std::vector<int64_t> strides(whole_.rank(), 1);
  for (int i = whole_.rank() - 2; i >= 0; --i) strides[i] = strides[i + 1] * whole_.dim(i + 1);
  int64_t target = 0;
  for (int i = 0; i < whole_.rank(); ++i) target += slice[i].start * strides[i];

  const size_t element_size = SizeOf(dtype_);
  std::vector<int64_t> index(inner, 0);
  for (int64_t source = 0; source < count; source += run) {
    if (!SetBits(static_cast<uint64_t>(target), static_cast<uint64_t>(run), &is_set_)) {
      return absl::DataLossError(absl::StrCat("the slice ", ToString(slice), " overlaps another slice"));
    }
    if (dtype_ == DType::kString) {
      std::copy_n(part.strings().begin() + source, run, strings_.begin() + target);
    } else {
      std::memcpy(data_ + target * element_size, part.bytes().data() + source * element_size, run * element_size);
    }
    for (int i = inner - 1; i >= 0; --i) {
      target += strides[i];
      if (++index[i] < shape.dim(i)) break;
      target -= strides[i] * shape.dim(i);
      index[i] = 0;
    }
  }
  num_set_ += count;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> SliceAssembler::Finish() {
  const int64_t count = whole_.num_elements();
  if (num_set_ != count) {
    return absl::DataLossError(absl::StrCat("the slices hold ", num_set_, " of ", count,
                                            " elements of a variable of shape ", whole_.ToString()));
  }
  if (dtype_ == DType::kString) return Tensor::FromStrings(std::move(whole_), std::move(strings_));
  return std::move(tensor_);
}

}  // namespace permafrost
