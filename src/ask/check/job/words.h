#pragma once

// Describes changes in words.

#include <string>

#include "ask/check/job/changes.h"
#include "foretrace/graph.h"

namespace foretrace {

/// How significant a change is: of several at one place the greatest is the headline. 0: not at
/// all.
int telling_rank(const WorkChange& change);
bool is_event_wait(const WorkChange& change);
/// A copy or a collective.
bool is_copy_kind(TaskKind kind);

/// "12 new cudaStreamSynchronize", "volta_sgemm slower: 1.2 ms -> 1.9 ms x 12".
std::string change_words(const WorkChange& change);
/// "kernels take 1.03 times as long throughout, at no one place: ..."
std::string general_words(const GeneralChange& general);
/// "train.py:88 in main, aten::item, module GPT_0/Block_1"; empty if nothing is known.
std::string place_words(const WorkChange& change, int line);

}  // namespace foretrace
