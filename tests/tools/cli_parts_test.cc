// Tests of flags, typography, JSON, tables and exit codes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <sstream>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "graph/base/printable.h"
#include "io/formats/json_value.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/command_line/csv.h"
#include "tools/command_line/flags.h"
#include "tools/command_line/json.h"
#include "tools/command_line/memory_limit.h"
#include "tools/command_line/standard_streams.h"
#include "tools/command_line/typography.h"

namespace permafrost {
namespace {

struct Options {
  std::string text = "t";
  std::optional<std::string> maybe;
  std::vector<std::string> many;
  int32_t number = 3;
  double real = 0.5;
  bool yes = false;
  std::string choice = "a";
  std::string first;
};

absl::Status Parse(std::vector<std::string> arguments, Options* options, bool with_positional = false) {
  FlagTable flags;
  flags.Add("text", &options->text, "TEXT", "");
  flags.Add("maybe", &options->maybe, "TEXT", "");
  flags.Add("many", &options->many, "TEXT", "");
  flags.Add("number", &options->number, "N", "");
  flags.Add("real", &options->real, "X", "");
  flags.Add("yes", &options->yes, "");
  flags.AddChoice("choice", &options->choice, {"a", "b"}, "");
  if (with_positional) flags.AddPositional("FIRST", &options->first, "");
  return flags.Parse(arguments);
}

std::string Error(std::vector<std::string> arguments) {
  Options options;
  return std::string(Parse(std::move(arguments), &options).message());
}

TEST(Flags, TakeValuesInEveryForm) {
  Options options;
  ASSERT_TRUE(Parse({"--text=a=b", "--number", "-7", "--yes", "--many=1", "--many", "2", "--choice=b", "--real=1e-3",
                     "--maybe="},
                    &options)
                  .ok());
  EXPECT_EQ(options.text, "a=b");
  EXPECT_EQ(options.number, -7);
  EXPECT_TRUE(options.yes);
  EXPECT_EQ(options.many, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(options.choice, "b");
  EXPECT_EQ(options.real, 1e-3);
  EXPECT_EQ(options.maybe, "");
}

TEST(Flags, KeepDefaults) {
  Options options;
  ASSERT_TRUE(Parse({}, &options).ok());
  EXPECT_EQ(options.text, "t");
  EXPECT_FALSE(options.maybe.has_value());
}

TEST(Flags, TheLastOfARepeatedFlagCounts) {
  Options options;
  ASSERT_TRUE(Parse({"--number=1", "--number=2", "--yes", "--yes=false"}, &options).ok());
  EXPECT_EQ(options.number, 2);
  EXPECT_FALSE(options.yes);
}

TEST(Flags, DashesEndTheFlags) {
  Options options;
  ASSERT_TRUE(Parse({"--", "--text"}, &options, true).ok());
  EXPECT_EQ(options.first, "--text");
}

TEST(Flags, SayWhatIsWrong) {
  EXPECT_EQ(Error({"--number=x"}), "--number is 'x', expected a whole number");
  EXPECT_EQ(Error({"--number=4294967296"}), "--number is '4294967296', expected a whole number");
  EXPECT_EQ(Error({"--real=nan"}), "--real is 'nan', expected a number");
  EXPECT_EQ(Error({"--yes=maybe"}), "--yes is 'maybe', expected true or false");
  EXPECT_EQ(Error({"--choice=c"}), "--choice is 'c', expected a or b");
  EXPECT_EQ(Error({"--text"}), "--text has no value, expected --text=TEXT");
  EXPECT_EQ(Error({"--text", "--yes"}), "--text has no value, expected --text=TEXT");
  EXPECT_EQ(Error({"-number=1"}), "Unknown argument -number=1; did you mean '--number'?");
  EXPECT_EQ(Error({"---number"}), "Unknown argument ---number; did you mean '--number'?");
  EXPECT_EQ(Error({"--zzzzzz"}), "Unknown argument --zzzzzz.");
  EXPECT_EQ(Error({"stray"}), "Unknown argument stray.");
  Options options;
  EXPECT_EQ(Parse({}, &options, true).message(), "found 0 of 1 arguments, expected FIRST");
}

TEST(Flags, ListsAreCutAtCommas) {
  EXPECT_EQ(SplitList(" a, b,,c "), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(SplitList("").empty());
}

TEST(Typography, NamesTheCharacterAndShowsTheCorrection) {
  for (const auto& [argument, name, fixed] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"\u2013-a=b", "en dash, U+2013", "'--a=b'"},
           {"\u2014a", "em dash, U+2014", "'--a'"},
           {"-\u2010a", "hyphen, U+2010", "'--a'"},
           {"--a=\u201Cb\u201D", "left double quotation mark, U+201C", "--a='b'"},
           {"b\u2019", "right single quotation mark, U+2019", "'b'"}}) {
    const std::string message(CheckTypography(argument).message());
    EXPECT_TRUE(absl::StrContains(message, name)) << message;
    EXPECT_TRUE(absl::StrContains(message, fixed)) << message;
  }
}

TEST(Typography, LeavesNamesAlone) {
  for (const std::string argument :
       {"--a=caf\u00e9", "--a=John\u2019s model.pb", "--a=x\u2013y", "\u2013", "--", "-", ""}) {
    EXPECT_TRUE(CheckTypography(argument).ok()) << argument;
  }
}

TEST(Json, WritesEveryKindOfValue) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject().Key("a").Number(0.1).Key("b").BeginArray().Integer(-1).Bool(true).Null().End();
  json.Key("c").BeginObject().End().Key("d").Number(std::nan("")).Key("e").Number(1.0 / 3).End();
  EXPECT_EQ(out.str(),
            "{\n  \"a\": 0.1,\n  \"b\": [\n    -1,\n    true,\n    null\n  ],\n  \"c\": {},\n  \"d\": null,\n"
            "  \"e\": 0.33333333333333331\n}\n");
}

TEST(Json, QuotesAnyBytes) {
  EXPECT_EQ(JsonQuoted("a\"\\\n\x01\u00e9\U0001F600"), "\"a\\\"\\\\\\n\\u0001\u00e9\U0001F600\"");
  // A lone continuation, an overlong form, a surrogate, a cut sequence: not UTF-8.
  EXPECT_EQ(JsonQuoted("\x80"), "\"\uFFFD\"");
  EXPECT_EQ(JsonQuoted("\xC0\x80"), "\"\uFFFD\uFFFD\"");
  EXPECT_EQ(JsonQuoted("\xED\xA0\x80"), "\"\uFFFD\uFFFD\uFFFD\"");
  EXPECT_EQ(JsonQuoted("\xE2\x80"), "\"\uFFFD\uFFFD\"");
}

TEST(Console, FormatsNumbers) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(999996), "1.00 MB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<uint64_t>::max()), "18.45 EB");
  EXPECT_EQ(FormatBytesExactly(89659224), "89.66 MB (89,659,224 bytes)");
  EXPECT_EQ(FormatSeconds(0.0005), "500 us");
  EXPECT_EQ(FormatSeconds(1.234), "1.23 s");
  EXPECT_EQ(FormatNumber(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Console, TablesAlignAndDoNotLetTextSteerTheTerminal) {
  std::ostringstream out, err;
  Table table({{"name"}, {"n", true}});
  table.AddRow({"\u00e9\x1b[31m", "10"});
  table.AddRow({"b", "2"});
  table.Print({out, err}, "  ");
  EXPECT_EQ(out.str(), "  name        n\n  \u00e9\\x1b[31m  10\n  b           2\n");
}

TEST(Console, PrintsNoByteThatSteersATerminal) {
  EXPECT_EQ(Printable("a\tb\u00e9 \u00a0\U0001F600"), "a\\x09b\u00e9 \u00a0\U0001F600");
  EXPECT_EQ(Printable(absl::string_view("\0\r\x7f", 3)), "\\x00\\x0d\\x7f");
  EXPECT_EQ(Printable("\u009b31m"), "\\xc2\\x9b31m");
  // Bytes that are not UTF-8: alone, truncated, a surrogate, an overlong form.
  EXPECT_EQ(Printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(Printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");
}

TEST(Console, ANameAddsNoLine) {
  EXPECT_EQ(Printable("a\nverified, all is well"), "a\\x0averified, all is well");
  EXPECT_EQ(Printable("a\u2028b\u2029"), "a\\xe2\\x80\\xa8b\\xe2\\x80\\xa9");
  EXPECT_EQ(PrintableLines("found:\n  one\nverified\x1b"), "found:\n  one\n  verified\\x1b");
  std::ostringstream out, err;
  Table table({{"name"}});
  table.AddRow({"a\nb"});
  table.Print({out, err});
  EXPECT_EQ(out.str(), "name\na\\x0ab\n");
}

TEST(Csv, NoFieldIsAFormula) {
  EXPECT_EQ(CsvField("conv1"), "conv1");
  EXPECT_EQ(CsvField("=cmd|'/c calc'!A1"), "'=cmd|'/c calc'!A1");
  EXPECT_EQ(CsvField("@SUM(1,2)"), "\"'@SUM(1,2)\"");
  EXPECT_EQ(CsvField("+1"), "'+1");
  EXPECT_EQ(CsvField("-x"), "'-x");
  EXPECT_EQ(CsvField("\tx"), "'\tx");
  EXPECT_EQ(CsvField("\rx"), "\"'\rx\"");
}

// Each request is refused at once, although the machine has the memory.
TEST(MemoryLimit, AllocationsBeyondItFail) {
  const uint64_t available = AvailableMemory();
  EXPECT_GT(available, uint64_t{1} << 20);
  constexpr size_t kSize = size_t{1} << 30;
  {
    const MemoryLimit limit(uint64_t{256} << 20);
    EXPECT_EQ(MemoryLimitInForce(), uint64_t{256} << 20);
    void* beyond = std::malloc(kSize);
    EXPECT_EQ(beyond, nullptr);
    std::free(beyond);
    void* within = std::malloc(size_t{16} << 20);
    EXPECT_NE(within, nullptr);
    std::free(within);
  }
  void* after = std::malloc(kSize);
  EXPECT_NE(after, nullptr);
  std::free(after);
}

TEST(Console, ProgressIsForTerminals) {
  std::ostringstream out, err;
  Console{out, err}.Progress("working");
  EXPECT_EQ(err.str(), "");
  Console{out, err, false, true}.Progress("working");
  EXPECT_EQ(err.str(), "\r\x1b[Kworking");
}

// A table as tools have it: two files, a group, and an output.
struct FileOptions {
  std::string in, out;
  std::vector<std::string> more;
  int32_t threads = 1;
};

void DefineFileFlags(FileOptions* options, FlagTable* flags) {
  flags->Add("in", &options->in, "FILE", "File to read, which is described in enough words to need a second line.");
  flags->Add("out", &options->out, "FILE", "File to write.");
  flags->Group("running");
  flags->Add("threads", &options->threads, "N", "Number of threads.");
  flags->Group("");
  flags->MarkCommon({"out", "in"});
  flags->AcceptAsArguments({"in", "out"});
  flags->MarkOutputs({"out"});
}

std::string ParseFiles(std::vector<std::string> arguments, FileOptions* options, ParseOutcome* outcome = nullptr) {
  FlagTable flags;
  DefineFileFlags(options, &flags);
  return std::string(flags.Parse(arguments, outcome).message());
}

TEST(Flags, ArgumentsSetFlagsInOrder) {
  FileOptions options;
  EXPECT_EQ(ParseFiles({"a.pb", "--threads=2", "b.pb"}, &options), "");
  EXPECT_EQ(options.in, "a.pb");
  EXPECT_EQ(options.out, "b.pb");
  options = FileOptions();
  EXPECT_EQ(ParseFiles({"a.pb", "--out=b.pb"}, &options), "");
  EXPECT_EQ(options.out, "b.pb");
  EXPECT_EQ(ParseFiles({"--in=a.pb", "b.pb"}, &options), "Unknown argument b.pb: --in is given");
  EXPECT_EQ(ParseFiles({"a.pb", "b.pb", "c.pb"}, &options), "Unknown argument c.pb.");
}

TEST(Flags, TheLastFlagCollectsFurtherArguments) {
  FileOptions options;
  FlagTable flags;
  flags.Add("more", &options.more, "FILES", "");
  flags.AcceptAsArguments({"more"});
  ASSERT_TRUE(flags.Parse({"a", "b", "c"}).ok());
  EXPECT_EQ(options.more, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Flags, IgnoreThoseOfTheLog) {
  FileOptions options;
  ParseOutcome outcome;
  EXPECT_EQ(ParseFiles({"--logtostderr", "--v", "2", "--alsologtostderr=false", "a.pb"}, &options, &outcome), "");
  EXPECT_EQ(options.in, "a.pb");
  ASSERT_EQ(outcome.notes.size(), 3u);
  EXPECT_EQ(outcome.notes[1], "--v is ignored: it controls the log of TensorFlow's tools");
  EXPECT_EQ(ParseFiles({"--v"}, &options), "--v has no value, expected --v=VALUE");
}

TEST(Flags, ReportAnOutputOnStandardOutput) {
  FileOptions options;
  ParseOutcome outcome;
  EXPECT_EQ(ParseFiles({"-", "b.pb"}, &options, &outcome), "");
  EXPECT_FALSE(outcome.writes_to_standard_output);
  EXPECT_EQ(ParseFiles({"-", "-"}, &options, &outcome), "");
  EXPECT_TRUE(outcome.writes_to_standard_output);
}

TEST(Cli, PrintsOnStandardErrorBesideAFileOnStandardOutput) {
  const Tool tool =
      DefineTool<FileOptions>("t", "s", {}, &DefineFileFlags, [](const FileOptions&, FileSystem&, Console& console) {
        console.out << "report";
        return absl::OkStatus();
      });
  std::ostringstream out, err;
  Console console{out, err};
  EXPECT_EQ(RunTool(tool, {"--out=-"}, RealFileSystem(), console), 0);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(), "report");
}

TEST(Cli, HelpDescribesCommonFlagsAndNamesTheOthers) {
  const Tool tool = DefineTool<FileOptions>(
      "t", "s", {}, &DefineFileFlags,
      [](const FileOptions&, FileSystem&, Console&) -> absl::Status { return absl::OkStatus(); });
  const std::string common = HelpText(tool, HelpScope::kCommon, 50);
  EXPECT_TRUE(
      absl::StrContains(common, "usage: t [flags] [in] [out]\n\n  --out=FILE\n      File to write.\n  --in=FILE\n"))
      << common;
  EXPECT_TRUE(absl::StrContains(common, "further flags (--help=all):\n  running\n      --threads\n")) << common;
  EXPECT_FALSE(absl::StrContains(common, "Number of threads")) << common;
  for (const absl::string_view line : absl::StrSplit(common, '\n')) EXPECT_LE(line.size(), 50u) << line;
  const std::string all = HelpText(tool, HelpScope::kAll, 100);
  EXPECT_TRUE(absl::StrContains(all, "\nrunning:\n  --threads=N   (default 1)\n      Number of threads.\n")) << all;
}

TEST(Cli, ToolsHaveShortNames) {
  Tool tool;
  for (const auto& [name, expected] :
       {std::pair{"transform_graph", "transform"}, std::pair{"compare_graphs", "compare"},
        std::pair{"benchmark_model", "benchmark"}, std::pair{"optimize_for_inference", "optimize_for_inference"}}) {
    tool.name = name;
    EXPECT_EQ(ShortName(tool), expected);
  }
}

TEST(StandardStreams, WriteAWholeFileOrNothing) {
  std::ostringstream out;
  StandardStreamFiles files(RealFileSystem(), out);
  {
    auto dropped = files.NewWriter("-", 0);
    ASSERT_TRUE(dropped.ok() && (*dropped)->Append("dropped").ok());
  }
  EXPECT_EQ(out.str(), "");
  auto writer = files.NewWriter("-", 0);
  ASSERT_TRUE(writer.ok() && (*writer)->Append("whole").ok() && (*writer)->Commit().ok());
  EXPECT_EQ(out.str(), "whole");
  EXPECT_FALSE(files.Stat("-")->is_regular);
  EXPECT_EQ(files.WritePrivateFile("-", "key").code(), absl::StatusCode::kInvalidArgument);
}

TEST(Json, WritesDimensionsAsAnArray) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginArray().Dimensions(Shape({1, kUnknownDim, 3})).Dimensions(Shape(std::vector<int64_t>()));
  json.Dimensions(Shape::UnknownRank()).End();
  EXPECT_EQ(out.str(), "[\n  [1, -1, 3],\n  [],\n  null\n]\n");
}

TEST(Cli, ExitCodesComeFromOneTable) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(AnswerIsNo("")), 1);
  EXPECT_EQ(ExitCode(absl::NotFoundError("")), 255);
  EXPECT_EQ(ExitCode(absl::InternalError("")), 255);
}

TEST(Cli, ErrorsAreOneLineWithoutControlCharacters) {
  Tool tool = DefineTool<Options>(
      "t", "s", {}, [](Options*, FlagTable*) {},
      [](const Options&, FileSystem&, Console&) -> absl::Status { return absl::DataLossError("bad\x1b[2Jname"); });
  std::ostringstream out, err;
  Console console{out, err};
  EXPECT_EQ(RunTool(tool, {}, RealFileSystem(), console), 255);
  EXPECT_EQ(err.str(), "t: bad\\x1b[2Jname\n");
  EXPECT_EQ(out.str(), "");
}

TEST(Cli, WhatIsThrownIsAnError) {
  const auto told = [](absl::Status (*run)(const Options&, FileSystem&, Console&)) {
    const Tool tool = DefineTool<Options>(
        "t", "s", {}, [](Options*, FlagTable*) {}, run);
    std::ostringstream out, err;
    Console console{out, err};
    EXPECT_EQ(RunTool(tool, {}, RealFileSystem(), console), 255);
    return err.str();
  };
  EXPECT_EQ(told([](const Options&, FileSystem&, Console&) -> absl::Status { throw std::bad_alloc(); }),
            "t: there is not enough memory; --max_memory=BYTES raises the limit\n");
  EXPECT_EQ(told([](const Options&, FileSystem&, Console&) -> absl::Status { throw std::runtime_error("no threads"); }),
            "t: no threads\n");
}

}  // namespace
}  // namespace permafrost
