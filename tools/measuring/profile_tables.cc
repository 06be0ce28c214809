// Formats the profile tables.
#include "tools/measuring/profile_tables.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "tools/command_line/console.h"
#include "tools/command_line/csv.h"

namespace permafrost {
namespace {

constexpr double kMicrosecondsInMillisecond = 1000;
constexpr double kBytesInKilobyte = 1000;

std::string Title(absl::string_view text) {
  return absl::StrCat("============================== ", text, " ==============================\n");
}

// A row with the values for the columns of all tables.
struct Row {
  const ProfileRow* profile = nullptr;
  double start_ms = 0, first_ms = 0, average_ms = 0, percent = 0;
  double memory_kb = 0;
  int64_t calls = 0;  // Per run.
};

std::vector<Row> MakeRows(const ProfileSummary& summary, const std::vector<ProfileRow>& profile) {
  double total_us = 0;
  for (const ProfileRow& row : profile) total_us += row.total_us;
  std::vector<Row> rows;
  for (const ProfileRow& from : profile) {
    Row& row = rows.emplace_back();
    const auto runs = static_cast<double>(from.num_runs);
    row.profile = &from;
    row.start_ms = from.start_us / runs / kMicrosecondsInMillisecond;
    row.first_ms = from.first_us / kMicrosecondsInMillisecond;
    row.average_ms = from.total_us / runs / kMicrosecondsInMillisecond;
    row.percent = total_us > 0 ? from.total_us * 100 / total_us : 0;
    row.memory_kb = static_cast<double>(from.memory) / kBytesInKilobyte;
    row.calls = from.num_calls / std::max<int64_t>(1, summary.num_runs());
  }
  return rows;
}

void PrintTable(absl::string_view title, const std::vector<Row>& rows, int32_t limit, std::ostream& out) {
  out << Title(title)
      << absl::StrFormat("\t%24s\t%17s\t%9s\t%9s\t%8s\t%8s\t%10s\t%9s\t%s\n", "[node type]", "[start]", "[first]",
                         "[avg ms]", "[%]", "[cdf%]", "[mem KB]", "[times called]", "[Name]");
  double sum = 0;
  int32_t count = 0;
  for (const Row& row : rows) {
    if (limit > 0 && count++ == limit) break;
    sum += row.percent;
    out << absl::StrFormat("\t%24s\t%17.3f\t%9.3f\t%9.3f\t%7.3f%%\t%7.3f%%\t%10.3f\t%9d\t%s\n",
                           Printable(row.profile->shown.type), row.start_ms, row.first_ms, row.average_ms, row.percent,
                           sum, row.memory_kb, row.calls, Printable(row.profile->shown.name));
  }
  out << "\n";
}

template <typename Key>
std::vector<Row> SortedBy(std::vector<Row> rows, Key key) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return key(a) > key(b); });
  return rows;
}

void PrintTypes(const ProfileSummary& summary, size_t num_nodes, std::ostream& out) {
  const std::vector<ProfileType> types = summary.Types();
  double total_us = 0;
  for (const ProfileType& type : types) total_us += type.total_us;
  out << "Number of nodes executed: " << num_nodes << "\n"
      << Title("Summary by node type")
      << absl::StrFormat("\t%24s\t%9s\t%10s\t%11s\t%11s\t%10s\t%10s\n", "[Node type]", "[count]", "[avg ms]", "[avg %]",
                         "[cdf %]", "[mem KB]", "[times called]");
  double sum = 0;
  const auto runs = static_cast<double>(std::max<int64_t>(1, summary.num_runs()));
  for (const ProfileType& type : types) {
    const double percent = total_us > 0 ? type.total_us * 100 / total_us : 0;
    sum += percent;
    out << absl::StrFormat("\t%24s\t%9d\t%10.3f\t%10.3f%%\t%10.3f%%\t%10.3f\t%9d\n", Printable(type.type),
                           type.num_rows, type.total_us / runs / kMicrosecondsInMillisecond, percent, sum,
                           static_cast<double>(type.memory) / kBytesInKilobyte,
                           type.num_calls / std::max<int64_t>(1, summary.num_runs()));
  }
  out << "\n";
}

}  // namespace

void PrintProfile(const ProfileSummary& summary, const ProfileTableOptions& options, std::ostream& out) {
  const std::vector<ProfileRow> profile = summary.Rows();
  const std::vector<Row> rows = MakeRows(summary, profile);
  if (options.show_run_order) PrintTable("Run Order", rows, options.run_order_limit, out);
  if (options.show_time) {
    PrintTable("Top by Computation Time", SortedBy(rows, [](const Row& row) { return row.average_ms; }),
               options.time_limit, out);
  }
  if (options.show_memory) {
    PrintTable("Top by Memory Use", SortedBy(rows, [](const Row& row) { return row.memory_kb; }), options.memory_limit,
               out);
  }
  if (options.show_type) PrintTypes(summary, rows.size(), out);
  if (options.show_summary) {
    out << "Timings (microseconds): " << summary.total_us().ToString() << "\n"
        << "Memory (bytes): " << summary.memory().ToString() << "\n"
        << rows.size() << " nodes observed\n\n";
  }
}

std::string ProfileCsv(const ProfileSummary& summary) {
  const std::vector<ProfileRow> profile = summary.Rows();
  std::string text = "node type, start, first, avg_ms, %, cdf%, mem KB, times called, name\n";
  double sum = 0;
  for (const Row& row : MakeRows(summary, profile)) {
    sum += row.percent;
    absl::StrAppend(&text, CsvField(row.profile->shown.type),
                    absl::StrFormat(",%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%d,", row.start_ms, row.first_ms, row.average_ms,
                                    row.percent, sum, row.memory_kb, row.calls),
                    CsvField(row.profile->shown.name), "\n");
  }
  return text;
}

}  // namespace permafrost
