#include "import/nsys/exported_report.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/shown.h"
#include "foretrace/error.h"

extern char** environ;

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxExportBytes = std::int64_t{16} << 30U;
constexpr auto kMaxExportTime = std::chrono::minutes(10);
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

bool is_report(const std::string& path) {
  std::error_code ignored;
  return (path.ends_with(".nsys-rep") || path.ends_with(".qdrep")) &&
         fs::is_regular_file(path, ignored);
}

/// The program in a folder of the PATH; empty if there is none. Folders that depend on where we
/// are do not count: a recording may lie beside a program of that name.
std::string in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path(folder) / name;
    std::error_code ignored;
    if (program.is_absolute() && fs::is_regular_file(program, ignored) &&
        ::access(program.c_str(), X_OK) == 0)
      return program.string();
  }
  return {};
}

pid_t spawn(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = 0;
  const int error =
      ::posix_spawn(&process, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw TraceError(fmt::format("{}: {}", words[0], std::strerror(error)));
  return process;
}

void end(pid_t process) {
  ::kill(process, SIGKILL);
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Waits for the process. Kills it, and throws TraceError, if `why_not` returns a reason.
template <class WhyNot>
int status_of(pid_t process, const WhyNot& why_not) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) throw TraceError(std::strerror(errno));
    try {
      if (const std::string reason = why_not(); !reason.empty()) throw TraceError(reason);
    } catch (...) {
      if (ended != process) end(process);
      throw;
    }
    if (ended == process) return status;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

// Delegates, so that the folder is removed whatever is thrown.
ExportedReport::ExportedReport(const std::string& path, const ImportOptions& options)
    : ExportedReport() {
  if (!options.may_run) return;
  report_ = path;
  const std::size_t colon = path.rfind(':');
  if (colon != std::string::npos && !is_report(path)) {
    report_ = path.substr(0, colon);
    member_ = path.substr(colon);
  }
  if (!is_report(report_)) return;
  const std::string program = in_path("nsys");
  if (program.empty()) return;
  folder_ = (fs::temp_directory_path() / "foretrace-nsys-XXXXXX").string();
  if (::mkdtemp(folder_.data()) == nullptr) {
    const std::string reason = std::strerror(errno);
    throw TraceError(fmt::format("{}: {}", std::exchange(folder_, {}), reason));
  }
  database_.emplace(folder_, "report.sqlite", 0600);
  log_.emplace(folder_, "log", 0600);
  try {
    run(program, options.max_unpacked > 0 ? options.max_unpacked : kMaxExportBytes);
  } catch (const TraceError& error) {
    throw TraceError(
        fmt::format("{}: cannot be exported by {}: {}", report_, program, error.what()));
  }
}

ExportedReport::~ExportedReport() {
  database_.reset(), log_.reset();
  std::error_code ignored;
  if (exists()) fs::remove_all(folder_, ignored);
}

void ExportedReport::run(const std::string& program, std::int64_t most_bytes) const {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t process = spawn({program, "export", "--type", "sqlite", "--force-overwrite", "true",
                               "--output", database(), fs::absolute(report_).string()},
                              log_->path());
  const int status = status_of(process, [&]() -> std::string {
    std::error_code ignored;
    std::int64_t bytes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored)) {
      const std::uintmax_t size = entry.file_size(ignored);
      if (!ignored) bytes += static_cast<std::int64_t>(size);
    }
    if (bytes > most_bytes)
      return fmt::format("it writes more than {} (--max-unpacked)", to_text(Bytes{most_bytes}));
    if (std::chrono::steady_clock::now() - begin > kMaxExportTime)
      return "it takes more than 10 minutes";
    return {};
  });
  std::error_code ignored;
  if (status == 0 && fs::file_size(database(), ignored) > 0 && !ignored) return;
  const std::string said = last_line_of_log();
  throw TraceError(!said.empty() ? said
                   : status == 0 ? "it wrote no database"
                                 : fmt::format("it ended with status {}", status));
}

std::string ExportedReport::last_line_of_log() const {
  constexpr std::size_t kLongest = 4096;
  std::ifstream log(log_->path());
  std::string last;
  for (std::string line; std::getline(log, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line.substr(0, kLongest);
  }
  return shown(last);
}

ImportOptions ExportedReport::reading(ImportOptions options) {
  options.cache_folder.clear();
  options.may_run = false;
  return options;
}

std::string ExportedReport::renamed(std::string text) const {
  const std::string name = database();
  for (std::size_t at = text.find(name); at != std::string::npos;
       at = text.find(name, at + report_.size()))
    text.replace(at, name.size(), report_);
  return text;
}

void ExportedReport::rename(Trace& trace) const {
  for (SourceFile& file : trace.files) file.path = renamed(std::move(file.path));
  trace.notes.add(Severity::info, "exported from the report by nsys", report_);
}

}  // namespace foretrace
