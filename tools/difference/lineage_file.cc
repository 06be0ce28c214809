// Writes and reads lineage files.
#include "tools/difference/lineage_file.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/lineage.h"
#include "io/formats/json_value.h"
#include "tools/command_line/json.h"

namespace permafrost {
namespace {

constexpr absl::string_view kFormat = "permafrost lineage 1";

// Maximum total number of listed origins, far more than a real run has. Otherwise the file could grow with the square
// of its size, if many nodes were each made from a large part of the graph.
size_t MostOrigins(const Lineage& lineage) { return 8 * lineage.originals().size() + (size_t{1} << 20); }

bool IsItself(const Node& node, absl::string_view stands_for, const Lineage::Origins& origins) {
  return stands_for == node.name() && origins.is_complete && origins.names.size() == 1 &&
         origins.names[0] == node.name();
}

}  // namespace

absl::Status WriteLineageFile(const Graph& graph, const LineageNote& note, FileSystem& files, const std::string& path) {
  const Lineage& lineage = *graph.lineage();
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject();
  json.Key("format").Text(kFormat);
  json.Key("in_graph").Text(note.in_graph);
  json.Key("out_graph").Text(note.out_graph);
  json.Key("transforms").Texts(note.transforms);
  size_t left = MostOrigins(lineage);
  absl::flat_hash_set<absl::string_view> used;
  json.Key("nodes").BeginArray();
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const Lineage::Origins origins = lineage.OriginsOf(*node, left);
    left -= std::min(left, origins.names.size());
    used.insert(origins.names.begin(), origins.names.end());
    const absl::string_view stands_for = lineage.StandsFor(*node);
    if (IsItself(*node, stands_for, origins)) continue;
    json.BeginObject();
    json.Key("name").Text(node->name());
    if (!stands_for.empty()) json.Key("stands_for").Text(stands_for);
    json.Key("origins").Texts({origins.names.begin(), origins.names.end()});
    if (!origins.is_complete) json.Key("is_complete").Bool(false);
    json.End();
  }
  json.End();
  json.Key("removed").BeginArray();
  for (const absl::string_view name : lineage.originals()) {
    if (!used.contains(name)) json.Text(name);
  }
  json.End();
  json.End();
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files.NewWriter(path));
  PF_RETURN_IF_ERROR(writer->Append(out.str()));
  return writer->Commit();
}

absl::StatusOr<OriginsByName> ReadLineageFile(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  const auto in_file = [&](const absl::Status& status) { return Annotate(status, absl::StrCat("'", path, "'")); };
  const absl::StatusOr<JsonValue> file = ParseJson(text);
  if (!file.ok()) return in_file(file.status());
  const absl::StatusOr<std::string> format = TextMember(*file, "format");
  if (!format.ok()) return in_file(format.status());
  if (*format != kFormat) {
    return in_file(
        absl::InvalidArgumentError(absl::StrCat("found the format '", *format, "', expected '", kFormat, "'")));
  }
  const JsonValue* nodes = file->Find("nodes");
  if (nodes == nullptr || nodes->kind != JsonValue::Kind::kArray) {
    return in_file(absl::InvalidArgumentError("member 'nodes': expected an array"));
  }
  OriginsByName origins;
  for (size_t i = 0; i < nodes->items.size(); ++i) {
    const auto in_node = [&](const absl::Status& status) {
      return in_file(Annotate(status, absl::StrCat("nodes[", i, "]")));
    };
    const absl::StatusOr<std::string> name = TextMember(nodes->items[i], "name");
    if (!name.ok()) return in_node(name.status());
    absl::StatusOr<std::vector<std::string>> names = TextsMember(nodes->items[i], "origins");
    if (!names.ok()) return in_node(names.status());
    const JsonValue* stands_for = nodes->items[i].Find("stands_for");
    if (stands_for != nullptr && stands_for->kind != JsonValue::Kind::kText) {
      return in_node(absl::InvalidArgumentError("member 'stands_for': expected a text"));
    }
    const JsonValue* is_complete = nodes->items[i].Find("is_complete");
    const bool is_cut = is_complete != nullptr && is_complete->kind == JsonValue::Kind::kBool && !is_complete->boolean;
    if (!origins
             .try_emplace(*name, NodeOrigins{stands_for == nullptr ? "" : stands_for->text, *std::move(names), !is_cut})
             .second) {
      return in_node(absl::InvalidArgumentError(absl::StrCat("'", *name, "' is listed twice")));
    }
  }
  return origins;
}

}  // namespace permafrost
