#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "export/anonymize/public_words.h"
#include "export/anonymize/word_hash.h"
#include "export/common/profiler_words.h"
#include "foretrace/export.h"

namespace foretrace {
namespace {

// Converts the texts of a trace to texts that reveal nothing about the program, with one rule for
// each kind of text.

class TextAnonymizer {
 public:
  TextAnonymizer(const Anonymization& settings, AnonymizedTexts& texts)
      : settings_(settings), texts_(texts), hash_(settings.salt) {}

  std::string op(std::string_view name);
  /// Converts names of ops that are joined by '/'.
  std::string ops(std::string_view path);
  std::string call(std::string_view name);
  std::string frame(std::string_view text);
  /// Converts frames that are joined by ';'.
  std::string stack(std::string_view text);
  std::string kernel(std::string_view name);
  std::string copy(const DeviceRecord& record, std::string_view name);
  std::string shapes(std::string_view json);
  std::string types(std::string_view json);
  std::string values(std::string_view json);
  std::string collective(std::string_view name);
  std::string type(std::string_view name);
  /// Converts the name of a group or a thread, and any text of an unknown kind.
  std::string word(std::string_view text);
  std::string keep(std::string_view text);

 private:
  std::string path(std::string_view text);
  std::string autograd_node(std::string_view name);
  bool is_kept(std::string_view word) const;
  /// Converts each string of a JSON list by `rule`.
  template <class Rule>
  std::string each_string(std::string_view json, Rule&& rule);

  const Anonymization& settings_;
  AnonymizedTexts& texts_;
  WordHash hash_;
};

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

std::string TextAnonymizer::ops(std::string_view path) {
  std::string hidden;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    hidden += (at == 0 ? "" : "/") + op(path.substr(at, end - at));
    at = end + 1;
  }
  return hidden;
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

constexpr std::uint64_t kPage = std::uint64_t{2} << 20;  ///< A page of the driver's memory.

class Anonymizer {
 public:
  Anonymizer(const Trace& trace, const Anonymization& settings, AnonymizedTexts& texts)
      : from_(trace), settings_(settings), anonymizer_(settings, texts) {}

  Trace run() {
    copy_tables();
    for (HostRecord& record : to_.hosts) hide(record);
    for (DeviceRecord& record : to_.devices) hide(record);
    for (OpDetails& details : to_.op_details) hide(details);
    for (CapturedNode& node : to_.captured) hide(node);
    for (CollectiveDetails& details : to_.collectives) hide(details);
    hide_memory();
    for (TensorRecord& tensor : to_.tensors) {
      rename(tensor.type, Rule::type);
      rename(tensor.shape, Rule::shapes);
    }
    for (Thread& thread : to_.threads) thread.name = anonymizer_.word(thread.name);
    for (const Device& device : to_.properties) anonymizer_.keep(device.name);
    for (const auto& [key, json] : from_.metadata) {
      if (is_public_metadata(key, json)) to_.metadata.emplace(key, json), anonymizer_.keep(key);
    }
    return std::move(to_);
  }

 private:
  enum class Rule {
    op,
    path,
    call,
    frame,
    stack,
    kernel,
    shapes,
    types,
    values,
    type,
    collective,
    word
  };

  void copy_tables() {
    to_.hosts = from_.hosts;
    to_.devices = from_.devices;
    to_.graph_edges = from_.graph_edges;
    to_.captured = from_.captured;
    to_.syncs = from_.syncs;
    to_.memory = from_.memory;
    to_.segments = from_.segments;
    to_.blocks = from_.blocks;
    to_.links = from_.links;
    to_.tensors = from_.tensors;
    to_.op_details = from_.op_details;
    to_.collectives = from_.collectives;
    to_.launches = from_.launches;
    to_.threads = from_.threads;
    to_.streams = from_.streams;
    to_.properties = from_.properties;
    to_.rank = from_.rank;
    to_.world_size = from_.world_size;
    to_.origin_ns = settings_.keep_time ? from_.origin_ns : 0;
    to_.tick_ns = from_.tick_ns;
    to_.has_times = from_.has_times;
    to_.format = from_.format;
  }

  std::string hidden(std::string_view text, Rule rule) {
    switch (rule) {
      case Rule::op:
        return anonymizer_.op(text);
      case Rule::path:
        return anonymizer_.ops(text);
      case Rule::call:
        return anonymizer_.call(text);
      case Rule::frame:
        return anonymizer_.frame(text);
      case Rule::stack:
        return anonymizer_.stack(text);
      case Rule::kernel:
        return anonymizer_.kernel(text);
      case Rule::shapes:
        return anonymizer_.shapes(text);
      case Rule::types:
        return anonymizer_.types(text);
      case Rule::values:
        return anonymizer_.values(text);
      case Rule::type:
        return anonymizer_.type(text);
      case Rule::collective:
        return anonymizer_.collective(text);
      case Rule::word:
        return anonymizer_.word(text);
    }
    return {};
  }

  void rename(NameId& id, Rule rule) {
    if (id == NameId{}) return;
    const auto [known, added] = known_.try_emplace({rule, id});
    if (added) known->second = to_.names.intern(hidden(from_.names[id], rule));
    id = known->second;
  }

  void hide(HostRecord& record) {
    rename(record.name, is_call(record.kind)              ? Rule::call
                        : record.kind == HostKind::python ? Rule::frame
                                                          : Rule::op);
  }

  void hide(DeviceRecord& record) {
    if (record.kind == DeviceKind::kernel) return rename(record.name, Rule::kernel);
    if (record.kind == DeviceKind::annotation) return rename(record.name, Rule::op);
    record.name = to_.names.intern(anonymizer_.copy(record, from_.names[record.name]));
  }

  void hide(OpDetails& details) {
    rename(details.shapes, Rule::shapes);
    rename(details.types, Rule::types);
    rename(details.values, Rule::values);
    rename(details.stack, Rule::stack);
    rename(details.kernel, Rule::kernel);
  }

  void hide(CapturedNode& node) {
    rename(node.path, Rule::path);
    rename(node.op, Rule::op);
    rename(node.shapes, Rule::shapes);
    rename(node.types, Rule::types);
    rename(node.values, Rule::values);
    rename(node.module, Rule::word);
    rename(node.stack, Rule::stack);
  }

  void hide(CollectiveDetails& details) {
    rename(details.collective, Rule::collective);
    rename(details.dtype, Rule::type);
    rename(details.group, Rule::word);
    rename(details.ranks, Rule::values);
  }

  void hide_memory() {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    const auto each_address = [&](auto&& visit) {
      for (MemoryRecord& record : to_.memory) visit(record.address);
      for (MemorySegment& segment : to_.segments) visit(segment.address);
      for (MemoryBlock& block : to_.blocks) visit(block.address);
    };
    each_address([&](std::uint64_t address) {
      if (address != 0) least = std::min(least, address);
    });
    const std::uint64_t base = least / kPage * kPage;
    each_address([&](std::uint64_t& address) {
      if (address != 0) address = address - base + kPage;
    });
    for (MemoryRecord& record : to_.memory) rename(record.stack, Rule::stack);
    for (MemorySegment& segment : to_.segments) {
      rename(segment.stack, Rule::stack);
      rename(segment.pool, Rule::values);
    }
    for (MemoryBlock& block : to_.blocks) rename(block.stack, Rule::stack);
  }

  const Trace& from_;
  const Anonymization& settings_;
  TextAnonymizer anonymizer_;
  Trace to_;
  std::map<std::pair<Rule, NameId>, NameId> known_;
};

}  // namespace

Trace anonymize(const Trace& trace, const Anonymization& settings, AnonymizedTexts& texts) {
  return Anonymizer(trace, settings, texts).run();
}

}  // namespace foretrace
