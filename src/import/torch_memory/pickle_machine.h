#pragma once

// The machine that runs a pickle: a stack of values, marks that delimit parts of the stack, and a
// memo of values for reuse. Each opcode takes values from the stack and pushes its result.

#include <fmt/core.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/torch_memory/pickle.h"
#include "import/torch_memory/pickle_numbers.h"

namespace foretrace {

constexpr unsigned kNewestPickleProtocol = 5;

class PickleMachine {
 public:
  PickleMachine(std::string bytes, PickleCalls calls)
      : calls_(calls), all_(data_.keep(std::move(bytes))), rest_(all_) {}

  PlainData run();

 private:
  [[noreturn]] void fail(const std::string& what) const;

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) {
      fail(fmt::format("is cut off: it needs {} more bytes and has {}", size, rest_.size()));
    }
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    return taken;
  }
  std::uint64_t take_number(std::size_t size) { return little_endian(take(size)); }
  std::string_view take_line() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) fail("is cut off inside a line");
    const std::string_view line = take(end);
    take(1);
    return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
  }

  void push(PlainValue value) { stack_.push_back(value); }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PlainValue& top() {
    if (stack_.size() <= floor()) fail("takes more values than there are");
    return stack_.back();
  }
  PlainValue pop() {
    const PlainValue value = top();
    stack_.pop_back();
    return value;
  }
  /// Removes the last mark and returns the position of the first value above it.
  std::size_t pop_mark() {
    if (marks_.empty()) fail("takes values up to a mark that does not exist");
    const std::size_t from = marks_.back();
    marks_.pop_back();
    return from;
  }
  std::span<const PlainValue> above(std::size_t from) const {
    return std::span(stack_).subspan(from);
  }

  // Each of these runs one kind of operation. It returns false, and does nothing, if the opcode is
  // of another kind.
  bool make_number(unsigned opcode);
  bool make_text(unsigned opcode);
  bool make_container(unsigned opcode);
  bool use_memo(unsigned opcode);
  bool arrange(unsigned opcode);
  bool call(unsigned opcode);

  void push_long(std::string_view bytes);
  void push_line_integer(std::string_view line);
  void push_decoded(std::optional<std::string> text);
  void push_of(PlainKind kind, std::size_t from);
  void append(PlainKind kind, std::size_t from);
  void put(std::uint64_t slot);
  void get(std::uint64_t slot);
  std::uint64_t slot_in_line();
  void read_frame();
  void push_callable(std::string_view module, std::string_view name);
  void reduce();
  void make_object();
  void set_state();
  [[noreturn]] void refuse_call(const std::string& what) const;

  PickleCalls calls_;
  PlainData data_;
  std::string_view all_, rest_;
  std::size_t operation_ = 0;  ///< Position at which the current operation begins.
  std::vector<PlainValue> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PlainValue> memo_;
  std::vector<bool> filled_;  ///< Which slots of the memo are used.
  std::size_t memoized_ = 0;
  bool stopped_ = false;
};

}  // namespace foretrace
