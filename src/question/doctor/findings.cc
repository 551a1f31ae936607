// Finds data missing in a trace, what that costs a prediction, and which setting of the recording
// tool would record it. One function per finding, in the order in which they are shown.

#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "base/threads.h"
#include "base/wording.h"
#include "foretrace/answer/census.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/examine.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "trace/serving/serving_step.h"

namespace foretrace {
namespace {

struct TraceFacts {
  const Trace& trace;
  const Census& census;
  bool has_all_ranks = false;
};

/// Whether an engine that serves a model has named its steps.
bool names_serving_steps(const Trace& trace) {
  return std::ranges::any_of(trace.hosts, [&](const HostRecord& one) {
    return one.kind == HostKind::annotation && serving_step(trace.names[one.name]).has_value();
  });
}

using OptionalFinding = std::optional<Finding>;

Finding warning(std::string what, std::string cost, std::string fix) {
  return {Severity::warning, std::move(what), std::move(cost), std::move(fix)};
}

Finding remark(std::string what, std::string cost, std::string fix) {
  return {Severity::info, std::move(what), std::move(cost), std::move(fix)};
}

/// The remedy in the tool that made the trace. Other tools get the text for PyTorch's profiler.
struct Fix {
  const char* torch;
  const char* collect;
  const char* nsys;
  const char* amd = nullptr;  ///< For AMD tools, if PyTorch's text does not apply.
  const char* xla = "none: profiles of XLA do not hold it";
};

std::string fix_for(const TraceFacts& facts, const Fix& fix) {
  const std::string& format = facts.trace.format;
  if (format == "collect") return fix.collect;
  if (format == "nsys") return fix.nsys;
  if (format == "xplane") return fix.xla;
  const bool amd = format == "rocprof" || format == "rocpd" || format == "rpd";
  return amd && fix.amd != nullptr ? fix.amd : fix.torch;
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return to_fixed(whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole),
                  1) +
         " %";
}

std::int64_t device_records(const Census& census) {
  return census.kernels + census.copies + census.fills;
}

OptionalFinding no_host_records(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.ops + census.calls + census.frames > 0) return {};
  return warning(
      "no host records: the trace does not show what launched the work or what the host did "
      "meanwhile",
      "device work can be scaled or removed, but launches, loading and host time cannot be "
      "predicted",
      fix_for(facts, {"activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
                      "--record with api and nvtx in its list, or without --record",
                      "nsys profile --trace=cuda,nvtx", "rocprofv3 --hip-trace --marker-trace"}));
}

OptionalFinding no_calls(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.calls > 0 || census.ops == 0 || device_records(census) == 0) return {};
  return warning(
      "no CUDA calls: there are ops and kernels, but not the calls that connect them",
      "no kernel can be tied to its launch, so each start stays where it was recorded",
      fix_for(facts, {"activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], in one profiler",
                      "--record with api in its list, or without --record",
                      "nsys profile --trace=cuda,nvtx", "rocprofv3 --hip-trace"}));
}

OptionalFinding no_device_records(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (device_records(census) > 0) return {};
  if (census.launches > 0) {
    return warning(
        counted(census.launches, "launch") + " without a single device record",
        "step times are those of the host, which may run far ahead of the device",
        fix_for(facts, {"activities=[..., ProfilerActivity.CUDA]; if it is there, another "
                        "profiler held the device",
                        "--record with kernels in its list, or without --record",
                        "nsys profile --trace=cuda; if it is there, another profiler "
                        "held the device",
                        "rocprofv3 --kernel-trace --memory-copy-trace",
                        "jax.profiler.trace; if it was used, another profiler held the device"}));
  }
  return remark("no device records", "only host work is predicted",
                fix_for(facts, {"activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] if the "
                                "job uses a GPU",
                                "--record with kernels in its list, if the job uses a GPU",
                                "nsys profile --trace=cuda, if the job uses a GPU",
                                "rocprofv3 --kernel-trace --memory-copy-trace",
                                "jax.profiler.trace, with libcupti or rocprofiler installed, if "
                                "the job uses a GPU"}));
}

OptionalFinding no_steps(const TraceFacts& facts) {
  if (!facts.census.steps_ns.empty() || names_serving_steps(facts.trace)) return {};
  return warning(
      "no step markers", "steps are found by repetition, or the whole recording counts as one",
      fix_for(facts,
              {"call prof.step() at the end of each training step",
               "put each step into an NVTX range \"step 1\", \"step 2\" ...; those of PyTorch's "
               "optimizers are marked automatically, unless --no-python is given",
               "put each step into an NVTX range \"step 1\", \"step 2\" ...",
               "put each step into a roctx range \"step 1\", \"step 2\" ..., "
               "and record with rocprofv3 --marker-trace",
               "jax.profiler.StepTraceAnnotation(name, step_num=i) around each step"}));
}

OptionalFinding few_steps(const TraceFacts& facts) {
  const std::size_t steps = facts.census.steps_ns.size();
  if (steps == 0 || steps >= 3) return {};
  return warning(
      "only " + counted(steps, "step"),
      "warm-up cannot be separated from steady state, and the variation from step to "
      "step is unknown",
      fix_for(facts, {"schedule=torch.profiler.schedule(wait=1, warmup=2, active=6)",
                      "a longer --duration, or --steps over six or more", "a longer --duration",
                      nullptr, "jax.profiler.trace around six steps or more"}));
}

OptionalFinding uneven_steps(const TraceFacts& facts) {
  std::vector<std::int64_t> steps = facts.census.steps_ns;
  if (steps.size() < 3) return {};
  steps.erase(steps.begin());
  const std::int64_t typical = median(steps);
  const std::int64_t longest = *std::max_element(steps.begin(), steps.end());
  if (typical == 0 || longest < typical + typical / 4) return {};
  return remark(
      fmt::format("steps on the host vary: median {}, longest {}", to_text(Nanoseconds(typical)),
                  to_text(Nanoseconds(longest))),
      "the interval of every prediction widens with it",
      fix_for(facts, {"more steps: schedule(..., active=10)",
                      "more steps: --steps over ten or more", "more steps: a longer --duration",
                      nullptr, "more steps: jax.profiler.trace around ten or more"}));
}

OptionalFinding orphans(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.orphans == 0 || census.calls == 0) return {};
  return warning(fmt::format("{} of {} device records ({}) without the call that launched them",
                             grouped(census.orphans), grouped(device_records(census)),
                             percent(census.orphans, device_records(census))),
                 "only their stream explains when they start",
                 fix_for(facts, {"let the profiler warm up, schedule(wait=1, warmup=2, active=6), "
                                 "and call torch.cuda.synchronize() before the first active step",
                                 "record from the start, or call torch.cuda.synchronize() before "
                                 "the first step of the window",
                                 "record from the start, or call torch.cuda.synchronize() before "
                                 "the capture range"}));
}

OptionalFinding lost_records(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.lost == 0 || device_records(census) == 0) return {};
  const bool many = census.lost * 100 > census.launches;
  Finding finding = warning(
      fmt::format("{} of {} ({}) without a kernel", grouped(census.lost),
                  counted(census.launches, "launch"), percent(census.lost, census.launches)),
      many ? "device records were dropped: device time is missing from every answer"
           : "their kernels ran after the recording ended, or were dropped",
      fix_for(facts, {"call torch.cuda.synchronize() before the last prof.step(); record fewer "
                      "steps at a time",
                      "call torch.cuda.synchronize() before the program ends",
                      "call torch.cuda.synchronize() before the capture ends"}));
  if (!many) finding.severity = Severity::info;
  return finding;
}

OptionalFinding no_syncs(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (!facts.trace.syncs.empty() || census.calls == 0) return {};
  if (census.event_waits == 0 && census.used_streams < 2) return {};
  return warning(
      fmt::format("no synchronization records, despite {} and {} for events",
                  counted(census.used_streams, "stream"), counted(census.event_waits, "wait")),
      "which stream waits for which is inferred from times",
      fix_for(facts, {"experimental_config=torch._C._profiler._ExperimentalConfig("
                      "enable_cuda_sync_events=True)",
                      "--record with sync in its list, or without --record",
                      "nsys profile --trace=cuda --cuda-event-trace=true"}));
}

OptionalFinding no_shapes(const TraceFacts& facts) {
  if (facts.census.shapes || facts.census.ops == 0) return {};
  return remark("no shapes of tensors",
                "flops are not known, so what-ifs about devices judge kernels by their names alone",
                fix_for(facts, {"record_shapes=True", "foretrace collect --ops",
                                "torch.autograd.profiler.emit_nvtx(record_shapes=True)"}));
}

OptionalFinding no_memory(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.ops == 0 && census.calls == 0) return {};
  if (facts.trace.memory.empty()) {
    return remark("no memory events", "peak memory is not predicted",
                  fix_for(facts, {"profile_memory=True", "foretrace collect --memory",
                                  "nsys profile --cuda-memory-usage=true"}));
  }
  if (census.addressed > 0) return {};
  return remark("memory events without addresses",
                "allocations cannot be paired with frees, so peak memory is approximate",
                "profile_memory=True with a newer PyTorch");
}

OptionalFinding no_modules(const TraceFacts& facts) {
  if (facts.census.module_names || facts.census.ops == 0) return {};
  return remark("no names of modules",
                "layers are inferred from the order of ops; \"where.module\" selects nothing",
                "with_stack=True (Python modules), with_modules=True (TorchScript)");
}

OptionalFinding slowed_by_frames(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.frames == 0 || census.frames < census.ops + census.calls) return {};
  return remark(grouped(census.frames) + " Python frames were recorded",
                "recording them slows the host, so host time is greater than without the profiler",
                "with_stack=False in a second recording, for times");
}

OptionalFinding whole_microseconds(const TraceFacts& facts) {
  if (facts.trace.tick_ns < 1000 || facts.trace.hosts.size() + facts.trace.devices.size() == 0)
    return {};
  std::string what = "times are whole microseconds";
  if (facts.census.instant > 0)
    what += ", recorded as 0 for " + counted(facts.census.instant, "kernel");
  return remark(std::move(what), "short kernels and launches are off by up to 1 us each",
                "a PyTorch from 2024 or later records nanoseconds");
}

OptionalFinding skewed_clocks(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.early == 0) return {};
  return remark(
      fmt::format("starts before the call that launches: {}, by up to {}", grouped(census.early),
                  to_text(Nanoseconds(census.earliest_ns))),
      "the clocks of host and device disagree; launch delays are only known to that precision",
      "no setting of the profiler helps; a longer warm-up lets the driver align its clocks");
}

OptionalFinding missing_ranks(const TraceFacts& facts) {
  if (facts.trace.world_size < 2 || facts.has_all_ranks) return {};
  return remark(
      fmt::format("rank {} of {}", facts.trace.rank, facts.trace.world_size),
      "how long collectives wait for other ranks is only known from the traces of those ranks",
      "write a trace on every rank, put them into one folder, and give that folder");
}

OptionalFinding plain_collectives(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.collectives == 0 || census.described_collectives > 0) return {};
  return remark(
      counted(census.collectives, "collective") + " without their sizes",
      "transfers cannot be predicted for another link or number of workers",
      fix_for(facts, {"a PyTorch from 2024 or later records them with record_shapes=True",
                      "NCCL 2.19 or later reports them, with nvtx in the list of --record",
                      "NCCL 2.19 or later reports them, with --trace=nvtx",
                      "PyTorch's profiler reports them, with record_shapes=True"}));
}

OptionalFinding overhead(const TraceFacts& facts) {
  const Census& census = facts.census;
  if (census.overhead_ns == 0) return {};
  Finding finding = remark(
      fmt::format("the profiler itself worked for {} in {} ({} of the recording)",
                  to_text(Nanoseconds(census.overhead_ns)), counted(census.overheads, "stretch"),
                  percent(census.overhead_ns, census.window_ns)),
      "that time counts as host work of the steps it falls into",
      fix_for(facts,
              {"warm up for longer, schedule(wait=1, warmup=2, ...), and record less at once",
               "--start-after the warm-up, and a shorter list for --record",
               "--delay until after the warm-up, and trace less at once"}));
  if (census.overhead_ns * 20 > census.window_ns) finding.severity = Severity::warning;
  return finding;
}

/// Findings for a memory snapshot, from which no time can be expected.
std::vector<Finding> examine_snapshot(const Trace& trace) {
  std::vector<Finding> findings;
  findings.push_back(
      warning("a memory snapshot: it shows what the allocator did, not what ran",
              "memory can be predicted from it, but not time: its times are those of the history",
              "record the same run with torch.profiler, profile_memory=True"));
  if (trace.memory.empty()) {
    findings.push_back(remark("no history: only the blocks held when the snapshot was taken",
                              "peaks during the run are not known, and nothing can be predicted",
                              "call torch.cuda.memory._record_memory_history() before the run"));
  }
  return findings;
}

constexpr OptionalFinding (*kChecks[])(const TraceFacts&) = {
    no_host_records, no_calls,          no_device_records, no_steps,           few_steps,
    uneven_steps,    orphans,           lost_records,      no_syncs,           no_shapes,
    no_memory,       no_modules,        slowed_by_frames,  whole_microseconds, skewed_clocks,
    missing_ranks,   plain_collectives, overhead};

/// The remedy for a defect in the data.
std::string again_for(const Trace& trace) {
  if (is_snapshot(trace)) {
    return "torch.cuda.memory._record_memory_history(max_entries=...) with more entries, before "
           "the first allocation";
  }
  if (trace.format == "collect")
    return "record it again, with less at a time, on a disk with enough room";
  return "record the trace again, and copy it completely";
}

/// Adds a finding for each kind of time without a known cause, if there is so much that it would
/// decide a what-if, and for records that the recording itself shows to be missing.
void add_open_time(Diagnosis& diagnosis) {
  const auto add = [&](const char* name, const char* fix) {
    const TrustReason* const reason = diagnosis.replay->trust.reason(name);
    if (reason == nullptr || reason->value.value_or(0) <= kMuchOpenTime) return;
    diagnosis.findings.push_back(
        {Severity::warning, reason->text,
         "do not rely on what-ifs: --strict refuses them, and assertions about time are undecided",
         fix});
  };
  add("other_ranks",
      "record all ranks and give them in one folder: the trace of the rank that the others wait "
      "for shows the reason");
  add("unexplained",
      "record host calls and synchronizations as well, with only one process on the device");
  // Their texts say how to record.
  add("missing_ops", "");
  add("unstarted_threads", "");
}

void add_lateness(const CollectiveTotals& totals, Nanoseconds window, Diagnosis& diagnosis) {
  if (ratio(totals.keeps_waiting, window) < kMuchWaiting) return;
  diagnosis.findings.push_back(
      {Severity::info,
       fmt::format("the other ranks wait {} in all for this one, which enters {} of {} last",
                   to_text(totals.keeps_waiting), grouped(totals.times_last),
                   counted(totals.matched, "collective")),
       "a collective cannot finish before its last rank arrives",
       fmt::format("see what the job would take without that: foretrace predict TRACE --with "
                   "straggler:rank={},remove=true",
                   diagnosis.rank)});
}

/// Adds the findings that only a comparison of ranks shows.
void compare_ranks(const JobRanks& job, std::vector<Diagnosis>& all) {
  for (std::size_t i = 0; i < job.join.ranks.size(); ++i)
    add_lateness(job.join.ranks[i], job.ranks[i].inference.recorded.length, all[i]);
  if (job.mismatch.empty()) return;
  std::vector<Finding>& findings = all.front().findings;
  findings.insert(findings.begin(),
                  {Severity::warning, "the recordings are not of one job: " + job.mismatch,
                   "what-ifs refuse the folder", "give the ranks of one run, or one file"});
}

Diagnosis diagnosis_of(const Rank& rank, bool has_all_ranks) {
  const Trace& trace = *rank.trace;
  Diagnosis diagnosis{.rank = trace.rank,
                      .world_size = trace.world_size,
                      .findings = examine(trace, has_all_ranks),
                      .replay = {},
                      .unusable = rank.refused};
  if (!rank.refused.empty()) return diagnosis;
  try {
    diagnosis.replay = predict(Job(rank.inference), Scenario{});
    diagnosis.replay->has_times = !rank.is_snapshot;
    add_open_time(diagnosis);
  } catch (const Error& error) {
    diagnosis.unusable = error.what();
  }
  return diagnosis;
}

}  // namespace

std::vector<Finding> examine(const Trace& trace, bool has_all_ranks) {
  std::vector<Finding> findings;
  if (is_snapshot(trace)) {
    findings = examine_snapshot(trace);
  } else {
    const Census census = take_census(trace);
    const TraceFacts facts{trace, census, has_all_ranks};
    for (const auto check : kChecks) {
      if (OptionalFinding found = check(facts)) findings.push_back(std::move(*found));
    }
  }
  for (const Note& note : trace.notes.all()) {
    if (note.text == kRepeatedRank) {
      findings.push_back(
          {note.severity, note_text_without_severity(note),
           "what-ifs refuse the folder; elsewhere the runs count as ranks of one job",
           "put the traces of each run into a folder of its own"});
      continue;
    }
    const bool is_defect = note.severity == Severity::warning;
    findings.push_back({note.severity, note_text_without_severity(note),
                        is_defect ? "the work that it concerns may be missing from answers"
                                  : "nothing, if that is what was recorded",
                        is_defect ? again_for(trace) : ""});
  }
  std::stable_partition(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::warning;
  });
  return findings;
}

std::vector<Diagnosis> diagnose(const std::string& path, const ImportOptions& reading) {
  const JobRanks job = read_job(path, {.reading = reading,
                                       .keep_traces = true,
                                       .keep_refused = true,
                                       .joining = Joining::if_one_job});
  std::vector<Diagnosis> all(job.ranks.size());
  on_all_cores(all.size(), [&](std::size_t i) {
    const Rank& rank = job.ranks[i];
    all[i] = diagnosis_of(rank, std::ssize(job.ranks) >= rank.trace->world_size);
  });
  compare_ranks(job, all);
  return all;
}

}  // namespace foretrace
