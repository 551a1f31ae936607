#include "export/anonymize/text_anonymizer.h"

#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "export/anonymize/public_words.h"
#include "export/common/copy_name.h"

namespace foretrace {
namespace {

constexpr std::string_view kDigits = "0123456789";

/// The parts of a frame: "train.py", "(88): " and "step" of "train.py(88): step" in a profiler's
/// trace; "train.py", ":88 " and "step" of "train.py:88 step" in a memory snapshot.
struct QuotedFrame {
  std::string_view path, line, function;
};

std::optional<QuotedFrame> quoted_frame(std::string_view text) {
  const std::size_t close = text.find("): ");
  if (close != std::string_view::npos) {
    const std::size_t open = text.find_last_not_of(kDigits, close - (close > 0 ? 1 : 0));
    if (open != std::string_view::npos && text[open] == '(' && open + 1 < close)
      return QuotedFrame{text.substr(0, open), text.substr(open, close + 3 - open),
                         text.substr(close + 3)};
  }
  for (std::size_t blank = text.find(' '); blank != std::string_view::npos;
       blank = text.find(' ', blank + 1)) {
    const std::size_t colon = text.find_last_not_of(kDigits, blank - (blank > 0 ? 1 : 0));
    if (colon != std::string_view::npos && text[colon] == ':' && colon + 1 < blank)
      return QuotedFrame{text.substr(0, colon), text.substr(colon, blank + 1 - colon),
                         text.substr(blank + 1)};
  }
  return std::nullopt;
}

std::string_view ending_of(std::string_view file) {
  for (const std::string_view ending : {".py", ".cpp", ".cc", ".cu", ".h", ".so", ".c"}) {
    if (file.ends_with(ending) && file.size() > ending.size()) return ending;
  }
  return {};
}

}  // namespace

bool TextAnonymizer::is_kept(std::string_view word) const {
  return std::find(settings_.keep.begin(), settings_.keep.end(), word) != settings_.keep.end();
}

std::string TextAnonymizer::keep(std::string_view text) {
  if (text.find_first_not_of("0123456789.,- []\"") != std::string_view::npos)
    texts_.kept.emplace(text);
  return std::string(text);
}

std::string TextAnonymizer::word(std::string_view text) {
  if (text.find_first_not_of("0123456789") == std::string_view::npos) return std::string(text);
  if (is_kept(text)) return keep(text);
  texts_.hidden.emplace(text);
  return hash_(text);
}

std::string TextAnonymizer::op(std::string_view name) {
  if (name.empty()) return {};
  if (is_public_op(name) || is_kept(name)) return keep(name);
  constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
  if (name.starts_with(kEngine)) return keep(kEngine) + autograd_node(name.substr(kEngine.size()));
  if (is_public_autograd_node(name) || name.starts_with("torch::autograd::"))
    return autograd_node(name);
  const bool is_plain = name.find_first_of(": /(") == std::string_view::npos;
  if (is_plain && name.ends_with("Backward")) return autograd_node(name);
  for (const std::string_view prefix :
       {"Optimizer.step#", "Optimizer.zero_grad#", "Optimizer.", "enumerate(DataLoader)#",
        "enumerate(DataLoader)", "nn.Module: "}) {
    if (name.starts_with(prefix)) return keep(prefix) + word(name.substr(prefix.size()));
  }
  for (const std::string_view prefix : {"nccl:", "gloo:", "mpi:", "ucc:"}) {
    if (name.starts_with(prefix)) return keep(prefix) + collective(name.substr(prefix.size()));
  }
  return word(name);
}

std::string TextAnonymizer::autograd_node(std::string_view name) {
  constexpr std::string_view kSpace = "torch::autograd::";
  constexpr std::string_view kSuffix = "Backward";
  if (is_public_autograd_node(name) || is_kept(name)) return keep(name);
  if (name.starts_with(kSpace)) return keep(kSpace) + word(name.substr(kSpace.size()));
  if (name.ends_with(kSuffix) && name.size() > kSuffix.size())
    return word(name.substr(0, name.size() - kSuffix.size())) + keep(kSuffix);
  return word(name);
}

std::string TextAnonymizer::call(std::string_view name) {
  if (name.empty()) return {};
  if (is_public_call(name) || is_kept(name)) return keep(name);
  std::string hidden = word(name);
  for (const std::string_view sign :
       {"EventRecord", "Async", "LaunchKernel", "LaunchCooperativeKernel", "StreamWaitEvent",
        "Synchronize"}) {
    if (name.find(sign) != std::string_view::npos) hidden += "_" + keep(sign);
  }
  return hidden;
}

std::string TextAnonymizer::path(std::string_view text) {
  std::string hidden;
  while (!text.empty()) {
    const std::size_t slash = std::min(text.find_first_of("/\\"), text.size());
    const std::string_view part = text.substr(0, slash);
    const std::string_view ending = ending_of(part);
    const bool has_no_word = part.find_first_not_of("._") == std::string_view::npos;
    if (is_kept(part)) {
      hidden += keep(part);
    } else {
      hidden += has_no_word ? std::string(part) : word(part.substr(0, part.size() - ending.size()));
      hidden += ending;
    }
    if (slash < text.size()) hidden += text[slash];
    text.remove_prefix(std::min(slash + 1, text.size()));
  }
  return hidden;
}

std::string TextAnonymizer::frame(std::string_view text) {
  constexpr std::string_view kModule = "nn.Module: ";
  if (text.starts_with(kModule)) {
    const std::string_view name = text.substr(kModule.size());
    const std::size_t digits = name.find_last_not_of(kDigits) + 1;
    // "Linear_3" is an instance of Linear; the number of the instance stays.
    const bool numbered = digits < name.size() && digits > 1 && name[digits - 1] == '_';
    const std::size_t end = numbered ? digits - 1 : name.size();
    return keep(kModule) + word(name.substr(0, end)) + std::string(name.substr(end));
  }
  if (is_public_op(text)) return keep(text);
  if (const auto frame = quoted_frame(text))
    return path(frame->path) + std::string(frame->line) + word(frame->function);
  return word(text);
}

std::string TextAnonymizer::stack(std::string_view text) {
  std::string hidden;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    hidden += frame(text.substr(0, end));
    if (end < text.size()) hidden += ';';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return hidden;
}

std::string TextAnonymizer::kernel(std::string_view name) {
  if (name.empty()) return {};
  if (is_kept(name)) return keep(name);
  const std::string_view bare = name.substr(0, name.find('('));
  if (is_public_collective_kernel(bare)) return keep(bare);
  std::string hidden =
      settings_.kernel_words == nullptr ? std::string() : settings_.kernel_words(name);
  if (!hidden.empty()) keep(hidden);
  // Kernels of collectives are recognized by these words in their exact case.
  for (const std::string_view sign : {"nccl", "rccl", "msccl", "AllReduce", "all_reduce"}) {
    const bool is_there = hidden.find(sign) != std::string::npos;
    if (name.find(sign) != std::string_view::npos && !is_there)
      hidden += (hidden.empty() ? "" : "-") + keep(sign);
  }
  return fmt::format("{}-{}", hidden.empty() ? "kernel" : hidden, word(name));
}

std::string TextAnonymizer::copy(const DeviceRecord& record, std::string_view name) {
  if (is_public_copy(name) || is_kept(name)) return keep(name);
  if (record.kind == DeviceKind::fill) return keep("Memset (Device)");
  texts_.hidden.emplace(name);
  Trace unnamed;  // Without a name, copy_name() makes one from the direction.
  return keep(copy_name(unnamed, [&] {
    DeviceRecord nameless = record;
    nameless.name = NameId{};
    return nameless;
  }()));
}

template <class Rule>
std::string TextAnonymizer::each_string(std::string_view json, Rule&& rule) {
  std::string hidden;
  for (std::size_t i = 0; i < json.size();) {
    const std::size_t open = std::min(json.find('"', i), json.size());
    const std::string_view between = json.substr(i, open - i);
    hidden += is_public_value(between) ? std::string(between) : word(between);
    if (open == json.size()) break;
    std::size_t close = open + 1;
    while (close < json.size() && json[close] != '"') close += json[close] == '\\' ? 2U : 1U;
    close = std::min(close, json.size());
    hidden += '"' + rule(json.substr(open + 1, close - open - 1));
    if (close < json.size()) hidden += '"';
    i = close + 1;
  }
  return hidden;
}

std::string TextAnonymizer::shapes(std::string_view json) {
  if (settings_.drop_shapes) return {};
  return is_public_value(json) ? std::string(json) : word(json);
}

std::string TextAnonymizer::type(std::string_view name) {
  return is_public_type(name) || is_kept(name) ? keep(name) : word(name);
}

std::string TextAnonymizer::types(std::string_view json) {
  if (settings_.drop_shapes) return {};
  if (!json.starts_with('[')) return type(json);
  return each_string(json, [&](std::string_view text) { return type(text); });
}

std::string TextAnonymizer::values(std::string_view json) {
  if (settings_.drop_shapes) return {};
  if (!json.starts_with('[')) return is_public_value(json) ? std::string(json) : word(json);
  return each_string(json, [&](std::string_view text) {
    return is_public_value(text) ? std::string(text) : word(text);
  });
}

std::string TextAnonymizer::collective(std::string_view name) {
  return is_public_collective(name) || is_kept(name) ? keep(name) : word(name);
}

}  // namespace foretrace
