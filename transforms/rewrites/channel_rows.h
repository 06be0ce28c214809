// Gathers the elements of each channel of a tensor into contiguous rows.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_ROWS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "graph/tensor.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/channel_scaling.h"

namespace permafrost {

// Number of channels gathered at a time. If memory neighbours belong to different channels, each cache line is read
// once for the whole group.
inline constexpr int64_t kChannelGroup = 16;

// Gathers the elements of each channel into a row, calls `work` to compute a result row, and scatters that to the
// channel's places in a tensor of the same layout.
template <typename Element>
class ChannelRows {
 public:
  // Computes a result row. Both rows have size() elements. May be called by several threads at once, for different
  // channels.
  using Work = std::function<void(int64_t channel, const float* row, Element* result)>;

  // REQUIRES: the size of `values` is a multiple of count * inner.
  ChannelRows(UnalignedSpan<float> values, Channels channels)
      : values_(values),
        channels_(channels),
        outer_(static_cast<int64_t>(values.size()) / (channels.count * channels.inner)) {}

  size_t size() const { return static_cast<size_t>(outer_ * channels_.inner); }

  // Runs `work` for each channel. `out` has room for as many elements as `values`.
  void ForEach(ThreadTeam* team, char* out, const Work& work) const {
    team->ForEach((channels_.count + kChannelGroup - 1) / kChannelGroup, [&](size_t group) {
      const int64_t first = static_cast<int64_t>(group) * kChannelGroup;
      const int64_t width = std::min(kChannelGroup, channels_.count - first);
      std::vector<float> rows(width * size());
      ForEachStretch(first, width, [&](int64_t c, int64_t in_row, int64_t in_tensor) {
        Copy<float>(values_.bytes() + in_tensor * sizeof(float), reinterpret_cast<char*>(&rows[c * size() + in_row]));
      });
      std::vector<Element> results(width * size());
      for (int64_t c = 0; c < width; ++c) work(first + c, &rows[c * size()], &results[c * size()]);
      ForEachStretch(first, width, [&](int64_t c, int64_t in_row, int64_t in_tensor) {
        Copy<Element>(reinterpret_cast<const char*>(&results[c * size() + in_row]), out + in_tensor * sizeof(Element));
      });
    });
  }

 private:
  // Copies a run of elements. Most runs have a single element, for which a call of memcpy would cost more than the
  // copy.
  template <typename T>
  void Copy(const char* from, char* to) const {
    if (channels_.inner == 1) {
      std::memcpy(to, from, sizeof(T));
    } else {
      std::memcpy(to, from, channels_.inner * sizeof(T));
    }
  }

  // Calls copy(channel of the group, place in its row, place in the tensor) for each run of a channel's elements.
  template <typename Copy>
  void ForEachStretch(int64_t first, int64_t width, const Copy& copy) const {
    for (int64_t o = 0; o < outer_; ++o) {
      for (int64_t c = 0; c < width; ++c) {
        copy(c, o * channels_.inner, (o * channels_.count + first + c) * channels_.inner);
      }
    }
  }

  const UnalignedSpan<float> values_;
  const Channels channels_;
  const int64_t outer_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_ROWS_H_
