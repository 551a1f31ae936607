// Any bytes as a log of NCCL Inspector: operations that are possible, and notes on the rest.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "foretrace/error.h"
#include "fuzz/kept_file.h"
#include "import/inspector/inspector.h"

namespace {

bool is_possible(const foretrace::InspectedOperation& one) {
  return one.ranks >= 1 && one.rank < one.ranks && one.nodes >= 1 && one.nodes <= one.ranks &&
         one.time >= foretrace::Nanoseconds(0) && !one.operation.empty() &&
         std::isfinite(one.bus_bandwidth) && one.bus_bandwidth >= 0 &&
         one.number.value_or(0) >= 0 && one.bytes.value_or(foretrace::Bytes{}).count >= 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const KeptFile file("inspector");
  file.write(data, size);
  const bool is_log = foretrace::holds_inspector_log(file.path());
  foretrace::Notes notes;
  std::size_t found = 0;
  try {
    foretrace::read_inspector_log(file.path(), notes,
                                  [&](const foretrace::InspectedOperation& one) {
                                    if (!is_possible(one)) std::abort();
                                    ++found;
                                  });
  } catch (const foretrace::TraceError&) {
  }
  if (found > 0 && !is_log) std::abort();
  return 0;
}
