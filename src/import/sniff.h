#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretrace/import.h"

namespace foretrace {

/// The first bytes of a file or of a member of an archive, decompressed. Throws TraceError if it
/// cannot be opened.
std::string sniff(const std::string& path);

/// The members of an archive that some importer recognizes, in the order of the archive.
std::vector<std::string> traces_in_archive(const std::string& archive);

/// For "must be a trace, but is ...", where no importer recognizes a file.
std::string what_it_is(const Sniffed& file);

}  // namespace foretrace
