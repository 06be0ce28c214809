// Effects of running a graph besides computing its outputs: files, printing, random numbers, state, code, network.
#ifndef PERMAFROST_TOOLS_SUMMARY_EFFECTS_H_
#define PERMAFROST_TOOLS_SUMMARY_EFFECTS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

// An effect that a node can have. The name is that of tools/summary/op_effects.txt and of --forbid.
struct EffectKind {
  absl::string_view name;
  absl::string_view description;  // "reads files".
};

// All kinds, in the order of reports. "loop" and "other_ops" are properties of nodes; the others are those of their
// ops.
absl::Span<const EffectKind> EffectKinds();

// A node that has an effect.
struct EffectSource {
  std::string node;
  std::string op;
  std::string function;  // The function that contains it; empty for the graph itself.
  std::string reason;    // Why, where the op alone does not tell; else empty.
};

struct FoundEffect {
  const EffectKind* kind;
  std::vector<EffectSource> sources;  // In file order, those of the graph itself first. Never empty.
};

// Returns the effects of all nodes of the graph, and of the nodes in the functions that they reach, in the order of
// EffectKinds. With `allowed_ops`, each node with another op has the effect "other_ops". Nodes count whether or not an
// output needs them. DataLoss for a malformed function library. O(nodes + bytes of the library).
absl::StatusOr<std::vector<FoundEffect>> FindEffects(const Graph& graph,
                                                     const absl::flat_hash_set<std::string>* allowed_ops);

// Returns the effects that a list forbids: names of kinds, "files" for both kinds of files, or "all". InvalidArgument,
// with the nearest name, for another word.
absl::StatusOr<absl::flat_hash_set<std::string>> ParseForbiddenEffects(absl::string_view list);

// Returns the names of ops in a list. Blanks, commas and line ends separate them; "#" starts a comment.
absl::flat_hash_set<std::string> ParseOpList(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_EFFECTS_H_
