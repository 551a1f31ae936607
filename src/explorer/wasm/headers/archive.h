#pragma once

// Stands in for libarchive, with the functions that import/files/archive.cc calls: tar and zip are
// read from front to back by archive.cc. Files packed with xz or bzip2 are refused.

#include <cerrno>
#include <cstddef>

#include "foretrace/error.h"

struct archive;
struct archive_entry;
using archive_read_callback = std::ptrdiff_t(archive*, void*, const void**);
constexpr int ARCHIVE_EOF = 1, ARCHIVE_OK = 0, ARCHIVE_WARN = -20, ARCHIVE_FATAL = -30;
constexpr int AE_IFREG = 0100000;

archive* archive_read_new();
int archive_read_free(archive* reader);
int archive_read_open(archive* reader, void* who, std::nullptr_t, archive_read_callback* give,
                      std::nullptr_t);
int archive_read_next_header(archive* reader, archive_entry** entry);
std::ptrdiff_t archive_read_data(archive* reader, void* to, std::size_t room);
const char* archive_entry_pathname_utf8(archive_entry* entry);
int archive_entry_filetype(archive_entry* entry);
int archive_entry_is_encrypted(archive_entry* entry);

inline int archive_read_support_format_tar(archive*) { return ARCHIVE_OK; }
inline int archive_read_support_format_zip_streamable(archive*) { return ARCHIVE_OK; }
inline int archive_read_support_format_raw(archive*) { return ARCHIVE_OK; }
inline int archive_read_support_filter_xz(archive*) {
  throw foretrace::TraceError(
      "files packed with xz or bzip2 cannot be read in a browser: unpack it first");
}
inline int archive_read_support_filter_bzip2(archive*) { return ARCHIVE_FATAL; }
inline void archive_set_error(archive*, int, const char*) {}
inline const char* archive_entry_pathname(archive_entry* entry) {
  return archive_entry_pathname_utf8(entry);
}
/// Links are no regular files here.
inline const char* archive_entry_hardlink(archive_entry*) { return nullptr; }
