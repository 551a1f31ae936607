#pragma once

// Waiting for an event, however long it takes: CTest ends a test that hangs.

#include <chrono>
#include <thread>

namespace foretrace {

template <class Event>
void wait_until(const Event& has_happened) {
  while (!has_happened())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // clock: between two looks
}

}  // namespace foretrace
