#include "trace/serving/serving_step.h"

#include <algorithm>

#include "base/parse_number.h"
#include "base/wording.h"

namespace foretrace {
namespace {

/// Takes words and numbers off the front of a text.
class StepText {
 public:
  explicit StepText(std::string_view text) : rest_(text) {}

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  /// Returns -1 if no number of at most 18 digits follows.
  std::int64_t number() {
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    const auto value = parse_number<std::int64_t>(rest_.substr(0, end));
    if (end == 0 || end > 18 || !value) return -1;
    rest_.remove_prefix(end);
    return *value;
  }
  /// The text up to `end`, which is taken as well; empty if there is none.
  std::string_view until(char end) {
    const std::size_t at = rest_.find(end);
    if (at == rest_.npos) return {};
    const std::string_view found = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return found;
  }

 private:
  std::string_view rest_;
};

/// The number behind `key`, which stands at the beginning or behind a character that is no part of
/// a key; -1 if there is none.
std::int64_t value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const bool begins = before == ' ' || before == '[' || (before >= '0' && before <= '9');
    const std::int64_t value = StepText(text.substr(at + key.size())).number();
    if (begins && value >= 0) return value;
  }
  return -1;
}

struct RequestSums {
  std::int64_t requests = 0, tokens = 0, context = -1;
};

/// Reads "9(sq8155sk8430...)", "2(14721)" or "2".
std::optional<RequestSums> read_sums(StepText& text) {
  RequestSums sums{.requests = text.number()};
  if (sums.requests < 0) return {};
  sums.tokens = sums.requests == 0 ? 0 : -1;
  if (!text.take("(")) return sums;
  const std::string_view inner = text.until(')');
  sums.tokens = StepText(inner).number();
  if (sums.tokens >= 0) return sums;
  sums.tokens = value_of(inner, "sq"), sums.context = value_of(inner, "sk");
  return sums.tokens < 0 ? std::nullopt : std::optional(sums);
}

std::optional<ServingStep> vllm_step(std::string_view name) {
  StepText text(name);
  if (!text.take("execute_")) return {};
  ServingStep step;
  if (text.take("new_")) {
    step.prompts = text.number(), step.prompt_tokens = step.prompts == 0 ? 0 : -1;
    if (step.prompts < 0 || !text.take("_cached_")) return {};
    step.sequences = step.new_tokens = text.number();
    return step.sequences < 0 ? std::nullopt : std::optional(step);
  }
  const std::int64_t tokens = text.number();
  if (tokens >= 0 && !text.take("_")) return {};
  if (!text.take("context_")) return {};
  const auto prompts = read_sums(text);
  if (!prompts || !text.take("_generation_")) return {};
  const auto sequences = read_sums(text);
  if (!sequences) return {};
  step.prompts = prompts->requests, step.prompt_tokens = prompts->tokens;
  step.sequences = sequences->requests, step.context = sequences->context;
  // A sequence gets one token, unless the name says otherwise.
  step.new_tokens = sequences->tokens < 0 ? sequences->requests : sequences->tokens;
  if (step.prompt_tokens < 0 && tokens >= step.new_tokens)
    step.prompt_tokens = tokens - step.new_tokens;
  return step;
}

std::optional<ServingStep> sglang_step(std::string_view name) {
  StepText text(name);
  if (!text.take("step[")) return {};
  const std::string_view inner = text.until(']');
  const std::string_view kind = inner.substr(0, inner.find(' '));
  const std::int64_t size = value_of(inner, "bs=");
  if (size < 0) return {};
  ServingStep step;
  step.context = value_of(inner, "g_sk=");
  if (kind == "DECODE") {
    const std::int64_t tokens = value_of(inner, "g_sq=");
    step.sequences = size, step.new_tokens = tokens < 0 ? size : tokens;
  } else if (kind == "MIXED") {
    step.prompts = value_of(inner, "c="), step.sequences = value_of(inner, "g=");
    step.prompt_tokens = value_of(inner, "c_sq="), step.new_tokens = value_of(inner, "g_sq=");
  } else if (kind == "EXTEND" || kind == "TARGET_VERIFY" || kind == "DRAFT_EXTEND") {
    step.prompts = size, step.prompt_tokens = value_of(inner, "toks=");
    if (step.prompt_tokens < 0) step.prompt_tokens = value_of(inner, "c_sq=");
  } else {
    return {};
  }
  return step;
}

std::optional<ServingStep> atom_step(std::string_view name) {
  StepText text(name);
  const bool decodes = text.take("decode[");
  if (!decodes && !text.take("prefill[")) return {};
  const std::string_view inner = text.until(']');
  const std::int64_t size = value_of(inner, "bs="), tokens = value_of(inner, "tok=");
  if (size < 0) return {};
  ServingStep step;
  (decodes ? step.sequences : step.prompts) = size;
  (decodes ? step.new_tokens : step.prompt_tokens) = decodes && tokens < 0 ? size : tokens;
  if (const std::size_t slash = inner.find('/'); slash != inner.npos)
    step.padded = StepText(inner.substr(slash + 1)).number();
  return step;
}

std::optional<ServingStep> tensorrt_step(std::string_view name) {
  StepText text(name);
  if (!text.take("[Executor] _forward_step ") || text.number() < 0 || !text.take(": ")) return {};
  ServingStep step;
  step.prompts = text.number();
  if (step.prompts < 0 || !text.take(" ctx reqs, ")) return {};
  step.sequences = step.new_tokens = text.number();
  if (step.sequences < 0 || !text.take(" gen reqs")) return {};
  step.prompt_tokens = step.prompts == 0 ? 0 : -1;
  if (text.take(", ")) step.prompt_tokens = text.number();
  return step;
}

}  // namespace

std::optional<ServingStep> serving_step(std::string_view name) {
  if (const auto step = vllm_step(name)) return step;
  if (const auto step = sglang_step(name)) return step;
  if (const auto step = atom_step(name)) return step;
  return tensorrt_step(name);
}

std::string kind_of(const ServingStep& step) {
  const std::string decode = "decode of " + (step.sequences < 0 ? "some" : grouped(step.sequences));
  if (step.prompts == 0) return decode;
  const std::string tokens = step.prompt_tokens < 0 ? counted(step.prompts, "prompt")
                                                    : counted(step.prompt_tokens, "token");
  return step.sequences == 0 ? "prefill of " + tokens : "mixed, " + tokens + " and " + decode;
}

}  // namespace foretrace
