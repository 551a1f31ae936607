#pragma once

// Where commands that write traces put them: one trace goes to a file, whose ending selects the
// format; several go to a folder, or to files named by a pattern.
//
//     OUT              --to       one trace              ranks 0 and 1
//     x.json.gz                   x.json.gz              an error
//     out/             kineto     out/rank0.json.gz      out/rank0.json.gz, out/rank1.json.gz
//     job-*.ftrace                job-0.ftrace           job-0.ftrace, job-1.ftrace

#include <string>
#include <vector>

#include "cli/options/command.h"
#include "foretrace/export.h"

namespace foretrace {

struct Output {
  const Trace* trace = nullptr;
  std::string path;
  const ExporterEntry* exporter = nullptr;  ///< nullptr: the dependency graph, as text.
};

struct OutputChoice {
  std::string path;
  std::string to;
  bool allows_graph = false;  ///< ".graph" is a valid ending, too.

  void describe(Fields& fields);
  /// Throws Error if the ending or `to` names no known format. Call it before anything is read.
  void check(const std::string& command) const;
  /// Returns one output for each trace, and creates the folder. Throws Error if two traces would
  /// become the same file, or one would replace an input.
  std::vector<Output> output_files(const std::string& from, const std::vector<Trace>& traces,
                                   Invocation& invocation) const;

 private:
  bool is_folder() const;
  std::string all_endings() const;
};

}  // namespace foretrace
