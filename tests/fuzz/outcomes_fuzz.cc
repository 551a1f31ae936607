// Any text as a ledger of outcomes, as a list of pairs, or as the prediction that `verify` is
// given: an Error, or outcomes that are written and read back.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "foretrace/error.h"
#include "foretrace/ledger.h"
#include "foretrace/question/pairs.h"
#include "foretrace/question/verify.h"

namespace {

using namespace foretrace;

std::string outcomes_of_this_process() {
  std::string name =
      (std::filesystem::temp_directory_path() / "foretrace-fuzz-XXXXXX.json").string();
  ::mkstemps(name.data(), 5);
  return name;
}

template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void read_back(const std::string& path) {
  const auto outcomes = read_ledger(path);
  write_ledger(path, outcomes);
  if (ledger_json(read_ledger(path)) != ledger_json(outcomes)) std::abort();
  append_to_ledger(path, {outcome_of({"amp"}, Nanoseconds(96), Nanoseconds(100))});
  if (read_ledger(path).size() != outcomes.size() + 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = outcomes_of_this_process();
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try_to([&] { read_pairs(path); });
  // The prediction is read before the recording, which does not exist.
  try_to([&] { verify(path, path + ".measured"); });
  try_to([&] { read_back(path); });
  return 0;
}
