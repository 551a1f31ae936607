#include "collect/recording.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "import/spool/spool_file.h"
#include "import/spool/spool_rows.h"
#include "support/folder.h"
#include "support/tested.h"

extern char** environ;

namespace foretrace {

namespace fs = std::filesystem;

namespace {

fs::path make_folder() {
  std::string name = (fs::temp_directory_path() / "foretrace-collect-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  return name;
}

std::vector<std::string> joined(const Environment& environment) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (environment.count(text.substr(0, text.find('='))) == 0) entries.push_back(text);
  }
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

int wait_for(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string name_of(spool::RowKind kind, const char* row) {
  switch (kind) {
    case spool::RowKind::kernel:
    case spool::RowKind::shaped_kernel:
      return "kernel";
    case spool::RowKind::transfer: {
      constexpr std::uint8_t kToPeer = 10;
      const auto transfer = row_as<spool::Transfer>(row);
      if (transfer.copy_kind == 0) return "fill";
      return transfer.copy_kind == kToPeer ? "peer_copy" : "copy";
    }
    case spool::RowKind::call:
      return row_as<spool::Call>(row).domain == 2 ? "runtime" : "driver";
    case spool::RowKind::sync:
      return "sync";
    case spool::RowKind::event:
      return "event";
    case spool::RowKind::device_memory:
      return "memory";
    case spool::RowKind::memory_pool:
      return "pool";
    case spool::RowKind::overhead:
      return "overhead";
    case spool::RowKind::device:
      return "device";
    case spool::RowKind::context:
      return "context";
    case spool::RowKind::stream:
      return "stream";
    default:
      return "other";
  }
}

/// The kinds that CUPTI writes, besides overhead.
constexpr const char* kCounted[] = {"kernel", "copy",    "peer_copy", "fill",   "runtime",
                                    "driver", "sync",    "event",     "memory", "pool",
                                    "device", "context", "stream"};

}  // namespace

Ended run_program(const std::vector<std::string>& command, const Environment& environment) {
  const fs::path folder = make_folder();
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  // The shell that runs the tests may ignore signals, and programs inherit that.
  posix_spawnattr_t attributes;
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = command;
  std::vector<std::string> variables = joined(environment);
  pid_t process = 0;
  const int error = posix_spawn(&process, words[0].c_str(), &files, &attributes,
                                pointers(words).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  Ended ended;
  if (error == 0) ended.status = wait_for(process);
  ended.out = contents_of(out);
  ended.err = contents_of(err);
  fs::remove_all(folder);
  return ended;
}

std::map<std::string, Emitted> emitted(const std::string& out) {
  std::map<std::string, Emitted> all;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string record, kind, word;
    Emitted counts;
    words >> record >> kind >> word >> counts.written >> word >> counts.dropped >> word >>
        counts.untimed >> word >> counts.bytes;
    if (record == "record" && words) all[kind] = counts;
  }
  return all;
}

std::int64_t told(const std::string& out, const std::string& key) {
  std::istringstream lines(out);
  std::int64_t number = -1;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key + " ", 0) == 0)
      number = std::strtoll(line.c_str() + key.size(), nullptr, 10);
  }
  return number;
}

Spooled count_rows(const std::string& path) {
  const SpoolFile file(path);
  Spooled spooled;
  spooled.header = file.header();
  const SpoolFile::Damage damage = file.each_chunk([&](const SpoolFile::Chunk& chunk) {
    if (chunk.kind != spool::ChunkKind::rows) return;
    each_row(chunk.body,
             [&](spool::RowKind kind, const char* row) { ++spooled.rows[name_of(kind, row)]; });
  });
  spooled.damaged_chunks = static_cast<std::uint64_t>(damage.chunks);
  return spooled;
}

Recording::Recording(const Recipe& recipe) : folder_(make_folder()), output_(recipe.output) {
  std::vector<std::string> command = {tested_program(FORETRACE_BINARY), "collect", "--keep-spool",
                                      "-o", path(output_)};
  command.insert(command.end(), recipe.options.begin(), recipe.options.end());
  command.push_back("--");
  command.push_back(recipe.app.empty() ? PLAYED_APP : recipe.app);
  command.insert(command.end(), recipe.program.begin(), recipe.program.end());
  Environment environment = recipe.environment;
  environment.try_emplace("FORETRACE_FLUSH_MS", "20");
  environment.try_emplace("LD_LIBRARY_PATH", recipe.cupti.empty() ? STANDIN_13 : recipe.cupti);
  // If the library is searched by name, another installed CUDA's is found first.
  if (recipe.cupti == STANDIN_12)
    environment.try_emplace("FORETRACE_CUPTI", STANDIN_12 "/libcupti.so.12");
  ended = run_program(command, environment);
  emitted = foretrace::emitted(ended.out);
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.path().extension() == ".spool") spools.push_back(entry.path().string());
  }
  std::sort(spools.begin(), spools.end());
}

Recording::~Recording() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

bool Recording::has_trace() const { return fs::exists(folder_ / output_); }

const Trace& Recording::trace() {
  if (trace_ == nullptr) {
    EXPECT_TRUE(has_trace()) << "there is no trace; on stderr: " << ended.err;
    trace_ = std::make_unique<Trace>(has_trace() ? read_ftrace(path(output_)) : Trace());
  }
  return *trace_;
}

Spooled Recording::spooled() const {
  if (spools.empty()) {
    ADD_FAILURE() << "there is no spool; on stderr: " << ended.err;
    return {};
  }
  return count_rows(spools[0]);
}

void expect_all_accounted(const Recording& recording) {
  const Spooled spooled = recording.spooled();
  std::uint64_t came = 0;
  std::uint64_t kept = 0;
  for (const char* kind : kCounted) {
    const auto counts = recording.emitted.find(kind);
    if (counts != recording.emitted.end()) came += counts->second.written + counts->second.dropped;
    const auto rows = spooled.rows.find(kind);
    if (rows == spooled.rows.end()) continue;
    kept += rows->second;
    EXPECT_LE(rows->second, counts == recording.emitted.end() ? 0 : counts->second.written) << kind;
  }
  const spool::Header& header = spooled.header;
  const std::uint64_t lost = header.dropped_by_cupti + header.discarded_records + header.untimed +
                             header.lost_on_disk + header.unknown_records;
  EXPECT_GT(came, 0U) << recording.ended.out << recording.ended.err;
  // The count of unwritten rows includes rows that do not come from CUPTI (readings of clocks,
  // names of calls, edges of the window), and overhead, which is left out above.
  std::uint64_t other = 0;
  if (header.lost_on_disk != 0) {
    constexpr std::uint64_t kBookkeeping = 200;
    const auto overhead = recording.emitted.find("overhead");
    other = kBookkeeping + (overhead == recording.emitted.end() ? 0 : 2 * overhead->second.written);
  }
  EXPECT_LE(came, kept + lost);
  EXPECT_GE(came + other, kept + lost)
      << "kept " << kept << ", dropped by CUPTI " << header.dropped_by_cupti << ", discarded "
      << header.discarded_records << ", untimed " << header.untimed << ", lost on disk "
      << header.lost_on_disk << '\n'
      << recording.ended.out;
}

void expect_all_there(const Recording& recording) {
  const Spooled spooled = recording.spooled();
  for (const char* kind : kCounted) {
    const auto counts = recording.emitted.find(kind);
    const auto rows = spooled.rows.find(kind);
    EXPECT_EQ(counts == recording.emitted.end() ? 0 : counts->second.written,
              rows == spooled.rows.end() ? 0 : rows->second)
        << kind << " of\n"
        << recording.ended.out;
  }
  const spool::Header& header = spooled.header;
  EXPECT_EQ(header.state, spool::State::finished);
  EXPECT_EQ(header.dropped_by_cupti + header.discarded_records + header.untimed +
                header.lost_on_disk + header.unknown_records,
            0U);
  EXPECT_EQ(spooled.damaged_chunks, 0U);
}

std::map<std::string, int> kernels_of(const Trace& trace) {
  std::map<std::string, int> names;
  for (const DeviceRecord& record : trace.devices) ++names[std::string(trace.names[record.name])];
  return names;
}

std::map<std::string, int> host_names_of(const Trace& trace, HostKind kind) {
  std::map<std::string, int> names;
  for (const HostRecord& record : trace.hosts) {
    if (record.kind == kind) ++names[std::string(trace.names[record.name])];
  }
  return names;
}

std::map<std::string, std::int64_t> notes_of(const Trace& trace) {
  std::map<std::string, std::int64_t> notes;
  for (const Note& note : trace.notes.all()) notes[note.text] += note.count;
  return notes;
}

}  // namespace foretrace
