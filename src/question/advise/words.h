#pragma once

// Sentences and tables of advice, shared by text, Markdown and pages.

#include <string>
#include <vector>

#include "document/words/table.h"
#include "foretrace/answer/advice.h"

namespace foretrace {

/// The bound of a step, the most helpful change, and the overall limit.
struct AdviceVerdict {
  std::string bound, help, best;
};
AdviceVerdict advice_verdict(const Advice& advice);

/// Says up to how many GPUs each added GPU still brings at least half of what one alone does. Empty
/// if no network was given.
std::string more_gpus_sentence(const MoreGpus& more);

/// Returns "kernels 45 %, host work 31 %", without parts below 1 %.
std::string path_text(const PathShares& path);

/// Draws what the recommended suggestions leave of a step and save of it, as HTML; empty if there
/// are none.
std::string gains_picture(const Advice& advice);

Table ladder_table(const Advice& advice);
/// Returns the recommended suggestions with this goal, at most `advice.top`.
std::vector<const Suggestion*> recommended(const Advice& advice, std::string_view goal);
Table suggestion_table(const Advice& advice, std::string_view goal);
/// Returns the details of a suggestion, one sentence each.
std::vector<std::string> suggestion_details(const Advice& advice, const Suggestion& one);
Table memory_choice_table(const Advice& advice);
/// Lists the gain of each kernel that was asked about.
Table candidate_table(const Advice& advice);
Table speed_table(const Advice& advice);

/// Returns sentences about the best combination: its gain compared with the sum of the single
/// gains, then the contribution of each member.
std::vector<std::string> joint_sentences(const Advice& advice);
Table pair_table(const Advice& advice);

/// Says which changes reach the target. Empty without a target.
std::string target_sentence(const Advice& advice);
/// Returns a line such as "fused_optimizer: gains nothing" for each suggestion that is not
/// recommended.
std::vector<std::string> not_recommended(const Advice& advice);

/// "the host", "the device", "input" ...
std::string bound_name(PathPart part);

/// Returns a sentence that names what bounds a step, Advice::bound.
std::string bound_sentence(const Advice& advice);

}  // namespace foretrace
