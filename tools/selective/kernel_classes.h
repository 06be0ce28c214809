// Finds the kernel class that TensorFlow chooses for a node, as the text that selective registration uses.
#ifndef PERMAFROST_TOOLS_SELECTIVE_KERNEL_CLASSES_H_
#define PERMAFROST_TOOLS_SELECTIVE_KERNEL_CLASSES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

// The table in tools/selective/tensorflow_kernels.txt, whose header comment explains the format. Parses entries on
// first use and caches them, so it is not thread-safe.
class KernelClasses {
 public:
  // Returns the table of the TensorFlow version that the file names.
  static absl::StatusOr<KernelClasses> OfTensorFlow();
  // Returns a view of `table`, which must outlive the result. InvalidArgument (line) for text that does not follow the
  // format.
  static absl::StatusOr<KernelClasses> Parse(absl::string_view table);

  // Returns the text of the class, exactly as TensorFlow prints it. An empty device means "/cpu:0". NotFound names the
  // missing part: the op, a kernel for the device, or a kernel for the values of the attributes, with the valid values.
  absl::StatusOr<std::string> Find(absl::string_view op, absl::string_view device, absl::Span<const Attr> attrs);

 private:
  using Spellings = std::vector<std::string>;  // By style.

  // The condition of a kernel on one attribute, or on the device.
  struct Condition {
    std::string attr;
    bool of_each = false;  // The attribute is a list, and the condition applies to each element.
    std::vector<absl::string_view> values;
  };
  struct Line {
    int priority = 0;
    std::string label;                  // The value of _kernel, as a literal; empty if unset.
    std::vector<Condition> conditions;  // The device first.
    absl::string_view text;             // With placeholders.
  };
  struct OpKernels {
    absl::string_view defaults;
    std::vector<absl::string_view> unread;  // Line numbers.
    std::vector<Line> lines;
    std::vector<std::string> asked;  // The attributes used in conditions.
    std::vector<std::pair<absl::string_view, absl::string_view>> default_values;
    absl::flat_hash_map<std::string, absl::StatusOr<std::string>> answers;  // By values.
  };
  // The value of an attribute as the table writes it; several for a list.
  struct Value {
    bool is_given = false;
    bool is_list = false;
    std::vector<std::string> texts;
  };
  using Values = absl::flat_hash_map<std::string, Value>;

  absl::Status ReadLines(absl::string_view op, OpKernels* kernels) const;
  absl::StatusOr<Line> ReadLine(absl::string_view text) const;
  Value ValueOf(const AttrValue& value) const;
  Value ParseValue(absl::string_view text) const;
  // The result of matching a kernel with a node. Like TensorFlow, matching evaluates the conditions in order, up to the
  // first that does not hold. If a condition names an attribute that the node lacks, the search fails, even if another
  // kernel might serve the node.
  enum class Match { kNo, kYes, kUnknown };
  static Match MatchOf(const Line& line, const Values& values);
  std::string Spell(const Line& line, const Values& values) const;
  absl::StatusOr<std::string> Choose(absl::string_view op, const OpKernels& kernels, const std::string& device,
                                     const std::string& label, const Values& values) const;
  // Returns NotFound, with the valid values of each attribute.
  static absl::Status NothingFits(absl::string_view op, const OpKernels& kernels, const std::string& device,
                                  const std::string& label, const Values& values);

  absl::flat_hash_map<std::string, Spellings> spellings_;
  absl::flat_hash_map<int, std::string> type_names_;
  absl::flat_hash_map<absl::string_view, std::vector<absl::string_view>> sets_;
  absl::flat_hash_map<absl::string_view, OpKernels> ops_;
};

// Returns the type in a device's full or short name ("/job:worker/task:1/device:GPU:0", "/cpu:0"): "CPU", "GPU" or
// another; empty if the name has none. As in TensorFlow, "/device:cpu:0" has type "cpu", which has no kernels.
// InvalidArgument if it is not a device name.
absl::StatusOr<std::string> DeviceTypeOf(absl::string_view device);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SELECTIVE_KERNEL_CLASSES_H_
