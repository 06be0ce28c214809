// Reads labels from NPY files and from text.
#include "tools/validation/label_files.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "tools/model/model_inputs.h"

namespace permafrost {
namespace {

absl::Status Wrong(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", path, "'", why));
}

bool IsHeader(const std::string& field) {
  for (const absl::string_view word : {"file", "filename", "image", "name", "path"}) {
    if (absl::EqualsIgnoreCase(field, word)) return true;
  }
  return false;
}

std::vector<std::string> Fields(absl::string_view line, bool is_csv) {
  std::vector<std::string> fields;
  if (!is_csv && !absl::StrContains(line, ',') && !absl::StrContains(line, '\t')) {
    const size_t blank = line.rfind(' ');
    if (blank != absl::string_view::npos) fields.emplace_back(absl::StripAsciiWhitespace(line.substr(0, blank)));
    fields.emplace_back(line.substr(blank == absl::string_view::npos ? 0 : blank + 1));
    return fields;
  }
  for (const absl::string_view piece : absl::StrSplit(line, is_csv ? absl::ByAnyChar(",") : absl::ByAnyChar(",\t"))) {
    absl::string_view field = absl::StripAsciiWhitespace(piece);
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
    fields.emplace_back(field);
  }
  return fields;
}

}  // namespace

absl::StatusOr<Labels> ReadNpyLabels(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(const Tensor tensor, ReadNpyFile(files, path));
  Labels labels;
  if (tensor.num_elements() == 0) return Wrong(path, " holds no labels");
  const bool holds_classes =
      DispatchOn<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t>(tensor.dtype(), [&](auto tag) {
        const auto elements = tensor.elements<typename decltype(tag)::type>();
        for (size_t i = 0; i < elements.size(); ++i) labels.classes.push_back(static_cast<int64_t>(elements[i]));
      });
  const bool holds_numbers = DispatchOn<float, double>(tensor.dtype(), [&](auto tag) {
    const auto elements = tensor.elements<typename decltype(tag)::type>();
    for (size_t i = 0; i < elements.size(); ++i) labels.numbers.push_back(static_cast<double>(elements[i]));
  });
  if (!holds_classes && !holds_numbers) {
    return Wrong(path, absl::StrCat(" holds ", DTypeName(tensor.dtype()),
                                    ", expected integers for classes or floats for numbers"));
  }
  if (holds_classes && tensor.shape().rank() > 0 && tensor.shape().dim(0) != tensor.num_elements()) {
    return Wrong(path, absl::StrCat(" has shape ", tensor.shape().ToString(), ", expected one class for each row"));
  }
  for (size_t i = 0; i < labels.classes.size(); ++i) {
    if (labels.classes[i] < 0) {
      return Wrong(path, absl::StrCat(": row ", i, ": found class ", labels.classes[i], ", expected at least 0"));
    }
  }
  for (size_t i = 0; i < labels.numbers.size(); ++i) {
    if (!std::isfinite(labels.numbers[i])) {
      return Wrong(path, absl::StrCat(": element ", i, ": found ", labels.numbers[i], ", expected a finite number"));
    }
  }
  const int64_t rows = tensor.shape().rank() == 0 ? 1 : tensor.shape().dim(0);
  if (holds_numbers) labels.numbers_per_row = tensor.num_elements() / rows;
  return labels;
}

absl::StatusOr<std::vector<std::string>> ReadClassNames(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const absl::string_view line : absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n')) {
    names.emplace_back(absl::StripAsciiWhitespace(line));
    if (names.back().empty()) return Wrong(path, absl::StrCat(" line ", names.size(), " is empty, expected a name"));
    if (!seen.insert(names.back()).second) {
      return Wrong(path, absl::StrCat(" line ", names.size(), ": found '", names.back(), "' a second time"));
    }
  }
  return names;
}

absl::StatusOr<std::vector<ListedLabel>> ReadLabelList(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  std::vector<ListedLabel> list;
  int64_t number = 0;
  size_t num_fields = 0;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> fields = Fields(line, absl::EndsWithIgnoreCase(path, ".csv"));
    if (num_fields == 0 && list.empty() && fields.size() > 1 && IsHeader(fields[0])) continue;
    if (num_fields == 0) num_fields = fields.size();
    if (fields.size() != num_fields) {
      return Wrong(path, absl::StrCat(" line ", number, ": found ", fields.size(), " fields, expected ", num_fields,
                                      " as in the lines before"));
    }
    ListedLabel listed;
    listed.line = number;
    if (num_fields > 1) {
      listed.file = fields[0];
      if (listed.file.empty()) return Wrong(path, absl::StrCat(" line ", number, ": the name of the file is empty"));
      fields.erase(fields.begin());
    }
    listed.values = std::move(fields);
    list.push_back(std::move(listed));
  }
  if (list.empty()) return Wrong(path, " holds no labels");
  return list;
}

absl::Status AddLabel(const ListedLabel& listed, const std::vector<std::string>& class_names, Labels* labels) {
  const bool is_first = labels->classes.empty() && labels->numbers.empty();
  int64_t whole = 0;
  const auto named = std::find(class_names.begin(), class_names.end(), listed.values[0]);
  if (listed.values.size() == 1 && (is_first || !labels->classes.empty())) {
    if (named != class_names.end()) {
      labels->classes.push_back(named - class_names.begin());
      return absl::OkStatus();
    }
    if (absl::SimpleAtoi(listed.values[0], &whole)) {
      if (whole < 0) return absl::InvalidArgumentError(absl::StrCat("found class ", whole, ", expected at least 0"));
      labels->classes.push_back(whole);
      return absl::OkStatus();
    }
  }
  if (!labels->classes.empty()) {
    const std::vector<absl::string_view> names(class_names.begin(), class_names.end());
    const std::string suggestion = DidYouMean(listed.values[0], names);
    return absl::InvalidArgumentError(
        absl::StrCat("found '", listed.values[0], "', expected a class as in the lines before", suggestion));
  }
  for (const std::string& value : listed.values) {
    double number = 0;
    if (!absl::SimpleAtod(value, &number) || !std::isfinite(number)) {
      const std::vector<absl::string_view> names(class_names.begin(), class_names.end());
      const std::string suggestion = DidYouMean(value, names);
      return absl::InvalidArgumentError(absl::StrCat(
          "found '", value, "', expected a number",
          class_names.empty() ? " (--class_names says what names mean)" : " or the name of a class", suggestion));
    }
    labels->numbers.push_back(number);
  }
  labels->numbers_per_row = static_cast<int64_t>(listed.values.size());
  return absl::OkStatus();
}

}  // namespace permafrost
