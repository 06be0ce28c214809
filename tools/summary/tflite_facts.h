// Prints what a TensorFlow Lite model says about itself: descriptions, normalisation, labels, signatures.
#ifndef PERMAFROST_TOOLS_SUMMARY_TFLITE_FACTS_H_
#define PERMAFROST_TOOLS_SUMMARY_TFLITE_FACTS_H_

#include "io/formats/tflite/metadata.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"

namespace permafrost {

void PrintTfliteFacts(const TfliteFacts& facts, const Console& console);

// Writes one object.
void WriteTfliteFacts(const TfliteFacts& facts, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_TFLITE_FACTS_H_
