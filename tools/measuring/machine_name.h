// Describes the machine and the moment of a measurement.
#ifndef PERMAFROST_TOOLS_MEASURING_MACHINE_NAME_H_
#define PERMAFROST_TOOLS_MEASURING_MACHINE_NAME_H_

#include <string>

namespace permafrost {

// Returns the processor, the number of its cores available to this process, and the system: "AMD EPYC 9B14, 2 cores,
// Linux 6.1.0". Parts that the system does not name are left out.
std::string MachineName();

// Returns the date and time in UTC, "2026-03-01 12:00 UTC". The environment variable SOURCE_DATE_EPOCH (seconds since
// 1970) replaces the clock, for reproducible output.
std::string MeasurementDate();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_MACHINE_NAME_H_
