#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/shown.h"
#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/ask/predict.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// The findings about one trace.
struct Diagnosis {
  std::int32_t rank = 0, world_size = 1;
  std::vector<Finding> findings;
  std::optional<Prediction>
      replay;            ///< Replay of the unmodified job; empty if the trace cannot be used.
  std::string unusable;  ///< Why.
};

/// Adds the open time of the recording, which would decide a what-if instead of the change.
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
}

Diagnosis diagnose(const Trace& trace, bool other_ranks_are_there) {
  Diagnosis diagnosis;
  diagnosis.rank = trace.rank;
  diagnosis.world_size = trace.world_size;
  diagnosis.findings = examine(trace);
  if (other_ranks_are_there) {
    const std::string alone = "rank " + std::to_string(trace.rank) + " of ";
    std::erase_if(diagnosis.findings,
                  [&](const Finding& finding) { return finding.what.starts_with(alone); });
  }
  try {
    diagnosis.replay = predict(infer(trace), Scenario{});
    add_open_time(diagnosis);
  } catch (const Error& error) {
    diagnosis.unusable = error.what();
  }
  return diagnosis;
}

std::size_t count(const Diagnosis& diagnosis, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                    [&](const Finding& finding) { return finding.severity == severity; }));
}

std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void write_finding(const Finding& finding, std::ostream& out) {
  out << '\n'
      << (finding.severity == Severity::warning ? "warning" : "remark ") << "  "
      << shown(finding.what) << '\n';
  out << "         costs  " << shown(finding.cost) << '\n';
  if (!finding.fix.empty()) out << "         fix    " << shown(finding.fix) << '\n';
}

void write_text(const Diagnosis& diagnosis, std::ostream& out) {
  out << "rank " << diagnosis.rank << " of " << diagnosis.world_size << ": ";
  if (!diagnosis.replay) {
    out << "cannot be used: " << shown(diagnosis.unusable) << '\n';
  } else {
    const Prediction& replay = *diagnosis.replay;
    const Unexplained& unexplained = replay.unexplained;
    const double share = unexplained.window.count() == 0
                             ? 0
                             : 100.0 * static_cast<double>(unexplained.lag.count()) /
                                   static_cast<double>(unexplained.window.count());
    out << "can be used, " << counted(count(diagnosis, Severity::warning), "warning") << " and "
        << counted(count(diagnosis, Severity::info), "remark") << '\n'
        << "a step takes " << to_text(replay.measured.step_time) << "; the replay is "
        << to_share(replay.replay_error, 3) << " off, with " << unexplained.pinned_tasks << " of "
        << counted(replay.tasks, "task") << " pinned and " << to_fixed(share, 2)
        << " % of the time unexplained\n";
  }
  for (const Finding& finding : diagnosis.findings) write_finding(finding, out);
}

nlohmann::json to_json(const Diagnosis& diagnosis) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : diagnosis.findings) {
    findings.push_back({{"severity", to_string(finding.severity)},
                        {"what", finding.what},
                        {"cost", finding.cost},
                        {"fix", finding.fix}});
  }
  nlohmann::json object = {{"rank", diagnosis.rank},
                           {"world_size", diagnosis.world_size},
                           {"usable", diagnosis.replay.has_value()},
                           {"findings", std::move(findings)}};
  if (diagnosis.replay) {
    object["step_time_ns"] = diagnosis.replay->measured.step_time.count();
    object["replay_error"] = diagnosis.replay->replay_error;
    object["pinned_tasks"] = diagnosis.replay->unexplained.pinned_tasks;
    object["unexplained_ns"] = diagnosis.replay->unexplained.lag.count();
    object["trust"] = to_json(diagnosis.replay->trust);
  } else {
    object["why_unusable"] = diagnosis.unusable;
  }
  return object;
}

struct DoctorCommand {
  std::string trace;
  AnswerOptions options;

  void add_to(CLI::App& command) {
    add_trace(command, trace);
    options.reading.add_part_to(command);
    options.reading.add_execution_trace_to(command);
    options.add_to(command);
  }

  std::vector<Diagnosis> diagnose_all() const {
    const Progress progress("examining " + trace, options.quiet);
    const std::vector<Trace> traces = import_all(trace, options.reading.options());
    std::vector<Diagnosis> all;
    for (const Trace& one : traces) {
      all.push_back(diagnose(one, static_cast<std::int64_t>(traces.size()) >= one.world_size));
    }
    return all;
  }

  void run(Session& session) const {
    options.format.check();
    const std::vector<Diagnosis> all = diagnose_all();
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "json") {
        nlohmann::json ranks = nlohmann::json::array();
        for (const Diagnosis& diagnosis : all) ranks.push_back(to_json(diagnosis));
        return print_json({{"schema", "foretrace.doctor/1"}, {"ranks", std::move(ranks)}}, out);
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) out << '\n';
        write_text(all[i], out);
      }
    });
    const bool usable = std::all_of(all.begin(), all.end(),
                                    [](const Diagnosis& d) { return d.replay.has_value(); });
    session.exit_code = usable ? kAnswered : kUnusableTrace;
  }
};

}  // namespace

void add_doctor(CLI::App& command, Session& session) {
  add_command<DoctorCommand>(command, session);
}

}  // namespace foretrace
