#pragma once

// Writes a trace in the formats of other tools, so that it opens in Perfetto, runs through scripts
// made for Nsight Systems, or shows in PyTorch's memory viewer. The inverse of import.h: the output
// reads back with the same records, as far as the format has a place for them. The list is
// src/export/exporters.def.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

struct ExporterEntry {
  std::string_view name;     ///< "nsys"
  std::string_view endings;  ///< File name endings, with their dots, separated by blanks.
  std::string_view summary;  ///< One line for `list exporters`.
  /// Throws Error if the path cannot be written or the trace has nothing that the format can
  /// contain. Leaves no partial file behind.
  void (*write)(const Trace& trace, const std::string& path);
};

const std::vector<ExporterEntry>& exporters();

/// The longest ending of a path that is known: "x.json.gz" ends in ".json.gz".
struct KnownEnding {
  const ExporterEntry* exporter = nullptr;  ///< nullptr if none writes such a file.
  std::string_view text;
};
KnownEnding known_ending(std::string_view path);
const ExporterEntry* exporter_for(std::string_view path);
/// ".ftrace, .json.gz, ...".
std::string all_endings();

/// Each ending of an exporter by itself, the usual one first.
std::vector<std::string_view> endings_of(const ExporterEntry& exporter);

/// Writes the format selected by the ending of the path. Throws Error with all endings if none
/// fits.
void export_trace(const Trace& trace, const std::string& path);

/// Writes several ranks as one picture, in the format that the ending selects, otherwise as JSON.
/// Returns false, and writes nothing, if the format has one rank per file. Throws Error as
/// export_trace() does.
bool export_ranks(const Trace& trace, const RankView& view, const std::string& path);

struct Anonymization {
  std::string salt{};               ///< Equal salts give equal replacements.
  std::vector<std::string> keep{};  ///< Names, or parts of paths, that stay as they are.
  bool drop_shapes = false;         ///< Also drops sizes, types and values of op arguments.
  bool keep_time = false;           ///< Keeps the date and time of the recording.
  /// Returns the part of a kernel's name to keep because predictions depend on it; nullptr keeps
  /// nothing.
  std::string (*kernel_words)(std::string_view name) = nullptr;
};

/// The texts that anonymize() kept and replaced.
struct AnonymizedTexts {
  std::set<std::string> kept;    ///< Texts that were kept, including parts of others.
  std::set<std::string> hidden;  ///< Texts that were replaced.
};

/// The same trace without names of the program: names of CUDA, PyTorch and NCCL stay, everything
/// else becomes letters that depend on it and the salt. So equal texts stay equal, and parts of
/// paths are replaced separately. Addresses and times are shifted. Everything that predictions
/// depend on stays, so they do not change.
Trace anonymize(const Trace& trace, const Anonymization& settings, AnonymizedTexts& texts);

}  // namespace foretrace
