#pragma once

// When a link carries something in one direction: slots that do not overlap.
//
//     busy   |..XXX.....YY......|
//     a slot of 4, not before 1: at 5; one of 4 that ends by 16: at 6

#include <map>

#include "foretrace/units.h"

namespace foretrace {

class Channel {
 public:
  /// Takes [start, finish), whatever else is in there.
  void take(Nanoseconds start, Nanoseconds finish);

  /// The first start from `earliest` on of a free slot this long.
  Nanoseconds first_slot(Nanoseconds earliest, Nanoseconds length) const;
  /// The last start of a free slot this long that ends by `latest`; may be negative.
  Nanoseconds last_slot(Nanoseconds latest, Nanoseconds length) const;

 private:
  /// Start to finish. Neighbours that touch are one, so that a full link is one step to cross.
  std::map<Nanoseconds, Nanoseconds> busy_;
};

}  // namespace foretrace
