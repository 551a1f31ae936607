#pragma once

// How far a suggestion can be relied on, in a word and with the reason. The suggestion's own doubt
// comes first, then problems of the baseline, then what is known of its kind.
//
//     high    the kind was compared with several outcomes, is typically off by a fifth at most, and
//             at worst half of the gain is left
//     medium  it was compared with more than one, and at worst there still is a gain
//     low     it was never compared, may gain nothing, or its baseline is doubtful

#include <string>

#include "question/advise/advised_job.h"

namespace foretrace {

/// REQUIRES: the times and the doubt of `found` are set.
Confidence confidence_of(const AdvisedJob& job, const Suggestion& found);

/// Returns the reason why a gain may well be less than predicted, or empty text. If one piece of
/// host work makes up more than half of the gain, it is not launching but a pause, a checkpoint or
/// an evaluation, which remains whatever happens to the model.
std::string doubt_of(const AdvisedJob& job, const Graph& edited, Nanoseconds gain);

}  // namespace foretrace
