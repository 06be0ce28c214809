// The classes of models and sessions behind the C interface: a graph and its session, or, in a build for program files,
// a program and its session.
#ifndef PERMAFROST_EMBEDDING_SESSION_CHOICE_H_
#define PERMAFROST_EMBEDDING_SESSION_CHOICE_H_

#include "graph/graph.h"
#include "runtime_check/session.h"
#ifdef PERMAFROST_PROGRAM_FILES
#include "runtime_check/program_file/program_file.h"
#include "runtime_check/program_file/program_session.h"
#endif

namespace permafrost {

#ifdef PERMAFROST_PROGRAM_FILES
using EmbeddedModel = ProgramFile;
using EmbeddedSession = ProgramSession;
#else
using EmbeddedModel = Graph;
using EmbeddedSession = Session;
#endif

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_SESSION_CHOICE_H_
