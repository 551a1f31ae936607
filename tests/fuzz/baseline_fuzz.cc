// Any text as a baseline or as a limit of `check`: an Error, or a baseline that is written and read
// back and gives a verdict, however large the numbers are.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "foretrace/error.h"
#include "foretrace/question/check.h"

namespace {

using namespace foretrace;

void require(bool holds) {
  if (!holds) std::abort();
}

void judge_by(const FigureEntry& figure, const Limit& limit) {
  constexpr std::int64_t kMax = 1'000'000'000'000'000'000;
  for (const std::int64_t was : {std::int64_t{0}, std::int64_t{1000}, kMax}) {
    for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1010}, kMax})
      judge(step_change(figure, {was, was}, {now, now}), figure.less_is_worse, was, limit);
  }
}

void read_as_limit(std::string_view text) {
  const auto [name, limit] = parse_named_limit(text);
  judge_by(figure_entry(name), limit);
  require(parse_limit(limit.text, figure_entry(name)).absolute == limit.absolute);
}

void read_as_baseline(std::string_view text) {
  const CheckBaseline baseline = parse_baseline_text(text);
  const std::string written = write_baseline(baseline);
  const CheckBaseline again = parse_baseline_text(written);
  require(write_baseline(again) == written);
  require(structure_fingerprint(again.summary) == structure_fingerprint(baseline.summary));
  for (const auto& [name, values] : baseline.summary.figures) {
    const FigureEntry& figure = figure_entry(name);
    const StepChange none = step_change(figure, values, again.summary.figures.at(name));
    require(none.change == 0 && none.lower <= 0 && none.upper >= 0);
    for (const auto* limits : {&baseline.fail, &baseline.warn}) {
      if (limits->contains(name)) judge_by(figure, limits->at(name));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    text.starts_with('{') ? read_as_baseline(text) : read_as_limit(text);
  } catch (const Error&) {
  }
  return 0;
}
