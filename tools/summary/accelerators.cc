// Implements the table of accelerators and its comparison with a model.
#include "tools/summary/accelerators.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "io/formats/tflite/container.h"

namespace permafrost {
namespace {

constexpr char kTable[] =
#include "tools/summary/accelerators.inc"
    ;

// A decoded constant is not needed, so that none is decoded.
constexpr uint64_t kNoDecodedBytes = 0;

absl::Status ParseVersions(absl::string_view text, AcceleratorRow* row) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &row->lowest_version) &&
      absl::SimpleAtoi(parts[1], &row->highest_version) && row->lowest_version <= row->highest_version) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("found 'versions=", text, "', expected versions=LOW-HIGH"));
}

absl::Status ParseRow(absl::string_view line, Accelerator* accelerator) {
  AcceleratorRow row;
  if (const size_t only = line.find(" only "); only != absl::string_view::npos) {
    row.condition = std::string(absl::StripAsciiWhitespace(line.substr(only + 6)));
    line = line.substr(0, only);
  }
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
  for (size_t i = 1; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (word == "unchecked") {
      row.is_checked = false;
    } else if (absl::ConsumePrefix(&word, "versions=")) {
      PF_RETURN_IF_ERROR(ParseVersions(word, &row));
    } else if (absl::ConsumePrefix(&word, "types=")) {
      row.types = absl::StrSplit(word, ',');
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("found '", word, "', expected unchecked, versions=LOW-HIGH, types=TYPES or only TEXT"));
    }
  }
  accelerator->rows[std::string(words[0])] = std::move(row);
  return absl::OkStatus();
}

absl::Status ParseLine(absl::string_view line, std::vector<Accelerator>* accelerators) {
  const std::pair<absl::string_view, absl::string_view> item = absl::StrSplit(line, absl::MaxSplits(' ', 1));
  const absl::string_view rest = absl::StripAsciiWhitespace(item.second);
  if (item.first == "target") {
    const std::pair<absl::string_view, absl::string_view> name = absl::StrSplit(rest, absl::MaxSplits(' ', 1));
    if (name.first.empty()) return absl::InvalidArgumentError("found a target without a name");
    accelerators->emplace_back();
    accelerators->back().name = std::string(name.first);
    accelerators->back().title = std::string(name.second.empty() ? name.first : name.second);
    return absl::OkStatus();
  }
  if (accelerators->empty()) return absl::InvalidArgumentError("found a line before the first 'target NAME TITLE'");
  Accelerator& accelerator = accelerators->back();
  if (item.first == "source") {
    accelerator.source = std::string(rest);
  } else if (item.first == "date") {
    accelerator.date = std::string(rest);
  } else if (item.first == "types") {
    accelerator.types = absl::StrSplit(rest, ',');
  } else if (item.first == "rank") {
    if (!absl::SimpleAtoi(rest, &accelerator.rank) || accelerator.rank < 1) {
      return absl::InvalidArgumentError(absl::StrCat("found rank '", rest, "', expected a number from 1 on"));
    }
  } else {
    return ParseRow(line, &accelerator);
  }
  return absl::OkStatus();
}

// Names of tensor types in the table.
std::string TypeName(tflite::TensorType type) { return absl::AsciiStrToLower(tflite::EnumNameTensorType(type)); }

// Returns why the accelerator does not compute an operator, or an empty string.
std::string FallbackReason(const Accelerator& accelerator, const AcceleratorRow* row, int32_t version,
                           const std::vector<const tflite::Tensor*>& tensors) {
  if (row == nullptr) return "the table has no row for it";
  if (version < row->lowest_version || version > row->highest_version) {
    return absl::StrCat("version ", version, ", supported are ", row->lowest_version, " to ", row->highest_version);
  }
  const std::vector<std::string>& types = row->types.empty() ? accelerator.types : row->types;
  for (const tflite::Tensor* tensor : tensors) {
    const std::string type = TypeName(tensor->type());
    if (!types.empty() && std::find(types.begin(), types.end(), type) == types.end()) {
      return absl::StrCat("type ", type, ", supported are ", absl::StrJoin(types, ", "));
    }
    const auto rank = static_cast<int64_t>(tensor->shape() == nullptr ? 0 : tensor->shape()->size());
    if (accelerator.rank > 0 && rank > accelerator.rank) {
      return absl::StrCat(rank, " dimensions, supported are up to ", accelerator.rank);
    }
  }
  return "";
}

void AddTo(std::vector<OperatorGroup>* groups, const std::string& op, const std::string& reason,
           const std::string& result) {
  for (OperatorGroup& group : *groups) {
    if (group.op != op || group.reason != reason) continue;
    group.results.push_back(result);
    return;
  }
  groups->push_back({op, reason, {result}});
}

}  // namespace

absl::StatusOr<std::vector<Accelerator>> ParseAccelerators(absl::string_view text) {
  std::vector<Accelerator> accelerators;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    PF_RETURN_IF_ERROR(Annotate(ParseLine(line, &accelerators), absl::StrCat("line ", number)));
  }
  return accelerators;
}

absl::StatusOr<Accelerator> FindAccelerator(const std::string& name_or_path, FileSystem& files) {
  PF_ASSIGN_OR_RETURN(std::vector<Accelerator> known, ParseAccelerators(kTable));
  std::vector<absl::string_view> names;
  for (Accelerator& accelerator : known) {
    if (accelerator.name == name_or_path) return std::move(accelerator);
    names.push_back(accelerator.name);
  }
  const absl::StatusOr<FileView> file = files.MapFile(name_or_path);
  if (!file.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--target: found '", name_or_path, "', expected ",
                                                   absl::StrJoin(names, ", "), " or a file",
                                                   DidYouMean(name_or_path, names)));
  }
  absl::StatusOr<std::vector<Accelerator>> own = ParseAccelerators(file->bytes);
  PF_RETURN_IF_ERROR(Annotate(own.status(), absl::StrCat("--target: '", name_or_path, "'")));
  if (own->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--target: '", name_or_path, "' has no line 'target NAME TITLE'"));
  }
  Accelerator result = std::move(own->front());
  for (Accelerator& accelerator : known) {
    if (accelerator.name != result.name) continue;
    for (auto& [op, row] : accelerator.rows) result.rows.try_emplace(op, std::move(row));
    if (result.types.empty()) result.types = accelerator.types;
    if (result.rank == 0) result.rank = accelerator.rank;
    result.source = result.source.empty() ? accelerator.source : absl::StrCat(result.source, "; ", accelerator.source);
    if (result.date.empty()) result.date = accelerator.date;
  }
  return result;
}

absl::StatusOr<AcceleratorReport> CheckAccelerator(const Accelerator& accelerator, const FileView& file) {
  if (!HasTfliteIdentifier(file.bytes)) {
    return absl::InvalidArgumentError(
        "is no TensorFlow Lite model, expected one: accelerators take these; convert_model --out=model.tflite makes "
        "one");
  }
  PF_ASSIGN_OR_RETURN(const TfliteContainer container, TfliteContainer::Open(file, kNoDecodedBytes));
  AcceleratorReport report;
  const auto* subgraphs = container.model().subgraphs();
  const int count = subgraphs == nullptr ? 0 : static_cast<int>(subgraphs->size());
  for (int s = 0; s < count; ++s) {
    const auto* operators = container.subgraph(s).operators();
    if (operators == nullptr) continue;
    for (const tflite::Operator* op : *operators) {
      ++report.operators;
      // The first operand and the first result: others are weights and shapes, whose types follow from these.
      std::vector<const tflite::Tensor*> tensors;
      std::string result = absl::StrCat("operator ", report.operators - 1);
      if (op->inputs() != nullptr && op->inputs()->size() > 0 && op->inputs()->Get(0) >= 0) {
        tensors.push_back(&container.tensor(s, op->inputs()->Get(0)));
      }
      if (op->outputs() != nullptr && op->outputs()->size() > 0 && op->outputs()->Get(0) >= 0) {
        tensors.push_back(&container.tensor(s, op->outputs()->Get(0)));
        if (tensors.back()->name() != nullptr) result = tensors.back()->name()->str();
      }
      const std::string name = container.OperatorName(*op);
      const auto found = accelerator.rows.find(name);
      const AcceleratorRow* row = found == accelerator.rows.end() ? nullptr : &found->second;
      const int32_t version = container.model().operator_codes()->Get(op->opcode_index())->version();
      const std::string reason = FallbackReason(accelerator, row, version, tensors);
      if (!reason.empty()) {
        AddTo(&report.fallbacks, name, reason, result);
        continue;
      }
      if (!row->condition.empty()) AddTo(&report.conditions, name, row->condition, result);
      if (!row->is_checked) AddTo(&report.unchecked, name, "", result);
    }
  }
  return report;
}

}  // namespace permafrost
