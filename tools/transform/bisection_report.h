// Report of transform_graph --bisect, as text and as JSON.
#ifndef PERMAFROST_TOOLS_TRANSFORM_BISECTION_REPORT_H_
#define PERMAFROST_TOOLS_TRANSFORM_BISECTION_REPORT_H_

#include <ostream>
#include <string>

#include "tools/command_line/console.h"
#include "tools/transform/bisection.h"

namespace permafrost {

void PrintBisection(const Bisection& bisection, const Console& console);
// Writes the object that docs/guide/transform_graph.md describes.
void WriteBisectionJson(const Bisection& bisection, std::ostream& out);

// Returns, for example, "pass 2, fold_batch_norms, rewrite 3 of 7, breaks the numbers".
std::string SummaryOf(const Bisection& bisection);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_BISECTION_REPORT_H_
