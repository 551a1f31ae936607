#include "question/common/reading.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>

#include "base/free_memory.h"
#include "base/shown.h"
#include "foretrace/error.h"
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

void Reading::describe(Fields& fields) {
  fields.as({.value = "FOLDER"})
      .path("capture", capture_,
            "Recordings of the capture of CUDA graphs (vLLM's capture_traces), which give the "
            "kernels of replayed graphs ops and shapes; found by itself beside the trace");
  fields.flag("no_cache", no_cache_,
              "Do not use or keep cached copies of traces that are slow to read");
  fields.flag("no_run", no_run_,
              "Run no other program: do not export a .nsys-rep with nsys, but refuse it");
  fields.as({.value = "FOLDER"})
      .path("cache_dir", cache_folder_,
            "Where to keep cached copies; by default foretrace in $XDG_CACHE_HOME or ~/.cache");
  fields.optional_bytes("max_unpacked", max_unpacked_,
                        "Refuse a compressed trace that unpacks to more (default: 16GiB or, above "
                        "256MiB, 200 times its size)",
                        Bytes{1});
}

void Reading::describe_part(Fields& fields) {
  fields.as({.value = "A-B"})
      .text("steps", steps_,
            "Only these steps, as the profiler numbered them (3 or 3-5); counted from 0 in a trace "
            "without step markers");
  fields.as({.value = "A-B"})
      .text("window", window_,
            "Only what happened between two times since the beginning of the trace (100ms-250ms), "
            "and the work launched then");
}

void Reading::describe_execution_trace(Fields& fields) {
  fields.path("execution_trace", execution_trace_,
              "PyTorch's execution trace of the same run, or a folder with those of all ranks; "
              "adds what each op reads and writes");
}

Part Reading::part() const {
  if (!steps_.empty() && !window_.empty()) throw Error("--steps excludes --window");
  Part part;
  if (!steps_.empty()) part.steps = within("--steps", [&] { return parse_steps(steps_); });
  if (!window_.empty()) part.window = within("--window", [&] { return parse_window(window_); });
  return part;
}

ImportOptions Reading::whole() const {
  ImportOptions options{
      .execution_trace = execution_trace_, .capture = capture_, .may_run = !no_run_};
  if (!no_cache_)
    options.cache_folder = cache_folder_.empty() ? default_cache_folder() : cache_folder_;
  if (max_unpacked_) options.max_unpacked = max_unpacked_->count;
  return options;
}

ImportOptions Reading::options(const Session& session) const {
  ImportOptions options = whole();
  options.may_run = options.may_run && session.may_run();
  options.part = part();
  return options;
}

std::vector<Trace> Reading::read_whole(const std::string& path) const {
  return import_all(path, whole());
}

void describe_trace(Fields& fields, std::string& trace, std::string_view help) {
  fields.as({.value = "TRACE", .is_positional = true, .is_required = true})
      .text("trace", trace, help);
}

void warn_if_large(const std::string& path, const ImportOptions& reading, Session& session) {
  if (!reading.part.is_all()) return;
  const std::int64_t records = likely_records(path);
  if (records < kManyRecords) return;
  const Bytes needed{records * kMemoryOfRecord};
  const std::optional<Bytes> left = free_memory();
  session.mention(fmt::format(
      "{} is large: this may take up to {} and {} of memory{}; --steps 3-5 or --window 0s-2s reads "
      "only a part of it",
      shown(path), to_text(kTimeOfRecord * records), to_text(needed),
      left && needed > *left ? fmt::format(", and only {} are free", to_text(*left)) : ""));
}

}  // namespace foretrace
