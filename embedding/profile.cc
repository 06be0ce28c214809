// Implements profiles for the C interface.
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "embedding/caller_error.h"
#include "embedding/handles.h"
#include "embedding/permafrost_runtime.h"
#include "graph/base/status.h"

using permafrost::CheckGiven;
using permafrost::Guarded;

pf_status pf_record_profile(pf_session* session, int32_t record, char* error, size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(session, "session"));
    const std::lock_guard<std::mutex> lock(session->mutex);
    if (record != 0) {
      session->profiler.Clear();
      session->summary = permafrost::ProfileSummary();
    }
    session->profiler.set_recording(record != 0);
    return absl::OkStatus();
  });
}

pf_status pf_get_profile(pf_session* session, pf_profile** profile, char* error, size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(session, "session"));
    PF_RETURN_IF_ERROR(CheckGiven(profile, "profile"));
    auto made = std::make_unique<pf_profile>();
    {
      const std::lock_guard<std::mutex> lock(session->mutex);
      made->rows = session->summary.Rows();
      made->num_runs = session->summary.num_runs();
      made->total_us = session->summary.wall_us().sum();
    }
    *profile = made.release();
    return absl::OkStatus();
  });
}

int64_t pf_profile_num_runs(const pf_profile* profile) { return profile == nullptr ? 0 : profile->num_runs; }
double pf_profile_total_us(const pf_profile* profile) { return profile == nullptr ? 0 : profile->total_us; }
size_t pf_profile_num_entries(const pf_profile* profile) { return profile == nullptr ? 0 : profile->rows.size(); }

pf_status pf_get_profile_entry(const pf_profile* profile, size_t index, pf_profile_entry* entry, char* error,
                               size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(profile, "profile"));
    PF_RETURN_IF_ERROR(CheckGiven(entry, "entry"));
    if (index >= profile->rows.size()) {
      return absl::InvalidArgumentError(absl::StrCat("no entry ", index, "; there are ", profile->rows.size()));
    }
    const permafrost::ProfileRow& row = profile->rows[index];
    pf_profile_entry made = {};
    made.name = row.shown.name.c_str();
    made.op = row.shown.type.c_str();
    made.num_calls = row.num_calls;
    made.total_us = row.total_us;
    made.least_us = row.least_us;
    made.output_bytes = row.memory;
    return permafrost::WriteStruct(made, entry);
  });
}

void pf_free_profile(pf_profile* profile) { delete profile; }
