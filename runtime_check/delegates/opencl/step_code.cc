// Generates OpenCL C for chains and groups of elementwise steps.
#include "runtime_check/delegates/opencl/step_code.h"

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/loops.h"

namespace permafrost {
namespace opencl {
namespace {

using onednn::Meeting;
using onednn::Rows;
using onednn::Step;

// The kernel files, as text.
absl::string_view TextOf(absl::string_view file) {
  struct Text {
    absl::string_view file, text;
  };
  static constexpr Text kTexts[] = {
#define KERNEL_FILE(name, text) {name, text},
#include "runtime_check/delegates/opencl/kernel_texts.inc"
#undef KERNEL_FILE
  };
  for (const Text& text : kTexts) {
    if (text.file == file) return text.text;
  }
  return "";
}

// The position of the element of an operand that meets the element of the result.
const char* IndexOf(Meeting meeting) {
  switch (meeting) {
    case Meeting::kSame:
      return "element";
    case Meeting::kPerChannel:
      return "channel";
    case Meeting::kScalar:
      return "0";
    case Meeting::kPerImage:
      return "row / f[1] * f[0] + channel";
    case Meeting::kPerRow:
      return "row";
  }
  return "0";
}

bool UsesNumbers(onednn::LoopOp op) {
  switch (op) {
    case onednn::LoopOp::kClip:
    case onednn::LoopOp::kLeakyRelu:
    case onednn::LoopOp::kElu:
    case onednn::LoopOp::kAffine:
      return true;
    default:
      return false;
  }
}

// Returns the parameters of the operands, and the statements that find their elements.
void DeclareOperands(size_t count, std::string* parameters, std::string* arguments, std::string* loads) {
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(parameters, ", IN(o", i, ")");
    absl::StrAppend(arguments, ", o", i, "_base, o", i, "_at");
    absl::StrAppend(loads, "  LOAD(o", i, ");\n");
  }
}

}  // namespace

StepCode::StepCode(const Rows& rows, int64_t images, Constants* constants) : constants_(constants) {
  table_.Int(rows.channels).Int(rows.rows / (images > 0 ? images : 1));
}

std::string StepCode::NameOf(int result) { return result < 0 ? "value" : absl::StrCat("r", result); }

std::string StepCode::Load(int storage, Meeting meeting, LaunchStep::Operand* operand) {
  const auto found = variables_.find(storage);
  if (found != variables_.end()) {
    *operand = {LaunchStep::Operand::From::kResult, found->second};
    return NameOf(found->second);
  }
  const auto [parameter, is_new] = parameters_.emplace(storage, static_cast<int>(operands_.size()));
  if (is_new) operands_.push_back(storage);
  *operand = {LaunchStep::Operand::From::kOperand, parameter->second, 0, meeting};
  return absl::StrCat("o", parameter->second, "[", IndexOf(meeting), "]");
}

int StepCode::Append(const Step& step) {
  LaunchStep on_host;
  on_host.op = step.op;
  on_host.alpha = step.alpha;
  on_host.beta = step.beta;
  const std::string x = Load(step.value, Meeting::kSame, &on_host.x);
  std::string z = "0.0f";
  if (!step.constants.empty()) {
    const int64_t slot = table_.size();
    const int64_t position = constants_->AddFloats(step.constants);
    table_.Int(position);
    on_host.z = {LaunchStep::Operand::From::kConstants, -1, position, step.meeting};
    z = absl::StrCat("constants[f[", slot, "] + ", IndexOf(step.meeting), "]");
  } else if (step.other >= 0) {
    z = Load(step.other, step.meeting, &on_host.z);
  }
  std::string numbers = "0.0f, 0.0f";
  if (UsesNumbers(step.op)) {
    const int64_t slot = table_.size();
    table_.Float(step.alpha).Float(step.beta);
    numbers = absl::StrCat("as_float(f[", slot, "]), as_float(f[", slot + 1, "])");
  }
  const auto result = static_cast<int>(steps_.size());
  steps_.push_back(on_host);
  absl::StrAppend(&statements_, "  const float ", NameOf(result), " = op_", onednn::NameOf(step.op), "(", x, ", ", z,
                  ", ", numbers, ");\n");
  Define(step.result, result);
  return result;
}

std::string ProgramOf(absl::string_view file, absl::string_view definitions) {
  return absl::StrCat(TextOf("common.cl"), TextOf("steps.cl"), definitions, TextOf(file));
}

std::string ProgramWithSteps(absl::string_view file, absl::Span<const Step> steps, const Rows& rows, int64_t images,
                             Constants* constants, Launch* launch) {
  if (steps.empty()) {
    return ProgramOf(file, "#define FINISH_PARAMS\n#define FINISH(value, row, channel) (value)\n");
  }
  StepCode code(rows, images, constants);
  int result = -1;
  for (const Step& step : steps) {
    code.Define(step.value, result);
    result = code.Append(step);
  }
  std::string parameters, arguments, loads;
  DeclareOperands(code.operands().size(), &parameters, &arguments, &loads);
  launch->Pass(constants->AddWords(code.table().words()));
  launch->steps = code.steps();
  launch->channels = rows.channels;
  launch->rows_per_image = rows.rows / images;
  launch->first_operand = launch->arguments.size();
  for (const int storage : code.operands()) launch->Read(storage);
  return ProgramOf(
      file,
      absl::StrCat("#define FINISH_PARAMS , const int finish_at", parameters,
                   "\n#define FINISH(value, row, channel) finish(value, row, channel, constants, finish_at", arguments,
                   ")\nstatic inline float finish(float value, int row, int channel, "
                   "__global const float *constants FINISH_PARAMS) {\n"
                   "  __global const int *f = (__global const int *)(constants + finish_at);\n"
                   "  const int element = row * f[0] + channel;\n",
                   loads, code.statements(), "  return ", StepCode::NameOf(result), ";\n}\n"));
}

Launch MakeElementwise(absl::Span<const Step* const> steps, absl::Span<const int> results, Constants* constants) {
  Launch launch;
  const Rows& rows = steps[0]->rows;
  int64_t images = 1;
  for (const Step* step : steps) {
    if (step->meeting == Meeting::kPerImage) images = step->images;
  }
  StepCode code(rows, images, constants);
  std::map<int, int> variables;
  for (const Step* step : steps) {
    variables[step->result] = code.Append(*step);
    absl::StrAppend(&launch.description, launch.description.empty() ? "" : " + ", onednn::NameOf(step->op));
  }
  std::string parameters, arguments, loads, stores;
  DeclareOperands(code.operands().size(), &parameters, &arguments, &loads);
  for (const int storage : code.operands()) launch.Read(storage);
  launch.steps = code.steps();
  launch.channels = rows.channels;
  launch.rows_per_image = rows.rows / images;
  for (size_t i = 0; i < results.size(); ++i) {
    launch.results.push_back(variables[results[i]]);
    launch.Write(results[i]);
    absl::StrAppend(&parameters, ", OUT(y", i, ")");
    absl::StrAppend(&loads, "  STORE(y", i, ");\n");
    absl::StrAppend(&stores, "  y", i, "[element] = ", StepCode::NameOf(variables[results[i]]), ";\n");
  }
  launch.kernel = "elementwise";
  launch.items = rows.elements();
  launch.table = constants->AddWords(code.table().words());
  launch.source = absl::StrCat(ProgramOf(""), "\n__kernel void elementwise(HEADER", parameters,
                               ") {\n"
                               "  BEGIN;\n"
                               "  __global const int *f = s;\n"
                               "  const int element = item;\n"
                               "  const int row = item / f[0], channel = item % f[0];\n",
                               loads, code.statements(), stores, "}\n");
  return launch;
}

}  // namespace opencl
}  // namespace permafrost
