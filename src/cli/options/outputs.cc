#include "cli/options/outputs.h"

#include <filesystem>
#include <fmt/core.h>
#include <optional>
#include <set>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGraph = ".graph";

/// How to write a trace, and the ending of its file.
struct OutputFormat {
  const ExporterEntry* exporter = nullptr;  ///< nullptr: the graph.
  std::string ending;
};

std::optional<OutputFormat> format_of_path(std::string_view path, bool allows_graph) {
  if (const KnownEnding known = known_ending(path); known.exporter != nullptr)
    return OutputFormat{known.exporter, std::string(known.text)};
  if (allows_graph && path.ends_with(kGraph)) return OutputFormat{nullptr, std::string(kGraph)};
  return std::nullopt;
}

/// `to` is the name of an exporter, or an ending with or without its dot.
std::optional<OutputFormat> format_named(const std::string& to, bool allows_graph) {
  for (const ExporterEntry& exporter : exporters()) {
    if (to == exporter.name)
      return OutputFormat{&exporter, std::string(endings_of(exporter).front())};
  }
  const std::string dotted = to.starts_with('.') ? to : "." + to;
  std::optional<OutputFormat> format = format_of_path(dotted, allows_graph);
  if (format && format->ending != dotted) format.reset();
  return format;
}

std::vector<std::string_view> format_names(bool allows_graph) {
  std::vector<std::string_view> names;
  for (const ExporterEntry& exporter : exporters()) names.push_back(exporter.name);
  if (allows_graph) names.push_back("graph");
  return names;
}

/// Finds the '*' of a pattern; only the last part of a path may be one. Returns npos if there is
/// none.
std::size_t star_in(const std::string& path) {
  const std::size_t star = path.rfind('*');
  const std::size_t slash = path.rfind('/');
  return star == std::string::npos || slash == std::string::npos || star > slash
             ? star
             : std::string::npos;
}

void make_folder(const fs::path& folder) {
  if (folder.empty()) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(fmt::format("cannot create the folder '{}': {}", folder.string(), error.message()));
}

}  // namespace

void OutputChoice::describe(Fields& fields) {
  fields.as({.value = "OUT", .is_positional = true, .is_required = true})
      .path("out", path,
            fmt::format("Output file; its ending selects the format: {}. For several ranks, a "
                        "folder (with --to) or a pattern such as out/rank*.json.gz",
                        all_endings()));
  fields.as({.value = "NAME"})
      .text("to", to,
            fmt::format("Output format, whatever the ending of OUT: {}, or an ending",
                        joined(format_names(allows_graph))));
}

std::string OutputChoice::all_endings() const {
  std::string all;
  for (const ExporterEntry& exporter : exporters()) {
    all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", joined(endings_of(exporter), " or "),
                       exporter.name);
  }
  if (allows_graph) all += ", .graph (the dependencies that were found, as text)";
  return all;
}

void OutputChoice::check(const std::string& command) const {
  if (!to.empty()) {
    if (format_named(to, allows_graph)) return;
    const std::vector<std::string_view> names = format_names(allows_graph);
    throw Error(fmt::format("{}: --to must be one of {} or one of their endings, got '{}'{}",
                            command, joined(names), to, did_you_mean(to, names)));
  }
  if (!is_folder() && format_of_path(path, allows_graph)) return;
  throw Error(fmt::format("{}: OUT must end in one of {}, or --to must name the format, got '{}'",
                          command, all_endings(), path));
}

bool OutputChoice::is_folder() const {
  std::error_code ignored;
  return path.ends_with('/') || fs::is_directory(path, ignored);
}

std::vector<Output> OutputChoice::output_files(const std::string& from,
                                               const std::vector<Trace>& traces,
                                               Invocation& invocation) const {
  const OutputFormat format = to.empty() ? format_of_path(path, allows_graph).value()
                                         : format_named(to, allows_graph).value();
  const std::size_t star = star_in(path);
  const bool is_one_file = star == std::string::npos && !is_folder() &&
                           (traces.size() == 1 || format_of_path(path, allows_graph));
  if (is_one_file && traces.size() > 1) {
    throw Error(
        fmt::format("{} holds {} traces: OUT must be a folder (with --to) or a pattern such as "
                    "rank*{}, got '{}'",
                    from, traces.size(), format.ending, path));
  }
  std::vector<Output> all;
  std::set<std::string> taken;
  for (const Trace& trace : traces) {
    std::string file = path;
    if (star != std::string::npos) {
      file.replace(star, 1, std::to_string(trace.rank));
    } else if (!is_one_file) {
      file = (fs::path(path) / fmt::format("rank{}{}", trace.rank, format.ending)).string();
    }
    if (!taken.insert(file).second) {
      throw Error(fmt::format(
          "{} holds two traces of rank {}, and both would become '{}'; convert them one at a time",
          from, trace.rank, file));
    }
    all.push_back({&trace, file, format.exporter});
  }
  std::vector<NamedFile> files;
  for (const Output& output : all) files.push_back({.setting = "OUT", .path = output.path});
  invocation.files.add_outputs(files);
  if (!is_one_file) make_folder(fs::path(all.front().path).parent_path());
  return all;
}

}  // namespace foretrace
