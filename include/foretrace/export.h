#pragma once

// Writing a trace in the formats of other tools, so that it opens in Perfetto, runs through scripts
// made for Nsight Systems, or shows in PyTorch's memory viewer. The inverse of import.h: what is
// written reads back with the same records, as far as the format has a place for them. The list is
// src/export/exporters.def.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

struct ExporterEntry {
  std::string_view name;     ///< "nsys"
  std::string_view endings;  ///< Of file names, with their dots, separated by blanks.
  std::string_view summary;  ///< One line for `list exporters`.
  /// Throws Error if the path cannot be written or the trace has nothing that the format can hold.
  /// Leaves no half-written file behind.
  void (*write)(const Trace& trace, const std::string& path);
};

const std::vector<ExporterEntry>& exporters();

/// By the ending of the path; nullptr if none writes such a file.
const ExporterEntry* exporter_for(std::string_view path);

/// Each ending of an exporter by itself, the usual one first.
std::vector<std::string_view> endings_of(const ExporterEntry& exporter);

/// Writes what the ending of the path asks for. Throws Error with all endings if none fits.
void export_trace(const Trace& trace, const std::string& path);

struct Anonymization {
  std::string salt{};               ///< The same salt gives the same replacements.
  std::vector<std::string> keep{};  ///< Names, or parts of paths, that stay as they are.
  bool drop_shapes = false;         ///< Sizes, types and values of what ops work on go, too.
  bool keep_time = false;           ///< When it was recorded stays.
  /// What of a kernel's name is to stay, because predictions look at it; nullptr: nothing.
  std::string (*kernel_words)(std::string_view name) = nullptr;
};

/// What anonymize() did to texts.
struct AnonymizedTexts {
  std::set<std::string> kept;    ///< Those that stayed, and parts of others that did.
  std::set<std::string> hidden;  ///< Those that did not.
};

/// The same trace with names that say nothing about the program: what CUDA, PyTorch and NCCL call
/// things stays, all else becomes letters that depend on it and the salt. So what was the same is
/// still the same, parts of paths each by themselves. Addresses begin anew, and so does time. What
/// predictions look at stays, so that they say the same.
Trace anonymize(const Trace& trace, const Anonymization& how, AnonymizedTexts& texts);

}  // namespace foretrace
