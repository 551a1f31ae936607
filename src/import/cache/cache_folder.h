#pragma once

// The folder in which copies of traces are kept. A trace is private to its owner, and a copy is
// read without looking at the file it was made from: so nobody else may read copies, and anything
// that others could have put there is not used.

#include <string>

namespace foretrace {

/// Makes the folder, for the user alone, if it does not exist.
void make_cache_folder(const std::string& folder);

/// Whether the folder is the user's and writable by nobody else. One that contains only copies is
/// closed to others; if they could have written there, its copies are deleted first.
bool is_trusted_folder(const std::string& folder);

/// Whether the copy is a file of the user, with no other name, that nobody else could have written.
/// Closes it to others, and marks it as used now.
bool is_trusted_copy(const std::string& path);

/// Deletes what killed writers left, and then the least recently used copies until the rest is
/// within the limit. Files with other names are left alone.
void make_room(const std::string& folder);

}  // namespace foretrace
