// Patterns that match a node and its producers.
//
//   enum { kConv, kWeights, kScale };
//   const Pattern pattern = Pattern::OneOf({ops::kMul}).InAnyOrder(
//       Pattern::OneOf({ops::kConv2D, ops::kMatMul}).As(kConv).UsedOnce().Input(1, Pattern::Constant().As(kWeights)),
//       Pattern::Constant().As(kScale));
//   Match match;
//   std::string near_miss;
//   if (Matches(pattern, *node, &match, explain ? &near_miss : nullptr)) Use(match[kConv].node, match[kWeights]);
//
// Inputs are tensors: a pattern matches output 0 of a producer unless AtAnyPort() is set. Control inputs are ignored.
// The recursion depth is that of the pattern, independent of the graph.
#ifndef PERMAFROST_GRAPH_MATCHING_MATCHER_H_
#define PERMAFROST_GRAPH_MATCHING_MATCHER_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "graph/graph.h"
#include "graph/matching/near_miss.h"

namespace permafrost {

// Returns the Const that a tensor reads, directly or through at most kMaxReads Identity nodes (frozen variables are
// read through one), or null if there is none.
inline constexpr int kMaxReads = 8;
Node* ConstantBehind(TensorRef ref);

// A pattern. Immutable once built, and thread-safe.
class Pattern {
 public:
  static Pattern Anything() { return Pattern(Kind::kAnything); }
  static Pattern OneOf(std::initializer_list<Op> ops);
  // Matches a constant as ConstantBehind() finds it. The capture is the tensor as read by the consumer, before any
  // Identity.
  static Pattern Constant() { return Pattern(Kind::kConstant); }

  // Captures the tensor under a label, a small number.
  Pattern As(int label) &&;
  // Requires that the node has exactly one use, data or control, and is no declared input or output, so that it can be
  // rewritten or removed.
  Pattern UsedOnce() &&;
  // Accepts any output, not only output 0.
  Pattern AtAnyPort() &&;
  // Requires that data input `index` exists and matches `pattern`. Inputs without a pattern may be anything.
  Pattern Input(int index, Pattern pattern) &&;
  // Requires exactly two data inputs, which match the patterns in either order.
  Pattern InAnyOrder(Pattern a, Pattern b) &&;

 private:
  friend class Matcher;
  enum class Kind { kAnything, kOneOf, kConstant };
  explicit Pattern(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::vector<Op> ops_;
  int label_ = -1;
  bool used_once_ = false;
  bool any_port_ = false;
  bool any_order_ = false;
  std::vector<std::pair<int, Pattern>> inputs_;
};

// The captures of a match.
class Match {
 public:
  // REQUIRES: the pattern has the label.
  TensorRef operator[](int label) const { return captures_[label]; }
  bool Has(int label) const { return label < static_cast<int>(captures_.size()) && captures_[label].node != nullptr; }

 private:
  friend class Matcher;
  absl::InlinedVector<TensorRef, 8> captures_;
};

// Matches output 0 of `head`. If it fails although the op of `head` fits, *near_miss is set to the reason (place,
// found, expected); otherwise it is cleared. `near_miss` may be null.
bool Matches(const Pattern& pattern, Node& head, Match* match, std::string* near_miss = nullptr);
// Same, with all details of the near miss; `near_miss->reason` is empty if there is none. Of several failures it
// describes the deepest in the pattern. The number of failures is that of the best order of inputs.
bool Matches(const Pattern& pattern, Node& head, Match* match, NearMiss* near_miss);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_MATCHING_MATCHER_H_
