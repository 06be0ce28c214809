// Implements the text and the JSON form of the facts.
#include "tools/summary/tflite_facts.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/command_line/json.h"

namespace permafrost {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

void PrintTensors(absl::string_view kind, const std::vector<TfliteTensorFacts>& tensors, std::string* text) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TfliteTensorFacts& tensor = tensors[i];
    absl::StrAppend(text, "  ", kind, " ", i,
                    tensor.name.empty() ? "" : absl::StrCat(" '", Printable(tensor.name), "'"),
                    tensor.description.empty() ? "" : absl::StrCat(": ", Printable(tensor.description)), "\n");
    if (!tensor.mean.empty() || !tensor.std.empty()) {
      absl::StrAppend(text, "    normalisation: (value - mean) / std, mean ", absl::StrJoin(tensor.mean, ","), ", std ",
                      absl::StrJoin(tensor.std, ","), "\n");
    }
    if (!tensor.min.empty() || !tensor.max.empty()) {
      absl::StrAppend(text, "    valid values: ", absl::StrJoin(tensor.min, ","), " to ",
                      absl::StrJoin(tensor.max, ","), "\n");
    }
    for (const TfliteFile& file : tensor.files) {
      absl::StrAppend(text, "    file '", Printable(file.name), "' (", Printable(file.type), ")",
                      file.description.empty() ? "" : absl::StrCat(": ", Printable(file.description)), "\n");
    }
  }
}

std::string Names(const Pairs& pairs) {
  return absl::StrJoin(pairs, ", ", [](std::string* out, const std::pair<std::string, std::string>& pair) {
    absl::StrAppend(out, Printable(pair.first), "=", Printable(pair.second));
  });
}

void WriteFiles(const std::vector<TfliteFile>& files, JsonWriter* json) {
  json->Key("files").BeginArray();
  for (const TfliteFile& file : files) {
    json->BeginObject();
    json->Key("name").Text(file.name);
    json->Key("type").Text(file.type);
    json->Key("description").Text(file.description);
    json->End();
  }
  json->End();
}

void WriteNumbers(absl::string_view key, const std::vector<float>& numbers, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const float number : numbers) json->Number(static_cast<double>(number));
  json->End();
}

void WriteTensors(absl::string_view key, const std::vector<TfliteTensorFacts>& tensors, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const TfliteTensorFacts& tensor : tensors) {
    json->BeginObject();
    json->Key("name").Text(tensor.name);
    json->Key("description").Text(tensor.description);
    WriteNumbers("mean", tensor.mean, json);
    WriteNumbers("std", tensor.std, json);
    WriteNumbers("min", tensor.min, json);
    WriteNumbers("max", tensor.max, json);
    WriteFiles(tensor.files, json);
    json->End();
  }
  json->End();
}

void WritePairs(absl::string_view key, const Pairs& pairs, JsonWriter* json) {
  json->Key(key).BeginObject();
  for (const auto& [argument, node] : pairs) json->Key(argument).Text(node);
  json->End();
}

}  // namespace

void PrintTfliteFacts(const TfliteFacts& facts, const Console& console) {
  std::string text = "\nTensorFlow Lite model\n";
  for (const auto& [title, value] :
       {std::pair{"written by", &facts.description}, std::pair{"runs since", &facts.min_runtime_version},
        std::pair{"name", &facts.name}, std::pair{"description", &facts.purpose}, std::pair{"version", &facts.version},
        std::pair{"author", &facts.author}, std::pair{"license", &facts.license}}) {
    if (!value->empty()) absl::StrAppend(&text, "  ", title, ": ", Printable(*value), "\n");
  }
  PrintTensors("input", facts.inputs, &text);
  PrintTensors("output", facts.outputs, &text);
  for (const TfliteFile& file : facts.files) {
    absl::StrAppend(&text, "  file '", Printable(file.name), "' (", Printable(file.type), ")",
                    file.description.empty() ? "" : absl::StrCat(": ", Printable(file.description)), "\n");
  }
  for (const auto& [name, bytes] : facts.archive) {
    absl::StrAppend(&text, "  in the archive: '", Printable(name), "', ", bytes, " bytes\n");
  }
  for (const TfliteSignature& signature : facts.signatures) {
    absl::StrAppend(&text, "  signature '", Printable(signature.key), "' (subgraph ", signature.subgraph,
                    "): ", Names(signature.inputs), " -> ", Names(signature.outputs), "\n");
  }
  for (const std::string& problem : facts.problems) absl::StrAppend(&text, "  skipped: ", Printable(problem), "\n");
  console.out << text;
}

void WriteTfliteFacts(const TfliteFacts& facts, JsonWriter* json) {
  json->BeginObject();
  json->Key("written_by").Text(facts.description);
  json->Key("min_runtime_version").Text(facts.min_runtime_version);
  json->Key("name").Text(facts.name);
  json->Key("description").Text(facts.purpose);
  json->Key("version").Text(facts.version);
  json->Key("author").Text(facts.author);
  json->Key("license").Text(facts.license);
  WriteTensors("inputs", facts.inputs, json);
  WriteTensors("outputs", facts.outputs, json);
  WriteFiles(facts.files, json);
  json->Key("archive").BeginArray();
  for (const auto& [name, bytes] : facts.archive) {
    json->BeginObject();
    json->Key("name").Text(name);
    json->Key("bytes").Count(bytes);
    json->End();
  }
  json->End();
  json->Key("signatures").BeginArray();
  for (const TfliteSignature& signature : facts.signatures) {
    json->BeginObject();
    json->Key("key").Text(signature.key);
    json->Key("subgraph").Integer(signature.subgraph);
    WritePairs("inputs", signature.inputs, json);
    WritePairs("outputs", signature.outputs, json);
    json->End();
  }
  json->End();
  json->Key("problems").Texts(facts.problems);
  json->End();
}

}  // namespace permafrost
