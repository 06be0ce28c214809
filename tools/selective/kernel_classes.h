// Which kernel TensorFlow chooses for a node, as the text by which selective registration knows it.
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

// The facts of tools/selective/tensorflow_kernels.txt, whose head explains the format. Not thread-safe: it reads what
// it is asked about, once.
class KernelClasses {
 public:
  // The table of the TensorFlow that the file names.
  static absl::StatusOr<KernelClasses> OfTensorFlow();
  // Views `table`, which must outlive the result. InvalidArgument (line) for what does not follow the format.
  static absl::StatusOr<KernelClasses> Parse(absl::string_view table);

  // The text of the class, exactly as TensorFlow answers it. An empty device is "/cpu:0". NotFound says what is
  // missing: the op, a kernel for the device, or one for the values of the attributes, of which those that would do are
  // named.
  absl::StatusOr<std::string> Find(absl::string_view op, absl::string_view device, absl::Span<const Attr> attrs);

 private:
  using Spellings = std::vector<std::string>;  // By style.

  // What a kernel asks of one attribute, or of the device.
  struct Condition {
    std::string attr;
    bool of_each = false;  // The attribute is a list, and each element is asked.
    std::vector<absl::string_view> values;
  };
  struct Line {
    int priority = 0;
    std::string label;                  // The value of _kernel, as a literal; empty where there is none.
    std::vector<Condition> conditions;  // The device first.
    absl::string_view text;             // With holes.
  };
  struct OpKernels {
    absl::string_view defaults;
    std::vector<absl::string_view> unread;  // Lines.
    std::vector<Line> lines;
    std::vector<std::string> asked;  // The attributes that conditions name.
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
  // Whether a kernel serves a node. TensorFlow asks the conditions in their order, up to the first that does not hold.
  // Where one of those asks about an attribute that the node lacks it gives up, though another kernel might serve.
  enum class Match { kNo, kYes, kUnknown };
  static Match MatchOf(const Line& line, const Values& values);
  std::string Spell(const Line& line, const Values& values) const;
  absl::StatusOr<std::string> Choose(absl::string_view op, const OpKernels& kernels, const std::string& device,
                                     const std::string& label, const Values& values) const;
  // NotFound, with what would have done, attribute by attribute.
  static absl::Status NothingFits(absl::string_view op, const OpKernels& kernels, const std::string& device,
                                  const std::string& label, const Values& values);

  absl::flat_hash_map<std::string, Spellings> spellings_;
  absl::flat_hash_map<int, std::string> type_names_;
  absl::flat_hash_map<absl::string_view, std::vector<absl::string_view>> sets_;
  absl::flat_hash_map<absl::string_view, OpKernels> ops_;
};

// The type in a device's full or short name ("/job:worker/task:1/device:GPU:0", "/cpu:0"): "CPU", "GPU" or any other;
// empty when none is given. Like the original, "/device:cpu:0" is a type "cpu" that has no kernels of its own.
// InvalidArgument for what is no name of a device.
absl::StatusOr<std::string> DeviceTypeOf(absl::string_view device);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SELECTIVE_KERNEL_CLASSES_H_
