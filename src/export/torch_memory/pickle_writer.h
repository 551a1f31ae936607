#pragma once

// Writes a pickle of plain data, protocol 4, to a file. Uses only the opcodes that Python itself
// uses for such data, because other readers of these files know no others. Texts, and anything else
// the caller marks, are written once and referred to afterwards.
//
//     writer.begin_dict();
//     writer.text("size"), writer.integer(512);
//     writer.end_dict();

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files/new_file.h"

namespace foretrace {

class PickleWriter {
 public:
  /// Throws Error if the file cannot be written or grows beyond the limit of PyTorch's viewer.
  explicit PickleWriter(std::string path);
  PickleWriter(const PickleWriter&) = delete;
  PickleWriter& operator=(const PickleWriter&) = delete;

  void none() { put('N'); }
  void boolean(bool value) { put(value ? '\x88' : '\x89'); }
  void integer(std::int64_t value);
  void address(std::uint64_t value);
  void real(double value);
  void text(std::string_view text);

  void begin_list() { begin(']', 'e', 1); }
  void begin_dict() { begin('}', 'u', 2); }
  /// `end()` closes the container begun last; the values in between are its elements, or keys and
  /// values.
  void end();
  /// A tuple of the last two values.
  void pair();

  /// A number by which the value written last can be used again.
  std::uint32_t remember();
  void again(std::uint32_t number);

  /// Ends the pickle and moves the file to its place.
  void finish();

 private:
  struct Open {
    char add;           ///< Opcode that adds the values above the mark.
    std::size_t per;    ///< Values per element.
    std::size_t count;  ///< Values since the mark.
  };

  void begin(char make, char add, std::size_t per);
  void put(char opcode) { before_value(), bytes_ += opcode; }
  /// Elements are added a few at a time, so that no reader needs a stack for all of them.
  void before_value();
  void little_endian(std::uint64_t value, int bytes);
  void flush();

  std::string path_;
  NewFile file_;
  std::string bytes_;  ///< Bytes of the frame that is not yet written.
  std::vector<Open> open_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t remembered_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace foretrace
