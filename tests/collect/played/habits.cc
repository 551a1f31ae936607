// Programs that do unusual things to their process, in which we are guests, and print what they
// find.

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "collect/played/cuda.h"
#include "collect/played/scripts.h"

namespace played {

namespace {

constexpr int kMaxSignals = 65;

/// Makes a system call fail with EPERM from here on, as a sandbox does.
void forbid(long call) {
  const sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(rules)),
                           const_cast<sock_filter*>(rules)};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) std::printf("no sandbox\n");
}

void forbid_all(const std::string& what) {
  if (what == "close_range" || what == "both") forbid(SYS_close_range);
  if (what == "unshare" || what == "both") forbid(SYS_unshare);
}

std::vector<int> write_data(const std::string& folder) {
  constexpr int kFiles = 8;
  constexpr std::size_t kBytes = 200'000;
  std::vector<int> files;
  for (int i = 0; i < kFiles; ++i) {
    const std::string path = folder + "/data" + std::to_string(i);
    files.push_back(open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0644));
    const std::string text(kBytes, static_cast<char>('a' + i));
    if (write(files.back(), text.data(), kBytes) != static_cast<ssize_t>(kBytes)) std::exit(9);
  }
  return files;
}

int open_files(const std::vector<int>& files) {
  int count = 0;
  for (const int file : files) count += fcntl(file, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

/// Runs 500 steps, in between with some flushes.
void run_for_a_while(bool with_flushes = true) {
  for (int i = 0; i < 10; ++i) {
    run_steps(50);
    if (with_flushes) wait_for_delivery();
  }
}

std::string dispositions() {
  std::string all;
  for (int signal = 1; signal < kMaxSignals; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    const bool plain = action.sa_handler == SIG_DFL;
    all += plain ? 'd' : action.sa_handler == SIG_IGN ? 'i' : 'h';
  }
  return all;
}

std::string mask() {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  std::string all;
  for (int signal = 1; signal < kMaxSignals; ++signal)
    all += sigismember(&now, signal) == 1 ? 'b' : '.';
  return all;
}

std::atomic<int> handled{0};
std::atomic<int> handled_elsewhere{0};

void handle(int) {
  ++handled;
  if (syscall(SYS_gettid) != getpid()) ++handled_elsewhere;
}

std::string field_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) == 0) return line.substr(line.find_first_not_of(" \t", key.size()));
  }
  return {};
}

/// Prints how many threads are not the program's, and how many of these block every signal that can
/// be blocked.
void report_threads() {
  // All signals except KILL, STOP and the two that the C library reserves.
  const std::string blocked = "fffffffe7ffbfeff";
  int ours = 0;
  int deaf = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* task = tasks == nullptr ? nullptr : readdir(tasks)) {
    const std::string status = std::string("/proc/self/task/") + task->d_name + "/status";
    if (field_of(status, "Name:").rfind("foretrace", 0) != 0) continue;
    ++ours;
    deaf += field_of(status, "SigBlk:") == blocked ? 1 : 0;
  }
  if (tasks != nullptr) closedir(tasks);
  std::printf("ours %d\ndeaf %d\n", ours, deaf);
}

}  // namespace

/// Arguments: FOLDER, the lowest number to close, the calls that a sandbox forbids (none,
/// close_range, unshare, both), and "full" to have no room for another descriptor before anything
/// is delivered.
int play_closes(const Arguments& arguments) {
  if (arguments.size() < 3) return 64;
  forbid_all(arguments[2]);
  start_cuda();
  run_steps(20);
  const bool full = arguments.size() > 3;
  if (!full) wait_for_delivery();
  std::fflush(stdout);
  const auto lowest = static_cast<int>(number(arguments, 1, 3));
  for (int i = lowest; i < 65536; ++i) close(i);
  const std::vector<int> files = write_data(arguments[0]);
  const auto end = static_cast<rlim_t>(files.back() + 1);
  const rlimit limit{end, end};
  if (full) setrlimit(RLIMIT_NOFILE, &limit);
  run_for_a_while(!full);
  const pid_t child = fork();
  if (child == 0) _exit(open_files(files));
  int status = 0;
  waitpid(child, &status, 0);
  if (lowest <= STDOUT_FILENO) return open_files(files) == 8 ? 0 : 9;
  std::printf("kept %d\nkept_by_child %d\n", open_files(files), WEXITSTATUS(status));
  report();
  return 0;
}

/// The program puts its own file at the number of standard error, before or after its first use of
/// CUDA.
int play_stderr(const Arguments& arguments) {
  if (arguments.size() < 2) return 64;
  const bool before = arguments[1] == "before";
  const auto take = [&] {
    close(STDERR_FILENO);
    if (open((arguments[0] + "/data").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644) != STDERR_FILENO)
      std::exit(9);
  };
  if (before) take();
  start_cuda();
  if (!before) take();
  run_steps(5);
  report();
  return 0;
}

/// Uses timers and children of its own, and prints whether its handlers and masks are unchanged.
int play_signals(const Arguments&) {
  for (const int signal : {SIGALRM, SIGCHLD, SIGUSR2}) {
    struct sigaction action {};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, SIGWINCH);
  pthread_sigmask(SIG_BLOCK, &own, nullptr);
  const std::string before = dispositions() + mask();
  std::printf("HUP %c\n", dispositions()[SIGHUP - 1]);
  start_cuda();
  const itimerval often{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);  // clock: signals at any moment; no test counts them
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    kill(getpid(), SIGUSR2);
    run_steps(5);
    push_range("a range");
    pop_range();
    wait_for_delivery();
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);  // clock: ends those
  errno = 0;
  const bool childless = waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
  std::printf("same %d\nhandled %d\nelsewhere %d\nchildless %d\n",
              before == dispositions() + mask(), handled.load(), handled_elsewhere.load(),
              childless);
  report_threads();
  report();
  return 0;
}

/// Prints whether errno, umask, folder and numbers of descriptors are what they would be without
/// us.
int play_errno(const Arguments&) {
  constexpr int kOwn = 77;
  int changed = 0;
  const auto check = [&] {
    changed += errno == kOwn ? 0 : 1;
    errno = kOwn;
  };
  umask(0777);
  errno = kOwn;
  push_range("the first call of all");
  check();
  start_cuda();
  errno = kOwn;
  for (int i = 0; i < 20'000; ++i) {
    push_range("a range");
    check();
    push_registered_range("another");
    check();
    pop_registered_range();
    pop_range();
    check();
  }
  run_steps(20);
  std::printf("changed %d\numask %d\n", changed, umask(022) == 0777);
  report();
  return 0;
}

int play_numbers(const Arguments&) {
  start_cuda();
  int others = 0;
  for (int i = 0; i < 100'000; ++i) {
    close(STDIN_FILENO);
    others += open("/dev/null", O_RDONLY) == STDIN_FILENO ? 0 : 1;
    if (i % 1000 == 0) run_steps(1);
  }
  std::printf("others %d\n", others);
  report();
  return 0;
}

/// Prints how many files the program can open under a low limit, before and after we are loaded.
int play_limit(const Arguments& arguments) {
  const rlimit limit{number(arguments, 0, 16), number(arguments, 0, 16)};
  setrlimit(RLIMIT_NOFILE, &limit);
  const auto room = [] {
    std::vector<int> files;
    for (int file = 0; (file = open("/dev/null", O_RDONLY)) >= 0;) files.push_back(file);
    for (const int file : files) close(file);
    return static_cast<int>(files.size());
  };
  const int before = room();
  start_cuda();
  run_steps(20);
  wait_for_delivery();
  std::printf("before %d\nwith %d\n", before, room());
  report();
  return 0;
}

/// Leaves its working folder, and moves the folder of spools away.
int play_moves(const Arguments& arguments) {
  start_cuda();
  run_steps(20);
  if (chdir("/") != 0) return 9;
  if (!arguments.empty()) {
    const std::string folder = std::getenv("FORETRACE_SPOOL");
    if (std::rename(folder.c_str(), arguments[0].c_str()) != 0) return 9;
  }
  run_for_a_while();
  report();
  return 0;
}

/// Makes this many ranges.
int play_ranges(const Arguments& arguments) {
  start_cuda();
  run_steps(5);
  for (unsigned long i = 0; i < number(arguments, 0, 20'000); ++i) {
    push_range("a range");
    pop_range();
  }
  std::atexit([] { std::printf("handler 1\n"); });
  report();
  return 5;
}

/// Makes children of which the C library does not know, so that no handler of fork() runs in them.
int play_raw_fork(const Arguments&) {
  start_cuda();
  push_range("before");
  run_steps(20);
  std::fflush(stdout);
  const auto child =
      static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    for (int i = 0; i < 5000; ++i) {
      push_range("of a child");
      pop_range();
    }
    std::exit(6);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("raw %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  const pid_t quick = vfork();
  if (quick == 0) {
    execlp("true", "true", nullptr);
    _exit(1);
  }
  waitpid(quick, &status, 0);
  std::printf("vfork %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  run_steps(20);
  pop_range();
  report();
  return 0;
}

/// Ends by a signal that its own write raises: a write into a pipe that nobody reads, or beyond the
/// limit on the size of files.
int play_own_signal(const Arguments& arguments) {
  if (arguments.size() < 2) return 64;
  start_cuda();
  run_steps(20);
  wait_for_delivery();
  report();
  std::fflush(stdout);
  int ends[2];
  if (arguments[0] == "pipe") {
    if (pipe(ends) != 0) return 9;
    close(ends[0]);
    return write(ends[1], "x", 1) == 1 ? 0 : 9;
  }
  const rlimit limit{1000, 1000};
  setrlimit(RLIMIT_FSIZE, &limit);
  const int file = open((arguments[1] + "/data").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  const std::array<char, 4096> bytes{};
  static_cast<void>(!write(file, bytes.data(), bytes.size()));
  return write(file, bytes.data(), bytes.size()) > 0 ? 0 : 9;
}

}  // namespace played
