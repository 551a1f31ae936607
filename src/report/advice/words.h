#pragma once

// Sentences and tables of advice, shared by text and markdown.

#include <string>
#include <vector>

#include "foretrace/answer/advice.h"
#include "report/words/table.h"

namespace foretrace {

/// The bound of a step, the most helpful change, and the overall limit.
struct AdviceVerdict {
  std::string bound, help, best;
};
AdviceVerdict advice_verdict(const Advice& advice);

/// Up to how many GPUs each added one still brings half of what one alone does; empty if nobody
/// asked.
std::string more_gpus_sentence(const MoreGpus& more);

/// "kernels 45 %, host work 31 %", parts below a hundredth left out.
std::string path_text(const PathShares& path);

Table ladder_table(const Advice& advice);
/// The recommended ones with this goal, at most `most`.
std::vector<const Suggestion*> recommended(const Advice& advice, std::string_view goal);
Table suggestion_table(const Advice& advice, std::string_view goal);
/// Details of a suggestion, one sentence each.
std::vector<std::string> suggestion_details(const Advice& advice, const Suggestion& one);
Table memory_choice_table(const Advice& advice);
Table speed_table(const Advice& advice);

/// About the best combination: the joint gain against the sum, then each contribution.
std::vector<std::string> joint_sentences(const Advice& advice);
Table pair_table(const Advice& advice);

/// The changes that reach the target; empty without one.
std::string target_sentence(const Advice& advice);
/// "fused_optimizer: gains nothing" ... for those not recommended.
std::vector<std::string> not_recommended(const Advice& advice);

}  // namespace foretrace
