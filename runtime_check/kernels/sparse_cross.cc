// SparseCross: all combinations of one feature from each input, per row, as hashes or joined strings.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/string_hash.h"

namespace permafrost {
namespace {

// The features of one input: row i has the values [starts[i], starts[i + 1]).
struct Column {
  int values = 0;  // The input with the values.
  std::vector<int64_t> starts;
};

// Inputs: (indices ..., values ..., shapes ..., dense inputs ...), with N of each of the first three.
absl::Status Prepare(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t sparse, IntAttr(context->node(), "N"));
  const int inputs = context->num_inputs();
  if (sparse < 0 || 3 * sparse >= static_cast<int64_t>(inputs) + (inputs == 3 * sparse ? 1 : 0) || inputs == 0) {
    return absl::InvalidArgumentError("there are no features to cross");
  }
  for (int i = 0; i < inputs; ++i) {
    const int rank = i < sparse || i >= 3 * sparse ? 2 : 1;
    PF_RETURN_IF_ERROR(RequireRank(context, i, rank));
    const Shape& shape = context->input_shape(i);
    const bool fits = i < sparse       ? shape.dim(1) == 2
                      : i < 2 * sparse ? shape.dim(0) == context->input_shape(i - static_cast<int>(sparse)).dim(0)
                      : i < 3 * sparse ? shape.dim(0) == 2
                                       : true;
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", shape.ToString(),
                                                     ", expected that of a part of a sparse matrix"));
    }
  }
  context->OutputShapeDependsOnValues(0);
  context->OutputShapeDependsOnValues(1);
  context->SetOutputShape(2, Shape({2}));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Column>> ReadColumns(ComputeContext* context, int sparse, int64_t* rows) {
  const int inputs = context->num_inputs();
  *rows = sparse > 0 ? context->input<int64_t>(2 * sparse)[0] : context->input_shape(0).dim(0);
  int64_t present = 0;
  for (int i = 0; i < sparse; ++i) present += context->input_shape(i).dim(0);
  // Reserves memory for the rows. More than 2^40 rows exceed any budget.
  PF_ASSIGN_OR_RETURN(const Reservation reservation, Reservation::Take(&context->budget(),
                                                                       std::max<int64_t>(*rows, 0) <= (int64_t{1} << 40)
                                                                           ? std::max<int64_t>(*rows, 0) * 8
                                                                           : std::numeric_limits<int64_t>::max(),
                                                                       "the rows of crossed features"));
  std::vector<Column> columns;
  for (int i = 0; i < sparse; ++i) {
    Column column;
    column.values = sparse + i;
    const int64_t* indices = context->input<int64_t>(i);
    const int64_t count = context->input_shape(i).dim(0);
    column.starts.assign(1, 0);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t row = indices[2 * k];
      if (row < static_cast<int64_t>(column.starts.size()) - 1 || row >= *rows) {
        return absl::InvalidArgumentError(
            absl::StrCat("the indices have row ", row, " at element ", k, ", expected ascending rows below ", *rows));
      }
      while (static_cast<int64_t>(column.starts.size()) <= row) column.starts.push_back(k);
    }
    while (static_cast<int64_t>(column.starts.size()) <= *rows) column.starts.push_back(count);
    columns.push_back(std::move(column));
  }
  for (int i = 3 * sparse; i < inputs; ++i) {
    const Shape& shape = context->input_shape(i);
    if (shape.dim(0) != *rows) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", shape.dim(0), " rows, expected ", *rows));
    }
    Column column;
    column.values = i;
    for (int64_t row = 0; row <= *rows; ++row) column.starts.push_back(row * shape.dim(1));
    columns.push_back(std::move(column));
  }
  return columns;
}

uint64_t HashOf(ComputeContext* context, int input, int64_t i) {
  if (context->input_type(input) == DType::kString) {
    return FarmFingerprint(context->input_strings(input)[static_cast<size_t>(i)]);
  }
  return static_cast<uint64_t>(context->input<int64_t>(input)[i]);
}

std::string TextOf(ComputeContext* context, int input, int64_t i) {
  if (context->input_type(input) == DType::kString) return context->input_strings(input)[static_cast<size_t>(i)];
  return absl::StrCat(context->input<int64_t>(input)[i]);
}

absl::Status Compute(ComputeContext* context) {
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(const int64_t sparse, IntAttr(node, "N"));
  PF_ASSIGN_OR_RETURN(const int64_t buckets, IntAttr(node, "num_buckets"));
  PF_ASSIGN_OR_RETURN(const int64_t key, IntAttr(node, "hash_key"));
  PF_ASSIGN_OR_RETURN(const bool is_hashed, BoolAttr(node, "hashed_output"));
  if (is_hashed == (context->output_type(1) == DType::kString) || buckets < 0) {
    return absl::InvalidArgumentError(
        "hashes are expected to be int64, and texts strings; 'num_buckets' to be 0 or more");
  }
  int64_t rows = 0;
  PF_ASSIGN_OR_RETURN(const std::vector<Column> columns, ReadColumns(context, static_cast<int>(sparse), &rows));
  const auto size_of = [&](const Column& column, int64_t row) { return column.starts[row + 1] - column.starts[row]; };
  double total = 0;
  int64_t most = 0;
  for (int64_t row = 0; row < rows; ++row) {
    double crosses = 1;
    for (const Column& column : columns) crosses *= static_cast<double>(size_of(column, row));
    total += crosses;
    most = std::max(most, crosses < 1e15 ? static_cast<int64_t>(crosses) : int64_t{1} << 50);
  }
  if (!(total < 1e12)) return absl::ResourceExhaustedError(absl::StrCat("found ", total, " combinations of features"));
  const auto count = static_cast<int64_t>(total);
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape({count, 2})));
  PF_RETURN_IF_ERROR(context->AllocateOutput(1, Shape({count})));
  int64_t* indices = context->output<int64_t>(0);
  int64_t next = 0;
  std::vector<int64_t> chosen(columns.size());
  for (int64_t row = 0; row < rows; ++row) {
    double product = 1;
    for (const Column& column : columns) product *= static_cast<double>(size_of(column, row));
    const auto crosses = static_cast<int64_t>(product);  // At most `count`.
    for (int64_t k = 0; k < crosses; ++k, ++next) {
      // The index of the last input changes fastest.
      int64_t rest = k;
      for (size_t c = columns.size(); c > 0; --c) {
        const int64_t size = size_of(columns[c - 1], row);
        chosen[c - 1] = columns[c - 1].starts[row] + rest % size;
        rest /= size;
      }
      indices[2 * next] = row;
      indices[2 * next + 1] = k;
      if (is_hashed) {
        auto hash = static_cast<uint64_t>(key);
        for (size_t c = 0; c < columns.size(); ++c)
          hash = JoinFingerprints(hash, HashOf(context, columns[c].values, chosen[c]));
        const uint64_t modulus =
            buckets > 0 ? static_cast<uint64_t>(buckets) : static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
        context->output<int64_t>(1)[next] = static_cast<int64_t>(hash % modulus);
      } else {
        std::string text;
        for (size_t c = 0; c < columns.size(); ++c) {
          absl::StrAppend(&text, c == 0 ? "" : "_X_", TextOf(context, columns[c].values, chosen[c]));
        }
        (context->output_strings(1))[static_cast<size_t>(next)] = std::move(text);
      }
    }
  }
  context->output<int64_t>(2)[0] = rows;
  context->output<int64_t>(2)[1] = most;
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(SparseCross) {
  return Kernel("for each row, all combinations of one feature from each input, hashed or joined")
      .TypeNumbers("out_type", {DType::kInt64, DType::kString})
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost
