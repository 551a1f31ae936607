// How fast requests are served from a cache with many free blocks.
//
//     allocator_bench [events]      1000000 by default; prints one table

#include <time.h>

#include <cstdio>
#include <random>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "foretrace/allocator.h"

namespace foretrace {
namespace {

struct Event {
  std::int64_t handle = 0;
  std::int64_t bytes = 0;  ///< 0: the block is freed.
};

/// Events as in training: most requests are small, and most blocks are freed soon, in no order;
/// about `live` blocks are in use at a time.
std::vector<Event> mixed(std::size_t count, std::size_t live) {
  std::mt19937 random(1);
  std::vector<Event> events;
  std::vector<std::int64_t> held;
  for (std::int64_t next = 0; events.size() < count;) {
    if (held.size() < live || random() % 2 == 0) {
      const std::int64_t most = random() % 4 == 0 ? std::int64_t{64} << 20 : std::int64_t{1} << 20;
      events.push_back({next, 1 + static_cast<std::int64_t>(random()) % most});
      held.push_back(next++);
    }
    if (held.size() > live) {
      std::swap(held[random() % held.size()], held.back());
      events.push_back({held.back(), 0});
      held.pop_back();
    }
  }
  return events;
}

/// CPU time of the process, so that other load on the machine does not count.
double cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

void measure(std::string_view what, const AllocatorSettings& settings,
             const std::vector<Event>& events) {
  CachingAllocator allocator(settings);
  const double start = cpu_ns();
  for (const Event& event : events) {
    if (event.bytes > 0) {
      allocator.malloc_beyond(event.handle, Bytes{event.bytes});
    } else {
      allocator.free(event.handle);
    }
  }
  const double ns = cpu_ns() - start;
  std::printf("%-32.*s %8.0f ns/event   %6lld driver calls, %lld MiB reserved at most\n",
              static_cast<int>(what.size()), what.data(), ns / static_cast<double>(events.size()),
              static_cast<long long>(allocator.driver_mallocs() + allocator.driver_frees()),
              static_cast<long long>(allocator.peaks().reserved >> 20));
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  using namespace foretrace;
  const auto count = bench::Arguments(argc, argv, "[events]").number<std::size_t>(1, 1'000'000);
  for (const std::size_t live : {100u, 10'000u}) {
    const std::vector<Event> events = mixed(count, live);
    std::printf("%zu events, %zu blocks in use\n", events.size(), live);
    AllocatorSettings settings;
    measure("  any amount of memory", settings, events);
    settings.expandable_segments = true;
    measure("  expandable segments", settings, events);
    settings.expandable_segments = false;
    settings.limit = Bytes{static_cast<std::int64_t>(live) * (7 << 20)};
    measure("  a limit that is often reached", settings, events);
    settings.expandable_segments = true;
    measure("  that, expandable", settings, events);
  }
}
