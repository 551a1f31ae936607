#pragma once

// The folder in which copies of traces are kept. What is in a trace is its owner's business, and a
// copy is believed without a look at the file it was made from: so nobody else may read copies, and
// what anybody else could have put there is not used.

#include <string>

namespace foretrace {

/// Makes the folder, for the user alone, if it is not there.
void make_cache_folder(const std::string& folder);

/// Whether the folder is the user's and writable by nobody else. One that holds nothing but copies
/// is closed to others; if they could have written there, its copies are deleted first.
bool is_trusted_folder(const std::string& folder);

/// Whether the copy is a file of the user's, by no other name, that nobody else could have written.
/// Closes it to others, and marks it as used now.
bool is_trusted_copy(const std::string& path);

/// Deletes what killed writers left, and then the copies that were not used for longest until the
/// rest is within the limit. Files of other names are none of the cache's.
void make_room(const std::string& folder);

}  // namespace foretrace
