// Writes the results of conformance runs as Markdown.
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/dtype.h"
#include "tests/kernels/recorded_cases.h"
#include "tests/runtime_check/delegates/conformance.h"

namespace permafrost {
namespace {

// Merges reasons that differ only in the name of a type: "its type is double half, expected float".
std::map<std::string, int> MergeTypes(const std::map<std::string, int>& refusals) {
  struct Merged {
    std::string types;
    int count = 0;
  };
  std::map<std::pair<std::string, std::string>, Merged> merged;  // By the text before and after the type.
  for (const auto& [reason, count] : refusals) {
    std::pair<std::string, std::string> key = {reason, ""};
    std::string type;
    size_t begin = 0;
    for (const absl::string_view word : absl::StrSplit(reason, ' ')) {
      const std::string name(absl::StripSuffix(absl::StripSuffix(word, ","), ":"));
      if (ParseDType(name).ok()) {
        type = name;
        key = {reason.substr(0, begin), reason.substr(begin + name.size())};
        break;
      }
      begin += word.size() + 1;
    }
    Merged& entry = merged[key];
    absl::StrAppend(&entry.types, entry.types.empty() ? "" : " ", type);
    entry.count += count;
  }
  std::map<std::string, int> result;
  for (const auto& [key, entry] : merged) result[absl::StrCat(key.first, entry.types, key.second)] += entry.count;
  return result;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) absl::StrAppend(&escaped, c == '|' ? "\\" : "", std::string(1, c));
  return escaped;
}

}  // namespace

std::string ConformanceTable(const ConformanceReport& report) {
  std::string table =
      "| op | supported cases | recorded cases | reasons for refusals (number of cases) |\n|---|---|---|---|\n";
  std::map<std::string, std::string> others;  // Ops by reasons.
  for (const auto& [name, op] : report.ops) {
    std::string reasons;
    for (const auto& [reason, count] : MergeTypes(op.refusals)) {
      if (op.num_run == 0) {
        absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", Escaped(reason));
      } else {
        absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", Escaped(reason), " (", count, ")");
      }
    }
    if (op.num_run == 0) {
      std::string& list = others[reasons];
      absl::StrAppend(&list, list.empty() ? "" : " ", name);
      continue;
    }
    absl::StrAppend(&table, "| ", name, " | ", op.num_run, " | ", op.num_cases, " | ", reasons, " |\n");
  }
  if (others.empty()) return table;
  absl::StrAppend(&table, "\nOps without a supported case:\n\n| reasons | ops |\n|---|---|\n");
  for (const auto& [reasons, names] : others) absl::StrAppend(&table, "| ", reasons, " | ", names, " |\n");
  return table;
}

absl::StatusOr<std::string> DelegateDocs(absl::Span<const DocumentedDelegate> delegates) {
  std::string page =
      "# Delegates\n\n"
      "The recorded kernel cases (`tests/kernels/vectors`) that each delegate supports, and the reasons for\n"
      "refusing the others. Generated from the answers of the delegates. A case is supported if the delegate\n"
      "accepts it in at least one setting, with some inputs constant and the others fed. A reason counts once for\n"
      "each case that is refused for it in any setting.\n";
  ConformanceOptions options;
  options.only_ask = true;
  for (const DocumentedDelegate& documented : delegates) {
    PF_ASSIGN_OR_RETURN(const std::shared_ptr<const Delegate> delegate, documented.make());
    ConformanceReport report;
    for (const std::string& family : RecordedFamilies()) {
      PF_RETURN_IF_ERROR(RunConformance(delegate, family, options, &report));
    }
    absl::StrAppend(&page, "\n## ", documented.name, "\n\n", documented.description, "\n\n", ConformanceTable(report));
  }
  return page;
}

}  // namespace permafrost
