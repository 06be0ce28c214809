// A finding of permafrost_doctor about one part of an installation or machine.
#ifndef PERMAFROST_TOOLS_DIAGNOSIS_FINDING_H_
#define PERMAFROST_TOOLS_DIAGNOSIS_FINDING_H_

#include <string>

namespace permafrost {

enum class Grade {
  kGood,
  kAdvice,   // Everything works, but could be faster, or something optional is not installed.
  kProblem,  // Something that is installed or was asked for does not work.
};

struct Finding {
  Grade grade = Grade::kGood;
  std::string subject;  // "delegate onednn"
  std::string found;    // One line.
  std::string remedy;   // What to do about it, one line; empty if nothing is to be done.
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIAGNOSIS_FINDING_H_
