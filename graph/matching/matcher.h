// Patterns over a node and the nodes that feed it.
//
//   enum { kConv, kWeights, kScale };
//   const Pattern pattern = Pattern::OneOf({ops::kMul}).InAnyOrder(
//       Pattern::OneOf({ops::kConv2D, ops::kMatMul}).As(kConv).UsedOnce().Input(1, Pattern::Constant().As(kWeights)),
//       Pattern::Constant().As(kScale));
//   Match match;
//   std::string near_miss;
//   if (Matches(pattern, *node, &match, explain ? &near_miss : nullptr)) Use(match[kConv].node, match[kWeights]);
//
// Inputs are tensors: a pattern asks for output 0 of a producer unless it says AtAnyPort(). Control inputs are ignored.
// Matching goes as deep as the pattern, whatever the graph.
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

// The Const that a tensor is, directly or through at most kMaxReads Identity nodes (a frozen variable is read through
// one). Null when it is none.
inline constexpr int kMaxReads = 8;
Node* ConstantBehind(TensorRef ref);

// Immutable once built, and thread-safe.
class Pattern {
 public:
  static Pattern Anything() { return Pattern(Kind::kAnything); }
  static Pattern OneOf(std::initializer_list<Op> ops);
  // A constant as ConstantBehind() finds it. The capture is the tensor that is read, Identity nodes included.
  static Pattern Constant() { return Pattern(Kind::kConstant); }

  // Captures the tensor under a small number.
  Pattern As(int label) &&;
  // The node has exactly one use, data or control, and is no endpoint of the graph: it may be rewritten or removed.
  Pattern UsedOnce() &&;
  // Any output, not only 0.
  Pattern AtAnyPort() &&;
  // What data input `index` must be; a node without that input does not match. Inputs that are not named may be
  // anything.
  Pattern Input(int index, Pattern pattern) &&;
  // The node has exactly two data inputs, which match in one order or the other.
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

// What a match has captured.
class Match {
 public:
  // REQUIRES: the pattern has the label.
  TensorRef operator[](int label) const { return captures_[label]; }
  bool Has(int label) const { return label < static_cast<int>(captures_.size()) && captures_[label].node != nullptr; }

 private:
  friend class Matcher;
  absl::InlinedVector<TensorRef, 8> captures_;
};

// Matches output 0 of `head`. When `near_miss` is given, the head's own op fits and something else does not, it
// receives the reason: what was found where, and what was expected; otherwise it is cleared.
bool Matches(const Pattern& pattern, Node& head, Match* match, std::string* near_miss = nullptr);
// The same with the whole of it; `near_miss->reason` is empty when there is none. Of several failures it tells the one
// deepest in the pattern, and how many there are in the order of inputs that fits best.
bool Matches(const Pattern& pattern, Node& head, Match* match, NearMiss* near_miss);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_MATCHING_MATCHER_H_
