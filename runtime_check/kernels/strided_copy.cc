// Implements copies of blocks between strided layouts.
#include "runtime_check/kernels/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "graph/base/row_copy.h"

namespace permafrost {
namespace {

// Minimum number of bytes per thread.
constexpr int64_t kGrainBytes = 1 << 17;
// Side of a transposition tile: 32 cache lines of 64 bytes of source and target stay in the L1 cache.
constexpr int64_t kTile = 32;

struct Element16 {
  uint64_t halves[2];
};

// An unaligned element. A copy may start anywhere in a tensor, so neighbours that are merged to one element may be
// unaligned.
template <typename T>
struct __attribute__((packed, may_alias)) Unaligned {
  T bits;
};

// Calls f with a tag of a type of that size without alignment.
template <typename F>
void WithElement(size_t size, F f) {
  switch (size) {
    case 1:
      return f(Unaligned<uint8_t>());
    case 2:
      return f(Unaligned<uint16_t>());
    case 4:
      return f(Unaligned<uint32_t>());
    case 8:
      return f(Unaligned<uint64_t>());
    default:
      return f(Unaligned<Element16>());
  }
}

template <typename T>
void CopyRow(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

}  // namespace

absl::InlinedVector<int64_t, 6> RowMajorStrides(absl::Span<const int64_t> dims) {
  absl::InlinedVector<int64_t, 6> strides(dims.size());
  uint64_t stride = 1;  // May wrap around if an outer dimension is 0.
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(dims[i]);
  }
  return strides;
}

absl::InlinedVector<StridedCopy::Dim, 6> PermutedDims(absl::Span<const int64_t> from, absl::Span<const int> order) {
  const absl::InlinedVector<int64_t, 6> strides = RowMajorStrides(from);
  absl::InlinedVector<int64_t, 6> sizes;
  for (int d : order) sizes.push_back(from[d]);
  const absl::InlinedVector<int64_t, 6> to_strides = RowMajorStrides(sizes);
  absl::InlinedVector<StridedCopy::Dim, 6> dims;
  for (size_t d = 0; d < order.size(); ++d) dims.push_back({sizes[d], strides[order[d]], to_strides[d]});
  return dims;
}

StridedCopy::StridedCopy(absl::Span<const Dim> dims, size_t element_size)
    : element_size_(element_size), num_elements_(1) {
  if (std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.size == 0; })) {
    num_elements_ = 0;
    dims_.push_back({0, 1, 1});
    return;
  }
  for (const Dim& dim : dims) {
    num_elements_ *= dim.size;
    if (dim.size == 1) continue;
    if (!dims_.empty() && dims_.back().from == dim.from * dim.size && dims_.back().to == dim.to * dim.size) {
      dims_.back() = {dims_.back().size * dim.size, dim.from, dim.to};
    } else {
      dims_.push_back(dim);
    }
  }
  // Rows that are contiguous in source and target, and have the size of a larger element, are moved as one element.
  if (!dims_.empty() && dims_.back().from == 1 && dims_.back().to == 1 && dims_.size() > 1) {
    const int64_t row = dims_.back().size;
    const bool fits = (row == 2 || row == 4 || row == 8 || row == 16) && row * element_size_ <= 16;
    const bool aligned = std::all_of(dims_.begin(), dims_.end() - 1,
                                     [row](const Dim& dim) { return dim.from % row == 0 && dim.to % row == 0; });
    if (fits && aligned) {
      dims_.pop_back();
      element_size_ *= row;
      for (Dim& dim : dims_) dim = {dim.size, dim.from / row, dim.to / row};
    }
  }
  if (dims_.empty()) dims_.push_back({num_elements_, 1, 1});
  // If the last dimension is not contiguous in the source, the dimension that is becomes the one before the last.
  const int last = static_cast<int>(dims_.size()) - 1;
  if (dims_[last].to == 1 && dims_[last].from != 1 && dims_[last].from != 0 && dims_[last].size >= 4) {
    for (int i = 0; i < last; ++i) {
      if (dims_[i].from == 1 && dims_[i].size >= 4) {
        std::rotate(dims_.begin() + i, dims_.begin() + i + 1, dims_.begin() + last);
        transposes_ = true;
        break;
      }
    }
  }
}

template <typename Body>
void StridedCopy::ForEachOuter(int num_outer, int64_t begin, int64_t end, Body body) const {
  if (begin >= end) return;
  absl::InlinedVector<int64_t, 8> index(num_outer);
  int64_t from = 0;
  int64_t to = 0;
  int64_t rest = begin;
  for (int d = num_outer - 1; d >= 0; --d) {
    index[d] = rest % dims_[d].size;
    rest /= dims_[d].size;
    from += index[d] * dims_[d].from;
    to += index[d] * dims_[d].to;
  }
  for (; begin < end; ++begin) {
    body(from, to);
    for (int d = num_outer - 1; d >= 0; --d) {
      from += dims_[d].from;
      to += dims_[d].to;
      if (++index[d] < dims_[d].size) break;
      from -= dims_[d].size * dims_[d].from;
      to -= dims_[d].size * dims_[d].to;
      index[d] = 0;
    }
  }
}

void StridedCopy::Run(const char* from, char* to, ThreadPool* threads) const {
  if (num_elements_ == 0) return;
  const int64_t bytes = num_elements_ * static_cast<int64_t>(element_size_);
  if (dims_.size() == 1 && dims_[0].from == 1 && dims_[0].to == 1 && bytes <= kGrainBytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));  // A small block, without the cost of a loop on threads.
  } else if (transposes_) {
    CopyTiles(from, to, threads);
  } else {
    CopyRows(from, to, threads);
  }
}

void StridedCopy::CopyRows(const char* from, char* to, ThreadPool* threads) const {
  const int num_outer = static_cast<int>(dims_.size()) - 1;
  const Dim& row = dims_.back();
  int64_t num_rows = 1;
  for (int d = 0; d < num_outer; ++d) num_rows *= dims_[d].size;
  WithElement(element_size_, [&](auto tag) {
    using T = decltype(tag);
    const T* source = reinterpret_cast<const T*>(from);
    T* target = reinterpret_cast<T*>(to);
    const int64_t grain = kGrainBytes / sizeof(T);
    if (num_rows == 1) {
      threads->ParallelFor(row.size, grain, [&](int64_t begin, int64_t end) {
        CopyRow(source + begin * row.from, row.from, target + begin * row.to, row.to, end - begin);
      });
      return;
    }
    // The innermost of the outer dimensions is a loop of its own, because rows are often short.
    const Dim& rows = dims_[static_cast<size_t>(num_outer) - 1];
    const bool is_contiguous = row.from == 1 && row.to == 1;
    threads->ParallelFor(num_rows, std::max<int64_t>(1, grain / row.size), [&](int64_t begin, int64_t end) {
      if (is_contiguous) {
        constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
        while (begin < end) {
          const int64_t block = begin / rows.size, first = begin - block * rows.size;
          const int64_t count = std::min(rows.size - first, end - begin);
          ForEachOuter(num_outer - 1, block, block + 1, [&](int64_t from_offset, int64_t to_offset) {
            CopyByteRows(from + (from_offset + first * rows.from) * kBytes, rows.from * kBytes,
                         to + (to_offset + first * rows.to) * kBytes, rows.to * kBytes, count,
                         static_cast<size_t>(row.size * kBytes));
          });
          begin += count;
        }
        return;
      }
      ForEachOuter(num_outer, begin, end, [&](int64_t from_offset, int64_t to_offset) {
        CopyRow(source + from_offset, row.from, target + to_offset, row.to, row.size);
      });
    });
  });
}

void StridedCopy::CopyTiles(const char* from, char* to, ThreadPool* threads) const {
  const int num_outer = static_cast<int>(dims_.size()) - 2;
  const Dim& rows = dims_[num_outer];         // Contiguous in the source.
  const Dim& columns = dims_[num_outer + 1];  // Contiguous in the target.
  const int64_t tiles = (rows.size + kTile - 1) / kTile;
  int64_t num_blocks = 1;
  for (int d = 0; d < num_outer; ++d) num_blocks *= dims_[d].size;
  WithElement(element_size_, [&](auto tag) {
    using T = decltype(tag);
    const int64_t strip_bytes = std::min(rows.size, kTile) * columns.size * static_cast<int64_t>(sizeof(T));
    threads->ParallelFor(num_blocks * tiles, std::max<int64_t>(1, kGrainBytes / strip_bytes),
                         [&](int64_t begin, int64_t end) {
                           while (begin < end) {
                             const int64_t block = begin / tiles;
                             const int64_t stop = std::min(end, (block + 1) * tiles);
                             const int64_t row_begin = (begin - block * tiles) * kTile;
                             const int64_t row_end = std::min(rows.size, (stop - block * tiles) * kTile);
                             ForEachOuter(num_outer, block, block + 1, [&](int64_t from_offset, int64_t to_offset) {
                               const T* source = reinterpret_cast<const T*>(from) + from_offset;
                               T* target = reinterpret_cast<T*>(to) + to_offset;
                               for (int64_t r = row_begin; r < row_end; r += kTile) {
                                 const int64_t r_end = std::min(row_end, r + kTile);
                                 for (int64_t c = 0; c < columns.size; c += kTile) {
                                   const int64_t c_end = std::min(columns.size, c + kTile);
                                   for (int64_t i = r; i < r_end; ++i) {
                                     for (int64_t j = c; j < c_end; ++j)
                                       target[i * rows.to + j] = source[i + j * columns.from];
                                   }
                                 }
                               }
                             });
                             begin = stop;
                           }
                         });
  });
}

}  // namespace permafrost
