// One NodeDef in the wire format: what the codec of GraphDef and the function library share. Needs no protobuf.
#ifndef PERMAFROST_GRAPH_WIRE_FORMAT_NODE_DEF_H_
#define PERMAFROST_GRAPH_WIRE_FORMAT_NODE_DEF_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"

namespace permafrost {

// Joins fields that stand in different places of a message. As long as they are neighbours the result is a view.
class FieldCollector {
 public:
  void Add(absl::string_view bytes);
  // Valid as long as `graph`, after the last Add.
  absl::string_view Finish(Graph* graph);

 private:
  absl::string_view view_;
  std::shared_ptr<std::string> owned_;
};

// Collects the entries of a map<string, AttrValue>, of which the last counts where keys are equal.
class AttrCollector {
 public:
  // Keys and values are views of `entry`; `owner` (may be null) goes into the values. DataLoss for malformed bytes.
  absl::Status Add(absl::string_view entry, const Owner& owner);
  const std::vector<Attr>& attrs() const { return attrs_; }
  std::vector<Attr>* mutable_attrs() { return &attrs_; }
  void Clear();

 private:
  Attr* Find(absl::string_view key);

  std::vector<Attr> attrs_;
  absl::flat_hash_map<absl::string_view, size_t> index_;  // Filled once there are many.
};

// Reads one NodeDef after the other; what it gives is valid until the next Read, and views the bytes.
class NodeDefReader {
 public:
  // `owner` keeps the bytes alive; null: the caller does.
  explicit NodeDefReader(Owner owner) : owner_(std::move(owner)) {}

  // Appends the inputs to *inputs. Fields that the IR has no member for are kept by `graph`. DataLoss for malformed
  // bytes.
  absl::Status Read(absl::string_view bytes, Graph* graph, std::vector<absl::string_view>* inputs);

  absl::string_view name() const { return name_; }
  absl::string_view op() const { return op_; }
  absl::string_view device() const { return device_; }
  absl::string_view extra_fields() const { return extra_fields_; }
  std::vector<Attr>* attrs() { return attrs_.mutable_attrs(); }

  // What is wrong with name or op ("has no name"), or nothing.
  absl::string_view Problem() const;
  // "node 'a' (Const) at index 2", shortened and without control characters.
  std::string Place(size_t index) const { return NodePlace(name_, op_, index); }
  static std::string NodePlace(absl::string_view name, absl::string_view op, size_t index);

 private:
  Owner owner_;
  absl::string_view name_, op_, device_, extra_fields_;
  AttrCollector attrs_;
};

// Quotes a text of a file for a message: no control characters, no megabytes.
std::string Quoted(absl::string_view text);

// Reads digits as a port; false for none, for a leading zero, and for a number that an int does not hold.
bool ParsePort(absl::string_view digits, int* port);

// Gathers small pieces for a sink.
class Gatherer {
 public:
  explicit Gatherer(ByteSink* sink) : sink_(sink) {}
  std::string* buffer() { return &buffer_; }
  absl::Status Flush();
  absl::Status FlushIfLarge();
  // A large value goes to the sink by itself.
  absl::Status WriteValue(const AttrValue& value, uint64_t size);

 private:
  ByteSink* sink_;
  std::string buffer_;
};

// Bytes of the NodeDef, and writing it as field `number`: the fields in the order of their numbers, the inputs spelled
// as in a GraphDef ("n", "n:1", "^n"), or as `input_texts` has them, one for each input.
uint64_t NodeDefSize(const Node& node, const std::vector<std::string>* input_texts = nullptr);
absl::Status WriteNodeDef(const Node& node, uint32_t number, Gatherer* out,
                          const std::vector<std::string>* input_texts = nullptr);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_WIRE_FORMAT_NODE_DEF_H_
