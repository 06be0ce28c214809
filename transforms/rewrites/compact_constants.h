// Storing float constants in fewer bytes: which of them, and the nodes that take the place of one.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_COMPACT_CONSTANTS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_COMPACT_CONSTANTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

// The parameters that passes of this kind share.
struct CompactionFilter {
  int32_t minimum_size = 0;  // Constants with fewer elements stay as they are.
  std::vector<std::string> exclude_node;
  std::vector<std::string> exclude_op;
};

inline constexpr char kMinimumSizeHelp[] = "Constants with fewer elements stay as they are.";
inline constexpr char kExcludeNodeHelp[] = "Name of a constant that stays as it is.";
inline constexpr char kExcludeOpHelp[] = "Constants that such an op reads, directly or through Identity, stay.";

// The float constants to work on, in the order of the graph. Not among them: declared inputs, what the filter excludes
// (both with a miss), empty ones, and what only says which range the codes of a Dequantize span. Errors as
// FloatConstantSize.
absl::StatusOr<std::vector<Node*>> SelectConstants(Graph* graph, const CompactionFilter& filter, PassContext* context);

// True when the node only says which range the codes of a Dequantize span.
bool IsRangeOfDequantize(const Node& node);

// Adds the Const `<name of node><suffix>` before `node`, on its device and behind the same control inputs: only these
// put a constant into the frame of a loop.
absl::StatusOr<Node*> AddCompanion(Graph* graph, Node* node, absl::string_view suffix, Tensor value);

// `node`, a Const, becomes `op` with `inputs`: its name, its users and its place stay, its attributes go.
void TurnInto(Graph* graph, Node* node, Op op, const std::vector<Node*>& inputs);

// Notes about single constants, of which only the first few are told one by one.
class ConstantNotes {
 public:
  explicit ConstantNotes(PassContext* context) : context_(context) {}
  // Also a miss.
  void Kept(const Node& node, absl::string_view why);
  void Finish();

 private:
  PassContext* context_;
  int64_t count_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_COMPACT_CONSTANTS_H_
