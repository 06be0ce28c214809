// A variant of session_server that uses the embedded runtime (embedding/permafrost_runtime.h) with the built-in kernels
// only, to measure the start-up without other libraries. Answers load, feed, run, save and quit as described there;
// ignores samples.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "embedding/permafrost_runtime.hpp"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "io/file_system.h"
#include "io/formats/json_value.h"
#include "io/formats/npy.h"

namespace {

using Clock = std::chrono::steady_clock;

// Larger than any round of a benchmark; bounds the memory that a request can use.
constexpr int kMostRuns = 1000000;

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// An error in a request.
struct Failure {
  std::string text;
};

void Check(const pf::Status& status) {
  if (!status.ok()) throw Failure{status.message()};
}
void Check(const absl::Status& status) {
  if (!status.ok()) throw Failure{std::string(status.message())};
}

template <typename T>
T Take(pf::Result<T> result) {
  if (!result.ok()) throw Failure{result.status().message()};
  return std::move(*result);
}

std::string NanosecondsSince(Clock::time_point start) {
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

class Server {
 public:
  // Members of a JSON object.
  std::string Answer(const std::string& line) {
    const std::vector<std::string> words = Split(line, '\t');
    const std::string name = words.empty() ? "" : words[0];
    const std::vector<std::string> arguments(words.empty() ? words.end() : words.begin() + 1, words.end());
    if (name == "load") return Load(arguments);
    if (name == "feed") return Feed(arguments);
    if (name == "run") return Run(arguments);
    if (name == "save") return Save(arguments);
    throw Failure{"unknown request '" + name + "', expected one of load, feed, run, save, quit"};
  }

 private:
  std::string Load(const std::vector<std::string>& words) {
    std::string path;
    pf::SessionOptions options;
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      const std::string key = word.substr(0, equals),
                        value = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (key == "model") path = value;
      if (key == "inputs") options.inputs = Split(value, ',');
      if (key == "outputs") options.outputs = Split(value, ',');
      if (key == "threads") options.num_threads = std::stoi(value);
      if (key == "delegate") options.delegate = value;
      if (key == "precision") options.precision = value;
    }
    outputs_.clear();
    session_.reset();
    model_.reset();
    const auto start = Clock::now();
    model_ = Take(pf::Model::OpenFile(path));
    session_ = Take(pf::Session::Create(*model_, options));
    return "\"ns\": " + NanosecondsSince(start);
  }

  std::string Feed(const std::vector<std::string>& paths) {
    if (!session_.has_value()) throw Failure{"feed before load"};
    feeds_.clear();
    inputs_.clear();
    outputs_.clear();
    memory_.clear();
    for (const std::string& path : paths) {
      absl::StatusOr<permafrost::FileView> file = permafrost::RealFileSystem().MapFile(path);
      Check(file.status());
      absl::StatusOr<permafrost::Tensor> read = permafrost::ParseNpy(file->bytes, file->owner);
      Check(read.status());
      read = read->Aligned();
      Check(read.status());
      pf_tensor input = {};
      input.dtype = static_cast<int32_t>(read->dtype());
      input.rank = read->shape().rank();
      for (int i = 0; i < input.rank; ++i) input.dims[i] = read->shape().dim(i);
      input.data = const_cast<char*>(read->bytes().data());
      input.num_bytes = read->bytes().size();
      inputs_.push_back(input);
      feeds_.push_back(*std::move(read));
    }
    const auto start = Clock::now();
    outputs_ = Take(session_->Plan(inputs_));
    for (pf_tensor& output : outputs_) {
      permafrost::Shape shape(std::vector<int64_t>(output.dims, output.dims + std::max(0, output.rank)));
      char* data = nullptr;
      absl::StatusOr<permafrost::Tensor> made =
          permafrost::Tensor::Allocate(static_cast<permafrost::DType>(output.dtype), std::move(shape), &data);
      Check(made.status());
      output.data = data;
      memory_.push_back(*std::move(made));
    }
    return "\"ns\": " + NanosecondsSince(start);
  }

  std::string Run(const std::vector<std::string>& arguments) {
    if (outputs_.empty()) throw Failure{"run before feed"};
    const int runs = arguments.size() == 1 ? std::stoi(arguments[0]) : 0;
    if (runs < 1 || runs > kMostRuns) throw Failure{"run takes a number from 1 to " + std::to_string(kMostRuns)};
    std::string times;
    for (int i = 0; i < runs; ++i) {
      const auto start = Clock::now();
      Check(session_->RunInto(inputs_, &outputs_));
      times += (i == 0 ? "" : ", ") + NanosecondsSince(start);
    }
    return "\"ns\": [" + times + "]";
  }

  std::string Save(const std::vector<std::string>& arguments) {
    if (arguments.size() != 1) throw Failure{"save takes a prefix"};
    for (size_t i = 0; i < memory_.size(); ++i) {
      auto writer = permafrost::RealFileSystem().NewWriter(arguments[0] + "_" + std::to_string(i) + ".npy");
      Check(writer.status());
      Check(permafrost::WriteNpy(memory_[i], writer->get()));
      Check((*writer)->Commit());
    }
    return "\"outputs\": " + std::to_string(memory_.size());
  }

  std::optional<pf::Model> model_;
  std::optional<pf::Session> session_;
  std::vector<permafrost::Tensor> feeds_, memory_;  // Memory that inputs_ and outputs_ view.
  std::vector<pf_tensor> inputs_, outputs_;
};

std::string AnswerOrError(Server* server, const std::string& line) {
  try {
    return server->Answer(line);
  } catch (const Failure& failure) {
    return "\"error\": " + permafrost::JsonQuoted(failure.text);
  } catch (const std::exception& exception) {  // Thrown by std::stoi.
    return "\"error\": " + permafrost::JsonQuoted(exception.what());
  }
}

}  // namespace

int main() {
  std::cout << "{\"import_ns\": 0}" << std::endl;
  Server server;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::cout << "{" << AnswerOrError(&server, line) << "}" << std::endl;
  }
  return 0;
}
