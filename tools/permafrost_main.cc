// The permafrost command: every tool as a subcommand.
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

int main(int argc, char** argv) {
  return permafrost::SubcommandMain(
      {permafrost::BenchmarkModelTool(),
       permafrost::CompareGraphsTool(),
       permafrost::ConvertMemmappedTool(),
       permafrost::ConvertModelTool(),
       permafrost::EncryptModelTool(),
       permafrost::FreezeGraphTool(),
       permafrost::OptimizeForInferenceTool(),
       permafrost::PrintSelectiveRegistrationHeaderTool(),
       permafrost::ReportModelTool(),
       permafrost::StripUnusedTool(),
       permafrost::SummarizeGraphTool(),
       permafrost::TransformGraphTool(),
       permafrost::ValidateModelTool()},
      argc, argv);
}
