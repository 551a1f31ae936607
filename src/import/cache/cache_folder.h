#pragma once

// The folder of cached traces. A trace is private to its owner, and a copy is trusted without
// comparing it with the original file. So nobody else may read copies, and files that another user
// could have written are not used.

#include <string>

namespace foretrace {

/// Creates the folder, accessible to the user alone, if it does not exist.
void make_cache_folder(const std::string& folder);

/// Whether the folder belongs to the user and nobody else can write to it. If it contains only
/// copies, this also removes the access rights of others and, if others had write access, deletes
/// the copies.
bool is_trusted_folder(const std::string& folder);

/// Whether the copy is a regular file of the user with a single name, which nobody else could have
/// written. Also removes the access rights of others and sets its time of use to the current time.
bool is_trusted_copy(const std::string& path);

/// Deletes unfinished copies of killed writers, then the least recently used copies until the total
/// size is within the limit. Does not touch files with other names.
void make_room(const std::string& folder);

}  // namespace foretrace
