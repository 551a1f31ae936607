#pragma once

// Stands in for libarchive, which the page does not include: archives are refused. Users can unpack
// an archive and give the page all files of a job at once.

#include <cerrno>
#include <cstddef>

#include "foretrace/error.h"

struct archive;
struct archive_entry;
using archive_read_callback = std::ptrdiff_t(archive*, void*, const void**);
constexpr int ARCHIVE_EOF = 1, ARCHIVE_OK = 0, ARCHIVE_WARN = -20, ARCHIVE_FATAL = -30;
constexpr int AE_IFREG = 0100000;

inline archive* archive_read_new() {
  throw foretrace::TraceError(
      "archives, and files compressed with xz or bzip2, cannot be read in a browser: unpack it, "
      "and "
      "open its files together");
}
inline int archive_read_free(archive*) { return ARCHIVE_OK; }
inline int archive_read_support_format_tar(archive*) { return ARCHIVE_FATAL; }
inline int archive_read_support_format_zip_streamable(archive*) { return ARCHIVE_FATAL; }
inline int archive_read_support_format_raw(archive*) { return ARCHIVE_FATAL; }
inline int archive_read_support_filter_xz(archive*) { return ARCHIVE_FATAL; }
inline int archive_read_support_filter_bzip2(archive*) { return ARCHIVE_FATAL; }
inline int archive_read_open(archive*, void*, std::nullptr_t, archive_read_callback*,
                             std::nullptr_t) {
  return ARCHIVE_FATAL;
}
inline int archive_read_next_header(archive*, archive_entry**) { return ARCHIVE_FATAL; }
inline std::ptrdiff_t archive_read_data(archive*, void*, std::size_t) { return ARCHIVE_FATAL; }
inline void archive_set_error(archive*, int, const char*) {}
inline const char* archive_entry_pathname_utf8(archive_entry*) { return nullptr; }
inline const char* archive_entry_pathname(archive_entry*) { return nullptr; }
inline int archive_entry_filetype(archive_entry*) { return 0; }
inline const char* archive_entry_hardlink(archive_entry*) { return nullptr; }
inline int archive_entry_is_encrypted(archive_entry*) { return 0; }
