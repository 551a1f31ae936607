// Any bytes as a pickled DataFrame or an archive of one: a table with a value for each row and
// column and times in order, or a TraceError.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "foretrace/error.h"
#include "fuzz/kept_file.h"
#include "import/data_frame/data_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const KeptFile file("data_frame");
  file.write(data, size);
  try {
    foretrace::may_be_timed_table(file.path());
    const foretrace::TimedTable table = foretrace::read_timed_table(file.path());
    if (table.values.size() != table.times.size() * table.columns.size()) std::abort();
    if (!std::ranges::is_sorted(table.times)) std::abort();
    for (std::size_t row = 0; row < table.times.size(); ++row) {
      for (std::size_t column = 0; column < table.columns.size(); ++column) table.at(row, column);
    }
  } catch (const foretrace::TraceError&) {
  }
  return 0;
}
