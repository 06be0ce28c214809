// Writes the facts in each format.
#include "tools/report/report_formats.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/command_line/csv.h"

namespace permafrost {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr size_t kMarkdownRows = 15;

void WriteOptional(absl::string_view key, const std::optional<double>& value, JsonWriter* json) {
  if (value.has_value()) json->Key(key).Number(*value);
}

void WriteSqnr(const std::optional<double>& sqnr_db, JsonWriter* json) {
  if (!sqnr_db.has_value()) return;
  json->Key("sqnr_db");
  if (std::isfinite(*sqnr_db)) {
    json->Number(*sqnr_db);
  } else {
    json->Text(*sqnr_db > 0 ? "identical" : "not finite");
  }
}

void WriteHistogram(const WeightHistogram& histogram, JsonWriter* json) {
  json->BeginObject();
  json->Key("low").Number(histogram.low);
  json->Key("high").Number(histogram.high);
  json->Key("mean").Number(histogram.mean);
  json->Key("deviation").Number(histogram.deviation);
  json->Key("elements").Integer(histogram.num_elements);
  json->Key("zeros").Integer(histogram.num_zeros);
  json->Key("nan").Integer(histogram.num_nan);
  json->Key("infinite").Integer(histogram.num_infinite);
  json->Key("counts").BeginArray();
  for (const int64_t count : histogram.counts) json->Integer(count);
  json->End();
  json->End();
}

// Whole units are precise enough for a drawing.
void WritePoint(const Point& point, JsonWriter* json) { json->Number(std::round(point.x)).Number(std::round(point.y)); }

// Writes "type" and, if it is known, "shape" into the open object.
void WriteType(const TensorType& type, JsonWriter* json) {
  json->Key("type").Text(DTypeName(type.dtype));
  if (type.shape.has_value()) json->Key("shape").Dimensions(*type.shape);
}

void WriteEndpoints(absl::string_view key, const std::vector<EndpointFacts>& endpoints, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const EndpointFacts& endpoint : endpoints) {
    json->BeginObject().Key("name").Text(endpoint.name);
    if (endpoint.type.has_value()) WriteType(*endpoint.type, json);
    json->End();
  }
  json->End();
}

std::string TextOf(const std::optional<TensorType>& type) { return type.has_value() ? type->ToString() : ""; }

std::string TextOf(const EndpointFacts& endpoint) {
  return endpoint.type.has_value() ? absl::StrCat(endpoint.name, ": ", TextOf(endpoint.type)) : endpoint.name;
}

void WriteGraph(const GraphFacts& graph, JsonWriter* json) {
  json->Key("graph").BeginObject();
  if (graph.layout.has_value()) {
    json->Key("width").Number(std::round(graph.layout->width));
    json->Key("height").Number(std::round(graph.layout->height));
    json->Key("node_width").Number(kDrawnNodeWidth);
    json->Key("node_height").Number(kDrawnNodeHeight);
  }
  json->Key("nodes").BeginArray();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const NodeFacts& facts = graph.nodes[i];
    json->BeginObject();
    json->Key("name").Text(facts.node->name());
    json->Key("op").Text(facts.node->op().name());
    if (facts.output.has_value()) WriteType(*facts.output, json);
    if (facts.weight_bytes > 0) json->Key("weight_bytes").Count(facts.weight_bytes);
    if (facts.output_bytes > 0) json->Key("output_bytes").Count(facts.output_bytes);
    if (facts.flops > 0) json->Key("flops").Count(facts.flops);
    WriteOptional("seconds", facts.seconds, json);
    WriteSqnr(facts.sqnr_db, json);
    if (graph.layout.has_value()) {
      json->Key("at").BeginArray();
      WritePoint(graph.layout->nodes[i], json);
      json->End();
    }
    json->End();
  }
  json->End();
  // [from, to, x, y, x, y ...]: the two nodes, and the bends of the edge.
  json->Key("edges").BeginArray();
  for (size_t i = 0; i < graph.edges.size(); ++i) {
    json->BeginArray().Integer(graph.edges[i].first).Integer(graph.edges[i].second);
    if (graph.layout.has_value()) {
      for (const Point& bend : graph.layout->bends[i]) WritePoint(bend, json);
    }
    json->End();
  }
  json->End();
  json->End();
}

void WriteRun(const RunFacts& run, JsonWriter* json) {
  json->Key("run").BeginObject();
  json->Key("runs").Count(run.seconds.size());
  if (!run.seconds.empty()) {
    const Interval interval = run.seconds.MedianInterval();
    json->Key("median_seconds").Number(run.seconds.median());
    json->Key("median_low_seconds").Number(interval.low);
    json->Key("median_high_seconds").Number(interval.high);
    json->Key("p90_seconds").Number(run.seconds.Percentile(0.9));
    json->Key("min_seconds").Number(run.seconds.min());
  }
  json->Key("profiled_seconds").Number(run.profiled_seconds);
  json->Key("arena_bytes").Integer(run.arena_bytes);
  json->Key("types").BeginArray();
  for (const auto& [type, seconds] : run.seconds_by_type) {
    json->BeginObject().Key("type").Text(type).Key("seconds").Number(seconds).End();
  }
  json->End();
  json->Key("memory").BeginArray();  // Pairs of seconds and bytes.
  for (const MemoryPoint& point : run.memory) {
    json->BeginArray().Number(static_cast<double>(point.time_ns) * 1e-9).Integer(point.bytes).End();
  }
  json->End();
  json->Key("warnings").Texts(run.warnings);
  json->Key("notes").Texts(run.notes);
  json->End();
}

void WriteModel(const ModelFacts& model, JsonWriter* json) {
  const GraphFacts& graph = model.graph;
  json->BeginObject();
  json->Key("name").Text(model.name);
  json->Key("path").Text(model.path);
  json->Key("file_bytes").Count(model.file_bytes);
  json->Key("nodes").Count(graph.num_nodes);
  json->Key("parameters").Integer(graph.num_parameters);
  json->Key("weight_bytes").Count(graph.weight_bytes);
  json->Key("flops").Count(graph.flops);
  WriteEndpoints("inputs", graph.inputs, json);
  WriteEndpoints("outputs", graph.outputs, json);
  json->Key("notes").Texts(graph.notes);
  json->Key("ops").BeginArray();
  for (const auto& [op, count] : graph.ops) json->BeginObject().Key("type").Text(op).Key("count").Integer(count).End();
  json->End();
  json->Key("weights_by_type").BeginArray();
  for (const TypeTotal& total : graph.weights_by_type) {
    json->BeginObject().Key("type").Text(total.type).Key("count").Integer(total.count);
    json->Key("bytes").Count(total.bytes).End();
  }
  json->End();
  json->Key("constants").BeginArray();
  for (const ConstantFacts& constant : graph.constants) {
    json->BeginObject().Key("name").Text(constant.node->name());
    WriteType(constant.type, json);
    json->Key("bytes").Count(constant.bytes);
    if (constant.histogram.has_value()) {
      json->Key("histogram");
      WriteHistogram(*constant.histogram, json);
    }
    json->End();
  }
  json->End();
  WriteGraph(graph, json);
  if (model.run.has_value()) WriteRun(*model.run, json);
  if (model.quality.has_value()) {
    json->Key("quality").BeginObject();
    WriteOptional("accuracy", model.quality->accuracy, json);
    WriteOptional("agreement", model.quality->agreement, json);
    WriteSqnr(model.quality->sqnr_db, json);
    json->Key("warnings").Texts(model.quality->warnings);
    json->Key("notes").Texts(model.quality->notes);
    json->End();
  }
  json->End();
}

std::string CsvNumber(const std::optional<double>& value) {
  return value.has_value() && !std::isnan(*value) ? absl::StrFormat("%.9g", *value) : "";
}

// Escapes text for a cell of a table, so that a name cannot end the cell or become markup.
std::string MarkdownCell(absl::string_view text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    if (absl::string_view("\\`*_{}[]()#+-.!|~").find(c) != absl::string_view::npos && c != '.' && c != '-' &&
        c != '_') {
      escaped += '\\';
    }
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string SqnrText(const std::optional<double>& sqnr_db) {
  if (!sqnr_db.has_value() || std::isnan(*sqnr_db)) return "";
  if (std::isinf(*sqnr_db)) return *sqnr_db > 0 ? "identical" : "not finite";
  return absl::StrFormat("%.1f dB", *sqnr_db);
}

std::string ShareText(const std::optional<double>& share) {
  return share.has_value() ? absl::StrFormat("%.2f %%", 100 * *share) : "";
}

class MarkdownTable {
 public:
  explicit MarkdownTable(const std::vector<std::string>& titles) {
    Row(titles);
    Row(std::vector<std::string>(titles.size(), "---"));
  }
  void Row(const std::vector<std::string>& cells) {
    absl::StrAppend(&text_, "| ", absl::StrJoin(cells, " | "), " |\n");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Returns the rows of `all` with the largest `value`, largest first; omits rows with value 0.
template <typename T, typename Value>
std::vector<const T*> Largest(const std::vector<T>& all, Value value) {
  std::vector<const T*> rows;
  for (const T& each : all) {
    if (value(each) > 0) rows.push_back(&each);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const T* a, const T* b) { return value(*a) > value(*b); });
  rows.resize(std::min(rows.size(), kMarkdownRows));
  return rows;
}

std::string ModelMarkdown(const ModelFacts& model) {
  std::string text = absl::StrCat("\n## ", MarkdownCell(model.name), "\n\n");
  for (const EndpointFacts& input : model.graph.inputs) {
    absl::StrAppend(&text, "- input ", MarkdownCell(TextOf(input)), "\n");
  }
  for (const EndpointFacts& output : model.graph.outputs) {
    absl::StrAppend(&text, "- output ", MarkdownCell(TextOf(output)), "\n");
  }
  std::vector<std::string> warnings;
  if (model.run.has_value()) warnings = model.run->warnings;
  if (model.quality.has_value()) {
    warnings.insert(warnings.end(), model.quality->warnings.begin(), model.quality->warnings.end());
  }
  for (const std::string& warning : warnings) absl::StrAppend(&text, "- warning: ", MarkdownCell(warning), "\n");
  std::vector<std::string> notes = model.graph.notes;
  if (model.run.has_value()) notes.insert(notes.end(), model.run->notes.begin(), model.run->notes.end());
  if (model.quality.has_value()) notes.insert(notes.end(), model.quality->notes.begin(), model.quality->notes.end());
  for (const std::string& note : notes) absl::StrAppend(&text, "- note: ", MarkdownCell(note), "\n");
  if (model.run.has_value() && !model.run->seconds_by_type.empty()) {
    MarkdownTable table({"type", "time", "share"});
    for (const auto& [type, seconds] : model.run->seconds_by_type) {
      table.Row({MarkdownCell(type), FormatSeconds(seconds),
                 absl::StrFormat("%.1f %%", 100 * seconds / std::max(1e-12, model.run->profiled_seconds))});
    }
    absl::StrAppend(&text, "\n### Time by type\n\n", table.text());
  }
  const auto slowest = Largest(model.graph.nodes, [](const NodeFacts& node) { return node.seconds.value_or(0); });
  if (!slowest.empty()) {
    MarkdownTable table({"node", "op", "time", "output"});
    for (const NodeFacts* node : slowest) {
      table.Row({MarkdownCell(node->node->name()), MarkdownCell(node->node->op().name()), FormatSeconds(*node->seconds),
                 MarkdownCell(TextOf(node->output))});
    }
    absl::StrAppend(&text, "\n### Slowest nodes\n\n", table.text());
  }
  const auto largest = Largest(model.graph.constants, [](const ConstantFacts& each) { return each.bytes; });
  if (!largest.empty()) {
    MarkdownTable table({"constant", "type", "size", "from", "to", "deviation"});
    for (const ConstantFacts* each : largest) {
      const std::optional<WeightHistogram>& histogram = each->histogram;
      table.Row({MarkdownCell(each->node->name()), MarkdownCell(each->type.ToString()), FormatBytes(each->bytes),
                 histogram ? FormatNumber(histogram->low) : "", histogram ? FormatNumber(histogram->high) : "",
                 histogram ? FormatNumber(histogram->deviation) : ""});
    }
    absl::StrAppend(&text, "\n### Largest constants\n\n", table.text());
  }
  return text;
}

// Returns the model with the smallest value; null if no model has one.
template <typename Value>
const ModelFacts* Least(const std::vector<ModelFacts>& models, Value value) {
  const ModelFacts* least = nullptr;
  for (const ModelFacts& model : models) {
    const std::optional<double> here = value(model);
    if (here.has_value() && (least == nullptr || *here < *value(*least))) least = &model;
  }
  return least;
}

std::optional<double> MedianOf(const ModelFacts& model) {
  if (!model.run.has_value() || model.run->seconds.empty()) return std::nullopt;
  return model.run->seconds.median();
}

// Returns ", 1.80 times as fast as b": `more` is the larger value.
std::string Times(double more, double less, absl::string_view text, const ModelFacts& other) {
  return absl::StrFormat(", %.2f times %s %s", more / less, text, other.name);
}

// Returns the part of the conclusion on latency; empty if nothing was measured.
std::string LatencyText(const std::vector<ModelFacts>& models, const ModelFacts* fastest) {
  if (fastest == nullptr) return "";
  const std::string seconds = FormatSeconds(*MedianOf(*fastest));
  const ModelFacts* next = nullptr;
  for (const ModelFacts& model : models) {
    if (&model != fastest && MedianOf(model).has_value() && (next == nullptr || *MedianOf(model) < *MedianOf(*next))) {
      next = &model;
    }
  }
  if (next == nullptr) return absl::StrCat(fastest->name, " takes ", seconds, " per run");
  // The first model is what the others are measured against.
  const ModelFacts& other = fastest == &models[0] || !MedianOf(models[0]).has_value() ? *next : models[0];
  if (fastest->run->seconds.MedianInterval().high >= next->run->seconds.MedianInterval().low) {
    return absl::StrCat(fastest->name, " and ", next->name, " are equally fast within the noise (", seconds, " and ",
                        FormatSeconds(*MedianOf(*next)), " per run)");
  }
  return absl::StrCat(fastest->name, " is the fastest (", seconds, " per run",
                      Times(*MedianOf(other), *MedianOf(*fastest), "as fast as", other), ")");
}

}  // namespace

std::string Conclusion(const Report& report) {
  const std::vector<ModelFacts>& models = report.models;
  if (models.empty()) return "";
  const ModelFacts* fastest = Least(models, &MedianOf);
  std::vector<std::string> parts;
  if (const std::string latency = LatencyText(models, fastest); !latency.empty()) parts.push_back(latency);
  const auto bytes = [](const ModelFacts& model) -> std::optional<double> {
    return static_cast<double>(model.file_bytes);
  };
  const ModelFacts* smallest = Least(models, bytes);
  const ModelFacts* largest =
      Least(models, [&](const ModelFacts& model) { return std::make_optional(-*bytes(model)); });
  if (models.size() == 1) {
    parts.push_back(absl::StrCat(parts.empty() ? absl::StrCat(models[0].name, " has ") : "has ",
                                 FormatBytes(models[0].file_bytes)));
  } else if (smallest->file_bytes < largest->file_bytes && smallest->file_bytes > 0) {
    const ModelFacts& other = smallest == &models[0] ? *largest : models[0];
    parts.push_back(absl::StrCat(smallest->name, " is the smallest (", FormatBytes(smallest->file_bytes),
                                 Times(*bytes(other), *bytes(*smallest), "smaller than", other), ")"));
  }
  // Speed and size alone do not make a winner.
  const ModelFacts& judged = fastest != nullptr ? *fastest : *smallest;
  const std::optional<QualityFacts>& first = models[0].quality;
  if (judged.quality.has_value() && judged.quality->accuracy.has_value()) {
    std::string text = absl::StrCat("the accuracy of ", judged.name, " is ", ShareText(judged.quality->accuracy));
    if (&judged != &models[0] && first.has_value() && first->accuracy.has_value()) {
      absl::StrAppend(&text, ", that of ", models[0].name, " ", ShareText(first->accuracy));
    }
    parts.push_back(std::move(text));
  } else if (&judged != &models[0] && judged.quality.has_value() && judged.quality->sqnr_db.has_value()) {
    parts.push_back(absl::StrCat("the SQNR of ", judged.name, " is ", SqnrText(judged.quality->sqnr_db)));
  }
  return parts.empty() ? "" : absl::StrCat(absl::StrJoin(parts, "; "), ".");
}

void WriteReportJson(const Report& report, JsonWriter* json) {
  json->BeginObject();
  json->Key("format").Integer(kFormatVersion);
  json->Key("tool").Text(absl::StrCat("permafrost ", kVersion));
  json->Key("title").Text(report.title);
  json->Key("date").Text(report.date);
  json->Key("machine").Text(report.machine);
  json->Key("conclusion").Text(Conclusion(report));
  json->Key("conditions").Text(report.conditions);
  json->Key("models").BeginArray();
  for (const ModelFacts& model : report.models) WriteModel(model, json);
  json->End();
  json->End();
}

std::string ReportCsv(const Report& report) {
  std::string text = "model,node,op,output,flops,weight_bytes,output_bytes,seconds,sqnr_db\n";
  for (const ModelFacts& model : report.models) {
    for (const NodeFacts& facts : model.graph.nodes) {
      absl::StrAppend(&text, CsvField(model.name), ",", CsvField(facts.node->name()), ",",
                      CsvField(facts.node->op().name()), ",", CsvField(TextOf(facts.output)), ",", facts.flops, ",",
                      facts.weight_bytes, ",", facts.output_bytes, ",");
      absl::StrAppend(&text, CsvNumber(facts.seconds), ",", CsvNumber(facts.sqnr_db), "\n");
    }
  }
  return text;
}

std::string ReportMarkdown(const Report& report) {
  std::string text = absl::StrCat("# ", MarkdownCell(report.title), "\n\n");
  absl::StrAppend(&text, "**", MarkdownCell(Conclusion(report)), "**\n\n");
  std::vector<std::string> facts;
  if (!report.date.empty()) facts.push_back(MarkdownCell(report.date));
  if (!report.machine.empty()) facts.push_back(MarkdownCell(report.machine));
  if (!report.conditions.empty()) facts.push_back(MarkdownCell(report.conditions));
  if (!facts.empty()) absl::StrAppend(&text, absl::StrJoin(facts, "; "), ".\n\n");
  MarkdownTable table({"model", "file", "weights", "nodes", "parameters", "MFLOP", "median", "p90", "arena", "accuracy",
                       "agreement", "SQNR"});
  for (const ModelFacts& model : report.models) {
    const bool ran = model.run.has_value() && !model.run->seconds.empty();
    table.Row({MarkdownCell(model.name), FormatBytes(model.file_bytes), FormatBytes(model.graph.weight_bytes),
               FormatCount(model.graph.num_nodes), FormatCount(static_cast<uint64_t>(model.graph.num_parameters)),
               absl::StrFormat("%.1f", static_cast<double>(model.graph.flops) * 1e-6),
               ran ? FormatSeconds(model.run->seconds.median()) : "",
               ran ? FormatSeconds(model.run->seconds.Percentile(0.9)) : "",
               ran ? FormatBytes(static_cast<uint64_t>(model.run->arena_bytes)) : "",
               model.quality ? ShareText(model.quality->accuracy) : "",
               model.quality ? ShareText(model.quality->agreement) : "",
               model.quality ? SqnrText(model.quality->sqnr_db) : ""});
  }
  absl::StrAppend(&text, table.text());
  for (const ModelFacts& model : report.models) absl::StrAppend(&text, ModelMarkdown(model));
  return text;
}

}  // namespace permafrost
