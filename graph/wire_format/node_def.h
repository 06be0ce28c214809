// Reads and writes one NodeDef in wire format without protobuf. Used by the GraphDef codec and the function library.
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

// Joins fields from different positions of a message. The result is a view as long as the fields are adjacent.
class FieldCollector {
 public:
  void Add(absl::string_view bytes);
  // Valid as long as `graph`. REQUIRES: no call of Add follows.
  absl::string_view Finish(Graph* graph);

 private:
  absl::string_view view_;
  std::shared_ptr<std::string> owned_;
};

// Collects the entries of a map<string, AttrValue>. The last entry of a key counts.
class AttrCollector {
 public:
  // Adds an entry. Keys and values are views of `entry`; `owner` (may be null) is passed to the values. Returns
  // DataLoss for malformed bytes.
  absl::Status Add(absl::string_view entry, const Owner& owner);
  const std::vector<Attr>& attrs() const { return attrs_; }
  std::vector<Attr>* mutable_attrs() { return &attrs_; }
  void Clear();

 private:
  Attr* Find(absl::string_view key);

  std::vector<Attr> attrs_;
  absl::flat_hash_map<absl::string_view, size_t> index_;  // Filled when the list becomes long.
};

// Reads NodeDefs one after another. Accessors return views of the bytes, valid until the next Read.
class NodeDefReader {
 public:
  // `owner` keeps the bytes alive; if null, the caller does.
  explicit NodeDefReader(Owner owner) : owner_(std::move(owner)) {}

  // Decodes a NodeDef and appends its inputs to *inputs. `graph` stores the fields that the IR has no member for.
  // Returns DataLoss for malformed bytes.
  absl::Status Read(absl::string_view bytes, Graph* graph, std::vector<absl::string_view>* inputs);

  absl::string_view name() const { return name_; }
  absl::string_view op() const { return op_; }
  absl::string_view device() const { return device_; }
  absl::string_view extra_fields() const { return extra_fields_; }
  std::vector<Attr>* attrs() { return attrs_.mutable_attrs(); }

  // Returns the problem with name or op ("has no name"), or an empty string.
  absl::string_view Problem() const;
  // Returns "node 'a' (Const) at index 2", shortened and without control characters.
  std::string Place(size_t index) const { return NodePlace(name_, op_, index); }
  static std::string NodePlace(absl::string_view name, absl::string_view op, size_t index);

 private:
  Owner owner_;
  absl::string_view name_, op_, device_, extra_fields_;
  AttrCollector attrs_;
};

// Quotes a text from a file for a message: removes control characters and limits the length.
std::string Quoted(absl::string_view text);

// Parses digits as a port. Returns false for an empty text, a leading zero, and a number that int cannot hold.
bool ParsePort(absl::string_view digits, int* port);

// Buffers small pieces for a sink.
class Gatherer {
 public:
  explicit Gatherer(ByteSink* sink) : sink_(sink) {}
  std::string* buffer() { return &buffer_; }
  absl::Status Flush();
  absl::Status FlushIfLarge();
  // Writes a value. Large values are passed to the sink directly.
  absl::Status WriteValue(const AttrValue& value, uint64_t size);

 private:
  ByteSink* sink_;
  std::string buffer_;
};

// Return the encoded size in bytes, and write the NodeDef as field `number`. Fields are in the order of their numbers.
// Inputs are written as in a GraphDef ("n", "n:1", "^n"), or as in `input_texts`, which has one entry for each input.
uint64_t NodeDefSize(const Node& node, const std::vector<std::string>* input_texts = nullptr);
absl::Status WriteNodeDef(const Node& node, uint32_t number, Gatherer* out,
                          const std::vector<std::string>* input_texts = nullptr);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_WIRE_FORMAT_NODE_DEF_H_
