// Starts the program to be recorded, with an environment that makes it load our libraries.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "foretrace/collect.h"
#include "foretrace/error.h"

extern char** environ;

namespace foretrace {

namespace {

namespace fs = std::filesystem;

/// Finds a file or folder of ours: in the folder that FORETRACE_LIBRARIES names, next to the
/// program in a build folder, or in lib/foretrace once installed. Throws Error if it is in none of
/// them.
std::string find_installed(const std::string& name) {
  std::error_code error;
  std::vector<fs::path> places;
  if (const char* given = std::getenv("FORETRACE_LIBRARIES")) places.emplace_back(given);
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back(program.parent_path());
    places.push_back(program.parent_path().parent_path() / "lib" / "foretrace");
  }
  for (const fs::path& place : places) {
    if (fs::exists(place / name, error)) return fs::canonical(place / name).string();
  }
  throw Error("cannot find " + name +
              ", which must be next to the program foretrace or in ../lib/foretrace");
}

/// A path of a library that LD_PRELOAD can contain. The loader splits LD_PRELOAD at blanks and
/// colons; if the path has any, this is a link in /tmp, which lives as long as the object.
class PreloadPath {
 public:
  explicit PreloadPath(const std::string& library) : path_(library) {
    if (path_.find_first_of(" :") == std::string::npos) return;
    std::string folder = "/tmp/foretrace-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) throw Error("cannot create a folder in /tmp");
    folder_ = folder;
    path_ = folder_ + "/" + fs::path(library).filename().string();
    fs::create_symlink(library, path_);
  }
  PreloadPath(const PreloadPath&) = delete;
  PreloadPath& operator=(const PreloadPath&) = delete;
  ~PreloadPath() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string folder_;
};

class Environment {
 public:
  Environment() {
    for (char** entry = environ; *entry != nullptr; ++entry) entries_.emplace_back(*entry);
  }

  void set(const std::string& name, const std::string& value) {
    std::erase_if(entries_, [&](const std::string& entry) {
      return entry.compare(0, name.size() + 1, name + "=") == 0;
    });
    entries_.push_back(name + "=" + value);
  }

  /// Puts the value before the user's own value of this variable.
  void prepend(const std::string& name, const std::string& value, char separator) {
    const char* old = std::getenv(name.c_str());
    set(name, old == nullptr || *old == '\0' ? value : value + separator + old);
  }

  std::vector<char*> pointers() {
    std::vector<char*> all;
    for (std::string& entry : entries_) all.push_back(entry.data());
    all.push_back(nullptr);
    return all;
  }

 private:
  std::vector<std::string> entries_;
};

Environment environment_of(const std::string& folder, const CollectOptions& options,
                           const PreloadPath& preload) {
  Environment environment;
  const std::string library = find_installed("libforetrace_collect.so");
  environment.set("CUDA_INJECTION64_PATH", library);
  environment.set("NVTX_INJECTION64_PATH", library);
  environment.prepend("LD_PRELOAD", preload.path(), ':');
  environment.set("FORETRACE_SPOOL", folder);
  std::string record;
  for (const std::string& kind : options.record) record += (record.empty() ? "" : ",") + kind;
  environment.set("FORETRACE_RECORD", record);
  environment.set("FORETRACE_START_AFTER", std::to_string(options.start_after.count()));
  environment.set("FORETRACE_DURATION", std::to_string(options.duration.count()));
  environment.set("FORETRACE_STEPS", options.steps ? std::to_string(options.steps->first) + "-" +
                                                         std::to_string(options.steps->last)
                                                   : "");
  environment.set("FORETRACE_PROFILER_API", options.profiler_api ? "1" : "0");
  if (options.python || options.ops || options.memory_history) {
    environment.prepend("PYTHONPATH", find_installed("site"), ':');
    environment.set("FORETRACE_MARKS", options.python ? "1" : "0");
    environment.set("FORETRACE_OPS", options.ops ? "1" : "0");
    environment.set("FORETRACE_MEMORY_HISTORY", options.memory_history ? "1" : "0");
    environment.set("FORETRACE_SNAPSHOT", folder + "/snapshot");
  }
  return environment;
}

/// While this object lives, signals from the keyboard reach the program but do not end us, because
/// we still have to save its recording.
class LeaveSignalsToProgram {
 public:
  LeaveSignalsToProgram() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      struct sigaction ignore {};
      ignore.sa_handler = SIG_IGN;
      sigaction(kSignals[i], &ignore, &before_[i]);
    }
  }
  LeaveSignalsToProgram(const LeaveSignalsToProgram&) = delete;
  LeaveSignalsToProgram& operator=(const LeaveSignalsToProgram&) = delete;
  ~LeaveSignalsToProgram() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      sigaction(kSignals[i], &before_[i], nullptr);
  }

  /// Returns the signals that get their default action in the program: those that we were not
  /// started to ignore.
  sigset_t defaults() const {
    sigset_t set;
    sigemptyset(&set);
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      if (before_[i].sa_handler != SIG_IGN) sigaddset(&set, kSignals[i]);
    }
    return set;
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGQUIT};
  struct sigaction before_[std::size(kSignals)] = {};
};

/// Signals from a scheduler, from `timeout` or from the user, which are meant for the program and
/// passed on to it. Signals that were ignored at the start, as under nohup, stay ignored in both.
constexpr int kForwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

volatile sig_atomic_t child = 0;

extern "C" void forward_signal(int signal) {
  const int before = errno;
  if (child > 0) kill(static_cast<pid_t>(child), signal);
  errno = before;
}

/// While this object lives, these signals are blocked, so that none is lost between the start of
/// the program and the moment its process number is known.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kForwarded) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_ = {};
};

class ForwardedSignals {
 public:
  ForwardedSignals() {
    for (std::size_t i = 0; i < std::size(kForwarded); ++i) {
      struct sigaction action {};
      action.sa_handler = forward_signal;
      sigaction(kForwarded[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kForwarded[i], &action, nullptr);
    }
  }
  ForwardedSignals(const ForwardedSignals&) = delete;
  ForwardedSignals& operator=(const ForwardedSignals&) = delete;
  ~ForwardedSignals() {
    for (std::size_t i = 0; i < std::size(kForwarded); ++i)
      sigaction(kForwarded[i], &before_[i], nullptr);
  }

 private:
  struct sigaction before_[std::size(kForwarded)] = {};
};

/// Starts the program with the signal actions and the signal mask that we were started with.
/// Returns its process number. Throws Error if it cannot be started.
pid_t start(const std::vector<std::string>& command, Environment environment,
            const sigset_t& defaults, const sigset_t& mask) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0], nullptr, &attributes, arguments.data(),
                                 environment.pointers().data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw Error("cannot start '" + command[0] + "': " + std::strerror(error));
  return process;
}

int wait_for(pid_t process) {
  siginfo_t ended;
  while (waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT) < 0 &&
         errno == EINTR) {
  }
  // Once the process has been waited for, its number may be given to another one.
  child = 0;
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<std::string> files_ending_in(const std::string& folder, std::string_view ending) {
  std::vector<std::string> files;
  std::error_code ignored;  // folder_is_gone() reports what the program did to the folder.
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().string().ends_with(ending)) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Whether the loader would find the driver's library. It is not loaded to learn this, because a
/// program that is linked statically cannot load any.
bool finds_driver() {
  constexpr std::string_view kDriver = "libcuda.so.1";
  const char* path = std::getenv("LD_LIBRARY_PATH");
  std::istringstream folders(std::string(path == nullptr ? "" : path) +
                             ":/lib64:/usr/lib64:/lib:/usr/lib");
  std::error_code ignored;
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && fs::exists(fs::path(folder) / kDriver, ignored)) return true;
  }
  std::ostringstream cache;
  cache << std::ifstream("/etc/ld.so.cache", std::ios::binary).rdbuf();
  return cache.str().find(kDriver) != std::string::npos;
}

}  // namespace

const std::vector<std::string_view>& recordable() {
  static const std::vector<std::string_view> kinds = {
      "kernels", "api", "sync", "graphs", "nvtx", "memory", "device_memory", "overhead"};
  return kinds;
}

void check(const CollectOptions& options) {
  for (const std::string& kind : options.record) {
    if (std::find(recordable().begin(), recordable().end(), kind) == recordable().end())
      throw Error("--record: there is no '" + kind + "'" + did_you_mean(kind, recordable()));
  }
  if (options.start_after < 0ns || options.duration < 0ns)
    throw Error("--start-after and --duration must be 0 or more");
  if ((options.start_after > 0ns) + options.steps.has_value() + options.profiler_api > 1)
    throw Error("only one of --start-after, --steps and --profiler-api can be given");
}

CollectedRun collect(const std::vector<std::string>& command, const std::string& folder,
                     const CollectOptions& options) {
  if (command.empty()) throw Error("there must be a program to record, after --");
  const PreloadPath preload(find_installed("libforetrace_preload.so"));
  const LeaveSignalsToProgram keyboard;
  const ForwardedSignals forwarded;
  pid_t process = 0;
  {
    const BlockedSignals signals;
    process = start(command, environment_of(fs::absolute(folder).string(), options, preload),
                    keyboard.defaults(), signals.before());
    child = process;
  }
  CollectedRun run;
  run.status = wait_for(process);
  std::error_code ignored;
  run.folder_is_gone = !fs::is_directory(folder, ignored);
  run.spools = files_ending_in(folder, ".spool");
  run.snapshots = files_ending_in(folder, ".pickle");
  run.has_driver = finds_driver();
  return run;
}

}  // namespace foretrace
