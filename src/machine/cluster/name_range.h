#pragma once

// Many names in one text, as used in machine files:
//
//     gpu[0-3]            gpu0 gpu1 gpu2 gpu3
//     gpu[0,2,5-4]        gpu0 gpu2 gpu5 gpu4
//     node[0-1]/nic[0-1]  node0/nic0 node0/nic1 node1/nic0 node1/nic1

#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

/// Returns the names in the order in which they are written; the last range changes fastest. Throws
/// Error if a range is not closed or has other characters than numbers, or if there are more than a
/// million names.
std::vector<std::string> expand_names(std::string_view range);
std::vector<std::string> expand_names(const std::vector<std::string>& ranges);

}  // namespace foretrace
