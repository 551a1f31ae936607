#pragma once

// The times at which one direction of a link is busy, and the search for free slots.
//
//     busy   |..XXX.....YY......|
//     a slot of 4, not before 1: at 5; one of 4 that ends by 15: at 6

#include <map>

#include "foretrace/units.h"

namespace foretrace {

class Channel {
 public:
  /// Marks [start, finish) as busy, even where it overlaps slots that are already taken.
  void take(Nanoseconds start, Nanoseconds finish);

  /// Returns the first start, from `earliest` on, of a free slot of this length.
  Nanoseconds first_slot(Nanoseconds earliest, Nanoseconds length) const;
  /// Returns the last start of a free slot of this length that ends by `latest`; may be negative.
  Nanoseconds last_slot(Nanoseconds latest, Nanoseconds length) const;

 private:
  /// Start and finish of each busy period. Periods that touch are merged, so that a search skips a
  /// full stretch of the link in one step.
  std::map<Nanoseconds, Nanoseconds> busy_;
};

}  // namespace foretrace
