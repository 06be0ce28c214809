// Report of a transform_graph run.
#include "tools/transform/transform_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime_check/checking/output_quality.h"
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

std::string OptionalPercent(const std::optional<double>& share) {
  return share.has_value() ? absl::StrFormat("%.1f %%", *share * 100) : "";
}

// Prints the remaining accuracy of each output, for passes that change numbers.
void PrintQuality(const Verdict& verdict, const Console& console) {
  Table table({{"output"},
               {"largest difference", true},
               {"relative to its scale", true},
               {"SQNR dB", true},
               {"cosine", true},
               {"same class", true},
               {"verdict"}});
  for (const VerifiedOutput& output : verdict.outputs) {
    const OutputDifference& difference = output.difference;
    const bool has_sums = difference.mismatch.empty() && difference.has_numbers;
    table.AddRow({output.name, DifferenceText(output), FormatNumber(difference.relative()),
                  has_sums ? absl::StrFormat("%.1f", difference.sqnr_db) : "",
                  has_sums ? absl::StrFormat("%.4f", difference.cosine) : "",
                  OptionalPercent(difference.top1_agreement), std::string(QualityName(JudgeQuality(difference)))});
  }
  table.Print(console, "  ");
}

void PrintDifferences(const Verdict& verdict, const Console& console) {
  Table table({{"output"}, {"largest difference", true}, {"relative to its scale", true}});
  for (const VerifiedOutput& output : verdict.outputs) {
    table.AddRow({output.name, DifferenceText(output), FormatNumber(output.difference.relative())});
  }
  table.Print(console, "  ");
}

// Prints the scale by which outputs smaller than it are judged.
void PrintScaleFloors(const Verdict& verdict, const Console& console) {
  for (const VerifiedOutput& output : verdict.outputs) {
    const OutputDifference& difference = output.difference;
    if (!(difference.relative() > 0) || difference.max_abs_expected >= difference.scale_floor) continue;
    console.out << "  output '" << Printable(output.name) << "': its largest number is "
                << FormatNumber(difference.max_abs_expected) << ", and it is judged by a scale of "
                << FormatNumber(difference.scale_floor)
                << (difference.scale_floor > kScaleFloor ? ", since it is that sensitive to rounding of the inputs"
                                                         : ", the smallest there is")
                << "\n";
  }
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
      console.out << pass.name << ": unchanged: " << Printable(line) << "\n";
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
    const bool changes_numbers = report.allowance.is_unlimited || !report.verdict->RuinedOutputs().empty();
    changes_numbers ? PrintQuality(*report.verdict, console) : PrintDifferences(*report.verdict, console);
    PrintScaleFloors(*report.verdict, console);
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
  if (report.compressed_before.has_value() && report.compressed_after.has_value()) {
    console.out << "compressed with zstd: " << FormatBytes(*report.compressed_after)
                << Percent(*report.compressed_before, *report.compressed_after) << "\n";
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
  if (report.compressed_before.has_value()) json.Key("compressed_before").Count(*report.compressed_before);
  if (report.compressed_after.has_value()) json.Key("compressed_after").Count(*report.compressed_after);
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
      json.Key("scale_floor").Number(output.difference.scale_floor);
      json.Key("sqnr_db").Number(output.difference.sqnr_db);
      json.Key("cosine").Number(output.difference.cosine);
      if (output.difference.top1_agreement.has_value()) {
        json.Key("same_class").Number(*output.difference.top1_agreement);
      }
      json.Key("quality").Text(QualityName(JudgeQuality(output.difference)));
      json.End();
    }
    json.End();
    json.Key("ruined_outputs").Texts(report.verdict->RuinedOutputs());
  }
  json.End();
  json.End();
}

std::string WayOutOfRuin(absl::Span<const PassCall> calls) {
  std::vector<std::string> ways;
  for (const PassCall& call : calls) {
    const auto has = [&](absl::string_view name) {
      return std::any_of(call.arguments.begin(), call.arguments.end(),
                         [&](const PassArgument& argument) { return argument.name == name; });
    };
    std::string way;
    if (call.name == "quantize_weights" && !has("per_channel")) {
      way = "--transforms=quantize gives each channel a range of its own and keeps layers in float that need it";
    } else if (call.name == "quantize_weights") {
      way = "quantize_weights(exclude_node=...) keeps layers in float";
    } else if (call.name == "round_weights") {
      way = "round_weights(num_steps=...) keeps more values, or --transforms=quantize measures what it does";
    } else if (call.name == "convert_float16_weights") {
      way = "convert_float16_weights(max_error=...) keeps constants in float";
    } else if (call.name == "quantize_nodes") {
      way = "leave quantize_nodes out: --transforms=quantize stores weights in eight bits and computes in float";
    }
    if (!way.empty() && std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(std::move(way));
  }
  ways.emplace_back("--bisect --tolerance=0.1 names the rewrite at fault");
  return absl::StrJoin(ways, "; ");
}

void WarnOfVerdict(const TransformReport& report, const Console& console) {
  if (!report.verdict.has_value()) return;
  const std::string warning = absl::StrCat(console.Styled(Style::kBad, "warning"), ": ");
  if (!report.verdict->was_run) {
    console.err << warning << "the result is not verified: " << Printable(report.verdict->why_not)
                << "; --verify=required makes this an error\n";
  }
  for (const VerifiedOutput& output : report.verdict->outputs) {
    const OutputDifference& difference = output.difference;
    if (difference.is_identical() && difference.has_numbers && difference.num_elements > 0 &&
        difference.num_finite == 0) {
      console.err << warning << "output '" << Printable(output.name)
                  << "' has no finite number on these inputs, so the comparison proves nothing"
                  << (report.has_real_inputs ? "" : "; --verify_inputs takes real inputs") << "\n";
    }
    if (JudgeQuality(difference) != OutputQuality::kRuined) continue;
    console.err << warning << "output '" << Printable(output.name)
                << "' is ruined: " << Printable(difference.ToString()) << "\n";
  }
  if (!report.verdict->RuinedOutputs().empty()) console.err << "  way out: " << report.way_out << "\n";
}

}  // namespace permafrost
