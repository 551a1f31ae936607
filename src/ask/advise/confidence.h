#pragma once

// How far a suggestion can be relied on, in a word and with the reason: problems of the baseline
// come first, then oddities of the suggestion, then what is known of its kind.
//
//     high    the kind was compared with several outcomes, and at worst half of the gain is left
//     medium  it was compared with more than one, and at worst there still is a gain
//     low     it was never compared, may gain nothing, or its baseline is doubtful

#include <string>

#include "ask/advise/advised_job.h"

namespace foretrace {

/// For a suggestion whose times and doubt are filled in.
Confidence confidence_of(const AdvisedJob& job, const Suggestion& found);

/// The reason why a gain may well be less, or empty. Host work of one piece that takes more than
/// half of the gain is not launching but a pause, a checkpoint or an evaluation, which remain
/// whatever happens to the model.
std::string doubt_of(const AdvisedJob& job, const Graph& edited, Nanoseconds gain);

}  // namespace foretrace
