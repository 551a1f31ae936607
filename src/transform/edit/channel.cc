#include "transform/edit/channel.h"

#include <algorithm>

namespace foretrace {

void Channel::take(Nanoseconds start, Nanoseconds finish) {
  if (finish <= start) return;
  auto at = busy_.upper_bound(start);
  if (at != busy_.begin() && std::prev(at)->second >= start) {
    --at;
    start = at->first;
  }
  while (at != busy_.end() && at->first <= finish) {
    finish = std::max(finish, at->second);
    at = busy_.erase(at);
  }
  busy_.emplace(start, finish);
}

Nanoseconds Channel::first_slot(Nanoseconds earliest, Nanoseconds length) const {
  auto at = busy_.upper_bound(earliest);
  if (at != busy_.begin()) earliest = std::max(earliest, std::prev(at)->second);
  for (; at != busy_.end() && at->first - earliest < length; ++at) earliest = at->second;
  return earliest;
}

Nanoseconds Channel::last_slot(Nanoseconds latest, Nanoseconds length) const {
  auto at = busy_.lower_bound(latest);
  while (at != busy_.begin()) {
    --at;
    if (at->second <= latest - length) break;
    latest = at->first;
  }
  return latest - length;
}

}  // namespace foretrace
