#pragma once

// Kernels that somebody could make faster, by what a step gains: a kernel that runs beside others,
// or behind a busy host, may gain nothing however fast it gets.

#include <string>
#include <vector>

#include "foretrace/answer/advice.h"
#include "job/job_graph.h"

namespace foretrace {

/// Reads a CSV file with the columns name and factor. Throws Error that says where.
std::vector<KernelCandidate> read_candidates(const std::string& path);

/// Replays the job with each candidate alone, and sorts them by the step time, shortest first.
/// Throws Error, with the number of the line, if the job has no such kernel.
std::vector<KernelCandidate> judge_candidates(const JobGraph& job,
                                              std::vector<KernelCandidate> candidates);

}  // namespace foretrace
