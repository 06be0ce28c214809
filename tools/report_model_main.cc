// The report_model command.
#include "tools/report_model.h"

int main(int argc, char** argv) { return permafrost::ToolMain(permafrost::ReportModelTool(), argc, argv); }
