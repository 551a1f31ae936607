#pragma once

namespace foretrace::collect {

/// Starts a thread of ours that nobody joins, with all signals blocked: they belong to the program.
/// Returns 0 or the error of pthread_create.
int start_detached(void* (*main)(void*), void* argument);

}  // namespace foretrace::collect
