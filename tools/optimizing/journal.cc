// Reads and writes journals.
#include "tools/optimizing/journal.h"

#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "io/formats/json_value.h"
#include "tools/report/report_page.h"

namespace permafrost {
namespace {

constexpr char kFormat[] = "permafrost optimization journal";
constexpr int kVersion = 1;

std::string HeaderLine(const JournalHeader& header) {
  return absl::StrCat("{\"format\":", JsonQuoted(kFormat), ",\"version\":", kVersion,
                      ",\"model\":", JsonQuoted(header.model), ",\"inputs\":", JsonQuoted(header.inputs),
                      ",\"machine\":", JsonQuoted(header.machine), "}\n");
}

absl::Status CheckHeader(absl::string_view line, const JournalHeader& expected) {
  const absl::StatusOr<JsonValue> value = ParseJson(line);
  const JsonValue* version = value.ok() ? value->Find("version") : nullptr;
  if (!value.ok() || TextMember(*value, "format").value_or("") != kFormat || version == nullptr ||
      version->number != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("it is not a journal of optimize_model, version ", kVersion));
  }
  const std::pair<absl::string_view, const std::string*> members[] = {
      {"model", &expected.model}, {"inputs", &expected.inputs}, {"machine", &expected.machine}};
  for (const auto& [key, wanted] : members) {
    PF_ASSIGN_OR_RETURN(const std::string found, TextMember(*value, key));
    if (found != *wanted) {
      return absl::FailedPreconditionError(
          absl::StrCat("its results are of another search: found ", key, " '", found, "', expected '", *wanted, "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Journal> Journal::Open(FileSystem& files, const std::string& path, const JournalHeader& header) {
  Journal journal(files, path);
  journal.text_ = HeaderLine(header);
  if (path.empty()) return journal;
  const std::string place = absl::StrCat("journal '", path, "'");
  if (!files.Exists(path)) {
    PF_RETURN_IF_ERROR(journal.Write());
    return journal;
  }
  PF_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(path));
  if (!stat.is_regular) return absl::InvalidArgumentError(absl::StrCat(place, ": it is not a regular file"));
  PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  lines.pop_back();  // Empty, or cut off.
  if (lines.empty()) return absl::InvalidArgumentError(absl::StrCat(place, ": it is not a journal of optimize_model"));
  PF_RETURN_IF_ERROR(Annotate(CheckHeader(lines[0], header), place));
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string where = absl::StrCat(place, ", line ", i + 1);
    const absl::StatusOr<JsonValue> value = ParseJson(lines[i]);
    PF_RETURN_IF_ERROR(Annotate(value.status(), where));
    const absl::StatusOr<std::string> key = TextMember(*value, "key");
    PF_RETURN_IF_ERROR(Annotate(key.status(), where));
    const JsonValue* result = value->Find("result");
    if (result == nullptr || result->raw.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": found no 'result', expected an object or array"));
    }
    journal.records_[*key] = std::string(result->raw);
    absl::StrAppend(&journal.text_, lines[i], "\n");
  }
  return journal;
}

const std::string* Journal::Find(absl::string_view key) const {
  const auto found = records_.find(key);
  return found == records_.end() ? nullptr : &found->second;
}

absl::Status Journal::Add(const std::string& key, const std::string& json) {
  const std::string compact = EmbeddableJson(json);
  if (!records_.emplace(key, compact).second) return absl::OkStatus();
  absl::StrAppend(&text_, "{\"key\":", JsonQuoted(key), ",\"result\":", compact, "}\n");
  return path_.empty() ? absl::OkStatus() : Write();
}

absl::Status Journal::Write() const {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files_->NewWriter(path_, text_.size()));
  PF_RETURN_IF_ERROR(writer->Append(text_));
  return writer->Commit();
}

}  // namespace permafrost
