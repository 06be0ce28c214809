// Selects float constants to be stored in fewer bytes, and builds the nodes that replace them.
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

// Parameters shared by the passes that compact constants.
struct CompactionFilter {
  int32_t minimum_size = 0;  // Constants with fewer elements are unchanged.
  std::vector<std::string> exclude_node;
  std::vector<std::string> exclude_op;
  std::vector<std::string> only_node = {};  // If not empty, all other constants are unchanged.
};

inline constexpr char kMinimumSizeHelp[] = "Minimum number of elements; smaller constants are left unchanged.";
inline constexpr char kExcludeNodeHelp[] = "Name of a constant that is left unchanged.";
inline constexpr char kOnlyNodeHelp[] = "Name of a constant to change; if given, all others are left unchanged.";
inline constexpr char kExcludeOpHelp[] =
    "An op whose constant inputs, read directly or through Identity, are left unchanged.";

// Returns the float constants to compact, in the order of the graph. Skips declared inputs and constants that the
// filter excludes, both with a miss; empty constants; and parameters of quantisation. Returns the errors of
// FloatConstantSize.
absl::StatusOr<std::vector<Node*>> SelectConstants(Graph* graph, const CompactionFilter& filter, PassContext* context);

// Returns true if the node is read only as the range of a Dequantize, or as the scales of codes.
bool IsQuantizationParameter(const Node& node);

// Adds the Const `<name of node><suffix>` before `node`, on its device and with the same control inputs, since only
// control inputs put a constant into the frame of a loop.
absl::StatusOr<Node*> AddCompanion(Graph* graph, Node* node, absl::string_view suffix, Tensor value);

// Turns `node`, a Const, into `op` with `inputs`. Its name, users and place are kept; its attributes are removed.
void TurnInto(Graph* graph, Node* node, Op op, const std::vector<Node*>& inputs);

// Collects notes about single constants and prints only the first few individually.
class ConstantNotes {
 public:
  explicit ConstantNotes(PassContext* context) : context_(context) {}
  // Records a note and a miss.
  void Kept(const Node& node, absl::string_view why);
  void Finish();

 private:
  PassContext* context_;
  int64_t count_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_COMPACT_CONSTANTS_H_
