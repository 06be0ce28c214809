// A client program of TensorFlow, compiled against its wheel: loads and writes memory-mapped packages like an
// application.
//
//   package_client run PACKAGE OUT OUTPUT[,OUTPUT...] [INPUT=FILE:DIM,DIM...]
//
// Runs the package. FILE and OUT hold floats.
//
//   package_client write GRAPHDEF PACKAGE LEAST
//
// Writes a package in which constants of LEAST bytes or more become regions.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/memmapped_file_system.h"
#include "tensorflow/core/util/memmapped_file_system_writer.h"

namespace {

namespace tf = tensorflow;

void Check(const tf::Status& status, const char* what) {
  if (status.ok()) return;
  std::cerr << what << ": " << status.ToString() << std::endl;
  std::exit(1);
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    if (c == separator) {
      pieces.emplace_back();
    } else {
      pieces.back().push_back(c);
    }
  }
  return pieces;
}

// "name=file:1,2,3".
std::pair<std::string, tf::Tensor> ReadFeed(const std::string& text) {
  const std::vector<std::string> name_and_rest = Split(text, '='), file_and_dims = Split(name_and_rest[1], ':');
  tf::TensorShape shape;
  for (const std::string& dim : Split(file_and_dims[1], ',')) shape.AddDim(std::stoll(dim));
  tf::Tensor tensor(tf::DT_FLOAT, shape);
  std::ifstream file(file_and_dims[0], std::ios::binary);
  const auto data = tensor.tensor_data();
  file.read(const_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  if (!file) Check(tf::errors::DataLoss("too short"), file_and_dims[0].c_str());
  return {name_and_rest[0], tensor};
}

int Run(int argc, char** argv) {
  tf::MemmappedEnv env(tf::Env::Default());
  Check(env.InitializeFromFile(argv[2]), "InitializeFromFile");
  tf::GraphDef graph;
  Check(tf::ReadBinaryProto(&env, tf::MemmappedFileSystem::kMemmappedPackageDefaultGraphDef, &graph),
        "ReadBinaryProto");
  tf::SessionOptions options;
  options.env = &env;
  // Folding constants would open the regions without this environment.
  options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(tf::OptimizerOptions::L0);
  options.config.mutable_graph_options()->mutable_rewrite_options()->set_disable_meta_optimizer(true);
  const std::unique_ptr<tf::Session> session(tf::NewSession(options));
  Check(session->Create(graph), "Create");
  std::vector<std::pair<std::string, tf::Tensor>> feeds;
  for (int i = 5; i < argc; ++i) feeds.push_back(ReadFeed(argv[i]));
  std::vector<tf::Tensor> outputs;
  Check(session->Run(feeds, Split(argv[4], ','), {}, &outputs), "Run");
  std::ofstream out(argv[3], std::ios::binary);
  for (const tf::Tensor& output : outputs) {
    const auto data = output.tensor_data();
    out.write(data.data(), static_cast<std::streamsize>(data.size()));
  }
  int regions = 0;
  for (const tf::NodeDef& node : graph.node()) regions += node.op() == "ImmutableConst";
  std::cout << regions << " regions" << std::endl;
  return out ? 0 : 1;
}

int Write(char** argv) {
  tf::GraphDef graph;
  Check(tf::ReadBinaryProto(tf::Env::Default(), argv[2], &graph), "ReadBinaryProto");
  tf::MemmappedFileSystemWriter writer;
  Check(writer.InitializeToFile(tf::Env::Default(), argv[3]), "InitializeToFile");
  for (tf::NodeDef& node : *graph.mutable_node()) {
    if (node.op() != "Const") continue;
    tf::Tensor value;
    if (!value.FromProto(node.attr().at("value").tensor())) Check(tf::errors::DataLoss("no tensor"), "value");
    if (value.dtype() == tf::DT_STRING || value.TotalBytes() < static_cast<size_t>(std::stoul(argv[4]))) continue;
    std::string region = tf::MemmappedFileSystem::kMemmappedPackagePrefix;
    for (const char c : node.name()) region.push_back(std::isalnum(c) != 0 || c == '.' ? c : '_');
    Check(writer.SaveTensor(value, region), "SaveTensor");
    node.set_op("ImmutableConst");
    node.clear_attr();
    (*node.mutable_attr())["dtype"].set_type(value.dtype());
    value.shape().AsProto((*node.mutable_attr())["shape"].mutable_shape());
    (*node.mutable_attr())["memory_region_name"].set_s(region);
  }
  Check(writer.SaveProtobuf(graph, tf::MemmappedFileSystem::kMemmappedPackageDefaultGraphDef), "SaveProtobuf");
  Check(writer.FlushAndClose(), "FlushAndClose");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "run" && argc >= 5) return Run(argc, argv);
  if (command == "write" && argc == 5) return Write(argv);
  std::cerr << "the commands are written in the source" << std::endl;
  return 2;
}
