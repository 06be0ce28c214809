// Checks an installation and its machine, and says what to do about what it finds.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime_check/threads/processors.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/json.h"
#include "tools/diagnosis/delegate_check.h"
#include "tools/diagnosis/machine_check.h"
#include "tools/diagnosis/python_check.h"

namespace permafrost {
namespace {

struct PermafrostDoctorOptions {
  std::string cache_dir;
  std::string python = "python3";
  bool json = false;
};

void DefineFlags(PermafrostDoctorOptions* options, FlagTable* flags) {
  flags->Add("cache_dir", &options->cache_dir, "DIR", "Folder to check for use as --cache_dir of the other tools.");
  flags->Add("python", &options->python, "PROGRAM",
             "Interpreter whose permafrost package is checked. Empty: the package is not checked.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  flags->MarkCommon({"cache_dir", "python", "json"});
  flags->DeclareProcesses();
}

std::vector<Finding> AllFindings(const PermafrostDoctorOptions& options, FileSystem& files, Console& console) {
  const int num_threads = AvailableProcessors();
  std::vector<Finding> findings = {DescribeProgram()};
  console.Progress("checking the delegates");
  for (Finding& finding : CheckDelegates(num_threads)) findings.push_back(std::move(finding));
  console.Progress("");
  findings.push_back(CheckInstructionSets());
  findings.push_back(CheckThreads(num_threads));
  findings.push_back(CheckMemory());
  findings.push_back(CheckLockedMemory());
  findings.push_back(CheckHugePages());
  findings.push_back(CheckTemporaryFolder());
  if (!options.cache_dir.empty()) findings.push_back(CheckCacheFolder(options.cache_dir, files));
  if (!options.python.empty()) {
    console.Progress("importing the Python package");
    findings.push_back(CheckPythonPackage(options.python));
    console.Progress("");
  }
  return findings;
}

absl::string_view Name(Grade grade) {
  switch (grade) {
    case Grade::kGood:
      return "ok";
    case Grade::kAdvice:
      return "advice";
    case Grade::kProblem:
      return "problem";
  }
  return "";
}

Style StyleOf(Grade grade) {
  return grade == Grade::kGood ? Style::kGood : grade == Grade::kAdvice ? Style::kWarning : Style::kBad;
}

void PrintText(const std::vector<Finding>& findings, const Console& console) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  for (const Finding& finding : findings) {
    constexpr size_t kGradeWidth = 9;  // That of "problem", and two blanks.
    std::string grade(Name(finding.grade));
    grade.resize(kGradeWidth, ' ');
    std::string subject = finding.subject;
    subject.resize(width + 2, ' ');
    console.out << console.Styled(StyleOf(finding.grade), grade) << subject << Printable(finding.found) << "\n";
    if (!finding.remedy.empty())
      console.out << std::string(kGradeWidth, ' ') << "-> " << Printable(finding.remedy) << "\n";
  }
}

void PrintJson(const std::vector<Finding>& findings, size_t num_problems, const Console& console) {
  JsonWriter json(console.out);
  json.BeginObject();
  json.Key("version").Text(kVersion);
  json.Key("problems").Count(num_problems);
  json.Key("findings").BeginArray();
  for (const Finding& finding : findings) {
    json.BeginObject();
    json.Key("subject").Text(finding.subject);
    json.Key("grade").Text(Name(finding.grade));
    json.Key("found").Text(finding.found);
    json.Key("remedy").Text(finding.remedy);
    json.End();
  }
  json.End();
  json.End();
}

absl::Status Diagnose(const PermafrostDoctorOptions& options, FileSystem& files, Console& console) {
  const std::vector<Finding> findings = AllFindings(options, files, console);
  std::vector<std::string> problems;
  for (const Finding& finding : findings) {
    if (finding.grade == Grade::kProblem) problems.push_back(finding.subject);
  }
  if (options.json) {
    PrintJson(findings, problems.size(), console);
  } else {
    PrintText(findings, console);
  }
  if (problems.empty()) return absl::OkStatus();
  return AnswerIsNo(absl::StrCat("found ", problems.size(),
                                 problems.size() == 1 ? " problem: " : " problems: ", absl::StrJoin(problems, ", ")));
}

}  // namespace

Tool PermafrostDoctorTool() {
  return DefineTool<PermafrostDoctorOptions>(
      "permafrost_doctor", "checks an installation and its machine, and says what to do about each finding",
      {{"Check delegates, processor, memory, folders and the Python package.", ""},
       {"Also check a folder for caches, and the package of another interpreter.",
        "--cache_dir=~/.cache/permafrost --python=venv/bin/python"}},
      &DefineFlags, &Diagnose);
}

}  // namespace permafrost
