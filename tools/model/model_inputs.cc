// Reads or generates inputs.
#include "tools/model/model_inputs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "io/formats/npy.h"
#include "io/formats/tflite/metadata.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "tools/model/input_sizes.h"

namespace permafrost {
namespace {

absl::StatusOr<std::vector<std::string>> MatchingFiles(FileSystem& files, const std::string& path) {
  if (path.find_first_of("*?") == std::string::npos || files.Exists(path)) return std::vector<std::string>{path};
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const std::string prefix = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.ListDirectory(folder));
  std::vector<std::string> matching;
  for (const std::string& name : names) {
    if (MatchesPattern(name, path.substr(prefix.size()))) matching.push_back(prefix + name);
  }
  if (matching.empty()) return absl::NotFoundError(absl::StrCat("no file matches '", path, "'"));
  return matching;
}

// Returns the input for "name=file", and sets the path; without a name, returns the only input.
absl::StatusOr<size_t> InputOf(const std::string& piece, const Graph& model, std::string* path) {
  const std::vector<Endpoint>& inputs = model.inputs();
  const size_t equals = piece.find('=');
  if (equals == std::string::npos) {
    *path = piece;
    if (inputs.size() == 1) return 0;
    return absl::InvalidArgumentError(absl::StrCat("'", piece, "' does not say which of the ", inputs.size(),
                                                   " inputs it is for, expected INPUT=FILE"));
  }
  const std::string name = piece.substr(0, equals);
  *path = piece.substr(equals + 1);
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].text == name) return i;
    names.push_back(inputs[i].text);
  }
  for (const auto& [argument, node] : SignatureNames(model)) {
    const auto named = std::find(names.begin(), names.end(), node);
    if (argument == name && named != names.end()) return static_cast<size_t>(named - names.begin());
  }
  const std::string suggestion = DidYouMean(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is not an input",
      suggestion.empty() ? absl::StrCat(", expected '", absl::StrJoin(names, "' or '"), "'") : suggestion));
}

absl::Status CheckInput(const Tensor& tensor, const Endpoint& input, bool any_batch) {
  const absl::StatusOr<DType> dtype = TypeAttr(*input.node, "dtype");
  if (dtype.ok() && *dtype != tensor.dtype()) {
    return absl::InvalidArgumentError(
        absl::StrCat("holds ", DTypeName(tensor.dtype()), ", input '", input.text, "' expects ", DTypeName(*dtype)));
  }
  absl::StatusOr<Shape> shape = ShapeAttr(*input.node, "shape");
  if (shape.ok() && any_batch && shape->has_rank() && shape->rank() > 0) shape->set_dim(0, kUnknownDim);
  if (shape.ok() && !shape->IsCompatibleWith(tensor.shape())) {
    return absl::InvalidArgumentError(absl::StrCat("has shape ", tensor.shape().ToString(), ", input '", input.text,
                                                   "' expects ", shape->ToString()));
  }
  return absl::OkStatus();
}

// Returns `count` rows, a view of the tensor's elements unless these are strings.
absl::StatusOr<Tensor> Rows(const Tensor& tensor, int64_t start, int64_t count) {
  const int64_t rows = tensor.shape().dim(0);
  Shape shape = tensor.shape();
  shape.set_dim(0, count);
  if (tensor.dtype() == DType::kString) {
    const int64_t row = tensor.num_elements() / rows;
    const auto first = tensor.strings().begin() + start * row;
    return Tensor::FromStrings(std::move(shape), std::vector<std::string>(first, first + count * row));
  }
  const size_t row_bytes = tensor.bytes().size() / static_cast<size_t>(rows);
  return Tensor::FromBytes(
      tensor.dtype(), std::move(shape),
      tensor.bytes().substr(static_cast<size_t>(start) * row_bytes, static_cast<size_t>(count) * row_bytes),
      tensor.owner());
}

}  // namespace

absl::StatusOr<Tensor> ReadNpyFile(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(const FileView file, files.MapFile(path));
  absl::StatusOr<Tensor> tensor = ParseNpy(file.bytes, file.owner);
  if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("'", path, "'"));
  return tensor;
}

absl::StatusOr<std::vector<InputSet>> ReadInputSets(FileSystem& files, absl::Span<const std::string> pieces,
                                                    const Graph& model, bool any_batch) {
  const std::vector<Endpoint>& inputs = model.inputs();
  std::vector<std::vector<Tensor>> by_input(inputs.size());
  for (const std::string& piece : pieces) {
    std::string path;
    PF_ASSIGN_OR_RETURN(const size_t input, InputOf(piece, model, &path));
    PF_ASSIGN_OR_RETURN(const std::vector<std::string> paths, MatchingFiles(files, path));
    for (const std::string& file : paths) {
      PF_ASSIGN_OR_RETURN(Tensor tensor, ReadNpyFile(files, file));
      PF_RETURN_IF_ERROR(Annotate(CheckInput(tensor, inputs[input], any_batch), absl::StrCat("'", file, "'")));
      by_input[input].push_back(std::move(tensor));
    }
  }
  std::vector<InputSet> sets(by_input.empty() ? 0 : by_input[0].size());
  for (size_t i = 0; i < by_input.size(); ++i) {
    if (by_input[i].empty()) {
      return absl::InvalidArgumentError(absl::StrCat("no file is given for input '", inputs[i].text, "'"));
    }
    if (by_input[i].size() != sets.size()) {
      return absl::InvalidArgumentError(absl::StrCat("input '", inputs[i].text, "' has ", by_input[i].size(),
                                                     " files and input '", inputs[0].text, "' has ", sets.size(),
                                                     ", expected as many"));
    }
    for (size_t set = 0; set < sets.size(); ++set) sets[set].push_back(std::move(by_input[i][set]));
  }
  return sets;
}

absl::StatusOr<std::vector<InputSet>> SplitBatches(const std::vector<InputSet>& sets, int64_t batch) {
  if (batch < 1) return absl::InvalidArgumentError(absl::StrCat("batch is ", batch, ", expected at least 1"));
  std::vector<InputSet> pieces;
  for (const InputSet& set : sets) {
    int64_t rows = 0;
    for (const Tensor& tensor : set) {
      const Shape& shape = tensor.shape();
      if (shape.rank() == 0) continue;
      const int64_t own = shape.dim(0);
      if (own == 0)
        return absl::InvalidArgumentError(absl::StrCat("input of shape ", shape.ToString(), " has no rows"));
      if (rows != 0 && own != rows) {
        return absl::InvalidArgumentError(absl::StrCat("inputs have ", own, " and ", rows, " rows, expected as many"));
      }
      rows = own;
    }
    // An array without elements may declare any number of rows in a small file.
    constexpr int64_t kMostPieces = 1 << 22;
    if (rows / batch > kMostPieces) {
      return absl::InvalidArgumentError(absl::StrCat("inputs have ", rows, " rows, in batches of ", batch,
                                                     ", expected at most ", kMostPieces, " batches"));
    }
    if (rows == 0) pieces.push_back(set);
    for (int64_t start = 0; start < rows; start += batch) {
      InputSet piece;
      const int64_t count = std::min(batch, rows - start);
      for (const Tensor& tensor : set) {
        if (tensor.shape().rank() == 0) {
          piece.push_back(tensor);
          continue;
        }
        PF_ASSIGN_OR_RETURN(Tensor part, Rows(tensor, start, count));
        piece.push_back(std::move(part));
      }
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

int64_t RowsOf(const InputSet& set) {
  for (const Tensor& tensor : set) {
    if (tensor.shape().rank() > 0) return tensor.shape().dim(0);
  }
  return 1;
}

int64_t FixedBatch(absl::Span<const Endpoint> inputs) {
  int64_t batch = 0;
  for (const Endpoint& input : inputs) {
    const absl::StatusOr<Shape> shape = ShapeAttr(*input.node, "shape");
    if (!shape.ok() || !shape->has_rank() || shape->rank() == 0 || shape->dim(0) == kUnknownDim) continue;
    batch = shape->dim(0);
  }
  return batch;
}

absl::StatusOr<const Endpoint*> OnlyInput(absl::Span<const Endpoint> inputs, absl::string_view who) {
  if (inputs.size() == 1) return &inputs[0];
  std::vector<std::string> names;
  for (const Endpoint& input : inputs) names.push_back(input.text);
  return absl::InvalidArgumentError(
      absl::StrCat(who, " needs a model with one input, found ", names.size(), ": ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::vector<InputSet>> SeededInputSets(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                      uint64_t seed, int count) {
  PF_ASSIGN_OR_RETURN(const std::vector<InputShapes> shapes, ChooseInputShapes(graph, inputs, std::min(count, 2)));
  std::vector<InputSet> sets;
  for (int i = 0; i < count; ++i) {
    const InputShapes& chosen = shapes[static_cast<size_t>(i) % shapes.size()];
    PF_ASSIGN_OR_RETURN(InputSet set, SeededInputs(inputs, chosen, seed + static_cast<uint64_t>(i)));
    sets.push_back(std::move(set));
  }
  return sets;
}

bool MatchesPattern(absl::string_view name, absl::string_view pattern) {
  // The position to continue from if the text after the last "*" does not match: that "*" then consumes one more
  // character.
  size_t star = absl::string_view::npos, retry = 0;
  size_t n = 0, p = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++n;
      ++p;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace permafrost
