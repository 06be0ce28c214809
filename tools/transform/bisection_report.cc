// Prints the result of a bisection.
#include "tools/transform/bisection_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/command_line/json.h"

namespace permafrost {
namespace {

absl::string_view ResultWord(Bisection::Result result) {
  switch (result) {
    case Bisection::Result::kNothingBreaks:
      return "nothing_breaks";
    case Bisection::Result::kNotVerified:
      return "not_verified";
    case Bisection::Result::kPassBreaks:
      return "pass_breaks";
    case Bisection::Result::kRewriteBreaks:
      return "rewrite_breaks";
  }
  return "";
}

bool IsFound(const Bisection& bisection) {
  return bisection.result == Bisection::Result::kPassBreaks || bisection.result == Bisection::Result::kRewriteBreaks;
}

std::string Number(double value) { return absl::StrCat(value); }

// Returns "[0,3]", or an empty string for a scalar.
std::string IndexText(const std::vector<int64_t>& index) {
  return index.empty() ? "" : absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

void PrintNearby(const Bisection& bisection, const Console& console) {
  if (bisection.nearby.empty()) return;
  console.out << "nodes around it:\n";
  for (const NearbyNode& node : bisection.nearby) {
    const absl::string_view none = "(none)";
    if (!node.is_changed()) {
      console.out << "    " << Printable(node.name) << " = " << Printable(node.before) << "\n";
      continue;
    }
    console.out << "  - " << Printable(node.name) << " = " << (node.before.empty() ? none : Printable(node.before))
                << "\n  + " << Printable(node.name) << " = " << (node.after.empty() ? none : Printable(node.after))
                << "\n";
  }
}

}  // namespace

std::string SummaryOf(const Bisection& bisection) {
  switch (bisection.result) {
    case Bisection::Result::kNothingBreaks:
      return "no pass breaks the numbers";
    case Bisection::Result::kNotVerified:
      return absl::StrCat("not verified: ", bisection.why_not);
    case Bisection::Result::kPassBreaks:
    case Bisection::Result::kRewriteBreaks:
      break;
  }
  std::string text = absl::StrCat("pass ", bisection.pass_index + 1, ", ", bisection.pass);
  if (bisection.result == Bisection::Result::kRewriteBreaks) {
    absl::StrAppend(&text, ", rewrite ", bisection.rewrite, " of ", bisection.num_rewrites);
    if (!bisection.nodes.empty()) absl::StrAppend(&text, ", of '", bisection.nodes[0], "'");
  }
  return absl::StrCat(text, ", ", bisection.failure.empty() ? "breaks the numbers" : "fails");
}

void PrintBisection(const Bisection& bisection, const Console& console) {
  if (!IsFound(bisection)) {
    console.out << SummaryOf(bisection) << "\n";
    return;
  }
  console.out << console.Styled(Style::kBad, Printable(SummaryOf(bisection))) << "\n"
              << "  call: " << Printable(bisection.call) << "\n";
  if (!bisection.nodes.empty()) {
    console.out << "  matched: " << Printable(absl::StrJoin(bisection.nodes, ", ")) << "\n";
  }
  if (bisection.result == Bisection::Result::kPassBreaks) {
    console.out << "  the pass has a single step, or breaks the numbers beside the rewrites that it counts\n";
  }
  if (bisection.failure.empty()) {
    console.out << "  error without it " << FormatNumber(bisection.error_before) << ", with it "
                << FormatNumber(bisection.error_after) << ", relative to its scale; allowed: " << bisection.allowed
                << "\n";
  } else {
    console.out << "  " << Printable(bisection.failure) << "\n";
  }
  console.out << "  tried " << bisection.probes.size() << " states\n";
  if (!bisection.values.empty()) {
    Table table({{"value"}, {"element"}, {"without", true}, {"with", true}, {"difference"}});
    for (const ValueChange& value : bisection.values) {
      table.AddRow({absl::StrCat(value.tensor, value.is_output ? " (output)" : ""), IndexText(value.index),
                    Number(value.before), Number(value.after), value.difference.ToString()});
    }
    table.Print(console, "  ");
  }
  PrintNearby(bisection, console);
  if (!bisection.differences.empty()) console.out << "what it changed:\n";
  for (const GraphDifference& difference : bisection.differences) {
    console.out << "  " << Printable(difference.text) << "\n";
  }
  if (bisection.num_differences > bisection.differences.size()) {
    console.out << "  and " << bisection.num_differences - bisection.differences.size() << " more\n";
  }
}

void WriteBisectionJson(const Bisection& bisection, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("result").Text(ResultWord(bisection.result));
  json.Key("summary").Text(SummaryOf(bisection));
  if (IsFound(bisection)) {
    json.Key("pass_index").Count(bisection.pass_index);
    json.Key("pass").Text(bisection.pass);
    json.Key("call").Text(bisection.call);
    json.Key("allowed").Text(bisection.allowed);
    json.Key("rewrite").Integer(bisection.rewrite);
    json.Key("num_rewrites").Integer(bisection.num_rewrites);
    json.Key("nodes").Texts(bisection.nodes);
    json.Key("failure").Text(bisection.failure);
    json.Key("error_before").Number(bisection.error_before);
    json.Key("error_after").Number(bisection.error_after);
    json.Key("values").BeginArray();
    for (const ValueChange& value : bisection.values) {
      json.BeginObject();
      json.Key("tensor").Text(value.tensor);
      json.Key("is_output").Bool(value.is_output);
      json.Key("element").Dimensions(Shape(value.index));
      json.Key("before").Number(value.before);
      json.Key("after").Number(value.after);
      json.Key("relative").Number(value.difference.relative());
      json.End();
    }
    json.End();
    json.Key("nearby").BeginArray();
    for (const NearbyNode& node : bisection.nearby) {
      json.BeginObject();
      json.Key("name").Text(node.name);
      json.Key("before").Text(node.before);
      json.Key("after").Text(node.after);
      json.End();
    }
    json.End();
    json.Key("num_differences").Count(bisection.num_differences);
    WriteDifferences(bisection.differences, &json);
  }
  json.Key("probes").BeginArray();
  for (const BisectionProbe& probe : bisection.probes) {
    json.BeginObject();
    json.Key("pass").Text(probe.pass);
    json.Key("rewrites").Integer(probe.rewrites);
    json.Key("is_good").Bool(probe.is_good);
    json.Key("error").Number(probe.error);
    json.Key("failure").Text(probe.failure);
    json.End();
  }
  json.End();
  json.End();
}

}  // namespace permafrost
