#pragma once

#include <cstdint>

#include "foretrace/trace.h"

namespace foretrace {

/// Adds calls for waits that a profile of XLA does not hold. JAX returns from a step when all is
/// launched; a program that then reads a result waits for the device, which leaves no event on its
/// thread in some versions:
///
///     host     |step: launches|..........no event.........|step: ...
///     device         |=====================|     ^ returns
///                    |-- the wait that is added --|
///
/// Adds them on a thread with the marks of steps, if in nearly all long stretches without an event
/// that begin while the device works, it is idle at the end and was so for the shorter part of the
/// stretch. They end with the work. Counts them in the notes. It is wrong of a program whose own
/// work, which leaves no event either, happens to take a little longer than the device's.
void add_unrecorded_waits(Trace& trace);

}  // namespace foretrace
