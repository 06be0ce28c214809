// Writes indented JSON, with keys in the order of the calls.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_JSON_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_JSON_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/shape.h"

namespace permafrost {

// A streaming writer. Begin...() and End() must pair up; inside an object every value needs a Key before it.
//   JsonWriter json(out);
//   json.BeginObject().Key("nodes").Number(3).Key("names").BeginArray().Text("a").End().End();
class JsonWriter {
 public:
  // Does not own the stream.
  explicit JsonWriter(std::ostream& out) : out_(out) {}

  JsonWriter& BeginObject() { return Begin('{', '}'); }
  JsonWriter& BeginArray() { return Begin('[', ']'); }
  // Ends the innermost object or array; after the outermost one writes a line feed.
  JsonWriter& End();
  JsonWriter& Key(absl::string_view key);
  // Writes a string. Bytes that are not UTF-8 become U+FFFD.
  JsonWriter& Text(absl::string_view value);
  JsonWriter& Integer(int64_t value);
  JsonWriter& Count(uint64_t value);
  // Writes the shortest text that reads back as the same double; null for NaN and infinities, which JSON does not have.
  JsonWriter& Number(double value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  // Writes the dimensions as an array, -1 for an unknown one; null for a shape of unknown rank.
  JsonWriter& Dimensions(const Shape& shape);
  JsonWriter& Texts(const std::vector<std::string>& values);

 private:
  struct Level {
    char end;
    bool is_empty;
  };
  JsonWriter& Begin(char start, char end);
  // Writes the text before a value or key: a comma, a line feed, blanks.
  void Separate();
  JsonWriter& Raw(absl::string_view text);

  std::ostream& out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_JSON_H_
