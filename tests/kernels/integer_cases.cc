// Reads the recorded cases of quantised operators.
#include "tests/kernels/integer_cases.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace permafrost {
namespace {

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  if (text == "-") return parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

int64_t SizeOf(const std::string& type) {
  static const std::map<std::string, int64_t> kSizes = {{"int8", 1},  {"uint8", 1},   {"bool", 1},  {"int16", 2},
                                                        {"int32", 4}, {"float32", 4}, {"int64", 8}, {"float16", 2}};
  const auto it = kSizes.find(type);
  if (it == kSizes.end()) Fail("unknown type " + type);
  return it->second;
}

IntegerOperand ReadOperand(std::istringstream& line) {
  IntegerOperand operand;
  std::string shape, scales, zeros, bytes;
  line >> operand.type;
  if (operand.type == "none") return operand;
  operand.is_present = true;
  line >> shape >> scales >> zeros >> operand.axis >> bytes;
  for (const std::string& part : Split(shape)) operand.shape.push_back(std::atoll(part.c_str()));
  for (const std::string& part : Split(scales)) operand.scales.push_back(std::strtof(part.c_str(), nullptr));
  for (const std::string& part : Split(zeros)) operand.zero_points.push_back(std::atoi(part.c_str()));
  const int64_t size = operand.num_elements() * SizeOf(operand.type);
  if (bytes == "-") {
    operand.bytes.assign(size, '\0');
    return operand;
  }
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    operand.bytes.push_back(static_cast<char>(std::strtol(bytes.substr(i, 2).c_str(), nullptr, 16)));
  }
  if (static_cast<int64_t>(operand.bytes.size()) != size) Fail("an operand's bytes do not fit its shape");
  return operand;
}

}  // namespace

int64_t IntegerOperand::num_elements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

Affine IntegerOperand::affine() const {
  Affine affine;
  affine.type = type == "int8"    ? CodeType::kInt8
                : type == "uint8" ? CodeType::kUint8
                : type == "int16" ? CodeType::kInt16
                                  : CodeType::kInt32;
  affine.scale = scales.empty() ? 0.0f : scales[0];
  affine.zero_point = zero_points.empty() ? 0 : zero_points[0];
  return affine;
}

double IntegerCase::option(const std::string& option) const {
  const auto it = options.find(option);
  if (it == options.end()) Fail(name + " has no option " + option);
  return it->second;
}

std::vector<IntegerCase> ReadIntegerCases() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/kernels/integer_vectors")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<IntegerCase> cases;
  for (const auto& file : files) {
    std::ifstream stream(file);
    for (std::string text; std::getline(stream, text);) {
      std::istringstream line(text);
      std::string kind, word;
      line >> kind;
      if (kind == "case") {
        cases.emplace_back();
        cases.back().op = file.stem().string();
        // Cases of LiteRT's vectors and those made for this test are in files of their own.
        const size_t made = cases.back().op.rfind("_MADE");
        if (made != std::string::npos) cases.back().op.resize(made);
        line >> cases.back().name;
      } else if (cases.empty()) {
        Fail(file.string() + " does not start with a case");
      } else if (kind == "option") {
        std::string value;
        line >> word >> value;
        cases.back().options[word] = std::strtod(value.c_str(), nullptr);
      } else if (kind == "input") {
        cases.back().inputs.push_back(ReadOperand(line));
      } else if (kind == "intermediate") {
        cases.back().intermediates.push_back(ReadOperand(line));
      } else if (kind == "output") {
        cases.back().output = ReadOperand(line);
      }
    }
  }
  if (cases.empty()) Fail("no recorded cases");
  return cases;
}

}  // namespace permafrost
