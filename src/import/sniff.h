#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretrace/import.h"

namespace foretrace {

/// The first bytes of a file or of a member of an archive, decompressed. Throws TraceError if it
/// cannot be opened.
std::string sniff(const std::string& path);

struct ArchiveContents {
  std::vector<std::string>
      traces;  ///< Members that some importer recognizes, in the order of the archive.
  std::string
      first_other;     ///< "member is ..." of the first that none does; empty if there is none.
  std::string damage;  ///< Why there may have been more members; empty if nothing says so.
};

ArchiveContents look_into_archive(const std::string& archive);

/// A note of what the archive may have lost.
void note_damage(const ArchiveContents& contents, const std::string& archive, Notes& notes);

/// For "must be a trace, but is ...", where no importer recognizes a file.
std::string what_it_is(const Sniffed& file);

}  // namespace foretrace
