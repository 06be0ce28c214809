// What transform_graph tells of a run.
#include "tools/transform/transform_report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/command_line/json.h"
#include "tools/transform/explanation.h"

namespace permafrost {
namespace {

std::string Change(const std::string& before, const std::string& after) {
  return before == after ? before : absl::StrCat(before, " -> ", after);
}

std::string Percent(uint64_t before, uint64_t after) {
  if (before == 0 || before == after) return "";
  return absl::StrFormat(" (%+.1f %%)", 100.0 * (static_cast<double>(after) / static_cast<double>(before) - 1));
}

std::string DifferenceText(const VerifiedOutput& output) {
  if (!output.difference.mismatch.empty()) return output.difference.mismatch;
  if (output.difference.num_nonfinite_mismatches > 0) {
    return absl::StrCat(output.difference.num_nonfinite_mismatches, " became or were infinite or NaN");
  }
  if (!output.difference.has_numbers) {
    return absl::StrCat(output.difference.num_different, " of ", output.difference.num_elements, " texts differ");
  }
  return FormatNumber(output.difference.max_abs);
}

std::string InputsText(const TransformReport& report) {
  const size_t count = report.verdict->num_inputs;
  const absl::string_view plural = count == 1 ? "" : "s";
  if (report.has_real_inputs) return absl::StrCat(count, " given input", plural);
  return absl::StrCat(count, " seeded random input", plural);
}

absl::string_view VerdictWord(const TransformReport& report) {
  if (!report.verdict.has_value()) return "off";
  if (!report.verdict->was_run) return "not_verified";
  if (!report.failed_pass.empty() || !report.verdict->Passes(report.allowance)) return "failed";
  return report.allowance.is_unlimited ? "measured" : "passed";
}

}  // namespace

void PrintPasses(const TransformReport& report, const Console& console) {
  console.out << "read '" << Printable(report.in_graph) << "': " << FormatCount(report.nodes_before) << " nodes, "
              << FormatBytesExactly(report.bytes_before) << "\n";
  for (const std::string& note : report.interface_notes) console.out << "  " << Printable(note) << "\n";
  console.out << "\n";
  Table table({{"pass"}, {"rewrites", true}, {"nodes", true}, {"size", true}, {"time", true}});
  for (const PassReport& pass : report.passes) {
    table.AddRow({pass.name, pass.ignored_error.empty() ? FormatCount(static_cast<uint64_t>(pass.rewrites)) : "failed",
                  Change(FormatCount(pass.nodes_before), FormatCount(pass.nodes_after)),
                  Change(FormatBytes(pass.bytes_before), FormatBytes(pass.bytes_after)), FormatSeconds(pass.seconds)});
  }
  table.Print(console);
  for (const PassReport& pass : report.passes) {
    if (!pass.ignored_error.empty()) {
      console.out << console.Styled(Style::kWarning, pass.name)
                  << ": error ignored, graph left as it was: " << Printable(pass.ignored_error) << "\n";
    }
    for (const std::string& note : pass.notes) console.out << pass.name << ": " << Printable(note) << "\n";
    for (const std::string& line : ExplainMisses(pass.misses)) {
      console.out << pass.name << ": left alone: " << Printable(line) << "\n";
    }
  }
  console.out << "\n";
}

void PrintVerdict(const TransformReport& report, const Console& console) {
  if (!report.verdict.has_value()) {
    console.out << console.Styled(Style::kWarning, "not verified") << ": --verify=off\n";
  } else if (!report.verdict->was_run) {
    console.out << console.Styled(Style::kWarning, "not verified") << ": " << Printable(report.verdict->why_not)
                << "\n";
  } else {
    const absl::string_view word = VerdictWord(report);
    if (word == "failed") {
      console.out << console.Styled(Style::kBad, "verification failed") << " on " << InputsText(report)
                  << "; allowed: " << report.allowance.why << "\n";
    } else if (word == "measured") {
      console.out << console.Styled(Style::kWarning, "measured") << " on " << InputsText(report) << "; the pipeline "
                  << report.allowance.why << "; --tolerance sets a limit\n";
    } else {
      console.out << console.Styled(Style::kGood, "verified") << " on " << InputsText(report)
                  << "; allowed: " << report.allowance.why << "\n";
    }
    Table table({{"output"}, {"largest difference", true}, {"relative to max(1, largest)", true}});
    for (const VerifiedOutput& output : report.verdict->outputs) {
      table.AddRow({output.name, DifferenceText(output), FormatNumber(output.difference.relative())});
    }
    table.Print(console, "  ");
  }
  if (report.is_written) {
    console.out << "wrote '" << Printable(report.out_graph) << "': " << FormatCount(report.nodes_after) << " nodes, "
                << FormatBytesExactly(report.bytes_written)
                << (report.is_text ? " of text" : Percent(report.bytes_before, report.bytes_after))
                << (report.is_encrypted ? ", encrypted" : "") << "\n";
  } else {
    console.out << "nothing was written; the graph would have " << FormatCount(report.nodes_after) << " nodes and "
                << FormatBytesExactly(report.bytes_after) << Percent(report.bytes_before, report.bytes_after) << "\n";
  }
}

void WriteJson(const TransformReport& report, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("in_graph").Text(report.in_graph);
  json.Key("out_graph").Text(report.out_graph);
  json.Key("is_written").Bool(report.is_written);
  json.Key("inputs").Texts(report.inputs);
  json.Key("outputs").Texts(report.outputs);
  json.Key("interface_notes").Texts(report.interface_notes);
  json.Key("nodes_before").Count(report.nodes_before);
  json.Key("nodes_after").Count(report.nodes_after);
  json.Key("bytes_before").Count(report.bytes_before);
  json.Key("bytes_after").Count(report.bytes_after);
  json.Key("bytes_written").Count(report.bytes_written);
  json.Key("passes").BeginArray();
  for (const PassReport& pass : report.passes) {
    json.BeginObject();
    json.Key("name").Text(pass.name);
    json.Key("call").Text(pass.call);
    json.Key("rewrites").Integer(pass.rewrites);
    json.Key("nodes_before").Count(pass.nodes_before);
    json.Key("nodes_after").Count(pass.nodes_after);
    json.Key("bytes_before").Count(pass.bytes_before);
    json.Key("bytes_after").Count(pass.bytes_after);
    json.Key("seconds").Number(pass.seconds);
    json.Key("ignored_error").Text(pass.ignored_error);
    json.Key("notes").Texts(pass.notes);
    json.Key("misses").BeginArray();
    for (const MissedRewrite& miss : pass.misses) {
      json.BeginObject();
      json.Key("node").Text(miss.node);
      json.Key("op").Text(miss.op);
      json.Key("reason").Text(miss.reason);
      json.Key("way_out").Text(miss.way_out);
      json.Key("failed_conditions").Integer(miss.num_failures);
      json.End();
    }
    json.End();
    json.End();
  }
  json.End();
  json.Key("verification").BeginObject();
  json.Key("result").Text(VerdictWord(report));
  json.Key("allowed").Text(report.allowance.why);
  json.Key("failed_pass").Text(report.failed_pass);
  if (report.verdict.has_value()) {
    json.Key("why_not_verified").Text(report.verdict->why_not);
    json.Key("num_inputs").Count(report.verdict->num_inputs);
    json.Key("inputs_are_random").Bool(!report.has_real_inputs);
    json.Key("seed").Count(report.seed);
    json.Key("outputs").BeginArray();
    for (const VerifiedOutput& output : report.verdict->outputs) {
      json.BeginObject();
      json.Key("name").Text(output.name);
      json.Key("mismatch").Text(output.difference.mismatch);
      json.Key("max_abs").Number(output.difference.max_abs);
      json.Key("relative").Number(output.difference.relative());
      json.End();
    }
    json.End();
  }
  json.End();
  json.End();
}

}  // namespace permafrost
