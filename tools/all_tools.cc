// A row for each tool.
#include "tools/all_tools.h"

#include "tools/benchmark/benchmark_model.h"
#include "tools/compare_graphs.h"
#include "tools/convert_graphdef_memmapped_format.h"
#include "tools/convert_model.h"
#include "tools/encrypt_model.h"
#include "tools/freeze_graph.h"
#include "tools/optimize_for_inference.h"
#include "tools/print_selective_registration_header.h"
#include "tools/report_model.h"
#include "tools/strip_unused.h"
#include "tools/summarize_graph.h"
#include "tools/transform_graph.h"
#include "tools/validate_model.h"

namespace permafrost {

std::vector<Tool> AllTools() {
  return {
      BenchmarkModelTool(), CompareGraphsTool(), ConvertMemmappedTool(),     ConvertModelTool(),
      EncryptModelTool(),   FreezeGraphTool(),   OptimizeForInferenceTool(), PrintSelectiveRegistrationHeaderTool(),
      ReportModelTool(),    StripUnusedTool(),   SummarizeGraphTool(),       TransformGraphTool(),
      ValidateModelTool(),
  };
}

}  // namespace permafrost
