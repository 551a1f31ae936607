// A CUDA program for machines without CUDA. The first argument selects a script. The program prints
// what it did, so that a test can compare this with the recording.

#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>

#include "collect/played/cuda.h"
#include "collect/played/scripts.h"
#include "collect/standin/records.h"

namespace played {

unsigned long number(const Arguments& arguments, std::size_t at, unsigned long otherwise) {
  return at < arguments.size() ? std::strtoul(arguments[at].c_str(), nullptr, 10) : otherwise;
}

namespace {

int finish() {
  report();
  return 0;
}

int play_normal(const Arguments& arguments) {
  start_cuda();
  run_steps(number(arguments, 0, 10));
  return finish();
}

int play_threads(const Arguments& arguments) {
  start_cuda(2);
  std::vector<std::thread> threads;
  for (unsigned long i = 0; i < number(arguments, 0, 4); ++i) {
    threads.emplace_back([&arguments, i] {
      push_range("work of a thread");
      for (unsigned long k = 0; k < number(arguments, 1, 1000) && driver() != nullptr; ++k)
        launch("kernel of a thread", 200, 7 + static_cast<std::uint32_t>(i), i % 2);
      pop_range();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (driver() != nullptr) driver()->synchronize_device(0);
  if (driver() != nullptr) driver()->synchronize_device(1);
  return finish();
}

/// Starts and ends threads, as a data loader does.
int play_many_threads(const Arguments& arguments) {
  start_cuda();
  for (unsigned long i = 0; i < number(arguments, 0, 200); ++i) {
    std::thread([] {
      push_range("short");
      launch("kernel of a short thread", 200);
      pop_range();
    }).join();
  }
  if (driver() != nullptr) driver()->synchronize_device(0);
  return finish();
}

/// Launches kernels as fast as the stand-in can, without waiting for the client.
int play_flood(const Arguments& arguments) {
  start_cuda();
  for (unsigned long i = 0; i < number(arguments, 0, 100'000); ++i) launch("flood", 10);
  if (driver() != nullptr) driver()->synchronize_device(0);
  return finish();
}

/// Leaves work on the device when the program ends.
int play_unfinished(const Arguments& arguments) {
  start_cuda();
  run_steps(number(arguments, 0, 10));
  for (int i = 0; i < 5; ++i) launch("still runs", 3'600'000'000'000);
  return finish();
}

int play_graph(const Arguments& arguments) {
  start_cuda();
  const standin::Driver* cuda = driver();
  if (cuda == nullptr) return finish();
  // a -> b, a -> c, b and c -> d
  void* graph = cuda->create_graph();
  void* nodes[4];
  for (int i = 0; i < 4; ++i)
    nodes[i] = cuda->add_node(graph, &"node_a\0node_b\0node_c\0node_d"[7 * i], 1000);
  cuda->add_dependency(nodes[0], nodes[1]);
  cuda->add_dependency(nodes[0], nodes[2]);
  cuda->add_dependency(nodes[1], nodes[3]);
  cuda->add_dependency(nodes[2], nodes[3]);
  void* executable = cuda->instantiate(graph);
  for (unsigned long i = 0; i < number(arguments, 0, 3); ++i) cuda->launch_graph(executable, 0, 7);
  cuda->synchronize_device(0);
  return finish();
}

int play_events(const Arguments& arguments) {
  start_cuda();
  const standin::Driver* cuda = driver();
  if (cuda == nullptr) return finish();
  cuda->create_stream(0, 13, 1);
  for (unsigned long i = 0; i < number(arguments, 0, 5); ++i) {
    // The event is used anew each time: only its sync id tells which record is meant.
    launch("producer", 20'000, 7);
    cuda->record_event(1, 0, 7);
    cuda->wait_event(1, 0, 13);
    launch("consumer", 10'000, 13);
    cuda->record_event(2, 0, 13);
    cuda->synchronize_event(2);
  }
  cuda->synchronize_device(0);
  return finish();
}

int play_memory(const Arguments& arguments) {
  start_cuda();
  const standin::Driver* cuda = driver();
  if (cuda == nullptr) return finish();
  cuda->pool(1, 0, 0x7000, 1 << 20);
  for (unsigned long i = 0; i < number(arguments, 0, 5); ++i) {
    const standin::Allocation segment{false, false, 0, 7, 0x10000000 + (i << 21), 2 << 20};
    const standin::Allocation block{false, true, 0, 7, 0x90000000 + (i << 12), 4096};
    cuda->allocate(&segment);
    cuda->allocate(&block);
  }
  for (unsigned long i = 0; i < number(arguments, 0, 5); ++i) {
    const standin::Allocation segment{true, false, 0, 7, 0x10000000 + (i << 21), 2 << 20};
    cuda->allocate(&segment);
  }
  cuda->pool(3, 0, 0x7000, 1 << 16);
  const standin::Copy peer{10, 0, 7, 1, 65536, 5000, true};
  cuda->copy(&peer);
  cuda->synchronize_device(0);
  return finish();
}

/// Runs three parts, and asks the profiler to record only the middle one.
int play_profiler_api(const Arguments& arguments) {
  start_cuda();
  const unsigned long each = number(arguments, 0, 10);
  for (unsigned long i = 0; i < each; ++i) launch("before", 500);
  if (driver() != nullptr) driver()->synchronize_device(0);
  if (driver() != nullptr) driver()->profiler(true);
  for (unsigned long i = 0; i < each; ++i) launch("inside", 500);
  if (driver() != nullptr) driver()->synchronize_device(0);
  if (driver() != nullptr) driver()->profiler(false);
  for (unsigned long i = 0; i < each; ++i) launch("behind", 500);
  if (driver() != nullptr) driver()->synchronize_device(0);
  return finish();
}

/// Marks training steps as torch.profiler does or, with a second argument, as Python's nvtx does.
int play_steps(const Arguments& arguments) {
  static std::deque<std::string> names;
  start_cuda();
  for (unsigned long i = 0; i < number(arguments, 0, 5); ++i) {
    const bool registered = arguments.size() > 1;
    const std::string step = "ProfilerStep#" + std::to_string(i);
    (registered ? push_registered_range : push_range)(step.c_str());
    push_range("forward");
    run_steps(2);
    pop_range();
    push_range("backward");
    names.push_back("only_in_step_" + std::to_string(i));  // Kept: CUPTI has only its address.
    launch(names.back().c_str(), 5000);
    if (driver() != nullptr) driver()->synchronize_device(0);
    pop_range();
    (registered ? pop_registered_range : pop_range)();
  }
  return finish();
}

int play_chatter(const Arguments& arguments) {
  start_cuda();
  for (unsigned long i = 0; i < number(arguments, 0, 1000) && driver() != nullptr; ++i) {
    driver()->call(2, 17);
    driver()->call(1, 304);
    driver()->call(1, 392);
    driver()->call(1, 686);
  }
  run_steps(1);
  return finish();
}

/// Makes records with memory that the client has to free.
int play_details(const Arguments& arguments) {
  start_cuda();
  launch("kernel", 100);
  wait_for_delivery();
  const std::size_t before = mallinfo2().uordblks;
  for (unsigned long i = 0; i < number(arguments, 0, 50'000) && driver() != nullptr; ++i)
    driver()->command_buffer_full(10);
  launch("kernel", 100);
  wait_for_delivery();
  const std::size_t after = mallinfo2().uordblks;
  std::printf("held %ld\n", static_cast<long>(after) - static_cast<long>(before));
  return finish();
}

int play_fail(const Arguments& arguments) {
  start_cuda();
  run_steps(number(arguments, 0, 20));
  wait_for_delivery();
  if (driver() != nullptr) driver()->fail(999, "played: the GPU fell off the bus");
  run_steps(number(arguments, 0, 20));
  return finish();
}

/// Runs until a signal arrives; prints "ready" when it may be sent.
int play_wait(const Arguments& arguments) {
  start_cuda();
  run_steps(number(arguments, 0, 10));
  wait_for_delivery();
  report();
  if (arguments.size() > 1) {
    // A program that cleans up when it is interrupted.
    std::signal(SIGINT, [](int) { std::exit(5); });
  }
  std::printf("ready\n");
  std::fflush(stdout);
  for (;;) pause();
}

int play_exit(const Arguments& arguments) {
  start_cuda();
  run_steps(3);
  report();
  return static_cast<int>(number(arguments, 0, 0));
}

/// Works until the recorder has fetched records this many times.
int play_long(const Arguments& arguments) {
  start_cuda();
  for (unsigned long i = 0; i < number(arguments, 0, 100); ++i) {
    run_steps(1);
    wait_for_delivery();
  }
  return finish();
}

/// Works until recording has begun and has ended again; prints the steps before it began.
int play_window(const Arguments&) {
  start_cuda();
  const auto recorded = [] { return driver()->counts(standin::kConcurrentKernel).written; };
  unsigned long before = 0;
  for (run_steps(1); recorded() == 0; run_steps(1)) ++before;
  for (std::uint64_t last = 0; last != recorded();) {
    last = recorded();
    run_steps(1);
  }
  std::printf("before %lu\n", before);
  return finish();
}

}  // namespace

int play(const std::string& script, const Arguments& arguments) {
  static constexpr struct {
    const char* name;
    int (*play)(const Arguments&);
  } kScripts[] = {
      {"normal", play_normal},
      {"threads", play_threads},
      {"many_threads", play_many_threads},
      {"flood", play_flood},
      {"unfinished", play_unfinished},
      {"graph", play_graph},
      {"events", play_events},
      {"memory", play_memory},
      {"profiler_api", play_profiler_api},
      {"steps", play_steps},
      {"chatter", play_chatter},
      {"details", play_details},
      {"fail", play_fail},
      {"wait", play_wait},
      {"exit", play_exit},
      {"long", play_long},
      {"window", play_window},
      {"nvtx", play_nvtx},
      {"late_range", play_late_range},
      {"fork", play_fork},
      {"full", play_full},
      {"torch", play_torch},
      {"closes", play_closes},
      {"stderr", play_stderr},
      {"signals", play_signals},
      {"errno", play_errno},
      {"numbers", play_numbers},
      {"limit", play_limit},
      {"moves", play_moves},
      {"ranges", play_ranges},
      {"raw_fork", play_raw_fork},
      {"own_signal", play_own_signal},
  };
  for (const auto& known : kScripts) {
    if (script == known.name) return known.play(arguments);
  }
  return play_end(script, arguments);
}

}  // namespace played

int main(int count, char** words) {
  if (count < 2) return 64;
  const played::Arguments arguments(words + 2, words + count);
  if (std::strcmp(words[1], "ranks") == 0) return played::play_ranks(arguments, words[0]);
  return played::play(words[1], arguments);
}
