// Checks the parts of the machine that the tools use: processor, memory and folders.
#ifndef PERMAFROST_TOOLS_DIAGNOSIS_MACHINE_CHECK_H_
#define PERMAFROST_TOOLS_DIAGNOSIS_MACHINE_CHECK_H_

#include <string>

#include "io/file_system.h"
#include "tools/diagnosis/finding.h"

namespace permafrost {

// Returns how this program was built and what it runs on.
Finding DescribeProgram();

// Instruction sets that the kernels use.
Finding CheckInstructionSets();

// Processors, the limit of a control group, and whether `num_threads` threads start. `root` precedes the paths of the
// system's files.
Finding CheckThreads(int num_threads, const std::string& root = "");

// Memory that can be allocated.
Finding CheckMemory();

// Memory that can be locked, for keys and decrypted models.
Finding CheckLockedMemory();

// Huge pages, for weights. `root` as above.
Finding CheckHugePages(const std::string& root = "");

// The folder for temporary files.
Finding CheckTemporaryFolder();

// A folder for --cache_dir: whether files in it can be written, and are trusted when they are read.
Finding CheckCacheFolder(const std::string& path, FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIAGNOSIS_MACHINE_CHECK_H_
