// Imports the Python package in a process of its own.
#include "tools/diagnosis/python_check.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tools/command_line/child_command.h"
#include "tools/command_line/cli.h"

namespace permafrost {
namespace {

// The import takes about 0.1 s, and longer on a machine that has not read the files yet.
constexpr double kMostSeconds = 20;
// Exit status of a shell for a program that it does not find.
constexpr absl::string_view kNoProgram = "exit status 127";

// Prints two lines, the versions and the path of the package, or the error. -P or -I would hide packages of the user.
constexpr char kProgram[] =
    "import sys, importlib.util\n"
    "version = \".\".join(map(str, sys.version_info[:3]))\n"
    "if importlib.util.find_spec(\"permafrost\") is None:\n"
    "    print(\"absent\", version)\n"
    "    sys.exit()\n"
    "try:\n"
    "    import permafrost\n"
    "except BaseException as error:\n"
    "    print(\"broken\", version, type(error).__name__ + \":\", str(error).replace(\"\\n\", \" \"))\n"
    "    sys.exit()\n"
    "print(\"present\", version, permafrost.__version__, permafrost.__file__)\n";

}  // namespace

Finding CheckPythonPackage(const std::string& interpreter) {
  Finding finding{Grade::kGood, "Python package", "", ""};
  const std::string quoted = absl::StrCat("'", absl::StrReplaceAll(interpreter, {{"'", "'\\''"}}), "'");
  const absl::StatusOr<CommandEnd> end = RunCommand(absl::StrCat(quoted, " -c '", kProgram, "'"), kMostSeconds);
  if (!end.ok()) {
    finding.grade = Grade::kProblem;
    finding.found = std::string(end.status().message());
    finding.remedy = "raise the limits on processes (ulimit -u, --pids-limit)";
    return finding;
  }
  const std::vector<std::string> lines = absl::StrSplit(absl::StripAsciiWhitespace(end->output), '\n');
  const std::vector<std::string> words = absl::StrSplit(lines.back(), absl::MaxSplits(' ', 3));
  if (end->how == kNoProgram) {
    finding.grade = Grade::kAdvice;
    finding.found = absl::StrCat("no interpreter '", interpreter, "'");
    finding.remedy = "the tools do not need it; for the package, install python3 or name another with --python";
  } else if (end->is_ok && words[0] == "absent" && words.size() >= 2) {
    finding.grade = Grade::kAdvice;
    finding.found = absl::StrCat("not installed for Python ", words[1]);
    finding.remedy =
        "the tools do not need it; for the package, install a wheel into a virtual environment "
        "(docs/guide/python.md) or the Debian package python3-permafrost";
  } else if (end->is_ok && words[0] == "present" && words.size() == 4) {
    finding.found = absl::StrCat("permafrost ", words[2], " for Python ", words[1], ", ", words[3]);
    if (words[2] != kVersion) {
      finding.grade = Grade::kProblem;
      finding.remedy =
          absl::StrCat("install version ", kVersion, " of the package, or of the tools that of the package");
    }
  } else {
    finding.grade = Grade::kProblem;
    finding.found = words[0] == "broken" && words.size() == 4
                        ? absl::StrCat("cannot be imported in Python ", words[1], ": ", words[2], " ", words[3])
                        : absl::StrCat("'", interpreter, "' ends with ", end->how, ": ", lines.back());
    finding.remedy = "reinstall it: pip install --force-reinstall permafrost";
  }
  return finding;
}

}  // namespace permafrost
