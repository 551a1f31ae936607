#include "question/check/same_job.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <string>

#include "foretrace/error.h"
#include "foretrace/units.h"
#include "question/check/job/job_summary.h"

namespace foretrace {
namespace {

/// Measured: jobs of different models had at most 0.55 in common, if kernels and ops belonged to
/// one family; versions of one job (batch size, device, precision, loading, compiled or not) at
/// least 0.77.
constexpr double kMinAlike = 0.5;
/// Measured: repeats of a job had at least 0.92 in common, its ranks 0.78; the same model of
/// another size had 0.24.
constexpr double kMinUnchanged = 0.7;

using Amounts = std::map<std::string, double>;

/// The overlap of two distributions, from 0 to 1.
double shared_part(const Amounts& before, const Amounts& now) {
  double all_before = 0, all_now = 0, shared = 0;
  for (const auto& [name, amount] : before) all_before += amount;
  for (const auto& [name, amount] : now) all_now += amount;
  if (all_before <= 0 || all_now <= 0) return 0;
  for (const auto& [name, amount] : before) {
    const auto found = now.find(name);
    if (found != now.end()) shared += std::min(amount / all_before, found->second / all_now);
  }
  return shared;
}

struct Traits {
  Amounts kernels;  ///< Work by name.
  Amounts ops;      ///< Calls by the innermost op.
  Amounts op_names, modules;
  double loaded = 0;  ///< Bytes copied to devices.
};

Traits traits_of(const JobSummary& job) {
  Traits traits;
  for (const JobGroup& group : job.groups) {
    if (group.kind == TaskKind::kernel || group.kind == TaskKind::collective)
      traits.kernels[group.name] += static_cast<double>(group.work.count());
    if (group.kind == TaskKind::copy_in) traits.loaded += static_cast<double>(group.bytes.count);
    if (!group.module.empty()) traits.modules[without_instances(group.module)] = 1;
    if (group.op.empty() || !runs_on_device(group.kind)) continue;
    const std::string op = group.op.substr(group.op.rfind('/') + 1);
    traits.ops[op] += static_cast<double>(group.count);
    traits.op_names[op] = 1;
  }
  return traits;
}

/// Whether both load batches of the same size, which a change of the model leaves as it is.
bool loads_alike(const Traits& before, const Traits& now) {
  constexpr double kMinBatch = 100'000;
  return std::min(before.loaded, now.loaded) > kMinBatch &&
         std::abs(before.loaded - now.loaded) < 0.01 * before.loaded;
}

std::string in_common(const Traits& was, const Traits& is) {
  return fmt::format("the two have {} % of the time of kernels and {} % of the ops in common",
                     to_fixed(100 * shared_part(was.kernels, is.kernels), 0),
                     to_fixed(100 * shared_part(was.ops, is.ops), 0));
}

}  // namespace

double likeness(const JobSummary& before, const JobSummary& now) {
  const Traits was = traits_of(before), is = traits_of(now);
  // Without ops, a job that was compiled, or runs as a graph, cannot be distinguished from another
  // one.
  if (was.ops.empty() || is.ops.empty() || loads_alike(was, is)) return 1;
  return std::max({shared_part(was.kernels, is.kernels), shared_part(was.ops, is.ops),
                   shared_part(was.op_names, is.op_names), shared_part(was.modules, is.modules)});
}

void refuse_other_job(const JobSummary& before, const JobSummary& now) {
  if (likeness(before, now) >= kMinAlike) return;
  const Traits was = traits_of(before), is = traits_of(now);
  throw Error(fmt::format(
      "must be of the same job as the baseline; {}; give each job its own baseline (--bless)",
      in_common(was, is)));
}

void refuse_changed_job(const JobSummary& before, const JobSummary& now) {
  const Traits was = traits_of(before), is = traits_of(now);
  const auto differ = [](const Amounts& some, const Amounts& others) {
    return !some.empty() && !others.empty() && shared_part(some, others) < kMinUnchanged;
  };
  if (!differ(was.kernels, is.kernels) && !differ(was.ops, is.ops)) return;
  throw Error(
      fmt::format("must be a recording of the unchanged job; {}, and all differences between the "
                  "recordings of one baseline count as noise",
                  in_common(was, is)));
}

}  // namespace foretrace
