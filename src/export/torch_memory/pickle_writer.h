#pragma once

// Writes a pickle of plain data, protocol 4, to a file. Uses only the opcodes that Python itself
// uses for such data, because other readers of these files know no others. A text, or a value
// passed to memoize(), is written once and referred to afterwards.
//
//     writer.begin_dict();
//     writer.text("size"), writer.integer(512);
//     writer.end();

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files/new_file.h"

namespace foretrace {

class PickleWriter {
 public:
  /// This and all other members throw Error if the file cannot be written or grows beyond the limit
  /// of PyTorch's viewer.
  explicit PickleWriter(std::string path);
  PickleWriter(const PickleWriter&) = delete;
  PickleWriter& operator=(const PickleWriter&) = delete;

  void none() { write_opcode('N'); }
  void boolean(bool value) { write_opcode(value ? '\x88' : '\x89'); }
  void integer(std::int64_t value);
  void address(std::uint64_t value);
  void real(double value);
  void text(std::string_view text);

  void begin_list() { begin(']', 'e', 1); }
  void begin_dict() { begin('}', 'u', 2); }
  /// Closes the container begun last. The values in between are its elements, or its keys and
  /// values.
  void end();
  /// Joins the last two values into a tuple.
  void pair();

  /// Returns a number by which repeat() refers to the value written last.
  std::uint32_t memoize();
  void repeat(std::uint32_t number);

  /// Ends the pickle and moves the file to its place.
  void finish();

 private:
  struct OpenContainer {
    char add;           ///< Opcode that adds the values above the mark.
    std::size_t per;    ///< Values per element.
    std::size_t count;  ///< Values since the mark.
  };

  void begin(char make, char add, std::size_t per);
  void write_opcode(char opcode) { before_value(), bytes_ += opcode; }
  /// Prepares for a value. Adds the elements of a container in batches, so that readers do not need
  /// a stack for all of them.
  void before_value();
  void little_endian(std::uint64_t value, int bytes);
  void flush();

  std::string path_;
  NewFile file_;
  std::string bytes_;  ///< Bytes of the frame that is not yet written.
  std::vector<OpenContainer> open_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t memoized_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace foretrace
