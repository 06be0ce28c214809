// Writes, reads and repeats certificates.
#include "tools/certificate/certificate.h"

#include <cmath>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/age/crypto.h"
#include "io/formats/json_value.h"
#include "runtime_check/session.h"
#include "tools/command_line/json.h"
#include "tools/model/model_inputs.h"
#include "tools/report/report_page.h"

namespace permafrost {
namespace {

constexpr char kFormat[] = "permafrost certificate";
constexpr int kVersion = 1;
// Number of random inputs of a proof: the second may have other sizes (SeededInputSets).
constexpr int kProofSets = 2;
// Number of sums with random signs. The estimate of a distance has a relative deviation of sqrt(2 / 32) = 25 %, which
// is enough to tell rounding from another model.
constexpr int kSketchSize = 32;

// A mixture of bits (the finaliser of SplitMix64, Steele et al., Fast splittable pseudorandom number generators, 2014).
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::string Hex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("certificate: found no valid '", what, "'"));
}

absl::StatusOr<double> NumberOf(const JsonValue& object, absl::string_view key) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->kind != JsonValue::Kind::kNumber) return Malformed(key);
  return value->number;
}

// Counts are at most 2^53, which a double holds exactly.
absl::StatusOr<int64_t> CountOf(const JsonValue& object, absl::string_view key) {
  PF_ASSIGN_OR_RETURN(const double number, NumberOf(object, key));
  if (!(number >= 0) || number > 9007199254740992.0 || number != std::floor(number)) return Malformed(key);
  return static_cast<int64_t>(number);
}

absl::StatusOr<const JsonValue*> MemberOf(const JsonValue& object, absl::string_view key, JsonValue::Kind kind) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->kind != kind) return Malformed(key);
  return value;
}

void WriteFile(const CertifiedFile& file, JsonWriter* json) {
  json->BeginObject().Key("sha256").Text(file.sha256).Key("bytes").Count(file.bytes).End();
}

absl::StatusOr<CertifiedFile> ParseFile(const JsonValue& parent, absl::string_view key) {
  PF_ASSIGN_OR_RETURN(const JsonValue* value, MemberOf(parent, key, JsonValue::Kind::kObject));
  CertifiedFile file;
  PF_ASSIGN_OR_RETURN(file.sha256, TextMember(*value, "sha256"));
  PF_ASSIGN_OR_RETURN(const int64_t bytes, CountOf(*value, "bytes"));
  file.bytes = static_cast<uint64_t>(bytes);
  return file;
}

// Adds an output tensor to the description of the output. `first` is the number of elements before it.
void AddTensor(const Tensor& tensor, uint64_t seed, uint64_t first, std::string* content, double* squares,
               ProvenOutput* output) {
  absl::StrAppend(content, static_cast<int>(tensor.dtype()), tensor.shape().ToString(), ";");
  if (tensor.dtype() != DType::kString) absl::StrAppend(content, tensor.bytes());
  if (tensor.dtype() != DType::kFloat) return;
  const auto elements = tensor.elements<float>();
  for (size_t i = 0; i < elements.size(); ++i) {
    const double value = elements[i];
    *squares += value * value;
    const uint64_t signs = Mix(seed ^ Mix(first + i));
    for (int s = 0; s < kSketchSize; ++s) {
      output->sketch[static_cast<size_t>(s)] += (signs >> s & 1) != 0 ? value : -value;
    }
  }
}

}  // namespace

absl::StatusOr<CertifiedFile> CertifyFile(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(const FileView view, files.MapFile(path));
  return CertifiedFile{Hex(age::Sha256(view.bytes)), view.bytes.size()};
}

absl::StatusOr<std::vector<ProvenOutput>> ProveOutputs(const Graph& graph, uint64_t seed,
                                                       const SessionOptions& options) {
  PF_ASSIGN_OR_RETURN(const std::vector<InputSet> sets, SeededInputSets(graph, graph.inputs(), seed, kProofSets));
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : graph.inputs()) feeds.push_back(input.text);
  for (const Endpoint& output : graph.outputs()) fetches.push_back(output.text);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, options));
  std::vector<ProvenOutput> proof(fetches.size());
  std::vector<std::string> contents(fetches.size());
  std::vector<double> squares(fetches.size(), 0);
  std::vector<uint64_t> counts(fetches.size(), 0);
  for (size_t i = 0; i < fetches.size(); ++i) {
    proof[i].name = fetches[i];
    proof[i].sketch.assign(kSketchSize, 0);
  }
  for (const InputSet& set : sets) {
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(set));
    for (size_t i = 0; i < outputs.size(); ++i) {
      AddTensor(outputs[i], seed, counts[i], &contents[i], &squares[i], &proof[i]);
      counts[i] += static_cast<uint64_t>(outputs[i].num_elements());
    }
  }
  for (size_t i = 0; i < proof.size(); ++i) {
    proof[i].sha256 = Hex(age::Sha256(contents[i]));
    proof[i].norm = std::sqrt(squares[i]);
    // NaN and infinity are not numbers of JSON; the hash represents them.
    bool is_finite = std::isfinite(proof[i].norm);
    for (const double sum : proof[i].sketch) is_finite = is_finite && std::isfinite(sum);
    if (is_finite) continue;
    proof[i].norm = 0;
    proof[i].sketch.clear();
  }
  return proof;
}

absl::StatusOr<std::vector<ProofAgreement>> CompareProofs(const std::vector<ProvenOutput>& certified,
                                                          const std::vector<ProvenOutput>& found) {
  if (certified.size() != found.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", found.size(), " outputs, its certificate proves ", certified.size()));
  }
  std::vector<ProofAgreement> agreements;
  for (size_t i = 0; i < certified.size(); ++i) {
    if (certified[i].name != found[i].name) {
      return absl::InvalidArgumentError(absl::StrCat("output ", i + 1, " is '", found[i].name,
                                                     "', its certificate proves '", certified[i].name, "'"));
    }
    ProofAgreement& agreement = agreements.emplace_back();
    agreement.name = certified[i].name;
    agreement.is_identical = certified[i].sha256 == found[i].sha256;
    if (agreement.is_identical) continue;
    agreement.relative_rms = std::numeric_limits<double>::infinity();
    const std::vector<double>&a = certified[i].sketch, &b = found[i].sketch;
    if (a.empty() || a.size() != b.size() || !(certified[i].norm > 0)) continue;
    double squares = 0;
    for (size_t s = 0; s < a.size(); ++s) squares += (a[s] - b[s]) * (a[s] - b[s]);
    agreement.relative_rms = std::sqrt(squares / static_cast<double>(a.size())) / certified[i].norm;
  }
  return agreements;
}

std::string CertificateText(const Certificate& certificate) {
  std::ostringstream content;
  JsonWriter json(content);
  json.BeginObject();
  json.Key("tool").Text(certificate.tool);
  json.Key("date").Text(certificate.date);
  json.Key("machine").Text(certificate.machine);
  json.Key("original");
  WriteFile(certificate.original, &json);
  json.Key("model");
  WriteFile(certificate.model, &json);
  json.Key("transforms").Text(certificate.transforms);
  json.Key("run").Text(certificate.run);
  json.Key("measures").BeginArray();
  for (const CertifiedMeasure& measure : certificate.measures) {
    json.BeginObject();
    json.Key("inputs").Text(measure.inputs);
    json.Key("relative_rms").Number(measure.relative_rms);
    json.Key("labelled_rows").Integer(measure.labelled_rows);
    json.Key("right").Integer(measure.right);
    json.Key("reference_right").Integer(measure.reference_right);
    json.Key("low").Number(measure.low);
    json.Key("high").Number(measure.high);
    json.End();
  }
  json.End();
  json.Key("inputs").Texts(certificate.inputs);
  json.Key("outputs").Texts(certificate.outputs);
  // A text, since a number of JSON has 53 bits.
  json.Key("seed").Text(absl::StrCat(certificate.seed));
  json.Key("proof").BeginArray();
  for (const ProvenOutput& output : certificate.proof) {
    json.BeginObject();
    json.Key("output").Text(output.name);
    json.Key("sha256").Text(output.sha256);
    json.Key("norm").Number(output.norm);
    json.Key("sketch").BeginArray();
    for (const double sum : output.sketch) json.Number(sum);
    json.End();
    json.End();
  }
  json.End();
  json.End();
  // The hash is that of the text without blanks, so that formatting does not matter.
  const std::string compact = EmbeddableJson(content.str());
  return absl::StrCat("{\"format\":", JsonQuoted(kFormat), ",\n\"version\":", kVersion, ",\n\"certificate\":", compact,
                      ",\n\"sha256\":", JsonQuoted(Hex(age::Sha256(compact))), "}\n");
}

absl::StatusOr<Certificate> ParseCertificate(absl::string_view text) {
  const absl::StatusOr<JsonValue> file = ParseJson(text);
  PF_RETURN_IF_ERROR(Annotate(file.status(), "certificate"));
  const JsonValue* version = file->Find("version");
  if (TextMember(*file, "format").value_or("") != kFormat || version == nullptr || version->number != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("certificate: expected a '", kFormat, "', version ", kVersion));
  }
  PF_ASSIGN_OR_RETURN(const JsonValue* value, MemberOf(*file, "certificate", JsonValue::Kind::kObject));
  PF_ASSIGN_OR_RETURN(const std::string expected, TextMember(*file, "sha256"));
  const std::string found = Hex(age::Sha256(EmbeddableJson(value->raw)));
  if (found != expected) {
    return absl::DataLossError(
        absl::StrCat("certificate: it was altered: its hash is ", found, ", expected ", expected));
  }
  Certificate certificate;
  const std::pair<absl::string_view, std::string*> texts[] = {{"tool", &certificate.tool},
                                                              {"date", &certificate.date},
                                                              {"machine", &certificate.machine},
                                                              {"transforms", &certificate.transforms},
                                                              {"run", &certificate.run}};
  for (const auto& [key, member] : texts) {
    PF_ASSIGN_OR_RETURN(*member, TextMember(*value, key));
  }
  PF_ASSIGN_OR_RETURN(certificate.original, ParseFile(*value, "original"));
  PF_ASSIGN_OR_RETURN(certificate.model, ParseFile(*value, "model"));
  PF_ASSIGN_OR_RETURN(certificate.inputs, TextsMember(*value, "inputs"));
  PF_ASSIGN_OR_RETURN(certificate.outputs, TextsMember(*value, "outputs"));
  PF_ASSIGN_OR_RETURN(const std::string seed, TextMember(*value, "seed"));
  if (!absl::SimpleAtoi(seed, &certificate.seed)) return Malformed("seed");
  PF_ASSIGN_OR_RETURN(const JsonValue* measures, MemberOf(*value, "measures", JsonValue::Kind::kArray));
  for (const JsonValue& item : measures->items) {
    CertifiedMeasure& measure = certificate.measures.emplace_back();
    PF_ASSIGN_OR_RETURN(measure.inputs, TextMember(item, "inputs"));
    PF_ASSIGN_OR_RETURN(measure.relative_rms, NumberOf(item, "relative_rms"));
    PF_ASSIGN_OR_RETURN(measure.labelled_rows, CountOf(item, "labelled_rows"));
    PF_ASSIGN_OR_RETURN(measure.right, CountOf(item, "right"));
    PF_ASSIGN_OR_RETURN(measure.reference_right, CountOf(item, "reference_right"));
    PF_ASSIGN_OR_RETURN(measure.low, NumberOf(item, "low"));
    PF_ASSIGN_OR_RETURN(measure.high, NumberOf(item, "high"));
  }
  PF_ASSIGN_OR_RETURN(const JsonValue* proof, MemberOf(*value, "proof", JsonValue::Kind::kArray));
  for (const JsonValue& item : proof->items) {
    ProvenOutput& output = certificate.proof.emplace_back();
    PF_ASSIGN_OR_RETURN(output.name, TextMember(item, "output"));
    PF_ASSIGN_OR_RETURN(output.sha256, TextMember(item, "sha256"));
    PF_ASSIGN_OR_RETURN(output.norm, NumberOf(item, "norm"));
    PF_ASSIGN_OR_RETURN(const JsonValue* sketch, MemberOf(item, "sketch", JsonValue::Kind::kArray));
    for (const JsonValue& sum : sketch->items) {
      if (sum.kind != JsonValue::Kind::kNumber) return Malformed("sketch");
      output.sketch.push_back(sum.number);
    }
  }
  return certificate;
}

}  // namespace permafrost
