#include "cli/options/options.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/files/new_file.h"
#include "base/free_memory.h"
#include "base/json_text.h"
#include "base/shown.h"
#include "base/wording.h"
#include "foretrace/answer/advice.h"
#include "foretrace/error.h"
#include "foretrace/report.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

/// Rough cost of one record: bytes of JSON, compressed and plain, and the memory and time until
/// there is an answer. Measured on recordings of launches, ops and kernels.
constexpr std::int64_t kPackedRecord = 15, kPlainRecord = 200, kMemoryOfRecord = 550;
constexpr Nanoseconds kTimeOfRecord{4000};
/// With fewer records, an answer takes less than half a minute.
constexpr std::int64_t kManyRecords = 5'000'000;

/// Estimates the number of records from the size of a file, or of the largest file in a folder.
std::int64_t likely_records(const std::string& path) {
  const auto of_file = [](const fs::path& file) {
    std::error_code ignored;
    const std::uintmax_t size = fs::file_size(file, ignored);
    if (ignored) return std::int64_t{0};
    const std::string ending = file.extension().string();
    const bool packed = ending == ".gz" || ending == ".zst" || ending == ".tgz" ||
                        ending == ".zip" || ending == ".xz" || ending == ".ftrace";
    return static_cast<std::int64_t>(size) / (packed ? kPackedRecord : kPlainRecord);
  };
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return of_file(path);
  std::int64_t records = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored))
    records = std::max(records, of_file(entry.path()));
  return records;
}

}  // namespace

void ReadingOptions::add_to(CLI::App& command) {
  command.add_flag("--no-cache", no_cache_,
                   "Do not use or keep cached copies of traces that are slow to read");
  command.add_flag("--no-run", no_run_,
                   "Run no other program: do not export a .nsys-rep with nsys, but refuse it");
  command
      .add_option(
          "--cache-dir", cache_folder_,
          "Where to keep cached copies; by default foretrace in $XDG_CACHE_HOME or ~/.cache")
      ->type_name("FOLDER");
  command
      .add_option("--max-unpacked", max_unpacked_,
                  "Refuse a compressed trace that unpacks to more (default: 16GiB or, above "
                  "256MiB, 200 times its size)")
      ->type_name("SIZE");
}

void ReadingOptions::add_execution_trace_to(CLI::App& command) {
  command
      .add_option("--execution-trace", execution_trace_,
                  "PyTorch's execution trace of the same run, or a folder with those of all ranks; "
                  "adds what each op reads and writes")
      ->type_name("FILE");
}

ImportOptions ReadingOptions::options() const {
  ImportOptions options{
      .execution_trace = execution_trace_, .may_run = !no_run_, .part = part_.part()};
  if (!no_cache_)
    options.cache_folder = cache_folder_.empty() ? default_cache_folder() : cache_folder_;
  if (max_unpacked_.empty()) return options;
  options.max_unpacked = within("--max-unpacked", [&] {
    const Bytes most = parse_bytes(max_unpacked_);
    if (most.count < 1) throw Error("must be more than 0B, got " + max_unpacked_);
    return most.count;
  });
  return options;
}

void warn_if_large(const std::string& path, const ImportOptions& reading, bool quiet) {
  if (quiet || !reading.part.is_all()) return;
  const std::int64_t records = likely_records(path);
  if (records < kManyRecords) return;
  const Bytes needed{records * kMemoryOfRecord};
  const std::optional<Bytes> left = free_memory();
  std::cerr << "foretrace: " << shown(path) << " is large: this may take up to "
            << to_text(kTimeOfRecord * records) << " and " << to_text(needed) << " of memory"
            << (left && needed > *left ? fmt::format(", and only {} are free", to_text(*left)) : "")
            << "; --steps 3-5 or --window 0s-2s reads only a part of it\n";
}

void OutputOption::add_to(CLI::App& command) {
  add_to(command, "--output,-o", "Write the result to this file instead of standard output");
}

void OutputOption::add_to(CLI::App& command, const std::string& name, const std::string& help) {
  names_output(command.add_option(name, path, help));
}

void OutputOption::write(Session& session, const std::function<void(std::ostream&)>& answer) const {
  if (path.empty()) return answer(session.out);
  write_new_file(path, [&](std::ostream& file) {
    const EscapedOutput wall(file);
    answer(file);
  });
}

void FormatOption::add_to(CLI::App& command) {
  command.add_option("--format", chosen, "Format of the result")->type_name(joined(names, "|"));
}

void FormatOption::check() const {
  if (std::find(names.begin(), names.end(), chosen) != names.end()) return;
  throw Error(fmt::format("--format: must be one of {}, got '{}'{}", joined(names), chosen,
                          did_you_mean(chosen, names)));
}

void AnswerOptions::add_to(CLI::App& command) {
  format.add_to(command);
  command.add_flag("--quiet", quiet, "Show no progress");
  output.add_to(command);
  reading.add_to(command);
}

void add_trace(CLI::App& command, std::string& trace) {
  command.add_option("TRACE", trace, "A trace, or a folder with the traces of all ranks")
      ->required();
}

void print_json(const nlohmann::json& value, std::ostream& out) {
  out << indented_json(value) << '\n';
}

template <class Answer>
void print_answer(const Answer& answer, std::ostream& out) {
  print_json(to_json(answer), out);
}
template void print_answer(const Advice&, std::ostream&);
template void print_answer(const Curve&, std::ostream&);
template void print_answer(const DiffReport&, std::ostream&);
template void print_answer(const InputReport&, std::ostream&);
template void print_answer(const MemoryReport&, std::ostream&);
template void print_answer(const SweepReport&, std::ostream&);
template void print_answer(const Verification&, std::ostream&);

}  // namespace foretrace
