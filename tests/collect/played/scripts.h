#pragma once

// The scripts: played_app runs one of these functions, named by its first argument.

#include <string>
#include <vector>

namespace played {

/// The arguments after the name of the script.
using Arguments = std::vector<std::string>;

unsigned long number(const Arguments& arguments, std::size_t at, unsigned long otherwise);

// played_app.cc
int play(const std::string& script, const Arguments& arguments);
// nvtx.cc: everything that NVTX's headers offer and programs use.
int play_nvtx(const Arguments& arguments);
/// Makes a range in the destructor of a thread-local object that runs long after the recorder's
/// own.
int play_late_range(const Arguments& arguments);
/// Opens one range.
void push_range(const char* name);
void pop_range();
/// Opens a range in a domain, with a registered name, as Python's nvtx does.
void push_registered_range(const char* name);
void pop_registered_range();
// processes.cc: ends and children of processes.
int play_end(const std::string& how, const Arguments& arguments);
int play_fork(const Arguments& arguments);
int play_ranks(const Arguments& arguments, const char* self);
int play_full(const Arguments& arguments);
// habits.cc: unusual things that programs do to their process, and what they find there.
int play_closes(const Arguments& arguments);
int play_stderr(const Arguments& arguments);
int play_signals(const Arguments& arguments);
int play_errno(const Arguments& arguments);
int play_numbers(const Arguments& arguments);
int play_limit(const Arguments& arguments);
int play_moves(const Arguments& arguments);
int play_ranges(const Arguments& arguments);
int play_raw_fork(const Arguments& arguments);
int play_own_signal(const Arguments& arguments);
// torch.cc: the allocator of PyTorch.
int play_torch(const Arguments& arguments);

}  // namespace played
