// Implements pattern matching.
#include "graph/matching/matcher.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace permafrost {

Node* ConstantBehind(TensorRef ref) {
  for (int reads = 0; reads <= kMaxReads; ++reads) {
    if (ref.node == nullptr || ref.port != 0) return nullptr;
    if (ref.node->op() == ops::kConst) return ref.node;
    if (ref.node->op() != ops::kIdentity || ref.node->num_data_inputs() != 1) return nullptr;
    ref = ref.node->input(0);
  }
  return nullptr;
}

Pattern Pattern::OneOf(std::initializer_list<Op> ops) {
  Pattern pattern(Kind::kOneOf);
  pattern.ops_.assign(ops.begin(), ops.end());
  return pattern;
}

Pattern Pattern::As(int label) && {
  label_ = label;
  return std::move(*this);
}

Pattern Pattern::UsedOnce() && {
  used_once_ = true;
  return std::move(*this);
}

Pattern Pattern::AtAnyPort() && {
  any_port_ = true;
  return std::move(*this);
}

Pattern Pattern::Input(int index, Pattern pattern) && {
  inputs_.emplace_back(index, std::move(pattern));
  return std::move(*this);
}

Pattern Pattern::InAnyOrder(Pattern a, Pattern b) && {
  any_order_ = true;
  inputs_.emplace_back(0, std::move(a));
  inputs_.emplace_back(1, std::move(b));
  return std::move(*this);
}

// One attempt to match. Records the failure after the largest number of matching nodes, because it is the most
// informative.
class Matcher {
 public:
  Matcher(Match* match, bool explain) : match_(match), explain_(explain) {}

  bool Run(const Pattern& pattern, TensorRef ref) {
    near_miss_.num_failures = Visit(pattern, ref, "", 0);
    return near_miss_.num_failures == 0;
  }
  NearMiss& near_miss() { return near_miss_; }

 private:
  // Returns the number of failed conditions. If no explanation is requested, it stops at the first failure and the
  // result only distinguishes 0 from failure. `place` describes the position of the tensor ("input 0 of input 1"),
  // `depth` its depth below the head.
  int Visit(const Pattern& pattern, TensorRef ref, const std::string& place, int depth) {
    Node* node = ref.node;
    const auto fail = [&](NearMiss::Kind kind, auto... pieces) {
      if (explain_ && depth > best_depth_) {
        best_depth_ = depth;
        near_miss_.kind = kind;
        near_miss_.found = ref;
        near_miss_.reason = absl::StrCat(place, place.empty() ? "" : ", ", node->Describe(), ", ", pieces...);
      }
      return 1;
    };
    if (pattern.kind_ == Pattern::Kind::kOneOf) {
      if (std::find(pattern.ops_.begin(), pattern.ops_.end(), node->op()) == pattern.ops_.end()) {
        if (depth == 0) return 1;
        // The conditions on its inputs cannot be checked either, and count as failed.
        return fail(NearMiss::Kind::kOtherOp, "expected ", NamesOf(pattern)) + SizeOf(pattern);
      }
    } else if (pattern.kind_ == Pattern::Kind::kConstant) {
      if (ConstantBehind(ref) == nullptr) return fail(NearMiss::Kind::kNotConstant, "is not constant");
    }
    // The node has the expected kind, which counts as half a level of depth.
    depth += 1;
    int failures = 0;
    if (ref.port != 0 && !pattern.any_port_) {
      failures += fail(NearMiss::Kind::kOtherPort, "is read at output ", ref.port, ", expected output 0");
    } else if (pattern.used_once_ && node->graph().IsEndpoint(node)) {
      failures += fail(NearMiss::Kind::kEndpoint, "is a declared input or output");
    } else if (pattern.used_once_ && node->uses().size() != 1) {
      failures += fail(NearMiss::Kind::kShared, "has ", node->uses().size(), " users, expected one");
    }
    if (failures > 0 && !explain_) return failures;
    if (pattern.any_order_) {
      if (node->num_data_inputs() != 2) {
        return failures + fail(NearMiss::Kind::kArity, "has ", node->num_data_inputs(), " inputs, expected 2");
      }
      const auto& [first, second] = std::make_pair(&pattern.inputs_[0].second, &pattern.inputs_[1].second);
      int fewest = VisitBoth(*first, *second, *node, place, depth);
      if (fewest > 0) fewest = std::min(fewest, VisitBoth(*second, *first, *node, place, depth));
      failures += fewest;
    } else {
      for (const auto& [index, input] : pattern.inputs_) {
        if (index >= node->num_data_inputs()) {
          failures += fail(NearMiss::Kind::kArity, "has no input ", index);
        } else {
          failures += VisitInput(input, *node, index, place, depth);
        }
        if (failures > 0 && !explain_) return failures;
      }
    }
    if (failures == 0 && pattern.label_ >= 0) {
      if (static_cast<int>(match_->captures_.size()) <= pattern.label_) match_->captures_.resize(pattern.label_ + 1);
      match_->captures_[pattern.label_] = ref;
    }
    return failures;
  }

  int VisitBoth(const Pattern& a, const Pattern& b, const Node& node, const std::string& place, int depth) {
    const int failures = VisitInput(a, node, 0, place, depth);
    if (failures > 0 && !explain_) return failures;
    return failures + VisitInput(b, node, 1, place, depth);
  }

  int VisitInput(const Pattern& pattern, const Node& node, int index, const std::string& place, int depth) {
    std::string inner;
    if (explain_) inner = absl::StrCat("input ", index, place.empty() ? "" : " of ", place);
    return Visit(pattern, node.input(index), inner, depth + 1);
  }

  // Returns the number of nodes below the head of a pattern.
  static int SizeOf(const Pattern& pattern) {
    int size = 0;
    for (const auto& [index, input] : pattern.inputs_) size += 1 + SizeOf(input);
    return size;
  }

  static std::string NamesOf(const Pattern& pattern) {
    std::string names;
    for (size_t i = 0; i < pattern.ops_.size(); ++i) {
      absl::StrAppend(&names, i == 0 ? "" : i + 1 == pattern.ops_.size() ? " or " : ", ", pattern.ops_[i].name());
    }
    return names;
  }

  Match* match_;
  bool explain_;
  int best_depth_ = -1;
  NearMiss near_miss_;
};

bool Matches(const Pattern& pattern, Node& head, Match* match, NearMiss* near_miss) {
  *match = Match();
  Matcher matcher(match, near_miss != nullptr);
  const bool matches = matcher.Run(pattern, {&head, 0});
  if (near_miss != nullptr) *near_miss = matches ? NearMiss() : std::move(matcher.near_miss());
  return matches;
}

bool Matches(const Pattern& pattern, Node& head, Match* match, std::string* near_miss) {
  NearMiss why;
  const bool matches = Matches(pattern, head, match, near_miss == nullptr ? nullptr : &why);
  if (near_miss != nullptr) *near_miss = std::move(why.reason);
  return matches;
}

}  // namespace permafrost
