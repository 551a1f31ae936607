#include "ask/predict/finish.h"

#include <filesystem>
#include <string>

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
    std::string detail = note.count > 1 ? std::to_string(note.count) + " times" : "";
    if (!note.example.empty()) detail += (detail.empty() ? "" : ", first: ") + note.example;
    throw TraceError("refused because of --strict: " + note.text +
                     (detail.empty() ? "" : " (" + detail + ")"));
  }
}

/// In the format that the ending of the path names; PyTorch's profiler's for any other.
void write_timeline(const Answer& answer, const std::string& path) {
  const ExporterEntry* exporter = exporter_for(path);
  if (exporter == nullptr) exporter = exporter_for(".json");
  exporter->write(render(answer.graph, answer.timeline, answer.trace), path);
}

/// One file for each rank, so that the folder is read back as the job is.
void write_timelines(const Answer& answer, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder + ": cannot be made: " + error.message());
  if (!fs::is_empty(folder, error))
    throw Error(folder + ": must be a new or an empty folder, for a file of each rank");
  const auto path_of = [&](std::int32_t rank) {
    return folder + "rank" + std::to_string(rank) + ".json.gz";
  };
  write_timeline(answer, path_of(answer.prediction.rank));
  for (const Answer& other : answer.others) write_timeline(other, path_of(other.prediction.rank));
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
  if (wants_file_for_each_rank(options))
    write_timelines(answer, options.perfetto_path);
  else if (!options.perfetto_path.empty())
    write_timeline(answer, options.perfetto_path);
  if (!options.html_path.empty()) {
    const bool is_what_if = !answer.prediction.steps.empty();
    write_prediction_html(*answer.recorded, is_what_if ? &answer.graph : nullptr, answer.prediction,
                          options.html_path);
  }
}

}  // namespace foretrace
