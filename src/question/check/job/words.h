#pragma once

// Describes changes in words.

#include <string>

#include "foretrace/graph.h"
#include "question/check/job/changes.h"

namespace foretrace {

/// How significant a change is, from 1 (least). Of several changes at one place, the greatest
/// becomes the headline.
int significance(const WorkChange& change);
bool is_event_wait(const WorkChange& change);
/// Whether a kind is a copy or a collective.
inline bool is_copy_kind(TaskKind kind) { return runs_on_device(kind) && moves_bytes(kind); }

/// "12 new cudaStreamSynchronize", "volta_sgemm slower: 1.2 ms -> 1.9 ms x 12".
std::string change_words(const WorkChange& change);
/// "kernels take 1.03 times as long throughout, not in one place: ..."
std::string general_words(const GeneralChange& general);
/// "train.py:88 in main, aten::item, module GPT_0/Block_1"; empty if nothing is known.
std::string place_words(const WorkChange& change, int line);

}  // namespace foretrace
