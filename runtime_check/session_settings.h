// The settings of a session that all interfaces share. Each is declared once, for the flags of the tools, the fields of
// pf_session_options and the arguments of Python's Model.session.
#ifndef PERMAFROST_RUNTIME_CHECK_SESSION_SETTINGS_H_
#define PERMAFROST_RUNTIME_CHECK_SESSION_SETTINGS_H_

#include "runtime_check/threads/processors.h"
#include "runtime_check/threads/thread_pool.h"

// Settings that are integers of 0 or more. A row is COUNT(field, flag, preset, most, at_zero, help):
//   field    name in SessionOptions and in pf_session_options, where 0 and 1 are the same
//   flag     name in the tools and in Python
//   preset   default value of the flag
//   most     largest value that is accepted
//   at_zero  value of SessionOptions if the flag is 0: an expression in which `options` has the rows above set
//   help     help text of the flag
// A new row also needs the field in embedding/permafrost_runtime.{h,hpp} and the argument in
// python/permafrost/model.py; tests iterate over the rows.
#define PERMAFROST_SESSION_COUNTS(COUNT)                                                      \
  COUNT(num_threads, threads, 0, ThreadPool::kMostThreads, AvailableProcessors(),             \
        "Number of threads; 0: one per core.")                                                \
  COUNT(inter_op_threads, inter_op_threads, 1, ThreadPool::kMostThreads, options.num_threads, \
        "Maximum number of nodes that run at the same time, each on one thread; 0: as many as --threads.")

// Settings that are true or false, false by default. A row is SWITCH(field, flag, help):
//   field    name in DelegateOptions and in pf_session_options, where it is 0 or 1
//   flag     name in the tools and in Python
//   help     help text of the flag
// A new row needs the same places as a count, and the field in runtime_check/delegates/delegate_options.h.
#define PERMAFROST_SESSION_SWITCHES(SWITCH) \
  SWITCH(no_winograd, no_winograd,          \
         "Compute all convolutions of the onednn delegate directly, none by Winograd's method.")

#endif  // PERMAFROST_RUNTIME_CHECK_SESSION_SETTINGS_H_
