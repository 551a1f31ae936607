#pragma once

// The answer to one setting asked about with several values.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"

namespace foretrace {

/// The predictions for one value of a setting that varies.
struct CurvePoint {
  std::string value;
  Nanoseconds step_time{0};
  std::optional<Bytes> peak_allocated, peak_reserved;  ///< Peaks of the fullest device.
  bool fits = true;                                    ///< No request was refused.
  bool satisfies = true;                               ///< Whether the assertion of --until holds.
  bool on_front = false;        ///< No other point is both faster and smaller.
  std::vector<Figure> figures;  ///< Figures of the transform that varies.
  Trust trust;
  std::string
      refused;  ///< The reason why there is no answer for this value; empty if there is one.
};

struct Curve {
  std::vector<InputFile> inputs;
  std::string setting;            ///< "recompute.share"
  std::vector<std::string> uses;  ///< The what-if with its other settings.
  std::string until;              ///< "peak_reserved <= 16GB", or empty.
  Nanoseconds baseline_step_time{0};
  bool has_steps = true;  ///< If false, times are those of the whole recording.
  bool has_times = true;  ///< False of a memory snapshot.
  std::optional<Bytes> baseline_allocated, baseline_reserved;
  std::vector<CurvePoint> points;     ///< In order of the values.
  std::optional<std::size_t> answer;  ///< The value furthest along that satisfies `until`.
  std::string answer_text;            ///< In words.
  Trust trust;                        ///< Trust of the least reliable point.
  Notes notes;
};

}  // namespace foretrace
