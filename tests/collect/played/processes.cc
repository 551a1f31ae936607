#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "collect/played/cuda.h"
#include "collect/played/scripts.h"

namespace played {

namespace {

template <class Body>
void run_child(const char* what, const Body& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %s %s %d\n", what, WIFEXITED(status) ? "exited" : "killed",
              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

}  // namespace

/// Runs two batches of steps, then ends as `how` says. The client has read the first batch, and may
/// or may not have read the second.
int play_end(const std::string& how, const Arguments& arguments) {
  start_cuda();
  run_steps(number(arguments, 0, 100));
  wait_for_delivery();
  std::printf("safely\n");
  report();
  run_steps(number(arguments, 1, 10));
  std::printf("at the end\n");
  report();
  std::fflush(stdout);
  if (how == "kill") raise(SIGKILL);
  if (how == "abort") std::abort();
  if (how == "segfault") raise(SIGSEGV);
  if (how == "quick_exit") std::quick_exit(0);
  _exit(0);
}

int play_fork(const Arguments& arguments) {
  start_cuda();
  push_range("before the fork");
  run_steps(number(arguments, 0, 20));
  run_child("leaves at once", [] { _exit(7); });
  run_child("leaves through its handlers", [] {
    push_range("of a child");
    pop_range();
    std::exit(8);
  });
  run_child("becomes another program", [] { execlp("true", "true", nullptr); });
  run_child("forks again", [] {
    const pid_t grandchild = fork();
    if (grandchild == 0) std::exit(0);
    int status = 0;
    waitpid(grandchild, &status, 0);
    _exit(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 9 : 1);
  });
  run_steps(number(arguments, 0, 20));
  pop_range();
  report();
  return 0;
}

/// Starts one process for each rank, with torchrun's environment variables.
int play_ranks(const Arguments& arguments, const char* self) {
  const unsigned long count = number(arguments, 0, 4);
  std::fflush(stdout);
  for (unsigned long rank = 0; rank < count; ++rank) {
    if (fork() != 0) continue;
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(count).c_str(), 1);
    execl(self, self, "steps", "3", nullptr);
    _exit(127);
  }
  int worst = 0;
  int status = 0;
  while (wait(&status) > 0) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) worst = 1;
  }
  return worst;
}

/// Limits the size of every file that this process writes, as a disk quota does.
int play_full(const Arguments& arguments) {
  const rlimit limit{number(arguments, 1, 65536), number(arguments, 1, 65536)};
  setrlimit(RLIMIT_FSIZE, &limit);
  start_cuda();
  run_steps(number(arguments, 0, 500));
  report();
  return 0;
}

}  // namespace played
