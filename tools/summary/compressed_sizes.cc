// Writes each form through both compressors into sinks that only count bytes.
#include "tools/summary/compressed_sizes.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "io/formats/graphdef.h"
#include "io/formats/gzip.h"
#include "io/formats/zstd.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

constexpr const char* kAsItIs = "as it is";
constexpr const char* kForms[] = {kAsItIs, "round_weights", "quantize_weights"};

absl::StatusOr<uint64_t> GzipSize(const Graph& graph) {
  CountingSink size;
  GzipSink compressed(&size);
  PF_RETURN_IF_ERROR(WriteGraphDef(graph, &compressed));
  PF_RETURN_IF_ERROR(compressed.Finish());
  return size.size();
}

absl::Status Measure(const Graph& graph, CompressedSizes* sizes) {
  std::unique_ptr<Graph> changed;
  if (sizes->form != kAsItIs) {
    changed = graph.Clone();
    PassContext context;
    context.num_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    PF_ASSIGN_OR_RETURN(const std::vector<PassCall> calls, ParsePipeline(sizes->form));
    // An error of a pass does not prevent the other forms.
    sizes->status = RunPipeline(&changed, calls, &context).status();
    if (!sizes->status.ok()) return absl::OkStatus();
  }
  const Graph& measured = changed != nullptr ? *changed : graph;
  sizes->plain = GraphDefSize(measured);
  PF_ASSIGN_OR_RETURN(sizes->gzip, GzipSize(measured));
  PF_ASSIGN_OR_RETURN(sizes->zstd, CompressedSize(measured));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CompressedSizes>> MeasureCompressedSizes(
    const Graph& graph, const std::function<void(const std::string& form)>& progress) {
  std::vector<CompressedSizes> all;
  for (const char* form : kForms) {
    progress(form);
    CompressedSizes sizes;
    sizes.form = form;
    PF_RETURN_IF_ERROR(Measure(graph, &sizes));
    all.push_back(std::move(sizes));
  }
  return all;
}

void PrintCompressedSizes(const std::vector<CompressedSizes>& sizes, const Console& console) {
  console.out << "\nBytes of a download, by what is done to the weights first\n";
  Table table({{""}, {"GraphDef", true}, {"gzip", true}, {"zstd", true}, {"of the GraphDef as it is", true}});
  for (const CompressedSizes& form : sizes) {
    if (!form.status.ok()) {
      table.AddRow({form.form, "", "", "", absl::StrCat("fails: ", Printable(form.status.message()))});
      continue;
    }
    const double whole = static_cast<double>(std::max<uint64_t>(sizes[0].plain, 1));
    table.AddRow({form.form, FormatCount(form.plain), FormatCount(form.gzip), FormatCount(form.zstd),
                  absl::StrFormat("%.1f%%", 100 * static_cast<double>(form.zstd) / whole)});
  }
  table.Print(console, "  ");
}

void WriteCompressedSizes(const std::vector<CompressedSizes>& sizes, JsonWriter* json) {
  json->BeginArray();
  for (const CompressedSizes& form : sizes) {
    json->BeginObject();
    json->Key("form").Text(form.form);
    json->Key("plain_bytes").Count(form.plain);
    json->Key("gzip_bytes").Count(form.gzip);
    json->Key("zstd_bytes").Count(form.zstd);
    json->Key("error").Text(form.status.message());
    json->End();
  }
  json->End();
}

}  // namespace permafrost
