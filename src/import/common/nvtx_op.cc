#include "import/common/nvtx_op.h"

#include <algorithm>
#include <charconv>

namespace foretrace {

namespace {

/// Prefixes that only PyTorch's own ranges have; they identify ops in ranges without numbers.
constexpr std::string_view kSpaces[] = {
    "aten::",       "prims::", "prim::", "torch::autograd", "c10d::", "autograd::engine::",
    "torchvision::"};

void skip_blanks(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

/// Removes a number from the front of `text`. Returns nullopt if there is none.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// Removes a list with its brackets from the front of `text` and returns it. Returns an empty text
/// if there is none. PyTorch writes sizes as [[2, 3], []] and inputs as [(7,0), (0,-1)].
std::string_view take_list(std::string_view& text) {
  if (text.empty() || text.front() != '[') return {};
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[') ++depth;
    if (c == ']' && --depth == 0) {
      const std::string_view list = text.substr(0, i + 1);
      text.remove_prefix(i + 1);
      return list;
    }
    if (std::string_view("[]()0123456789-, ").find(c) == std::string_view::npos) return {};
  }
  return {};
}

/// Moves one ", key = value" from the front of `text` into `op`. Returns false if there is none.
bool take_part(std::string_view& text, NvtxOp& op, bool& stashed) {
  if (text.substr(0, 2) != ", ") return false;
  text.remove_prefix(2);
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  std::string_view key = text.substr(0, equals);
  while (!key.empty() && key.back() == ' ') key.remove_suffix(1);
  text.remove_prefix(equals + 1);
  skip_blanks(text);
  if (key == "sizes") return !(op.sizes = take_list(text)).empty();
  if (key == "input_op_ids") return !take_list(text).empty();
  const auto number = take_number(text);
  if (!number) return false;
  if (key == "op_id") return op.record_function = *number, true;
  if (key == "stashed seq") return op.sequence = *number, stashed = true;
  if (key != "seq") return false;
  // A backward op has its own sequence number ("seq") in addition to the one of its forward op
  // ("stashed seq"). The latter links the two.
  if (!stashed) op.sequence = *number;
  return true;
}

/// Position of the first ", key = value".
std::size_t first_part(std::string_view text) {
  for (std::size_t at = text.find(", "); at != std::string_view::npos;
       at = text.find(", ", at + 2)) {
    const std::string_view behind = text.substr(at + 2);
    for (const std::string_view key : {"seq", "stashed seq", "op_id", "sizes"}) {
      if (behind.substr(0, key.size()) != key) continue;
      const std::string_view next = behind.substr(key.size());
      if (next.substr(0, 1) == "=" || next.substr(0, 2) == " =") return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<NvtxOp> parse_nvtx_op(std::string_view text) {
  const std::size_t first = first_part(text);
  if (first == std::string_view::npos) {
    const bool known = std::any_of(std::begin(kSpaces), std::end(kSpaces), [&](auto space) {
      return text.substr(0, space.size()) == space;
    });
    if (!known) return std::nullopt;
    return NvtxOp{.name = text};
  }
  NvtxOp op{.name = text.substr(0, first)};
  std::string_view rest = text.substr(first);
  bool stashed = false;
  while (!rest.empty()) {
    if (!take_part(rest, op, stashed)) return std::nullopt;
  }
  return op.name.empty() ? std::nullopt : std::optional(op);
}

}  // namespace foretrace
