#pragma once

namespace foretrace::collect {

/// Starts a detached thread that blocks all signals, because they are meant for the program's own
/// threads. Returns 0 or the error of pthread_create.
int start_detached(void* (*main)(void*), void* argument);

}  // namespace foretrace::collect
