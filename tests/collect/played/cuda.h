#pragma once

// CUDA as a played program sees it. cuInit loads the injection as the driver does; the program's
// later calls go to the stand-in for libcupti, if it is loaded.

#include <cstdint>

#include "collect/standin/standin.h"

namespace played {

/// Loads the library that CUDA_INJECTION64_PATH names, calls its InitializeInjection as cuInit
/// does, and prints "injection <result>". Then starts the devices.
void start_cuda(std::uint32_t devices = 1);

/// Returns nullptr if nothing plays the driver; the program runs nevertheless.
const standin::Driver* driver();

/// Runs `count` steps on one stream. Each has kernels with their launches, a copy in and out, a
/// fill and a synchronization.
void run_steps(std::uint64_t count, std::uint32_t device = 0);
void launch(const char* name, std::uint64_t duration_ns = 1000, std::uint32_t stream = 7,
            std::uint32_t device = 0);

/// Prints, by kind, the records that CUPTI wrote and those it could not write:
///
///     record kernel written 10 dropped 0 untimed 0 bytes 0
///
/// and "lost <n>", the number of records that were lost because CUPTI ended.
void report();

/// Waits until the client has read and kept everything written so far, except for overhead, because
/// each flush adds overhead. Prints "delivered 0" after ten seconds.
void wait_for_delivery();

}  // namespace played
