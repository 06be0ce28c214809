// Tables and JSON of a validation.
#include "tools/validation/validation_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime_check/checking/output_quality.h"

namespace permafrost {
namespace {

using Kind = OutputScore::Kind;

// A matrix of more classes is wider than a terminal.
constexpr size_t kMostMatrixClasses = 16;
constexpr size_t kMostConfusions = 20;
// Significance level: one chance in twenty that there is no difference.
constexpr double kSignificant = 0.05;

std::string Percent(double share) { return absl::StrFormat("%.2f %%", 100 * share); }
std::string OptionalPercent(const std::optional<double>& share) { return share.has_value() ? Percent(*share) : ""; }
std::string Span(const Interval& interval) {
  return absl::StrFormat("%.2f to %.2f %%", 100 * interval.low, 100 * interval.high);
}
double Gain(const OutputScore& score) {
  return score.Share(score.candidate.right) - score.Share(score.reference.right);
}

class Names {
 public:
  explicit Names(const std::vector<std::string>& names) : names_(names) {}
  std::string Of(int64_t index) const {
    if (index < 0) return "NaN";
    const auto i = static_cast<size_t>(index);
    return i < names_.size() && !names_[i].empty() ? Printable(names_[i]) : absl::StrCat(index);
  }

 private:
  const std::vector<std::string>& names_;
};

void PrintDifferences(const Validation& validation, const Console& console) {
  Table table({{"output"},
               {"max error", true},
               {"relative", true},
               {"mean error", true},
               {"SQNR dB", true},
               {"cosine", true},
               {"top-1", true},
               {"top-5", true},
               {"verdict"}});
  for (const OutputValidation& output : validation.outputs) {
    const OutputDifference& d = output.difference;
    const std::string verdict(QualityName(JudgeQuality(d)));
    if (d.kind != OutputDifference::Kind::kComparable || !d.has_numbers) {
      table.AddRow({output.name, d.ToString(), "", "", "", "", "", "", verdict});
      continue;
    }
    table.AddRow({output.name, FormatNumber(d.max_abs), FormatNumber(d.relative()), FormatNumber(d.mean_abs),
                  FormatNumber(d.sqnr_db), absl::StrFormat("%.6f", d.cosine), OptionalPercent(d.top1_agreement),
                  OptionalPercent(d.top5_agreement), verdict});
  }
  table.Print(console, "  ");
  for (const OutputValidation& output : validation.outputs) {
    const OutputDifference& d = output.difference;
    if (!(d.relative() > 0) || d.max_abs_expected >= d.scale_floor) continue;
    console.out << "  output '" << Printable(output.name) << "': its largest number is "
                << FormatNumber(d.max_abs_expected) << ", and it is judged by a scale of "
                << FormatNumber(d.scale_floor) << ", the smallest there is\n";
  }
}

void PrintNonFinite(const Validation& validation, const Console& console) {
  for (const OutputValidation& output : validation.outputs) {
    const auto print = [&](absl::string_view model, const NonFiniteCount& count) {
      if (!count.any()) return;
      console.out << console.Styled(Style::kWarning, "not finite") << ": output '" << Printable(output.name)
                  << "' of the " << model << " holds " << FormatCount(static_cast<uint64_t>(count.nans)) << " NaN and "
                  << FormatCount(static_cast<uint64_t>(count.infinities)) << " infinite of "
                  << FormatCount(static_cast<uint64_t>(output.difference.num_elements)) << " elements, in "
                  << count.runs << " of " << validation.num_runs << " runs\n";
    };
    print("reference", output.reference_nonfinite);
    print("candidate", output.candidate_nonfinite);
  }
}

// Returns, for example, "p = 0.02 (McNemar): the candidate is worse".
std::string Verdict(const OutputScore& score) {
  const double p = McNemarProbability(score.paired);
  const std::string text = absl::StrCat("McNemar's test p = ", absl::StrFormat("%.2g", p));
  if (p >= kSignificant) return absl::StrCat(text, ", no sign of a difference");
  return absl::StrCat(text, ", the candidate is ", Gain(score) < 0 ? "worse" : "better");
}

void PrintClasses(const OutputValidation& output, const Console& console) {
  const OutputScore& score = output.score;
  console.out << "right answers of '" << Printable(output.name) << "', "
              << FormatCount(static_cast<uint64_t>(score.rows)) << " rows, with 95 % intervals\n";
  Table table({{"model"}, {"top-1", true}, {"", true}, {"top-5", true}, {"", true}});
  const auto add = [&](const std::string& name, const ModelScore& model) {
    const bool five = score.has_five();
    table.AddRow({name, Percent(score.Share(model.right)), Span(ShareInterval(model.right, score.rows)),
                  five ? Percent(score.Share(model.right_in_five)) : "",
                  five ? Span(ShareInterval(model.right_in_five, score.rows)) : ""});
  };
  add("reference", score.reference);
  add("candidate", score.candidate);
  table.Print(console, "  ");
  console.out << "  difference " << Percent(Gain(score)) << " (" << Span(ShareDifferenceInterval(score.paired))
              << "): " << score.paired.only_first << " rows that only the reference knows, " << score.paired.only_second
              << " that only the candidate knows; " << Verdict(score) << "\n";
}

void PrintNumbers(const OutputValidation& output, const Console& console) {
  const OutputScore& score = output.score;
  console.out << "errors of '" << Printable(output.name) << "' against the labels, "
              << FormatCount(static_cast<uint64_t>(score.rows)) << " rows\n";
  Table table({{"model"}, {"mean abs", true}, {"root mean square", true}, {"not finite", true}});
  const auto add = [&](const std::string& name, const ModelScore& model) {
    table.AddRow({name, FormatNumber(MeanError(model)), FormatNumber(RootMeanSquareError(model)),
                  absl::StrCat(model.num_not_finite)});
  };
  add("reference", score.reference);
  add("candidate", score.candidate);
  table.Print(console, "  ");
}

// Returns the classes that occur in labels or answers.
std::set<int64_t> ClassesSeen(const OutputScore& score) {
  std::set<int64_t> classes;
  for (const ModelScore* model : {&score.reference, &score.candidate}) {
    for (const auto& [place, rows] : model->answers) classes.insert({place.first, place.second});
  }
  classes.erase(-1);
  return classes;
}

int64_t CountOf(const ModelScore& model, int64_t label, int64_t answer) {
  const auto found = model.answers.find({label, answer});
  return found == model.answers.end() ? 0 : found->second;
}

void PrintMatrix(const OutputScore& score, const ModelScore& model, absl::string_view title, const Names& names,
                 const Console& console) {
  console.out << "answers of the " << title << ": labels down, answers across\n";
  const std::set<int64_t> classes = ClassesSeen(score);
  std::vector<Table::Column> columns = {{""}};
  for (const int64_t answer : classes) columns.push_back({names.Of(answer), true});
  if (model.rows_with_nan > 0) columns.push_back({"NaN", true});
  Table table(std::move(columns));
  for (const int64_t label : classes) {
    std::vector<std::string> row = {names.Of(label)};
    const auto add = [&](int64_t answer) {
      const int64_t count = CountOf(model, label, answer);
      row.push_back(count == 0 ? "." : absl::StrCat(count));
    };
    for (const int64_t answer : classes) add(answer);
    if (model.rows_with_nan > 0) add(-1);
    table.AddRow(std::move(row));
  }
  table.Print(console, "  ");
}

void PrintConfusions(const OutputScore& score, const Names& names, const Console& console) {
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> counts;
  for (const auto& [place, rows] : score.reference.answers) counts[place].first = rows;
  for (const auto& [place, rows] : score.candidate.answers) counts[place].second = rows;
  std::vector<std::pair<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>> wrong;
  for (const auto& entry : counts) {
    if (entry.first.first != entry.first.second) wrong.push_back(entry);
  }
  std::stable_sort(wrong.begin(), wrong.end(), [](const auto& a, const auto& b) {
    return a.second.first + a.second.second > b.second.first + b.second.second;
  });
  console.out << "what was taken for what most often, of " << wrong.size() << " kinds of mistakes\n";
  Table table({{"label"}, {"answer"}, {"reference", true}, {"candidate", true}});
  for (size_t i = 0; i < std::min(wrong.size(), kMostConfusions); ++i) {
    table.AddRow({names.Of(wrong[i].first.first), names.Of(wrong[i].first.second), absl::StrCat(wrong[i].second.first),
                  absl::StrCat(wrong[i].second.second)});
  }
  table.Print(console, "  ");
}

// Returns, by label, the number of rows and of correct rows.
std::map<int64_t, std::pair<int64_t, int64_t>> RightByClass(const ModelScore& model) {
  std::map<int64_t, std::pair<int64_t, int64_t>> by_class;
  for (const auto& [place, rows] : model.answers) {
    by_class[place.first].first += rows;
    if (place.first == place.second) by_class[place.first].second += rows;
  }
  return by_class;
}

void PrintPerClass(const OutputScore& score, const Names& names, const Console& console) {
  console.out << "right answers by class\n";
  Table table({{"class"}, {"rows", true}, {"reference", true}, {"candidate", true}, {"change", true}});
  const auto reference = RightByClass(score.reference), candidate = RightByClass(score.candidate);
  for (const auto& [label, counts] : reference) {
    const double rows = static_cast<double>(counts.first);
    const double first = static_cast<double>(counts.second) / rows;
    const double second = static_cast<double>(candidate.at(label).second) / rows;
    table.AddRow(
        {names.Of(label), absl::StrCat(counts.first), Percent(first), Percent(second), Percent(second - first)});
  }
  table.Print(console, "  ");
}

void PrintDistorted(const Validation& validation, size_t output, const Console& console) {
  const OutputScore& plain = validation.outputs[output].score;
  const bool classes = plain.kind == Kind::kClasses;
  console.out << (classes ? "right answers" : "mean absolute errors") << " of '"
              << Printable(validation.outputs[output].name) << "' under distortions, "
              << FormatCount(static_cast<uint64_t>(plain.rows)) << " rows each\n";
  Table table({{"distortion"},
               {"reference", true},
               {"candidate", true},
               {"difference", true},
               {classes ? "95 % interval" : "", true},
               {classes ? "p" : "", true}});
  const auto add = [&](const std::string& name, const OutputScore& score) {
    if (!classes) {
      const double first = MeanError(score.reference), second = MeanError(score.candidate);
      table.AddRow({name, FormatNumber(first), FormatNumber(second), FormatNumber(second - first), "", ""});
      return;
    }
    table.AddRow({name, Percent(score.Share(score.reference.right)), Percent(score.Share(score.candidate.right)),
                  Percent(Gain(score)), Span(ShareDifferenceInterval(score.paired)),
                  absl::StrFormat("%.2g", McNemarProbability(score.paired))});
  };
  add("none", plain);
  for (const DistortedScores& distorted : validation.distorted) {
    add(distorted.distortion.ToString(), distorted.scores[output]);
  }
  table.Print(console, "  ");
}

void WriteOptional(absl::string_view key, const std::optional<double>& value, JsonWriter* json) {
  json->Key(key);
  value.has_value() ? json->Number(*value) : json->Null();
}

void WriteInterval(absl::string_view key, const Interval& interval, JsonWriter* json) {
  json->Key(key).BeginArray().Number(interval.low).Number(interval.high).End();
}

void WriteModelScore(absl::string_view key, const OutputScore& score, const ModelScore& model, bool with_answers,
                     JsonWriter* json) {
  json->Key(key).BeginObject();
  json->Key("rows_with_nan").Integer(model.rows_with_nan);
  if (score.kind == Kind::kNumbers) {
    json->Key("mean_absolute_error").Number(MeanError(model));
    json->Key("root_mean_square_error").Number(RootMeanSquareError(model));
    json->Key("not_finite").Integer(model.num_not_finite);
    json->End();
    return;
  }
  json->Key("top1").Number(score.Share(model.right));
  WriteInterval("top1_interval", ShareInterval(model.right, score.rows), json);
  if (score.has_five()) {
    json->Key("top5").Number(score.Share(model.right_in_five));
    WriteInterval("top5_interval", ShareInterval(model.right_in_five, score.rows), json);
  }
  if (with_answers) {
    json->Key("answers").BeginArray();
    for (const auto& [place, rows] : model.answers) {
      json->BeginObject().Key("label").Integer(place.first).Key("answer").Integer(place.second);
      json->Key("rows").Integer(rows).End();
    }
    json->End();
  }
  json->End();
}

void WriteScore(absl::string_view key, const OutputScore& score, bool with_answers, JsonWriter* json) {
  json->Key(key);
  if (score.kind == Kind::kNone) {
    json->Null();
    return;
  }
  json->BeginObject();
  json->Key("kind").Text(score.kind == Kind::kClasses ? "classes" : "numbers");
  json->Key("rows").Integer(score.rows);
  WriteModelScore("reference", score, score.reference, with_answers, json);
  WriteModelScore("candidate", score, score.candidate, with_answers, json);
  if (score.kind == Kind::kClasses) {
    json->Key("difference").Number(Gain(score));
    WriteInterval("difference_interval", ShareDifferenceInterval(score.paired), json);
    json->Key("only_reference_right").Integer(score.paired.only_first);
    json->Key("only_candidate_right").Integer(score.paired.only_second);
    json->Key("mcnemar_p").Number(McNemarProbability(score.paired));
  }
  json->End();
}

void WriteNonFinite(absl::string_view key, const NonFiniteCount& count, JsonWriter* json) {
  json->Key(key).BeginObject().Key("nans").Integer(count.nans).Key("infinities").Integer(count.infinities);
  json->Key("runs").Integer(count.runs).End();
}

}  // namespace

void PrintValidation(const Validation& validation, const ValidationReportOptions& options, const Console& console) {
  if (validation.was_interrupted) {
    console.out << console.Styled(Style::kWarning, "interrupted") << " after " << validation.num_runs << " of "
                << validation.num_batches << " runs; what follows is of those\n";
    if (validation.num_runs == 0) return;
  }
  console.out << "compared on " << validation.num_runs << " run" << (validation.num_runs == 1 ? "" : "s") << "\n";
  PrintDifferences(validation, console);
  PrintNonFinite(validation, console);
  const Names names(options.class_names);
  for (size_t i = 0; i < validation.outputs.size(); ++i) {
    const OutputValidation& output = validation.outputs[i];
    if (output.score.kind == Kind::kNone || output.score.rows == 0) continue;
    if (output.score.kind == Kind::kNumbers) {
      PrintNumbers(output, console);
    } else {
      PrintClasses(output, console);
      if (options.shows_classes) PrintPerClass(output.score, names, console);
      if (options.shows_confusion && ClassesSeen(output.score).size() <= kMostMatrixClasses) {
        PrintMatrix(output.score, output.score.reference, "reference", names, console);
        PrintMatrix(output.score, output.score.candidate, "candidate", names, console);
      } else if (options.shows_confusion) {
        PrintConfusions(output.score, names, console);
      }
    }
    if (!validation.distorted.empty()) PrintDistorted(validation, i, console);
  }
  if (validation.reference_seconds > 0) {
    console.out << "median time of one run: reference " << FormatSeconds(validation.reference_seconds) << ", candidate "
                << FormatSeconds(validation.candidate_seconds) << "\n";
  }
}

void WriteValidation(const Validation& validation, JsonWriter* json) {
  json->Key("runs_compared").Count(validation.num_runs);
  json->Key("was_interrupted").Bool(validation.was_interrupted);
  json->Key("outputs").BeginArray();
  for (const OutputValidation& output : validation.outputs) {
    const OutputDifference& d = output.difference;
    json->BeginObject();
    json->Key("name").Text(output.name);
    json->Key("mismatch").Text(d.mismatch);
    json->Key("max_abs").Number(d.max_abs);
    json->Key("relative").Number(d.relative());
    json->Key("mean_abs").Number(d.mean_abs);
    json->Key("sqnr_db").Number(d.sqnr_db);
    json->Key("cosine").Number(d.cosine);
    json->Key("scale_floor").Number(d.scale_floor);
    json->Key("quality").Text(QualityName(JudgeQuality(d)));
    json->Key("elements").Integer(d.num_elements);
    json->Key("elements_different").Integer(d.num_different);
    json->Key("nonfinite_mismatches").Integer(d.num_nonfinite_mismatches);
    WriteNonFinite("reference_nonfinite", output.reference_nonfinite, json);
    WriteNonFinite("candidate_nonfinite", output.candidate_nonfinite, json);
    WriteOptional("top1_agreement", d.top1_agreement, json);
    WriteOptional("top5_agreement", d.top5_agreement, json);
    const OutputScore& score = output.score;
    const auto accuracy = [&](const ModelScore& model) {
      return score.kind == Kind::kClasses ? std::make_optional(score.Share(model.right)) : std::nullopt;
    };
    WriteOptional("reference_accuracy", accuracy(score.reference), json);
    WriteOptional("candidate_accuracy", accuracy(score.candidate), json);
    WriteScore("score", score, /*with_answers=*/true, json);
    json->Key("distorted").BeginArray();
    for (const DistortedScores& distorted : validation.distorted) {
      json->BeginObject().Key("distortion").Text(distorted.distortion.kind->name);
      json->Key("strength").Number(distorted.distortion.strength);
      WriteScore("score", distorted.scores[static_cast<size_t>(&output - validation.outputs.data())],
                 /*with_answers=*/false, json);
      json->End();
    }
    json->End();
    json->End();
  }
  json->End();
  json->Key("reference_seconds").Number(validation.reference_seconds);
  json->Key("candidate_seconds").Number(validation.candidate_seconds);
}

}  // namespace permafrost
