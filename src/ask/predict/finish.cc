#include "ask/predict/finish.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <string>
#include <vector>

#include "ask/job/job.h"
#include "ask/predict/prediction_html.h"
#include "ask/predict/trust.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/render.h"

namespace foretrace {
namespace {

void refuse_warnings(const Notes& notes) {
  for (const Note& note : notes.all()) {
    if (note.severity != Severity::warning) continue;
    std::string detail = note.count > 1 ? fmt::format("{} times", note.count) : "";
    if (!note.example.empty()) detail += (detail.empty() ? "" : ", first: ") + note.example;
    throw TraceError(fmt::format("refused because of --strict: {}{}", note.text,
                                 detail.empty() ? "" : fmt::format(" ({})", detail)));
  }
}

/// Writes the timeline in the format of the path's ending, or in that of PyTorch's profiler for an
/// unknown ending.
void write_timeline(const Answer& answer, const std::string& path) {
  const ExporterEntry* exporter = exporter_for(path);
  if (exporter == nullptr) exporter = exporter_for(".json");
  exporter->write(render(answer.graph, answer.timeline, answer.trace), path);
}

/// Writes one file for each rank, so that the folder is read back as the same job.
void write_timelines(const Answer& answer, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(fmt::format("{}: cannot be made: {}", folder, error.message()));
  if (!fs::is_empty(folder, error))
    throw Error(folder + ": must be a new or an empty folder, for a file of each rank");
  const auto path_of = [&](std::int32_t rank) {
    return fmt::format("{}rank{}.json.gz", folder, rank);
  };
  write_timeline(answer, path_of(answer.prediction.rank));
  for (const Answer& other : answer.others) write_timeline(other, path_of(other.prediction.rank));
}

/// Writes all ranks on one clock, with arrows from the ranks that others wait for.
void write_ranks(const Answer& answer, const std::string& path) {
  std::vector<const Answer*> all{&answer};
  for (const Answer& other : answer.others) all.push_back(&other);
  std::ranges::sort(all, {}, [](const Answer* drawn) { return drawn->prediction.rank; });
  std::vector<const Graph*> graphs(answer.job->world.size());
  std::map<std::uint32_t, std::size_t> index_drawn;  // By index in the world.
  for (std::size_t i = 0; i < all.size(); ++i) {
    graphs[all[i]->world_index] = &all[i]->graph;
    index_drawn.emplace(all[i]->world_index, i);
  }
  const std::vector<RankGraph> begins = rank_graphs(*answer.job, graphs);
  std::vector<RankTimeline> ranks;
  for (const Answer* drawn : all)
    ranks.push_back({&drawn->graph, &drawn->timeline, drawn->trace, drawn->prediction.rank,
                     begins[drawn->world_index].begins});
  std::vector<std::vector<RankTask>> collectives;
  for (const MatchedCollective& collective : answer.job->join.collectives) {
    std::vector<RankTask>& members = collectives.emplace_back();
    for (const CollectiveMember& member : collective.members) {
      const auto found = index_drawn.find(member.rank);
      if (found != index_drawn.end()) members.push_back({found->second, member.task});
    }
  }
  const RenderedRanks rendered = render_ranks(ranks, collectives);
  if (!export_ranks(rendered.trace, rendered.view, path))
    throw Error(
        fmt::format("'{}' would hold one rank, and there are {}; give a folder, as in out/, for "
                    "a file of each, or .json.gz or .pftrace for a picture of all",
                    path, all.size()));
}

void refuse_poor(const Trust& trust) {
  if (trust.grade() == Grade::poor)
    throw TraceError("refused because of --strict: trust is " + trust_warning(trust));
}

}  // namespace

bool wants_file_for_each_rank(const PredictOptions& options) {
  return options.perfetto_path.ends_with('/');
}

void finish(const Answer& answer, const PredictOptions& options) {
  if (options.strict) {
    refuse_warnings(answer.prediction.notes);
    refuse_poor(answer.prediction.trust);
  }
  const bool has_one_rank = answer.job == nullptr || answer.others.empty();
  if (wants_file_for_each_rank(options))
    write_timelines(answer, options.perfetto_path);
  else if (!options.perfetto_path.empty())
    has_one_rank ? write_timeline(answer, options.perfetto_path)
                 : write_ranks(answer, options.perfetto_path);
  const Graph* const changed = answer.prediction.steps.empty() ? nullptr : &answer.graph;
  if (!options.html_path.empty())
    write_prediction_html(*answer.recorded, changed, answer.prediction, options.html_path);
  if (options.take_page) show_page(*answer.recorded, changed, answer.prediction, options.take_page);
}

}  // namespace foretrace
