// Writer and parser of precision plans.
#include "tools/model/precision_plan_file.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "io/formats/json_value.h"
#include "tools/command_line/json.h"

namespace permafrost {
namespace {

constexpr char kFormat[] = "permafrost precision plan";
constexpr int kVersion = 1;

absl::Status Unexpected(absl::string_view where, absl::string_view found, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("precision plan: ", where, ": found ", found, ", expected ", expected));
}

absl::StatusOr<const JsonValue*> Member(const JsonValue& object, absl::string_view where, absl::string_view key,
                                        JsonValue::Kind kind, absl::string_view expected) {
  const JsonValue* value = object.Find(key);
  const std::string place = absl::StrCat(where, where.empty() ? "" : ".", key);
  if (value == nullptr) return Unexpected(place, "none", expected);
  if (value->kind != kind) return Unexpected(place, "another kind of value", expected);
  return value;
}

absl::StatusOr<float> Finite(const JsonValue& value, absl::string_view where) {
  if (value.kind != JsonValue::Kind::kNumber || !(std::fabs(value.number) <= std::numeric_limits<float>::max())) {
    return Unexpected(where, value.kind == JsonValue::Kind::kNumber ? absl::StrCat(value.number) : "no number",
                      "a number that a float holds");
  }
  return static_cast<float>(value.number);
}

absl::StatusOr<Precision> ParsePrecision(absl::string_view name, absl::string_view where) {
  if (const std::optional<Precision> precision = PrecisionNamed(name)) return *precision;
  return Unexpected(where, absl::StrCat("'", name, "'"), "f32, bf16x3, bf16 or int8");
}

absl::StatusOr<TensorStatistics> ParseStatistics(const JsonValue& value, const std::string& where) {
  if (value.kind != JsonValue::Kind::kObject) return Unexpected(where, "another kind of value", "an object");
  TensorStatistics statistics;
  const std::pair<const char*, float*> numbers[] = {
      {"least", &statistics.least}, {"most", &statistics.most}, {"bound", &statistics.bound}};
  for (const auto& [key, number] : numbers) {
    PF_ASSIGN_OR_RETURN(const JsonValue* member, Member(value, where, key, JsonValue::Kind::kNumber, "a number"));
    PF_ASSIGN_OR_RETURN(*number, Finite(*member, absl::StrCat(where, ".", key)));
  }
  if (statistics.least > statistics.most) {
    return Unexpected(absl::StrCat(where, ".most"), absl::StrCat(statistics.most),
                      absl::StrCat("at least ", statistics.least));
  }
  if (statistics.bound < 0) {
    return Unexpected(absl::StrCat(where, ".bound"), absl::StrCat(statistics.bound), "at least 0");
  }
  PF_ASSIGN_OR_RETURN(const JsonValue* means, Member(value, where, "means", JsonValue::Kind::kArray, "an array"));
  for (const JsonValue& mean : means->items) {
    PF_ASSIGN_OR_RETURN(statistics.means.emplace_back(), Finite(mean, absl::StrCat(where, ".means")));
  }
  return statistics;
}

}  // namespace

std::string ModelFingerprint(const Graph& graph) {
  ContentHash fingerprint;
  for (const Node* node : graph.Nodes()) {
    fingerprint.Add(node->name());
    fingerprint.Add(node->op().name());
    for (int i = 0; i < node->num_inputs(); ++i) {
      fingerprint.Add(node->input(i).node->name());
      fingerprint.AddWord(static_cast<uint64_t>(node->input(i).port));
    }
    const absl::StatusOr<Tensor> value = ConstValue(*node);
    if (value.ok() && value->dtype() != DType::kString) fingerprint.Add(value->bytes());
  }
  return absl::StrFormat("%016x", fingerprint.value());
}

std::string PrecisionPlanText(const PrecisionPlanRecord& record) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject().Key("format").Text(kFormat).Key("version").Integer(kVersion);
  json.Key("model").Text(record.model).Key("delegate").Text(record.delegate).Key("precision").Text(record.precision);
  if (record.plan != nullptr) {
    json.Key("others").Text(NameOf(record.plan->precision));
    json.Key("nodes").BeginObject();
    for (const Precision precision : kPrecisions) {
      std::vector<std::string> names;
      for (const auto& [name, of_node] : record.plan->nodes) {
        if (of_node == precision) names.push_back(name);
      }
      if (!names.empty()) json.Key(NameOf(precision)).Texts(names);
    }
    json.End();
    json.Key("tensors").BeginObject();
    for (const auto& [name, statistics] : record.plan->tensors) {
      json.Key(name).BeginObject();
      json.Key("least").Number(statistics.least).Key("most").Number(statistics.most);
      json.Key("bound").Number(statistics.bound);
      json.Key("means").BeginArray();
      for (const float mean : statistics.means) json.Number(mean);
      json.End().End();
    }
    json.End();
  }
  json.End();
  return out.str();
}

absl::StatusOr<PrecisionPlanRecord> ParsePrecisionPlan(absl::string_view text) {
  absl::StatusOr<JsonValue> parsed = ParseJson(text);
  PF_RETURN_IF_ERROR(Annotate(parsed.status(), "precision plan"));
  const JsonValue& file = *parsed;
  using Kind = JsonValue::Kind;
  if (file.kind != Kind::kObject) return Unexpected("the file", "another kind of value", "an object");
  PF_ASSIGN_OR_RETURN(const JsonValue* format,
                      Member(file, "", "format", Kind::kText, absl::StrCat("'", kFormat, "'")));
  if (format->text != kFormat) {
    return Unexpected("format", absl::StrCat("'", format->text, "'"), absl::StrCat("'", kFormat, "'"));
  }
  PF_ASSIGN_OR_RETURN(const JsonValue* version, Member(file, "", "version", Kind::kNumber, absl::StrCat(kVersion)));
  if (version->number != kVersion) return Unexpected("version", absl::StrCat(version->number), absl::StrCat(kVersion));
  PrecisionPlanRecord record;
  const std::pair<const char*, std::string*> texts[] = {
      {"model", &record.model}, {"delegate", &record.delegate}, {"precision", &record.precision}};
  for (const auto& [key, member] : texts) {
    PF_ASSIGN_OR_RETURN(const JsonValue* value, Member(file, "", key, Kind::kText, "a text"));
    *member = value->text;
  }
  if (file.Find("others") == nullptr) return record;
  auto plan = std::make_shared<PrecisionPlan>();
  PF_ASSIGN_OR_RETURN(const JsonValue* others, Member(file, "", "others", Kind::kText, "a text"));
  PF_ASSIGN_OR_RETURN(plan->precision, ParsePrecision(others->text, "others"));
  PF_ASSIGN_OR_RETURN(const JsonValue* nodes, Member(file, "", "nodes", Kind::kObject, "an object"));
  for (const auto& [name, list] : nodes->members) {
    PF_ASSIGN_OR_RETURN(const Precision precision, ParsePrecision(name, "nodes"));
    if (list.kind != Kind::kArray) return Unexpected(absl::StrCat("nodes.", name), "another kind of value", "an array");
    for (const JsonValue& node : list.items) {
      if (node.kind != Kind::kText) return Unexpected(absl::StrCat("nodes.", name), "no text", "names of nodes");
      if (!plan->nodes.emplace(node.text, precision).second) {
        return Unexpected(absl::StrCat("nodes.", name), absl::StrCat("'", node.text, "' again"), "each node once");
      }
    }
  }
  PF_ASSIGN_OR_RETURN(const JsonValue* tensors, Member(file, "", "tensors", Kind::kObject, "an object"));
  for (const auto& [name, value] : tensors->members) {
    PF_ASSIGN_OR_RETURN(plan->tensors[name], ParseStatistics(value, absl::StrCat("tensors.", name)));
  }
  record.plan = std::move(plan);
  return record;
}

}  // namespace permafrost
