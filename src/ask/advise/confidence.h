#pragma once

// How far a suggestion can be relied on, in a word and with the reason: what is wrong with the
// baseline comes first, then what is odd about the suggestion, then what is known of its kind.
//
//     high    the kind was compared with several outcomes, and at worst half of the gain is left
//     medium  it was compared with more than one, and at worst there still is a gain
//     low     it was never compared, may bring nothing, or rests on doubtful ground

#include <string>

#include "ask/advise/advised_job.h"

namespace foretrace {

/// Of one whose times and doubt are filled in.
Confidence confidence_of(const AdvisedJob& job, const Suggestion& found);

/// Why a gain may well be less, or empty. Host work of one piece that takes more than half of what
/// is won is no launching: a pause, a checkpoint, an evaluation, which stay whatever becomes of the
/// model.
std::string doubt_of(const AdvisedJob& job, const Graph& edited, Nanoseconds gain);

}  // namespace foretrace
