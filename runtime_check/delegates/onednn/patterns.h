// Recognition of functions that exporters decompose into several nodes: layer normalisation, attention with the
// transposes around it, and grouped convolutions.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PATTERNS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PATTERNS_H_

#include "runtime_check/delegates/onednn/partition_editor.h"

namespace permafrost {
namespace onednn {

// Makes matrix products read and write the views that precede and follow them (Transpose, Split, Slice) in place.
void AbsorbViews(PartitionEditor* editor);

// Replaces convolutions of the parts of an image (Split or Slice), whose results are concatenated, by one grouped
// convolution. Notes on the Concat why others were not replaced.
void FuseGroups(PartitionEditor* editor);

// Replaces the nodes of (x - mean) / sqrt(variance + epsilon) * factor + offset over the last dimension, in any order
// of these operations, and those of the same function without the mean (RMS normalisation), by one node each.
void FuseNormalizations(PartitionEditor* editor);

// Replaces softmax(scale * q k + mask) v by one node. The mask may be added, or select a constant, or both. Notes on a
// softmax between products why it was not replaced.
void FuseAttention(PartitionEditor* editor);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_PATTERNS_H_
