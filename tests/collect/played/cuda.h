#pragma once

// CUDA as a played program sees it: cuInit loads the injection as the driver does, and what the
// program then does goes to the stand-in for libcupti, if it is there.

#include <cstdint>

#include "collect/standin/standin.h"

namespace played {

/// Loads what CUDA_INJECTION64_PATH names and calls its InitializeInjection, as cuInit does, and
/// prints "injection <result>". Then the devices come up.
void start_cuda(std::uint32_t devices = 1);

/// nullptr if nothing plays the driver: the program runs all the same.
const standin::Driver* driver();

/// Kernels of `count` steps with their launches, a copy in and out, a fill and a synchronization
/// each, on one stream.
void run_steps(std::uint64_t count, std::uint32_t device = 0);
void launch(const char* name, std::uint64_t duration_ns = 1000, std::uint32_t stream = 7,
            std::uint32_t device = 0);

/// Prints what CUPTI wrote, and what it could not, by kind:
///
///     record kernel written 10 dropped 0 untimed 0 bytes 0
///
/// and "lost <n>", the records that CUPTI ended with.
void report();

/// Until the client has read and kept all that is written by now, but for overhead, of which each
/// flush makes more. Prints "delivered 0" after ten seconds.
void wait_for_delivery();

}  // namespace played
